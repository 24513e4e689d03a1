"""`toolwise ledger`: calls with an effect, and those of which nobody knows whether they had it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolwise.commands.common import (
    DEFAULT_STATE,
    ByOption,
    JsonOption,
    ListFirst,
    StateOption,
    ask,
    at_a_terminal,
    examples,
    opened,
    print_json,
    say,
    table,
)

if TYPE_CHECKING:
    from toolwise.gate.ledger import Record

app = typer.Typer(
    name="ledger",
    cls=ListFirst,
    help="Calls with an effect, and those of which nobody knows whether they had it. Without a command: list.",
)


class Standing(StrEnum):
    """The states of a call."""

    RUNNING = "running"
    DONE = "done"
    LATE = "late"
    UNKNOWN = "unknown"
    DEAD = "dead"


class End(StrEnum):
    """What became of a call."""

    DONE = "done"
    RETRY = "retry"


@app.command(
    "list", epilog=examples("toolwise ledger --json", "toolwise ledger list --only unknown --state toolwise.db")
)
def list_(
    only: Annotated[
        list[Standing] | None, typer.Option(help="Calls that stand so; default: all that are not done.")
    ] = None,
    where: StateOption = DEFAULT_STATE,
    as_json: JsonOption = False,
) -> None:
    """The calls that were begun. `unknown` ones may have had their effect; `dead` ones were begun too often."""
    from toolwise.core.clock import SystemClock
    from toolwise.gate.ledger import Durable

    with opened(where) as state:
        records = Durable(state, SystemClock()).records()
    wanted = [each.value for each in only or [each for each in Standing if each is not Standing.DONE]]
    shown = [record for record in records if record.state in wanted]
    if as_json:
        print_json([_as_json(record) for record in shown])
        return
    if shown:
        rows = [(one.key[:12], one.state, one.attempts, one.tool, one.principal, one.run, one.call) for one in shown]
        table(("key", "state", "attempts", "tool", "principal", "run", "call"), rows)
    say(f"{len(shown)} of {len(records)} calls.")


@app.command(
    epilog=examples(
        "toolwise ledger resolve 3f9a1c0b7d2e done --by ann",
        "toolwise ledger resolve 3f9a1c0b7d2e retry --by ann --yes",
    )
)
def resolve(
    key: Annotated[str, typer.Argument(help="The key of a call, or how it begins, as the list shows it.")],
    end: Annotated[End, typer.Argument(help="done: it had its effect. retry: it had not, and may begin anew.")],
    by: ByOption,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask at a terminal.")] = False,
    where: StateOption = DEFAULT_STATE,
) -> None:
    """Say what became of a call whose outcome is unknown, once you have looked where its effect would be."""
    from toolwise.core.clock import SystemClock
    from toolwise.gate.audit import Audit
    from toolwise.gate.ledger import Durable
    from toolwise.gate.reconcile import named
    from toolwise.gate.reconcile import resolve as run

    clock = SystemClock()
    with opened(where) as state:
        ledger = Durable(state, clock)
        record = named(ledger.records(), key)
        if at_a_terminal() and not yes:
            say(f"{record.tool} for {record.principal}, run {record.run}, call {record.call}: {record.state}")
            ask("It had its effect?" if end is End.DONE else "It had no effect, and may begin anew?")
        run(ledger, Audit(state), clock, record.key, end.value, by)
    say(f"{record.key[:12]}: {end.value}, as {by} says.")


def _as_json(record: Record) -> dict[str, Any]:
    names = ("key", "state", "attempts", "tool", "principal", "run", "call", "fingerprint")
    return {name: getattr(record, name) for name in names}
