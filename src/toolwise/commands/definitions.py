"""`toolwise definitions`: the tools whose words were approved, and what has changed since."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import (
    DEFAULT_STATE,
    TOOLS_HELP,
    ByOption,
    JsonOption,
    StateOption,
    ToolsOption,
    ask,
    at_a_terminal,
    examples,
    named,
    opened,
    print_json,
    registry,
    say,
    show,
    table,
)
from toolwise.core.errors import BadInput

if TYPE_CHECKING:
    from toolwise.gate.definitions import Definitions, Pin
    from toolwise.gate.state import State
    from toolwise.tools.registry import Registry

app = typer.Typer(
    name="definitions", help="The tools whose words were approved, and what has changed since.", no_args_is_help=True
)

NameArgument = Annotated[str, typer.Argument(help="The name of a tool.")]
NeededTools = Annotated[str, typer.Option("--tools", help=TOOLS_HELP)]


@app.command(
    "list", epilog=examples("toolwise definitions list", "toolwise definitions list --tools mytools.py --json")
)
def list_(tools: ToolsOption = None, where: StateOption = DEFAULT_STATE, as_json: JsonOption = False) -> None:
    """The pinned definitions; with --tools also whether each tool is still the approved one."""
    known = registry(tools)
    with opened(where) as state:
        pins = {pin.name: pin for pin in pinned(state).pins()}
    rows = [(name, _standing(name, pins.get(name), known), pins.get(name)) for name in sorted({*pins, *(known or ())})]
    if as_json:
        now = {name: known.hash_of(name) for name in known} if known else {}
        told = [
            {"name": name, "standing": said, "now": now.get(name)} | (asdict(pin) if pin else {})
            for name, said, pin in rows
        ]
        print_json(told)
        return
    if not rows:
        say("No definition is pinned.")
        return
    cells = [
        (name, said, *((pin.hash[:12], pin.approved_by, pin.wall) if pin else ("", "", ""))) for name, said, pin in rows
    ]
    table(("tool", "standing", "hash", "approved by", "at"), cells)


@app.command("show", epilog=examples("toolwise definitions show send"))
def show_(name: NameArgument, where: StateOption = DEFAULT_STATE, as_json: JsonOption = False) -> None:
    """The whole definition that was approved. What does not print, or cannot be seen, is shown as an escape."""
    with opened(where) as state:
        pin = next((pin for pin in pinned(state).pins() if pin.name == name), None)
    if pin is None:
        raise BadInput("No definition of this tool is pinned; `toolwise definitions list` shows those that are.")
    if as_json:
        print_json(asdict(pin))
        return
    say(f"{pin.name}, approved by {pin.approved_by} at {pin.wall}, hash {pin.hash}")
    say()
    show(pin.text)


@app.command(epilog=examples("toolwise definitions diff --tools mytools.py"))
def diff(tools: NeededTools, where: StateOption = DEFAULT_STATE) -> None:
    """What has changed since the tools were approved, line by line; a tool that never was is shown whole.

    Exits with 1 if any tool is not approved as it is.
    """
    from toolwise.gate.definitions import readable

    known = named(tools)
    with opened(where) as state:
        pins = pinned(state)
        approved = {pin.name for pin in pins.pins()}
        changed = {name: text for name in known if name in approved and (text := pins.difference(known[name]))}
    new = [name for name in known if name not in approved]
    for name in new:
        say(f"{name}, never approved, with the hash {known.hash_of(name)}:")
        show(readable(known[name]))
        say()
    for name, text in changed.items():
        say(f"{name}, now with the hash {known.hash_of(name)}:")
        show(text)
        say()
    never = f", and {len(new)} never were" if new else ""
    say(f"{len(changed)} of {len(known)} tools are not as they were approved{never}.")
    raise typer.Exit(int(bool(changed or new)))


@app.command(
    epilog=examples(
        "toolwise definitions approve send --tools mytools.py --by ann",
        "toolwise definitions approve send --tools mytools.py --by ann --hash $HASH",
    )
)
def approve(
    name: NameArgument,
    tools: NeededTools,
    by: ByOption,
    hash: Annotated[
        str | None, typer.Option(help="The hash of the definition, instead of being shown it and asked.")
    ] = None,
    where: StateOption = DEFAULT_STATE,
) -> None:
    """Pin a tool as it is now. At a terminal the whole definition and what changed are shown before it is asked for."""
    known = named(tools)
    tool = known.resolve(name)
    with opened(where) as state:
        pins = pinned(state)
        if hash is None:
            _look(pins, name, known)
        elif hash != known.hash_of(name):
            raise BadInput("The tool has another hash than the one that was looked at; look again.")
        pin = pins.approve(tool, by)
    say(f"{pin.name}: approved by {pin.approved_by}, hash {pin.hash}.")


def pinned(state: State) -> Definitions:
    """The pinned definitions of a state."""
    from toolwise.gate.definitions import Definitions

    return Definitions(state)


def _look(pins: Definitions, name: str, known: Registry) -> None:
    from toolwise.gate.definitions import readable

    if not at_a_terminal():
        raise BadInput("Give the hash that `toolwise definitions diff` shows, or decide at a terminal.")
    tool = known[name]
    show(readable(tool))
    say(f"hash {known.hash_of(name)}")
    if difference := pins.difference(tool):
        say()
        show(difference)
    ask(f"Approve {name} as it is now?")


def _standing(name: str, pin: Pin | None, known: Registry | None) -> str:
    if known is None:
        return ""
    if name not in known:
        return "not among the tools"
    if pin is None:
        return "never approved"
    return "as approved" if known.hash_of(name) == pin.hash else "changed"
