"""What the commands of the gate share: where its state is, who decides, how a question is asked, what is shown how."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from toolwise.console import progress_bar, screen
from toolwise.core import jsonio
from toolwise.core.durable import storage
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS

if TYPE_CHECKING:
    from toolwise.core.chat import ChatModel
    from toolwise.gate.gate import Gate
    from toolwise.gate.state import State
    from toolwise.models.toolbox import Toolbox
    from toolwise.tools.registry import Registry

T = TypeVar("T")
DEFAULT_STATE = "toolwise.db"
_STATE_VARIABLE = "TOOLWISE_STATE"
_COPIED = ("id", "key", "hash")  # columns
_TOLD = 8  # of what is not masked, at a start
_EXAMPLE_WIDE = 78  # characters of a line that a terminal of 80 shows whole
_WIDE = 10_000  # characters of a line that a program reads

TOOLS_HELP = (
    "Python files with tools (a file is run), OpenAPI descriptions, MCP servers (mcp:servers.toml), "
    "names of the package's; commas between."
)
StateOption = Annotated[
    str,
    typer.Option(
        "--state",
        envvar=_STATE_VARIABLE,
        help="The gate's state: a file, or postgresql+psycopg://user@host/database; else TOOLWISE_STATE.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts instead of text for people.")]
ByOption = Annotated[str, typer.Option("--by", help="Who decides; the audit log keeps it.")]
ToolsOption = Annotated[
    str | None,
    typer.Option("--tools", help=TOOLS_HELP),
]
ModelOption = Annotated[
    str, typer.Option("--model", "-m", help="A pulled name (smollm2-135m), a folder, or a hub id (owner/name).")
]
ToolOptionsOption = Annotated[
    list[str] | None, typer.Option("--option", help="Of a tool, such as Search.index=wiki-vital; may be given again.")
]
TaughtOption = Annotated[
    str | None,
    typer.Option(
        "--tools",
        help="Tools, with commas between: names of the package's, files of yours (mine.py). "
        "Default: sources of the settings, or Calculator,Calendar.",
    ),
]
PresetOption = Annotated[str, typer.Option(help="small (for small models) or paper (the paper's settings).")]
SettingsOption = Annotated[Path | None, typer.Option(help="A TOML file whose values go over the preset's.")]
ThreadsOption = Annotated[int | None, typer.Option(min=1, max=LIMITS.threads, help="CPU threads of this process.")]
StartThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--start-threshold",
        min=0,
        max=1,
        help="Start a call where its marker has at least this probability. Default: what the model's folder carries.",
    ),
]
ShowToolsOption = Annotated[
    int | None,
    typer.Option(
        "--show-tools",
        min=1,
        max=100,
        help="Of more tools than so many, show those that fit, and let it look for others.",
    ),
]
DEFAULT_MODEL = "smollm2-135m"


class Format(StrEnum):
    """What a server of models speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


def tool_names(text: str | None) -> tuple[str, ...]:
    """The names of tools and files between the commas; none where nothing was said. Raises BadInput for `,`."""
    if text is None:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise BadInput("Name at least one tool, such as Calculator.")
    return names


def examples(*lines: str) -> str:
    """Examples below a command's help, one a line; one that is too long for a terminal goes on as a shell has it."""
    return "\n\n".join(["Examples:", *map(_folded, lines)])


def _folded(line: str) -> str:
    if len(line) <= _EXAMPLE_WIDE:
        return line
    cut = max(line.rfind(mark, 0, _EXAMPLE_WIDE - 1) for mark in (" -", ' "', " >"))
    return line if cut < 0 else f"{line[:cut]} \\\n    {_folded(line[cut + 1 :])}"


class ListFirst(TyperGroup):
    """A group that is `list` where no command is named, whatever options of it are given."""

    first = "list"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in self.get_help_option_names(ctx)):
            args = [self.first, *args]
        return super().parse_args(ctx, args)


class ShowFirst(ListFirst):
    """The same with `show`."""

    first = "show"


@contextmanager
def opened(where: str) -> Iterator[State]:
    """The state that a gate made. Raises BadInput where there is none."""
    from toolwise.gate.existing import existing_state

    state = existing_state(where)
    try:
        yield state
    finally:
        state.close()


def with_state(where: str) -> str:
    """What a command that looks into the same state needs. An address may hold a password, and is not told."""
    return "" if where == DEFAULT_STATE or "://" in where else f" --state {shlex.quote(where)}"


def registry(tools: str | None) -> Registry | None:
    """The tools that were named, if any were."""
    return None if tools is None else named(tools)


def named(tools: str) -> Registry:
    """The tools that were named. Raises BadInput."""
    from toolwise.models.toolbox import toolbox

    box = toolbox(tool_names(tools))
    tell_left_out(box)
    return box.registry


def tell_left_out(box: Toolbox) -> None:
    """Say on standard error which tools could not be had, and why."""
    for line in box.left_out:
        print(jsonio.printable(line), file=sys.stderr)


