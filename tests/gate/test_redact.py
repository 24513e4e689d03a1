"""A secret argument shows up in no record."""

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pydantic
import pytest
from gate_bench import ANN, Bench, tool

from toolwise import tool as tool_of
from toolwise.core.errors import ToolFailed
from toolwise.core.types import Call, Effect, Tool, WrittenCall
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.redact import SHOWN, blanked, redacted
from toolwise.gate.state import open_state

CANARY = "sk-canary-4711"
SECRET = {"type": "string", "writeOnly": True}
OPEN = {"type": "string"}
OF_ANY_NAME = {"additionalProperties", "patternProperties", "unevaluatedProperties"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"properties": {"key": SECRET}}, {"key": CANARY}),
        ({"properties": {"key": {"type": "string", "format": "password"}}}, {"key": CANARY}),
        ({"properties": {"o": {"properties": {"key": SECRET}}}}, {"o": {"key": CANARY}}),
        ({"properties": {"l": {"items": {"$ref": "#/$defs/k"}}}, "$defs": {"k": SECRET}}, {"l": [CANARY]}),
        ({"properties": {"l": {"prefixItems": [OPEN, SECRET]}}}, {"l": ["x", CANARY]}),
        ({"properties": {"v": {"anyOf": [{"type": "integer"}, SECRET]}}}, {"v": CANARY}),
        ({"properties": {"o": {**SECRET, "type": "object"}}}, {"o": {"deep": [{"key": CANARY}]}}),
        ({"properties": {}, "additionalProperties": SECRET}, {"any": CANARY}),
        ({"patternProperties": {"^k": SECRET}}, {"key": CANARY}),
        ({"allOf": [{"$ref": "#/$defs/a~1b"}], "$defs": {"a/b": {"properties": {"key": SECRET}}}}, {"key": CANARY}),
        ({"properties": {"key": {"$ref": "#/$defs/a%20b"}}, "$defs": {"a b": SECRET}}, {"key": CANARY}),
        ({"dependentSchemas": {"open": {"properties": {"key": SECRET}}}}, {"key": CANARY}),
        ({"dependencies": {"open": {"properties": {"key": SECRET}}}}, {"key": CANARY}),
        ({"unevaluatedProperties": SECRET}, {"any": CANARY}),
        ({"properties": {"l": {"unevaluatedItems": SECRET}}}, {"l": [CANARY]}),
        ({"properties": {"l": {"items": [OPEN, SECRET]}}}, {"l": ["x", CANARY]}),
        ({"properties": {"l": {"items": [OPEN], "additionalItems": SECRET}}}, {"l": ["x", CANARY]}),
    ],
)
def test_a_value_that_its_schema_calls_secret_is_not_shown_wherever_it_stands(
    schema: dict[str, Any], value: dict[str, Any]
) -> None:
    shown, secrets = redacted({**value, "open": "seen"}, {"type": "object", **schema})
    assert CANARY not in repr(shown)
    assert SHOWN in repr(shown)
    assert CANARY in secrets
    assert shown["open"] == (SHOWN if OF_ANY_NAME & schema.keys() else "seen")


def test_a_short_secret_does_not_blank_out_every_text() -> None:
    shown, secrets = redacted({"pin": "1"}, {"properties": {"pin": SECRET}})
    assert (shown, secrets) == ({"pin": SHOWN}, ())
    assert blanked("11 and sk-1234", ["sk-1234"]) == f"11 and {SHOWN}"


def test_a_parameter_of_a_secret_type_is_secret_and_reaches_the_function_whole() -> None:
    seen = []

    @tool_of(effect=Effect.READ, bounded=True)
    def login(user: str, key: pydantic.SecretStr) -> str:
        """Log in."""
        seen.append(key.get_secret_value())
        return user

    bench = Bench((login,))
    assert bench.call({"user": "ann", "key": CANARY}, "login").text == "ann"
    assert seen == [CANARY]
    assert bench.lines[0].arguments == f'{{"key":"{SHOWN}","user":"ann"}}'


