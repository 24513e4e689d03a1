"""A call of a chat API, name and arguments apart: what is read in one way only runs, and what was read is told."""

from __future__ import annotations

from typing import Any

import pytest

from toolwise.core.types import CallContext, Effect, Principal, Result, Tool, WrittenCall
from toolwise.gate.gate import Gate
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.state import open_state
from toolwise.tools.registry import Registry

ANYTHING = "permit (principal, action, resource);"
TEXTS = {"type": "array", "items": {"type": "string"}}
FIND = {
    "type": "object",
    "properties": {"queries": TEXTS, "content": {"type": "string"}, "where": {"type": "object"}},
    "additionalProperties": False,
}
CONTEXT = CallContext(Principal("ann"), "run-1")


class Finder:
    """A gate with one tool, which keeps what it was given."""

    def __init__(self, *required: str, name: str = "find") -> None:
        self.given: list[dict[str, Any]] = []
        tool = Tool(name, "Finds.", FIND | {"required": list(required)}, Effect.READ, self._run, bounded=True)
        self.gate = Gate(Registry([tool]), CedarPolicy.from_text(ANYTHING), open_state(":memory:"))

    def call(self, arguments: str, name: str = "find", **said: Any) -> Result:
        return self.gate.execute(WrittenCall("1.0", arguments, "arguments", name=name, **said), CONTEXT)

    @property
    def details(self) -> list[str]:
        return [row.line.detail for row in self.gate.audit.rows() if row.line.event == "intent"]

    def _run(self, **given: Any) -> str:
        self.given.append(given)
        return "found"


@pytest.mark.case("R9")
@pytest.mark.parametrize("nothing", ["", "  \n", "null", " null ", "{}"])
def test_no_arguments_are_an_empty_object_and_a_missing_one_is_named(nothing: str) -> None:
    finder = Finder()
    assert finder.call(nothing).ok
    assert finder.given == [{}]
    refused = Finder("queries").call(nothing)
    assert refused.code == "invalid_arguments"
    assert 'missing argument "queries"' in refused.text


@pytest.mark.case("R4")
def test_a_list_written_as_a_text_is_read_where_only_the_list_fits_and_the_log_says_so() -> None:
    finder = Finder()
    assert finder.call('{"queries": "[\\"test\\"]", "content": "[1,2]", "where": "{\\"a\\": 1}"}').ok
    assert finder.given == [{"queries": ["test"], "content": "[1,2]", "where": {"a": 1}}]
    assert finder.details == ['read from a text: "queries", "where"']


@pytest.mark.case("R4")
@pytest.mark.parametrize("text", ["[1]", '[\\"a\\"', "test", "5", '{\\"a\\": 1, \\"a\\": 2}', "[NaN]"])
def test_a_text_that_says_nothing_fitting_stays_refused(text: str) -> None:
    finder = Finder()
    assert finder.call(f'{{"queries": "{text}"}}').code == "invalid_arguments"
    assert not finder.given


@pytest.mark.case("R14")
def test_a_control_token_behind_a_name_is_no_part_of_it_and_nothing_else_is_guessed() -> None:
    finder = Finder()
    assert finder.call("{}", "find<|channel|>commentary").ok
    assert finder.details == ["a control token behind the name was left out"]
    for name in ("fin<|channel|>commentary", "<|channel|>find", "find<b>", "find ", "find\n"):
        assert finder.call("{}", name).code == "unknown_tool", name


@pytest.mark.case("R3")
def test_arguments_that_were_never_closed_are_cut_off_whatever_the_call_says_of_itself() -> None:
    finder = Finder()
    refused = finder.call('{"queries": ["a"], "where":')
    assert refused.code == "truncated_call"
    assert "with less" in refused.text
    assert finder.call("{}", complete=False).code == "truncated_call"
    assert not finder.given


def test_what_began_like_a_call_and_is_none_is_malformed() -> None:
    assert Finder().call("find(queries=", "").code == "malformed_call"
    assert Finder().call("[1]").code == "malformed_call"


def test_nothing_is_put_beside_the_arguments_by_what_stands_in_them() -> None:
    finder = Finder()
    assert finder.call('{}, "name": "other"').code == "malformed_call"
    assert finder.call("{}", 'find","arguments":{"content":"x"},"name":"find').code == "unknown_tool"
    assert not finder.given