@contextmanager
def gated(
    tools: str, options: Sequence[str] | None, policy: Path | None, where: str
) -> Iterator[tuple[Gate, Registry, State]]:
    """A gate over the tools that were named, as servers have it: tools whose words come from elsewhere are pinned.

    Without a policy, it looks, and asks before it changes. Raises BadInput.
    """
    from toolwise.gate.definitions import Definitions
    from toolwise.gate.gate import Gate
    from toolwise.gate.policy import DEFAULT, CedarPolicy
    from toolwise.gate.state import open_state
    from toolwise.models.toolbox import parse_options, toolbox

    rules = CedarPolicy.from_file(policy) if policy else CedarPolicy.from_text(DEFAULT)
    if rules.problem:  # it would deny everything, and nobody would be told why
        raise BadInput(f"--policy {str(policy)!r}: {rules.problem}.")
    box = toolbox(tool_names(tools), parse_options(options or ()))
    tell_left_out(box)
    opened = open_state(where)
    try:
        pins = Definitions(opened, only=box.foreign) if box.foreign else None
        with Gate(box.registry, rules, opened, definitions=pins) as gate:
            yield gate, box.registry, opened
    finally:
        opened.close()


def showing(model: ChatModel, most: int | None) -> ChatModel:
    """The model that is shown, of more tools than so many, those that fit; all of them where nothing is said."""
    if most is None:
        return model
    from toolwise.decode.catalogued import Catalogued

    return Catalogued(model, most=most)


def tell_unmasked(model: ChatModel, tools: Registry, most: int | None = None) -> None:
    """Say in one line what of these schemas the model's masks leave to the gate. `most` tools are shown at a time."""
    from toolwise.core.chat import ChatRequest
    from toolwise.decode.calls import specs
    from toolwise.decode.unmasked import downgrades

    declared, lost = specs(tools.values()), list[str]()
    step = most or len(declared) or 1
    for first in range(0, len(declared), step):
        asked = ChatRequest((), tools=declared[first : first + step])
        lost += [f"{one.tool} {one.keyword} {one.pointer or '/'}" for one in downgrades(model, asked) or ()]
    if lost:
        more = f"; and {len(lost) - _TOLD} more" if len(lost) > _TOLD else ""
        warn(f"Not masked, and validated before a call runs: {'; '.join(lost[:_TOLD])}{more}.")


def read_text(path: Path) -> str:
    """A UTF-8 file. Raises BadInput, StorageUnavailable."""
    try:
        with storage(path):
            return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{str(path)!r} is not UTF-8 at byte {error.start}; convert it.") from error


def read_json(where: str) -> Any:
    """The JSON value in a file, or on standard input for `-`. Raises BadInput."""
    from toolwise.core.errors import ModelFault

    if where == "-":
        data = sys.stdin.buffer.read(LIMITS.document_bytes) if sys.stdin else b""
    else:
        data = read_text(Path(where)).encode()
    try:
        return jsonio.loads(data)
    except ModelFault as error:
        name = "standard input" if where == "-" else repr(where)
        raise BadInput(f"What {name} holds is no JSON that can be used: {error}.") from error


def at_a_terminal() -> bool:
    """Whether a person sits in front of the command."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


def ask(question: str) -> None:
    """Go on only if the person says yes; otherwise the command ends with 1 and has done nothing."""
    try:
        agreed = typer.confirm(jsonio.printable(question))
    except typer.Abort:
        agreed = False
    if not agreed:
        print("Nothing was done.")
        raise typer.Exit(1)


def say(line: str = "") -> None:
    """One line, whatever it quotes: nothing in it that a terminal would obey."""
    print(jsonio.printable(line))


def warn(line: str) -> None:
    """One such line on standard error, which changes nothing else."""
    print(f"toolwise: {jsonio.printable(line)}", file=sys.stderr)


def show(text: str) -> None:
    """A text of several lines, whole, each of them so."""
    print(jsonio.printable_lines(text))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows in columns. At a terminal what is too wide is folded, but for what is to be copied; nothing is ever cut."""
    texts = [[jsonio.printable(str(cell)) for cell in row] for row in rows]
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        shown.add_column(name, overflow="fold", no_wrap=name in _COPIED)
    for row in texts:
        shown.add_row(*map(Text, row))
    console = screen()
    if not console.is_terminal:
        console.width = _WIDE
    console.print(shown, crop=False)


def print_json(value: Any) -> None:
    """One line of JSON, what a terminal would obey as an escape in it: its value is the same."""
    say(jsonio.dumps(value))


def watched(items: Iterable[T], name: str, total: int | None = None) -> Iterator[T]:
    """The items, their number shown meanwhile where standard error is a terminal."""
    with progress_bar() as bar:
        task = bar.add_task(name, total=total)
        for item in items:
            yield item
            bar.advance(task)
