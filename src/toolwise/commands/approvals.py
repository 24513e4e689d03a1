"""`toolwise approvals`: the calls that wait for a person."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    read_text,
    say,
    show,
    table,
)
from toolwise.core.errors import BadInput

if TYPE_CHECKING:
    from toolwise.gate.approval import Approval, Approvals

app = typer.Typer(
    name="approvals",
    cls=ListFirst,
    help="The calls that wait for a person: list, look, decide. Without a command: list.",
)

IdArgument = Annotated[str, typer.Argument(help="The id of a question, as the list shows it.")]


@app.command(
    "list",
    epilog=examples("toolwise approvals --json", "toolwise approvals list --state toolwise.db"),
)
def list_(where: StateOption = DEFAULT_STATE, as_json: JsonOption = False) -> None:
    """The questions that wait, those about one tool together. Nothing of a call is shown here: look at it first."""
    from toolwise.gate.approval_view import as_json as to_json
    from toolwise.gate.approval_view import by_tool

    with desk(where) as (approvals, now):
        waiting = approvals.pending()
    groups = by_tool(waiting)
    if as_json:
        print_json([to_json(asked, whole=False) for asked in waiting])
        return
    for tool, asked in groups.items():
        say(f"{tool}: {len(asked)} wait")
    if not waiting:
        say("Nothing waits for a person.")
        return
    rows = [
        (
            one.tool,
            one.id,
            one.principal,
            one.run,
            one.call,
            len(one.shown),
            f"{(one.expires - now) / 60:.0f} min",
            one.reason,
        )
        for asked in groups.values()
        for one in asked
    ]
    say()
    table(("tool", "id", "for", "run", "call", "characters", "expires in", "asked by"), rows)


@app.command("show", epilog=examples("toolwise approvals show 5f0c9a7be1d24c36"))
def show_(id: IdArgument, where: StateOption = DEFAULT_STATE, as_json: JsonOption = False) -> None:
    """The whole call, with its length and its digest. Nothing is cut; what does not print is shown as an escape."""
    from toolwise.gate.approval_view import as_json as to_json

    with desk(where) as (approvals, _):
        asked = approvals.get(id)
    if as_json:
        print_json(to_json(asked, whole=True))
    else:
        _present(asked)


@app.command(
    epilog=examples(
        "toolwise approvals approve 5f0c9a7be1d24c36 --by ann",
        "toolwise approvals approve 5f0c9a7be1d24c36 --by ann --digest $DIGEST",
    )
)
def approve(
    id: IdArgument,
    by: ByOption,
    digest: Annotated[
        str | None, typer.Option(help="The digest of what was shown, instead of being shown it and asked.")
    ] = None,
    where: StateOption = DEFAULT_STATE,
) -> None:
    """Let exactly this call run, once. At a terminal the whole call is shown and the decision asked for."""
    with desk(where) as (approvals, _):
        seen = digest or _looked_at(approvals, id)
        _decide(approvals, id, "approved", by, seen)


@app.command(epilog=examples("toolwise approvals reject 5f0c9a7be1d24c36 8b1a9953c4611296 --by ann"))
def reject(
    ids: Annotated[list[str], typer.Argument(help="The ids of questions, as the list shows them.")],
    by: ByOption,
    where: StateOption = DEFAULT_STATE,
) -> None:
    """Say no, to several questions at once if need be: each of these calls is denied from then on."""
    with desk(where) as (approvals, _):
        for id in ids:
            _decide(approvals, id, "rejected", by, approvals.get(id).digest)


@app.command(
    epilog=examples(
        "toolwise approvals serve --by ann",
        "toolwise approvals serve --by ann --by bob --port 8000 --allow-host gate.example",
    )
)
def serve(
    by: Annotated[list[str], typer.Option(help="A person who decides, and for whom a token is made.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="On 127.0.0.1; 0 takes any that is free.")] = 7_933,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name besides this machine's own under which the page is reached.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="A file with a token for each person, in the same order, one a line.")
    ] = None,
    where: StateOption = DEFAULT_STATE,
) -> None:
    """Answer over HTTP on this machine: a page for people, JSON for programs.

    Whoever has a person's token is that person. Each token is printed once, in the address of the page. To let others
    in, put a server with TLS in front.
    """
    with desk(where) as (approvals, _):
        try:
            from toolwise.serve.approvals import approvals_app, new_token
            from toolwise.serve.run import bound, run
        except ModuleNotFoundError as error:
            raise BadInput(f"This needs the extra `serve` ({error.name}): pip install 'toolwise[serve]'.") from error
        given = read_text(tokens).split() if tokens else [new_token() for _ in by]
        if len(given) != len(by) or len(set(by)) != len(by):
            raise BadInput("Name every person once, and give as many tokens as persons.")
        people = dict(zip(by, given, strict=True))
        page = approvals_app(approvals, people, hosts=allow_host or ())
        with bound(port) as socket:
            for name, token in people.items():
                say(f"{name}: http://127.0.0.1:{socket.getsockname()[1]}/#{'...' if tokens else token}")
            run(page, socket)


@contextmanager
def desk(where: str) -> Iterator[tuple[Approvals, float]]:
    """The questions in a state, and what time it is."""
    from toolwise.core.clock import SystemClock
    from toolwise.gate.approval import Approvals
    from toolwise.gate.audit import Audit

    clock = SystemClock()
    with opened(where) as state:
        yield Approvals(state, Audit(state), clock), clock.now().timestamp()


def _present(asked: Approval) -> None:
    say(f"{asked.id}: {asked.state}, for {asked.principal}, run {asked.run}, call {asked.call}, by {asked.reason}")
    say(f"{len(asked.shown)} characters, SHA-256 {asked.digest}")
    say()
    show(asked.shown)


def _looked_at(approvals: Approvals, id: str) -> str:
    """The digest of the call, once it was shown and agreed to."""
    asked = approvals.get(id)
    if not at_a_terminal():
        raise BadInput("Give the digest that `toolwise approvals show` prints, or decide at a terminal.")
    _present(asked)
    ask(f"Let this call of {asked.tool} run?")
    return asked.digest


def _decide(approvals: Approvals, id: str, verdict: Literal["approved", "rejected"], by: str, digest: str) -> None:
    decided = approvals.decide(id, verdict, by, digest)
    say(f"{decided.id}: {decided.state} by {decided.decided_by}.")
