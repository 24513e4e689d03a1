"""`toolwise audit`: what happened, and whether the record of it was touched."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import (
    DEFAULT_STATE,
    JsonOption,
    ShowFirst,
    StateOption,
    examples,
    opened,
    print_json,
    say,
    watched,
)
from toolwise.console import complain

if TYPE_CHECKING:
    from toolwise.gate.audit import Row

_HEAD = re.compile("[0-9a-f]{64}")
_BY_PEOPLE = ("approved", "rejected", "resolved", "pinned")  # their details say who

app = typer.Typer(
    name="audit",
    cls=ShowFirst,
    help="What happened, and whether the record of it was touched. Without a command: show.",
)


@app.command(
    "show",
    epilog=examples(
        "toolwise audit show",
        "toolwise audit show --principal ann --code denied --since 2h --last 0",
        "toolwise audit show --run run-1 --json",
        "toolwise audit show --follow",
    ),
)
def show_(
    run: Annotated[str | None, typer.Option(help="Only of this run.")] = None,
    call: Annotated[str | None, typer.Option(help="Only of this call.")] = None,
    principal: Annotated[str | None, typer.Option(help="Only for this principal.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only of this tool.")] = None,
    code: Annotated[str | None, typer.Option(help="Only with this code, such as ok or denied.")] = None,
    event: Annotated[str | None, typer.Option(help="Only of this kind: intent, result, refused, approved, ...")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only from this moment on: 2024-05-01, 2024-05-01T12:30, or 15m, 2h, 7d ago.")
    ] = None,
    last: Annotated[int, typer.Option(min=0, help="The last so many lines; 0 is all of them.")] = 20,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with the lines that come.")] = False,
    where: StateOption = DEFAULT_STATE,
    as_json: JsonOption = False,
) -> None:
    """The last lines of the log: number, time, event, code, tool, principal, run, call, what decided, arguments.

    With --json every line has all its fields, among them the details of errors.
    """
    from toolwise.core.clock import SystemClock
    from toolwise.gate import audit_view as view

    view.refuse_unknown(event, code)
    clock = SystemClock()
    equal = {"run": run, "call": call, "principal": principal, "tool": tool, "code": code, "event": event}
    moment = None if since is None else view.moment(since, clock)
    wanted = view.Filter({name: value for name, value in equal.items() if value is not None}, moment)
    with opened(where) as state:
        after = 0
        for row in view.last(state, wanted, last) if last else view.behind(state, wanted):
            _print(row, as_json)
            after = row.sequence
        if follow:
            for row in view.follow(state, wanted, after, clock):
                _print(row, as_json)
                sys.stdout.flush()


@app.command(
    epilog=examples(
        "toolwise audit verify",
        "toolwise audit verify --head $NOTED",
        "toolwise audit verify audit.jsonl",
    )
)
def verify(
    file: Annotated[Path | None, typer.Argument(help="An exported log instead of the state's own.")] = None,
    head: Annotated[str | None, typer.Option(help="A head that was noted earlier; the log must still hold it.")] = None,
    where: StateOption = DEFAULT_STATE,
    as_json: JsonOption = False,
) -> None:
    """Follow the chain of hashes and print its head: note it elsewhere. Exits with 1 if the chain is broken."""
    from toolwise.core.errors import BadInput, Corrupt
    from toolwise.gate import audit_file
    from toolwise.gate.audit import last_sequence, read_rows
    from toolwise.gate.audit import verify as follow_chain

    if head is not None and not _HEAD.fullmatch(head):  # a variable of a script may be empty
        raise BadInput("A head is 64 hex digits, as this command prints them.")
    noted = head or ""
    try:
        if file is not None:
            last = follow_chain(watched(audit_file.read(file), "lines"), noted)
        else:
            with opened(where) as state:
                last = follow_chain(watched(read_rows(state), "lines", last_sequence(state)), noted)
    except Corrupt as broken:
        raise typer.Exit(complain(str(broken), broken.code, 1)) from None
    if as_json:
        print_json({"lines": last.sequence if last else 0, "head": last.hash if last else ""})
    elif last is None:
        say("The log is empty.")
    else:
        say(f"{last.sequence} lines, and the chain holds. Its head, to note elsewhere:")
        say(last.hash)


@app.command(epilog=examples("toolwise audit export audit.jsonl", "toolwise audit verify audit.jsonl"))
def export(
    file: Annotated[Path, typer.Argument(help="The file to write; a file of that name is replaced.")],
    where: StateOption = DEFAULT_STATE,
) -> None:
    """Write every line with its number and hash as JSON lines, as it stands: `audit verify` checks the file as well."""
    from toolwise.gate import audit_file
    from toolwise.gate.audit import last_sequence, read_rows

    with opened(where) as state:
        count = audit_file.write(file, watched(read_rows(state), "lines", last_sequence(state)))
    say(f"{count} lines are in {file}.")


def _print(row: Row, as_json: bool) -> None:
    from toolwise.gate import audit_file

    if as_json:
        print_json(audit_file.as_json(row))
        return
    line = row.line
    fields = (line.event, line.code, line.tool, line.principal, line.run, line.call)
    said = [str(row.sequence), line.wall or "-", *(field or "-" for field in fields)]
    said += [f"({line.policy})"] if line.policy else []
    said += [line.arguments] if line.arguments else []
    said += [line.detail] if line.event in _BY_PEOPLE else []
    say(" ".join(said))
