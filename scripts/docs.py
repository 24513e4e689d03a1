"""The pages of docs/ that are made from the code: commands, errors, limits, settings, reasons, tasks, cases.

Each page is a function without arguments that gives the whole text, so that a test can compare it with the file. What
has no explanation in the code is refused, so that a new bound or setting cannot come without one.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from typer.main import get_command

import toolwise.cli
import toolwise.console
from toolwise.core import errors as tree
from toolwise.core.errors import ToolwiseError
from toolwise.core.limits import LIMITS, Limits
from toolwise.evals.tasks import FAMILIES, rules
from toolwise.evals.tasks.base import REASONS
from toolwise.teach.config import OTHER, PRESETS, Control, PromptSettings, Settings, ToolSettings
from toolwise.teach.report.reasons import STAGES
from toolwise.teach.training.settings import TrainSettings

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

# What pages are made of


def page(title: str, source: str, *parts: str) -> str:
    """A whole page; `source` is what to change instead of it."""
    note = f"<!-- Made by scripts/docs from {source}; change that and run it again. -->"
    return "\n\n".join([f"# {title}", note, *parts]) + "\n"


def section(title: str, *parts: str) -> str:
    return "\n\n".join([f"## {title}", *parts])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: object) -> str:
    return f"`{text}`"


def explained(text: str | None, what: str) -> str:
    """An explanation on one line. Raises ValueError where there is none."""
    said = " ".join((text or "").split())
    if not said:
        raise ValueError(f"{what} has no explanation: write one where it is defined, it goes into the documentation")
    return said


@dataclass(frozen=True)
class Field:
    """A field of a class as its source has it: the comment line above its group, and the comment behind it."""

    name: str
    group: str
    comment: str


def fields_of(source: str) -> Iterator[Field]:
    """The annotated fields of the one class in `source`."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token for token in tokens if token.type == tokenize.COMMENT}
    said = {line: token.string.lstrip("# ") for line, token in comments.items()}
    groups = [line for line, token in comments.items() if token.line.lstrip().startswith("#")]
    (made,) = ast.parse(source).body
    assert isinstance(made, ast.ClassDef)
    for node in made.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = max((line for line in groups if line < node.lineno), default=0)
            yield Field(node.target.id, said.get(above, ""), said.get(node.end_lineno or 0, ""))


def toml(value: Any) -> str:
    """A setting as a TOML file has it; `-` for none."""
    match value:
        case None:
            return "-"
        case BaseModel():
            return f"{{{', '.join(f'{name} = {toml(item)}' for name, item in value)}}}"
        case tuple() | list():
            return f"[{', '.join(map(toml, value))}]"
        case dict() if not value:
            return "-"
    return json.dumps(value)


