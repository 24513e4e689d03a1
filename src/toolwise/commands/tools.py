"""`toolwise tools`: which tools there are, a prompt begun for one's own, and a dry run before a long one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from toolwise.commands.common import (
    DEFAULT_MODEL,
    JsonOption,
    ModelOption,
    PresetOption,
    SettingsOption,
    TaughtOption,
    ToolOptionsOption,
    examples,
    print_json,
    say,
    show,
    table,
    tell_left_out,
    tool_names,
)
from toolwise.console import progress_bar, screen
from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.core.types import Tool

app = typer.Typer(name="tools", help="Tools to teach: the package's, and your own.", no_args_is_help=True)

TOOLS = "Tools, with commas between: names of the package's, files of yours (mine.py, api.yaml), mcp:servers.toml."
ToolsArgument = Annotated[str, typer.Argument(metavar="TOOLS", help=TOOLS)]


@app.command(
    "list",
    epilog=examples(
        "toolwise tools list",
        "toolwise tools list mine.py,Search --option Search.index=wiki-vital",
        "toolwise tools list mcp:servers.toml",
    ),
)
def list_(
    tools: Annotated[str | None, typer.Argument(metavar="[TOOLS]", help=f"{TOOLS} Default: the package's own.")] = None,
    option: ToolOptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Each tool: what it may do, its arguments, what it is for, and what stands behind it."""
    from toolwise.models.toolbox import package_tools, parse_options

    options = parse_options(option or ())
    if tools is None:
        found = [each for name in package_tools() for each in _made_or_missing(name, options)]
        stray = [name for name in options if name not in package_tools()]
        if stray:
            raise BadInput(f"There are options for {stray[0]!r}, which is no tool of the package; name it as well.")
    else:
        found = list(_made(tool_names(tools), options))
    if as_json:
        print_json([each.as_json() for each in found])
        return
    table(("tool", "effect", "arguments", "what it is for", "behind it"), [each.cells() for each in found if each.tool])
    for each in found:
        if each.missing:
            say(f"{each.name} cannot be made here: {each.missing}")
    for name, takes in package_tools().items():
        if takes and any(each.name == name for each in found):
            say(f"Options of {name}: {', '.join(f'{key}={value}' for key, value in takes.items())}")


@app.command(
    epilog=examples(
        "toolwise tools draft mine.py --out prompts.toml",
        "toolwise annotate texts.jsonl --tools mine.py --settings prompts.toml --out run",
    )
)
def draft(
    tools: ToolsArgument,
    option: ToolOptionsOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A new file, instead of printing it.")] = None,
) -> None:
    """Print what a model is shown so that it proposes calls, to be edited and given back by --settings.

    For a tool without examples it begins two lines that show how a call is written. They are refused until you have
    written texts of your own in their place.
    """
    from toolwise.core.durable import write_output
    from toolwise.models.toolbox import parse_options, toolbox
    from toolwise.teach.draft import TO_EDIT, as_toml
    from toolwise.teach.lessons import prompt_of

    sources = tool_names(tools)
    made = toolbox(sources, parse_options(option or ())).registry
    prompts = [prompt_of(tool, sources, unfinished=True) for tool in made.values()]
    written = as_toml(prompts)
    if out is None:
        show(written.rstrip("\n"))
        return
    if out.exists():
        raise BadInput(f"{str(out)!r} exists already, and may have been edited; give a new file.")
    write_output(out, written)
    begun = [prompt.tool for prompt in prompts if any(example.startswith(TO_EDIT) for example in prompt.examples)]
    say(f"{out}: write your own examples for {', '.join(begun)} first." if begun else f"{out}: ready for --settings.")


@app.command(
    "try",
    epilog=examples(
        "toolwise tools try texts.jsonl --tools mine.py",
        "toolwise tools try texts.jsonl --tools mine.py --settings prompts.toml --documents 10 --json",
    ),
)
def try_(
    corpus: Annotated[Path, typer.Argument(help="Plain texts, as annotate takes them.")],
    tools: TaughtOption = None,
    option: ToolOptionsOption = None,
    documents: Annotated[int, typer.Option(min=1, help="How many to try, from the first on.")] = 5,
    passages: Annotated[int, typer.Option(min=1, help="How many of each document.")] = 1,
    model: ModelOption = DEFAULT_MODEL,
    preset: PresetOption = "small",
    settings: SettingsOption = None,
    threads: Annotated[int | None, typer.Option(min=1, max=LIMITS.threads, help="CPU threads; default: all.")] = None,
    as_json: JsonOption = False,
) -> None:
    """A dry run before a long one: what is proposed in a few texts, what becomes of it, and how long all would take.

    Nothing is written. Every proposal is shown at its place with its result, its losses and its reason.
    """
    from toolwise.models.load import load_model
    from toolwise.models.toolbox import parse_options
    from toolwise.teach.config import load_settings
    from toolwise.teach.trial import render_trial, to_json, try_tools

    wanted = load_settings(preset, tool_names(tools), settings, parse_options(option or ()))
    with progress_bar() as bar:
        task = bar.add_task("try", total=None)
        trial = try_tools(
            corpus,
            lambda: load_model(model, threads=threads),
            wanted,
            documents=documents,
            each=passages,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        print_json(to_json(trial))
    else:
        screen().print(render_trial(trial))


@dataclass(frozen=True, slots=True)
class _Listed:
    """A tool with what stands behind it, or the name of one that cannot be made and why."""

    name: str
    tool: Tool | None = None
    behind: str = ""
    missing: str = ""

    def cells(self) -> tuple[str, str, str, str, str]:
        assert self.tool is not None
        return (
            self.name,
            self.tool.effect.value,
            _arguments(self.tool),
            self.tool.description.partition("\n")[0],
            self.behind or "nothing",
        )

    def as_json(self) -> dict[str, Any]:
        from toolwise.tools.registry import definition

        if self.tool is None:
            return {"name": self.name, "missing": self.missing}
        return {**definition(self.tool), "examples": list(self.tool.examples), "behind": self.behind}


def _made(sources: tuple[str, ...], options: Any) -> Iterator[_Listed]:
    from toolwise.models.toolbox import toolbox

    box = toolbox(sources, options)
    tell_left_out(box)
    for name, tool in box.registry.items():
        yield _Listed(name, tool, box.identity.get(name, ""))


def _made_or_missing(source: str, options: Any) -> Iterator[_Listed]:
    try:
        yield from _made((source,), {name: said for name, said in options.items() if name == source})
    except ToolwiseError as error:
        yield _Listed(source, missing=str(error))


def _arguments(tool: Tool) -> str:
    """`city: string, days: integer = 3, unit: C or F (optional)`"""
    required = tool.parameters.get("required", ())
    return ", ".join(
        f"{name}: {_kind(schema)}" + ("" if name in required else _default(schema))
        for name, schema in tool.parameters.get("properties", {}).items()
    )


def _default(schema: Any) -> str:
    if not isinstance(schema, Mapping) or schema.get("default") is None:
        return " (optional)"
    return f" = {schema['default']}"


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):  # JSON Schema's true
        return "anything"
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kinds = schema.get("type", ())
    unions = schema.get("anyOf") or schema.get("oneOf") or ()
    return " or ".join([kinds] if isinstance(kinds, str) else [*kinds, *map(_kind, unions)]) or "anything"
