"""What is wrong with a policy is found, named and placed; what is right with it is left alone."""

from __future__ import annotations

import re

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.types import Effect, Tool
from toolwise.gate.policy import DEFAULT, OFFLINE
from toolwise.gate.review.lint import Finding, lint
from toolwise.gate.review.source import place, problem, statements
from toolwise.tools.registry import Registry, tool

SCOPE = "permit (principal, action, resource)"
CALL = 'permit (principal, action == Action::"call", resource == Tool::"{}")'


@tool(effect=Effect.WRITE, bounded=True)
def send(to: str, text: str, urgent: bool = False, copies: list[str] | None = None) -> str:
    """Send."""
    return to + text


@tool(effect=Effect.READ, bounded=True)
def fetch(url: str, depth: int) -> str:
    """Fetch."""
    return url * depth


TOOLS = Registry([send, fetch])


def found(policy: str, tools: Registry | None = TOOLS) -> list[str]:
    return [finding.code for finding in lint(policy, tools)]


def on(name: str, condition: str) -> str:
    return f'@id("x") {CALL.format(name)} when {{ {condition} }};'


def test_the_policies_that_ship_have_nothing_wrong() -> None:
    for policy in (DEFAULT, OFFLINE):
        assert lint(policy, TOOLS) == lint(policy) == []


# Where Cedar stops understanding


PLACES = {
    "permit everything": ("`everything`", 1, 8),
    f"\n\n{SCOPE}\nwhen {{ context.x == }};": ("`}`", 4, 21),
    f"{SCOPE} when {{foo(1)}};": ("`foo`", 1, 44),
    f"{SCOPE}\nwhen {{ context.a = 5 }};": ("'='", 2, 18),
    f"{SCOPE} when {{ true }}": ("end of input", 1, 51),
    f'{SCOPE} when {{ "abc }};': ("invalid token", 1, 45),
    f"{SCOPE}; // fine\n  permit (principal, actio, resource);": ("actio", 2, 22),
    f'@id("a;//") {SCOPE} when {{ context.a == ";" }};\n}}': ("`}`", 2, 1),
}


@pytest.mark.parametrize("text", PLACES)
def test_a_policy_that_does_not_parse_is_placed_at_the_token_that_cedar_complains_about(text: str) -> None:
    words, line, column = PLACES[text]
    (wrong,) = [finding for finding in lint(text) if finding.code == "syntax"]
    assert words in wrong.message
    assert (wrong.level, wrong.line, wrong.column) == ("error", line, column)


def test_a_text_without_a_statement_denies_everything_and_says_so() -> None:
    for text in ("", "\n", "// only a comment", "// permit (principal, action, resource);"):
        assert found(text) == ["empty"]


def test_statements_are_those_that_cedar_counts_in_its_own_order() -> None:
    slot, last = "permit (principal, action, resource == ?resource);", '@id("c;") forbid(principal, action, resource);'
    text = f'@id("a") {SCOPE};\n// ;\n{slot} {last}'
    assert [(one.key, one.annotated, one.effect) for one in statements(text)] == [
        ("policy0", "a", "permit"),
        ("policy1", "", "permit"),
        ("policy2", "c;", "forbid"),
    ]
    tree = cedarpy.policies_to_pst(text)
    assert {**tree.templates, **tree.static_policies}.keys() == {one.key for one in statements(text)}


@settings(max_examples=50)
@given(st.text('permit(principal,action,resource)when{}; "\\/@\n=&|.:_é', max_size=60))
def test_any_text_is_looked_at_without_an_error_of_another_kind(text: str) -> None:
    findings = lint(text, TOOLS)
    assert all(finding.message.isprintable() for finding in findings)
    parses = bool(statements(text)) and not problem(text)
    assert parses or any(finding.level == "error" for finding in findings)


def test_lines_and_columns_are_counted_from_one() -> None:
    assert [place("ab\nc", offset) for offset in range(4)] == [(1, 1), (1, 2), (1, 3), (2, 1)]


# What lets more through than it seems to


@pytest.mark.parametrize(
    "pattern",
    ["https://good.example*", "/data/*", "*.example.com", "*@example.com", "C:\\\\data\\\\*", "10.0.*"],
)
def test_a_pattern_over_a_part_of_an_address_or_a_path_is_a_warning(pattern: str) -> None:
    assert found(on("fetch", f'context.arguments.url like "{pattern}"')) == ["part_of_an_address"]
    assert found(on("fetch", f'!(context.arguments.url like "{pattern}")'), None) == ["part_of_an_address"]


@pytest.mark.parametrize(
    "condition",
    [
        'context.arguments.url like "draft*"',
        'context.arguments.url == "/data/x"',
        'context.hosts.url like "*.example.com"',
        'resource.name like "files.*"',
    ],
)
def test_a_pattern_over_something_else_is_none(condition: str) -> None:
    assert found(on("fetch", condition)) == []