def accepted(schema: Mapping[str, Any]) -> str:
    """What a JSON Schema takes, in words."""
    if "anyOf" in schema:
        return ", or ".join(filter(None, map(accepted, schema["anyOf"])))
    if "$ref" in schema:
        return "a table (below)"
    if "enum" in schema or "const" in schema:
        return ", ".join(code(json.dumps(one)) for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"a list of {accepted(schema['items'])}"
    if schema.get("type") == "object":
        return "tables by name"
    words = {"boolean": "true or false", "integer": "whole number", "number": "number", "string": "text", "null": ""}
    bounds = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    said = [f"{word} {schema[name]:g}" for name, word in bounds.items() if name in schema]
    return ", ".join([words[schema["type"]], *said])


# Commands


def commands() -> str:
    root = get_command(toolwise.cli.app)
    found = list(_commands("toolwise", root))
    exits = next(part for part in (inspect.getdoc(toolwise.cli) or "").split("\n\n") if part.startswith("Exit codes"))
    listed = [[f"[{name}](#{name.replace(' ', '-')})", _first(command.help, name)] for name, command in found]
    alone = " ".join(f"`toolwise {option.opts[0]}`: {explained(option.help, option.name)}" for option in root.params)
    parts = [alone, table(["command", "what it does"], listed), *(_command(name, command) for name, command in found)]
    return page("Commands", "src/toolwise/cli.py and src/toolwise/commands", explained(exits, "exit codes"), *parts)


def _commands(name: str, group: Any) -> Iterator[tuple[str, Any]]:
    for child, command in group.commands.items():
        if hasattr(command, "commands"):
            if command.invoke_without_command and command.params:  # a command itself
                yield f"{name} {child}", command
            yield from _commands(f"{name} {child}", command)
        else:
            yield f"{name} {child}", command


def _command(name: str, command: Any) -> str:
    shown = [parameter for parameter in command.params if not parameter.hidden]
    given = [_usage(parameter) for parameter in shown if parameter.required or not _is_option(parameter)]
    usage = f"```sh\n{' '.join([name, *given, '[options]'] if any(map(_is_option, shown)) else [name, *given])}\n```"
    rows = [[_names(parameter), _default(parameter), _meaning(parameter, name)] for parameter in shown]
    said = [explained(paragraph, name) for paragraph in inspect.cleandoc(command.help or "").split("\n\n")]
    lines = (command.epilog or "").split("\n\n")[1:]
    examples = ["```sh\n" + "\n".join(lines) + "\n```"] if lines else []
    return section(name, *said, usage, table(["", "default", "meaning"], rows), *examples)


def _first(help_: str | None, name: str) -> str:
    return explained((help_ or "").split("\n\n")[0], name)


def _is_option(parameter: Any) -> bool:
    return bool(parameter.opts[0].startswith("-"))


def _usage(parameter: Any) -> str:
    name = parameter.name.upper()
    if _is_option(parameter):
        return f"{parameter.opts[0]} {name}"
    return str(name if parameter.required else f"[{name}]")


def _names(parameter: Any) -> str:
    if not _is_option(parameter):
        return code(parameter.name.upper())
    return ", ".join(map(code, [*parameter.opts, *parameter.secondary_opts]))


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default in (None, False):
        return ""
    return code(json.dumps(parameter.default, default=str).strip('"'))


def _meaning(parameter: Any, command: str) -> str:
    said = explained(parameter.help, f"{parameter.name} of {command}")
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    bounds = [f"{word} {bound}" for word, bound in (("at least", least), ("at most", most)) if bound is not None]
    more = [", ".join(bounds).capitalize() + "."] if bounds else []
    if parameter.multiple and "given" not in said:
        more.append("May be given several times.")
    return " ".join([said, *more])


# Errors


def errors() -> str:
    intro = (
        "Every refusal and every failure is one of these. `code` is stable; the group says who can act; *retry* says "
        "whether the same request can succeed later without anybody changing it. A call's error reaches the model as a "
        "result whose text begins with `Error (code):`; an error of a command is one line on standard error."
    )
    groups = [group for group in ToolwiseError.__subclasses__() if group.__module__ == tree.__name__]
    return page("Errors", "src/toolwise/core/errors.py", intro, *map(_group, groups))


def _group(group: type[ToolwiseError]) -> str:
    drawn = re.search(rf"{group.__name__} +(.+)", inspect.getdoc(tree) or "")
    said = explained(drawn and drawn[1], group.__name__)
    exits = (
        f"`actor` is `{group.actor}`; a command that ends so exits with {toolwise.console.EXIT.get(group.actor, 1)}."
    )
    rows = [
        [code(leaf.__name__), code(leaf.code), "yes" if leaf.retryable else "no", explained(leaf.__doc__, leaf.code)]
        for leaf in group.__subclasses__()
    ]
    lines = table(["class", "code", "retry", "meaning"], rows)
    return section(group.__name__, f"{said[0].upper()}{said[1:]}. {exits}", lines)


# Limits


def limits() -> str:
    intro = (
        "Every bound on what comes from a model, a tool, a file or a person. All are on by default; what takes "
        "`limits` takes others as well: `dataclasses.replace(LIMITS, call_seconds=2.0)`."
    )
    groups: dict[str, list[list[str]]] = {}
    for field in fields_of(inspect.getsource(Limits)):
        row = [code(field.name), _amount(field.name, getattr(LIMITS, field.name))]
        groups.setdefault(field.group, []).append([*row, explained(field.comment, field.name)])
    parts = [section(name, table(["bound", "value", "reason"], rows)) for name, rows in groups.items()]
    return page("Limits", "src/toolwise/core/limits.py", intro, *parts)


def _amount(name: str, value: float) -> str:
    for size, unit in ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB")):
        if name.endswith("_bytes") and value % size == 0:
            return f"{value // size} {unit}"
    return f"{value:,}"


# Settings


def settings() -> str:
    intro = (
        "`toolwise annotate --preset NAME --settings FILE` takes a preset and puts the TOML file over it; "
        "[teach.md](teach.md) explains the method. `toolwise train --settings FILE --set name=value` takes the "
        "defaults, puts the file over them and each `--set` over both; [train.md](train.md) explains it."
    )
    tools = {
        f"{preset}: {name}": own
        for preset, run in PRESETS.items()
        for name, own in [*run.tools.items(), ("any other", OTHER[preset])]
    }
    return page(
        "Settings",
        "src/toolwise/teach/config.py and src/toolwise/teach/training/settings.py",
        intro,
        section("Annotation: a run", _annotation(Settings, PRESETS)),
        section("Annotation: a tool, `[tools.NAME]`", _annotation(ToolSettings, tools)),
        section("Annotation: a measured threshold, `tau_f = {alpha = ..., floor = ...}`", _annotation(Control, {})),
        section("Annotation: a prompt, `[prompts.NAME]`", _annotation(PromptSettings, {})),
        section("Training", _training()),
    )


def _annotation(model: type[BaseModel], presets: Mapping[str, BaseModel]) -> str:
    schema, rows = model.model_json_schema()["properties"], []
    for field in fields_of(inspect.getsource(model)):
        if field.name == "tools":  # the next table
            continue
        info, set_ = model.model_fields[field.name], [getattr(preset, field.name) for preset in presets.values()]
        default = "required" if info.is_required() else code(toml(info.default))
        said = [accepted(schema[field.name]), explained(field.comment, field.name)]
        rows.append([code(field.name), *(code(toml(value)) for value in set_), default, *said])
    return table(["setting", *presets, "default", "accepts", "meaning"], rows)


def _training() -> str:
    schema, default = TypeAdapter(TrainSettings).json_schema()["properties"], TrainSettings()
    rows = []
    for field in fields_of(inspect.getsource(TrainSettings)):
        said = [accepted(schema[field.name]), explained(field.comment, field.name)]
        rows.append([code(field.name), code(toml(getattr(default, field.name))), *said])
    return table(["setting", "default", "accepts", "meaning"], rows)


# Reasons


def reasons() -> str:
    intro = (
        "Every row of `candidates/` that is not a kept call says why, and `toolwise report` counts these. They stand "
        "in the order in which the stages meet them; [teach.md](teach.md) explains the stages."
    )
    parts = [
        section(
            stage[0].upper() + stage[1:],
            table(["reason", "meaning"], [[code(one), said] for one, said in codes.items()]),
        )
        for stage, codes in STAGES.items()
    ]
    return page("Reasons", "src/toolwise/teach/report/reasons.py", intro, *parts)


# Tasks


def tasks() -> str:
    intro = (
        "What `toolwise eval TASK...` asks a model, and how its answer is read. `--data FOLDER` takes the files of a "
        "folder, `--data hub` the sets of the hub, whose names and fields are those of their cards; `lama`, `mlqa` and "
        "`xquad` stand for all tasks that begin so."
    )
    _, _, *decided = (inspect.getdoc(rules) or "").split("\n\n")
    read = section("How an answer is read", *(explained(paragraph, "rules") for paragraph in decided))
    left = table(["reason", "meaning"], [[code(reason), said] for reason, said in REASONS.items()])
    families = [_family(family) for family in FAMILIES]
    return page("Tasks", "src/toolwise/evals/tasks", intro, *families, read, section("Rows that are left out", left))


def _family(family: Any) -> str:
    first, *more = (explained(paragraph, family.__name__) for paragraph in (family.__doc__ or "").split("\n\n"))
    title, _, about = first.partition(": ")
    (prompt,), (rule,) = ({task.prompt for task in family.TASKS}, {task.rule.said for task in family.TASKS})
    asked = f"Prompt: `{prompt}`\n\nRight when {rule}."
    rows = [
        [
            *(code(task.name), task.said, "the paper's" if task.paper else "", ", ".join(task.without) or "none"),
            "<br>".join(code(one.file) for one in task.tables) or "made by rule",
            "<br>".join(dict.fromkeys(code(one.hub.removeprefix("hub:")) for one in task.tables if one.hub)) or "-",
            str(task.max_tokens),
        ]
        for task in family.TASKS
    ]
    head = ["task", "what", "", "tools off", "files", "on the hub", "tokens at most"]
    return section(title, f"{about[0].upper()}{about[1:]}", *more, asked, table(head, rows))


# Cases


def cases() -> str:
    written = (ROOT / "tests" / "spec" / "cases.toml").read_text(encoding="utf-8")
    listed, tests = tomllib.loads(written), _tests()
    parts = ["Inputs that this software must survive. Each case of this version is held by the tests beside it."]
    for letter, title in re.findall(r"^# ([A-Z])\. (.+)$", written, re.MULTILINE):
        now = {id_: said for id_, said in listed["now"].items() if id_[0] == letter}
        rows = [[id_, explained(said, id_), "<br>".join(tests.get(id_, []))] for id_, said in now.items()]
        parts.append(section(f"{letter}. {title}", table(["case", "what must hold", "held by"], rows)))
    later = table(["case", "what must hold"], [[id_, explained(said, id_)] for id_, said in listed["later"].items()])
    parts.append(section("Not yet promised", "A later part will promise these; none has a test.", later))
    return page("Cases", "tests/spec/cases.toml and the tests", *parts)


def _tests() -> dict[str, list[str]]:
    """Case id -> links to the tests that cite it."""
    found: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        for test in ast.parse(file.read_text(encoding="utf-8")).body:
            if not isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            said = test.name.removeprefix("test_").replace("_", " ")
            marks = [node for mark in test.decorator_list for node in ast.walk(mark) if isinstance(node, ast.Call)]
            ids = [arg for mark in marks if ast.unparse(mark.func) == "pytest.mark.case" for arg in mark.args]
            for id_ in dict.fromkeys(map(ast.literal_eval, ids)):
                found.setdefault(id_, []).append(f"[{said}](../{file.relative_to(ROOT).as_posix()})")
    return found


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands,
    "errors.md": errors,
    "limits.md": limits,
    "settings.md": settings,
    "reasons.md": reasons,
    "tasks.md": tasks,
    "cases.md": cases,
}


def main() -> None:
    for name, make in PAGES.items():
        file, text = DOCS / name, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            sys.stdout.write(f"docs/{name}\n")


if __name__ == "__main__":
    main()