def leaky(key: str) -> str:
    print("printed", key)
    logging.getLogger("tool").warning("logged %s", key)
    if key.endswith("!"):
        raise ToolFailed(f"The key {key} is refused.")
    if key.endswith("?"):
        raise ValueError(key)
    return f"result {key}"


def the_tool(**settings: Any) -> Tool:
    return tool(leaky, "login", required=("key",), key=SECRET, **settings)


@pytest.mark.case("F13")
@pytest.mark.parametrize("bounded", [True, False])
def test_a_canary_is_in_no_sink(bounded: bool, tmp_path: Path) -> None:
    policy = CedarPolicy.from_text("""
        permit (principal, action == Action::"call", resource == Tool::"login");
        permit (principal, action == Action::"ask", resource == Tool::"asked");
    """)
    asked = tool(leaky, "asked", Effect.WRITE, required=("key",), key=SECRET)
    path = tmp_path / "state.db"
    bench = Bench((the_tool(effect=Effect.WRITE, bounded=bounded), asked), policy, {"state": open_state(path)})
    texts = [
        bench.call(arguments, name).text
        for name in ("login", "asked", "nobody")
        for arguments in (
            {"key": CANARY},
            {"key": CANARY + "!"},
            {"key": CANARY + "?"},
            {"key": [CANARY]},
            {"key": CANARY, CANARY: 1},
        )
    ]
    for form, written in (
        ("json", f'{{"name":"login","arguments":{{"key":"{CANARY}","key":"{CANARY}"}}}}'),
        ("json", f'{{"name":"login","arguments":{{"key":"{CANARY}"'),
        ("inline", f'login("{CANARY}'),
        ("inline", f'login(key="{CANARY}\\ud800")'),
    ):
        texts.append(_run(bench, form, written))
    kept = [text for text in texts if CANARY in text]
    assert all(f'"{CANARY}"' in text for text in kept), "an argument's own name is the model's word, not a secret"
    bench.audit.flush()
    with sqlite3.connect(path) as other:
        dump = "\n".join(other.iterdump())
    assert dump.count(CANARY) == 0
    assert SHOWN in dump


def _run(bench: Bench, form: Any, written: str) -> str:
    bench.calls += 1
    return bench.gate.execute(WrittenCall(f"w{bench.calls}", written, form), ANN).text


def test_two_secrets_are_two_calls() -> None:
    bench = Bench((the_tool(effect=Effect.WRITE),))
    assert bench.gate.execute(Call("c", "login", {"key": CANARY}), ANN).text == f"result {SHOWN}"
    assert bench.gate.execute(Call("c", "login", {"key": CANARY + "x"}), ANN).code == "conflict"


def test_a_secret_is_blanked_out_as_json_python_and_messages_spell_it() -> None:
    key = 'sk-"canary"\n\\4711\u200b'

    def spells(key: str) -> Any:
        return {"plain": key} if fails == "" else {}[key] if fails == "repr" else _raise(ToolFailed(f"No {key}"))

    for fails in ("", "repr", "message"):
        bench = Bench((tool(spells, "login", key=SECRET),))
        result = bench.call({"key": key}, "login")
        told = f"{result.text} {[line.detail for line in bench.lines]}"
        assert "4711" not in told, fails
        assert SHOWN in told


def _raise(error: Exception) -> None:
    raise error


def test_a_secret_that_begins_with_another_one_is_blanked_out_whole() -> None:
    _, secrets = redacted({"user": "hunt", "key": "hunter2"}, {"properties": {"user": SECRET, "key": SECRET}})
    assert blanked("hunter2 hunt", secrets) == f"{SHOWN} {SHOWN}"


@pytest.mark.case("F13")
@pytest.mark.parametrize("rule", ["ip(context.arguments.key).isLoopback()", "decimal(context.arguments.key) == 1"])
def test_a_policy_that_fails_over_a_secret_does_not_spell_it_in_the_log(rule: str) -> None:
    policy = CedarPolicy.from_text(f"permit (principal, action, resource) when {{ {rule} }};")
    bench = Bench((the_tool(),), policy)
    assert bench.call({"key": CANARY}, "login").code == "denied"
    (line,) = bench.lines
    assert "could not be evaluated" in line.policy
    assert CANARY not in repr(line)