def test_a_permission_to_write_that_asks_nothing_about_the_call_is_a_warning() -> None:
    for free in (
        f'@id("x") {SCOPE};',
        f'@id("x") {SCOPE} when {{ true }};',
        f'@id("x") {SCOPE} when {{ resource.effect == "write" }};',
        f'@id("x") {CALL.format("send")};',
        '@id("x") permit (principal == User::"ann", action == Action::"call", resource == Tool::"send");',
    ):
        assert found(free) == ["open"]
        assert "send" in lint(free, TOOLS)[0].message
        assert found(free, None) == ["open"]


def test_a_permission_that_asks_or_that_writes_nothing_is_none() -> None:
    for bound in (
        f'@id("x") {SCOPE} when {{ resource.effect == "read" }};',
        f'@id("x") {CALL.format("fetch")};',
        '@id("x") permit (principal, action == Action::"ask", resource);',
        f'@id("x") {SCOPE} when {{ context.integrity == "trusted" }};',
        on("send", 'context.arguments.to == "desk"'),
        '@id("x") forbid (principal, action, resource);',
    ):
        assert found(bound) == []


def test_what_the_audit_log_could_not_name_is_a_warning() -> None:
    assert found('forbid (principal, action, resource);@id("") forbid (principal, action, resource);') == ["no_id"] * 2
    twice = lint('@id("a") forbid (principal, action, resource);\n@id("a") forbid (principal, action, resource);')
    assert [(finding.code, finding.line) for finding in twice] == [("same_id", 2)]
    assert "line 1" in twice[0].message


# Names and types that do not exist


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (on("sned", 'context.arguments.to == "bob"'), 'no tool is named "sned".*nearest are "send"'),
        (on("send", 'context.arguments.too == "bob"'), "arguments.too"),
        (on("send", 'context.arguments has too && context.arguments.too == "bob"'), '"too"'),
        (on("send", "context has arguments.too"), '"too"'),
        (on("send", "context.arguments.to == 5"), "Long and String"),
        (on("send", 'resource.efect == "write" && context has arguments'), "efect"),
        (on("send", 'context.integrety == "trusted"'), "integrety"),
        (on("send", 'principal.role == "boss" && context has arguments'), "role"),
        ('@id("x") permit (principal in Group::"staff", action == Action::"ask", resource);', "Group"),
        ('@id("x") permit (principal, action == Action::"cal", resource);', "cal"),
        ('@id("x") permit (principal, action == Action::"ask", resource == ?resource);', "slot"),
    ],
)
def test_a_name_or_a_type_that_does_not_exist_is_an_error(policy: str, words: str) -> None:
    (wrong,) = lint(policy, TOOLS)
    assert wrong.level == "error"
    assert re.search(words, wrong.message, re.IGNORECASE), wrong.message


def test_without_tools_nothing_is_said_about_arguments() -> None:
    assert found(on("sned", "context.arguments.whatever > 5"), None) == []
    assert found(on("send", 'context.integrety == "trusted"'), None) == ["unknown"]


def test_an_argument_of_several_types_is_left_alone() -> None:
    assert found(on("send", 'context.arguments has copies && context.arguments.copies == "x"')) == []


def test_what_denies_more_than_it_seems_to_is_a_note() -> None:
    assert lint(on("send", "context.arguments.urgent"), TOOLS)[0].level == "note"
    assert found(on("send", "context.arguments.urgent")) == ["optional"]
    assert found(on("fetch", 'context.hosts.url == "good.example"')) == [], "a host that is missing is meant to deny"
    (note,) = lint('@id("x") forbid (principal, action, resource) when { context.arguments.depth > 3 };', TOOLS)
    assert (note.level, note.code) == ("note", "elsewhere")
    assert note.message.startswith("send has no depth")


def test_a_tool_from_elsewhere_with_nested_arguments_is_understood() -> None:
    schema = {
        "type": "object",
        "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
        "properties": {
            "place": {"$ref": "#/$defs/Place"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "max-results": {"type": "number"},
            "any": {},
        },
        "required": ["place", "tags", "max-results"],
    }
    other = Registry([Tool("there", "", schema, Effect.READ, lambda: None)])
    fine = (
        'context.arguments.place.city == "Oslo" && context.arguments.tags.contains("a") '
        '&& context.arguments["max-results"] < 5 && context.arguments.any.b == 3'
    )
    assert found(on("there", fine), other) == []
    assert found(on("there", "context.arguments.place.country == 3"), other) == ["unknown"]
    assert found(on("there", "context.arguments.tags.contains(3)"), other) == ["unknown"]


def test_a_condition_that_is_too_deep_to_be_looked_into_is_said() -> None:
    deep = " || ".join(["context.arguments.n == 1"] * 300)
    assert [finding.code for finding in lint(f'@id("x") {SCOPE} when {{ {deep} }};', TOOLS)] == ["too_deep"]


def test_a_finding_names_its_statement_and_its_place() -> None:
    assert lint(f'\n@id("all")\n{SCOPE};', TOOLS) == [
        Finding("warning", "open", lint(f'@id("all") {SCOPE};', TOOLS)[0].message, "all", 2, 1)
    ]
