"""What a policy says of a call and why, and what another policy would change about the calls that were made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gate_bench import ANN, TEXT, Bench, tool

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, Confidentiality, Effect, Integrity, Labels, Tool
from toolwise.gate import audit_file
from toolwise.gate.audit import Line
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.review.compare import Comparison, compare, described_calls, logged_calls, usable
from toolwise.gate.review.explain import explain, read_call
from toolwise.tools.registry import Registry

SEND = tool(lambda **given: "sent", "send", Effect.WRITE, to=TEXT, text=TEXT, key=TEXT | {"format": "password"})
LOOK = tool(lambda **given: "seen", "look", Effect.READ, declared={"public": True}, what=TEXT)
TOOLS = Registry([SEND, LOOK])
NOTHING = '@id("nothing") forbid (principal, action, resource);'
ALL = '@id("all") permit (principal, action, resource);'
DESK = """
@id("to the desk")
permit (principal, action == Action::"call", resource == Tool::"send") when { context.arguments.to == "desk" };
@id("ask about the rest")
permit (principal, action == Action::"ask", resource == Tool::"send");
@id("not to all")
forbid (principal, action, resource) when { context.arguments.to == "all" };
"""


def send(to: str, **more: Any) -> dict[str, Any]:
    return {"principal": "ann", "tool": "send", "arguments": {"to": to}} | more


def recorded(*calls: Call, tools: tuple[Tool, ...] = (SEND, LOOK), policy: str = ALL) -> list[Line]:
    """The audit log after these calls."""
    bench = Bench(tools, CedarPolicy.from_text(policy))
    for call in calls:
        bench.gate.execute(call, ANN)
    return bench.lines


def compared(lines: list[Line], old: str, new: str, tools: Registry | None = None) -> Comparison:
    return compare(CedarPolicy.from_text(old), CedarPolicy.from_text(new), logged_calls(lines, tools))


# Explained


def test_a_decision_is_explained_statement_by_statement() -> None:
    said = explain(DESK, read_call(send("bob"), TOOLS))
    assert (said.decision.verdict, said.decision.policy) == ("ask", "ask about the rest")
    assert said.seen["arguments"] == {"to": "bob"}
    assert [(one.name, one.effect, one.call, one.ask) for one in said.statements] == [
        ("to the desk", "permit", "no", "no"),
        ("ask about the rest", "permit", "no", "yes"),
        ("not to all", "forbid", "no", "no"),
    ]
    assert explain(DESK, read_call(send("desk"), TOOLS)).decision.verdict == "allow"
    assert explain(DESK, read_call(send("all"), TOOLS)).decision.policy == "not to all"


def test_a_statement_that_fails_says_why() -> None:
    said = explain(DESK, read_call({"principal": "ann", "tool": "send"}, TOOLS))
    assert said.decision.verdict == "deny"
    assert [one.call for one in said.statements] == ["fails", "no", "fails"]
    assert said.statements[0].why == "record does not have the attribute `to`"


def test_a_policy_that_does_not_parse_denies_and_has_no_statements() -> None:
    said = explain("permit everything", read_call(send("bob")))
    assert (said.decision.verdict, said.statements) == ("deny", ())
    assert "everything" in said.decision.policy


def test_a_tool_without_a_definition_is_what_the_call_says_or_counts_as_a_write() -> None:
    assert read_call(send("bob")).tool.effect is Effect.WRITE
    assert "counts as a write" in read_call(send("bob")).remarks[0]
    other = read_call(send("bob", effect="read", public=True))
    assert (other.tool.effect, other.tool.public, other.remarks) == (Effect.READ, True, ())
    assert read_call(send("bob", effect="read"), TOOLS).tool is SEND, "a definition outweighs what the call says"


def test_arguments_that_the_gate_would_refuse_are_remarked_on() -> None:
    (remark,) = read_call(send("bob", arguments={"too": 1}), TOOLS).remarks
    assert 'unknown argument "too"' in remark


def test_labels_are_part_of_the_call() -> None:
    asked = read_call(send("bob", labels={"integrity": "untrusted", "confidentiality": "private"}))
    assert asked.labels == Labels(Integrity.UNTRUSTED, Confidentiality.PRIVATE)
    assert explain(DESK, asked).seen["integrity"] == "untrusted"


@pytest.mark.parametrize(
    "told",
    [
        None,
        [],
        {},
        {"principal": "ann"},
        send("bob") | {"principal": 5},
        send("bob") | {"arguments": "x"},
        send("bob", effect="deletes"),
        send("bob", public="yes"),
        send("bob", labels={"integrity": "dubious"}),
        send("bob", labels={"trust": "none"}),
        send("bob", labels={"integrity": []}),
        send("bob", run="r"),
    ],
)
def test_what_is_no_call_is_refused(told: Any) -> None:
    with pytest.raises(BadInput):
        read_call(told, TOOLS)


# Compared


def test_what_would_become_allowed_denied_and_asked_is_counted_with_its_reasons() -> None:
    lines = recorded(*(Call(f"c{n}", "send", {"to": to}) for n, to in enumerate(["desk", "bob", "bob", "all"])))
    found = compared(lines, DESK, ALL)
    assert found.verdicts == {("allow", "allow"): 1, ("ask", "allow"): 2, ("deny", "allow"): 1}
    assert found.newly_allowed == 3
    assert {(one.old.policy, one.new.policy, one.call): count for one, count in found.changes.items()} == {
        ("ask about the rest", "all", "run-1 c1"): 2,
        ("not to all", "all", "run-1 c3"): 1,
    }
    back = compared(lines, ALL, DESK)
    assert back.newly_allowed == 0
    assert back.verdicts == {("allow", "allow"): 1, ("allow", "ask"): 2, ("allow", "deny"): 1}
    assert sum(compared(lines, DESK, DESK).changes.values()) == 0


def test_a_call_that_was_asked_about_and_then_ran_counts_once() -> None:
    lines = recorded(Call("c1", "send", {"to": "bob"}))
    assert [line.event for line in lines] == ["intent", "result"]
    again = [lines[0]._replace(event="refused", code="approval_required"), *lines, lines[0]._replace(event="replayed")]
    assert sum(compared(again, ALL, NOTHING).verdicts.values()) == 1


def test_the_labels_are_those_that_the_run_had() -> None:
    wary = '@id("wary") permit (principal, action, resource) when { context.integrity == "trusted" };'
    lines = recorded(
        Call("c1", "send", {"to": "a"}), Call("c2", "look", {"what": "x"}), Call("c3", "send", {"to": "b"})
    )
    assert [line.labels for line in lines if line.event == "intent"] == ["", "untrusted", "untrusted"]
    assert compared(lines, ALL, wary, TOOLS).verdicts == {("allow", "allow"): 1, ("allow", "deny"): 2}


def test_odd_characters_come_back_from_the_log_as_they_were() -> None:
    text = "né\u00a0\u202e\u200b\ufe0f\U000e0141\n\"'\\ \\u200b \x1b日本"
    exactly = f'@id("x") permit (principal, action, resource) when {{ context.arguments.text == "{DISPLAYED}" }};'
    lines = recorded(Call("c1", "send", {"text": text}))
    assert all(line.arguments.isprintable() for line in lines)
    assert compared(lines, NOTHING, exactly).newly_allowed == 1


DISPLAYED = "né\u00a0\u202e\u200b\ufe0f\U000e0141\\n\\\"'\\\\ \\\\u200b \x1b日本"


def test_what_cannot_be_shown_to_a_policy_as_it_was_is_counted_and_never_guessed() -> None:
    lines = recorded(
        Call("cut", "send", {"to": "bob", "text": "x" * LIMITS.audit_chars}),
        Call("secret", "send", {"to": "bob", "key": "hunter22"}),
        Call("claims", "send", {"to": "bob", "text": "[secret]"}),
        Call("unknown", "sned", {"to": "bob"}),
        Call("fine", "send", {"to": "bob"}),
    )
    changed = lines[-2]._replace(call="changed", arguments='{"to":"eve"}')
    strange = lines[-2]._replace(call="strange", effect="other")
    found = compared([*lines, changed, strange], NOTHING, ALL)
    assert found.newly_allowed == 2, "a text that looks like a secret's place is a text"
    assert sorted(found.skipped.values()) == [1, 1, 1, 2]
    assert sum(count for reason, count in found.skipped.items() if "as they were" in reason) == 2
    assert any("secret" in reason for reason in found.skipped)


def test_whether_a_tool_is_public_is_taken_from_its_definition_or_must_not_matter() -> None:
    sinks = f'{ALL} @id("no sinks") forbid (principal, action, resource) when {{ resource.public }};'
    lines = recorded(Call("c1", "look", {"what": "x"}), Call("c2", "send", {"to": "bob"}))
    assert compared(lines, ALL, sinks, TOOLS).verdicts == {("allow", "deny"): 1, ("allow", "allow"): 1}
    assert sum(compared(lines, ALL, sinks).skipped.values()) == 2
    assert compared(lines, ALL, NOTHING).verdicts == {("allow", "deny"): 2}


def test_calls_come_from_an_exported_log_or_from_a_file_that_describes_them(tmp_path: Path) -> None:
    bench = Bench((SEND, LOOK), CedarPolicy.from_text(ALL))
    for number in range(2):
        bench.gate.execute(Call("c1", "send", {"to": "bob"}), ANN)
        bench.gate.execute(Call(f"d{number}", "look", {"what": "x"}), ANN)
    audit_file.write(tmp_path / "log.jsonl", bench.audit.rows())
    log = list(described_calls(audit_file.json_lines(tmp_path / "log.jsonl"), TOOLS))
    assert log == list(logged_calls(bench.lines, TOOLS))
    assert len(log) == 3
    told = [send("desk"), send("bob", effect="write"), send("all", tool="other")]
    described = list(described_calls(enumerate(told, 1), TOOLS))
    found = compare(usable(ALL, "old"), usable(DESK, "new"), described)
    assert found.verdicts == {("allow", "allow"): 1, ("allow", "ask"): 1}
    assert found.skipped == {"the tool's effect is not known": 1}
    assert list(described_calls([])) == []


@pytest.mark.parametrize("bad", [None, 5, {"principal": "ann"}])
def test_a_line_that_is_neither_is_refused_by_its_number(bad: Any) -> None:
    with pytest.raises(BadInput, match="Line 2 "):
        list(described_calls(enumerate([send("desk"), bad], 1)))
    rows = Bench((SEND,), CedarPolicy.from_text(ALL))
    rows.call({"to": "bob"}, "send")
    log = [audit_file.as_json(row) for row in rows.audit.rows()]
    with pytest.raises(BadInput, match="Line 3 "):
        list(described_calls(enumerate([*log, bad], 1)))


def test_a_policy_that_cannot_be_used_is_not_compared() -> None:
    with pytest.raises(BadInput, match="old policy"):
        usable("permit everything", "old policy")
