"""`toolwise policy`: look at a policy before it decides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolwise.commands.common import (
    DEFAULT_STATE,
    JsonOption,
    StateOption,
    ToolsOption,
    examples,
    opened,
    print_json,
    read_json,
    read_text,
    registry,
    say,
    show,
    table,
    watched,
)

if TYPE_CHECKING:
    from toolwise.gate.review.compare import Comparison
    from toolwise.gate.review.explain import Asked, Explanation
    from toolwise.gate.review.lint import Finding

app = typer.Typer(name="policy", help="Look at a policy before it decides.", no_args_is_help=True)

CallsOption = Annotated[
    Path | None,
    typer.Option(help="Calls from a file of JSON lines (an exported log, or objects) instead of the state."),
]


@app.command(
    epilog=examples(
        "toolwise policy check policy.cedar",
        "toolwise policy check policy.cedar --tools mytools.py,Calculator",
        """echo '{"principal": "ann", "tool": "send", "arguments": {"to": "bob"}}' > call.json""",
        "toolwise policy check policy.cedar --call call.json",
    )
)
def check(
    policy: Annotated[Path, typer.Argument(help="A file of Cedar policies.")],
    call: Annotated[
        str | None, typer.Option(help="Explain the decision about the call in this JSON file; - is standard input.")
    ] = None,
    tools: ToolsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what is wrong with a policy, where, and what it decides about a call and why.

    Errors are policies that do not parse, never apply or name what does not exist; warnings let more through than they
    seem to; notes deny more. A call is an object with principal, tool and arguments, and if need be effect, public and
    labels (`{"integrity": "untrusted", "confidentiality": "private"}`). Exits with 1 if there is an error or a warning,
    whatever the decision is.
    """
    from toolwise.gate.review.explain import explain, read_call
    from toolwise.gate.review.lint import lint

    text, known = read_text(policy), registry(tools)
    findings = lint(text, known)
    asked = None if call is None else read_call(read_json(call), known)
    explained = None if asked is None else explain(text, asked)
    if as_json:
        print_json(_checked_json(findings, asked, explained))
    else:
        _show_findings(str(policy), findings)
        if asked is not None and explained is not None:
            _show_explanation(asked, explained)
    raise typer.Exit(int(any(finding.level != "note" for finding in findings)))


@app.command(
    epilog=examples(
        "toolwise policy compare policy.cedar stricter.cedar --state toolwise.db",
        "toolwise policy compare policy.cedar stricter.cedar --calls audit.jsonl --tools mytools.py",
    )
)
def compare(
    old: Annotated[Path, typer.Argument(help="The policy in use.")],
    new: Annotated[Path, typer.Argument(help="The policy that may replace it.")],
    calls: CallsOption = None,
    tools: ToolsOption = None,
    where: StateOption = DEFAULT_STATE,
    as_json: JsonOption = False,
) -> None:
    """Run two policies over recorded calls: what would become allowed, denied, asked about?

    A tool's effect comes from the recorded call, and whether it is public from --tools. What cannot be reproduced
    exactly, such as arguments that were cut or secret, is counted as skipped with the reason. Exits with 1 if anything
    becomes allowed that was not.
    """
    from toolwise.gate.audit import last_sequence, read_rows
    from toolwise.gate.audit_file import json_lines
    from toolwise.gate.review.compare import compare as run
    from toolwise.gate.review.compare import described_calls, logged_calls, usable

    policies = usable(read_text(old), str(old)), usable(read_text(new), str(new))
    known = registry(tools)
    if calls is not None:
        found = run(*policies, described_calls(watched(json_lines(calls), "lines"), known))
    else:
        with opened(where) as state:
            rows = watched(read_rows(state), "lines", last_sequence(state))
            found = run(*policies, logged_calls((row.line for row in rows), known))
    if as_json:
        print_json(_compared_json(found))
    else:
        _show_comparison(found)
    raise typer.Exit(int(found.newly_allowed > 0))


def _show_findings(name: str, findings: list[Finding]) -> None:
    for one in findings:
        which = f"{one.policy}: " if one.policy else ""
        say(f"{name}:{one.line}:{one.column}: {one.level}: {which}{one.message} [{one.code}]")
    levels = Counter(one.level for one in findings)
    counts = [f"{levels[level]} {level}{'s' * (levels[level] != 1)}" for level in ("error", "warning", "note")]
    say(f"{name}: {', '.join(counts)}." if findings else f"{name}: nothing is wrong.")


def _show_explanation(asked: Asked, explained: Explanation) -> None:
    from toolwise.core.jsonio import pretty

    decision = explained.decision
    say()
    say(f"{asked.principal.id} calls {asked.tool.name} ({asked.tool.effect}): {decision.verdict}, {decision.policy}.")
    for remark in asked.remarks:
        say(remark)
    say("The policy sees as context:")
    show(pretty(dict(explained.seen)))
    say()
    rows = [(one.name, one.effect, one.call, one.ask, one.why) for one in explained.statements]
    if rows:
        table(("statement", "effect", "applies to call", "to ask", "why it fails"), rows)


def _checked_json(findings: list[Finding], asked: Asked | None, explained: Explanation | None) -> dict[str, Any]:
    from dataclasses import asdict

    said: dict[str, Any] = {"findings": [asdict(one) for one in findings]}
    if asked is not None and explained is not None:
        said["call"] = {
            **asdict(explained.decision),
            "tool": asked.tool.name,
            "effect": asked.tool.effect,
            "remarks": asked.remarks,
            "seen": explained.seen,
            "statements": [asdict(one) for one in explained.statements],
        }
    return said


def _show_comparison(found: Comparison) -> None:
    same = sum(count for (old, new), count in found.verdicts.items() if old == new)
    changed = sum(found.changes.values())
    for verdict, becomes in (("allow", "allowed"), ("ask", "asked about"), ("deny", "denied")):
        count = sum(count for (old, new), count in found.verdicts.items() if new == verdict != old)
        say(f"would become {becomes}: {count}")
    say(f"stay as they are: {same}")
    for reason, count in sorted(found.skipped.items()):
        say(f"skipped: {count}, since {reason}")
    if changed:
        rows = [
            (count, one.old.verdict, one.new.verdict, one.principal, one.tool, one.call, one.old.policy, one.new.policy)
            for one, count in sorted(found.changes.items(), key=lambda item: -item[1])
        ]
        say()
        table(("calls", "was", "would be", "principal", "tool", "first", "by", "now by"), rows)


def _compared_json(found: Comparison) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "newly_allowed": found.newly_allowed,
        "verdicts": [{"old": old, "new": new, "calls": count} for (old, new), count in sorted(found.verdicts.items())],
        "changes": [{**asdict(one), "calls": count} for one, count in found.changes.items()],
        "skipped": dict(found.skipped),
    }
