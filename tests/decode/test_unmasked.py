"""What a local model's masks leave open: it is told, and looked at before it is given on; the rest goes straight on."""

from __future__ import annotations

from typing import Any

import pytest
from test_local import ADD, CALL, ask, chat, follow

from agent_runs import Turns, call, turn
from toolwise.core.chat import CallDelta, OutputSchema, TextDelta, ToolChoice, ToolSpec, gathered
from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.decode.catalogued import Catalogued
from toolwise.decode.held import Held
from toolwise.decode.unmasked import downgrades
from toolwise.notation.grammar import Downgrade

CITIES = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
PLACES = {"type": "object", "properties": {"cities": CITIES}, "required": ["cities"], "additionalProperties": False}
SEE = ToolSpec("see", "Sees.", PLACES)
LOST = Downgrade("see", "/properties/cities", "uniqueItems")
SAME, OTHERS = '{"cities": ["a", "a"]}', '{"cities": ["a", "b"]}'


def written(arguments: str, name: str = "see") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def said(*pairs: tuple[str, str], **how: Any) -> Held:
    return Held(chat(follow(*pairs), **how))


class Masked(Turns):
    """Turns of a model that masks all but what it says."""

    lost: tuple[Downgrade, ...] = (LOST,)

    def downgrades(self, request: Any) -> tuple[Downgrade, ...]:
        return self.lost


def test_what_the_masks_leave_open_is_known_before_the_turn() -> None:
    model = said(("?\n", "Hm."))
    assert downgrades(model, ask(tools=(ADD, SEE))) == (LOST,)
    assert downgrades(model, ask(tools=(ADD,))) == ()
    assert downgrades(model, ask(tools=(ADD, SEE), choice=ToolChoice("none"))) == ()
    assert downgrades(model, ask(tools=(ADD, SEE), choice=ToolChoice("required", ("add",)))) == ()
    assert downgrades(model, ask(tools=(), output=OutputSchema(PLACES))) == (
        Downgrade("", "/properties/cities", "uniqueItems"),
    )
    assert downgrades(model, ask(tools=(), output=OutputSchema())) == ()
    assert downgrades(Held(Turns(turn(text="Hm."))), ask()) is None


def test_a_tool_that_nobody_asked_to_be_strict_loses_nothing() -> None:
    strict = ToolSpec("see", "", PLACES, strict=True)
    loose = said(("?\n", written(SAME)), strict="asked")
    assert downgrades(loose, ask(tools=(SEE,))) == ()
    assert downgrades(loose, ask(tools=(strict, ADD))) == (LOST,)
    assert downgrades(said(("?\n", ""), strict="never"), ask(tools=(strict,))) == ()
    assert gathered(loose.reply(ask(tools=(SEE,)))).calls[0].arguments == SAME


def test_without_masks_nothing_is_masked() -> None:
    assert downgrades(said(("?\n", ""), masked=False), ask(tools=(SEE,))) == (Downgrade("see", "", "schema"),)


def test_a_call_that_does_not_fit_is_told_once_and_made_anew() -> None:
    model = said(("user: ?\n", written(SAME)), ("tool: Error (invalid_arguments)", ""), ("\n", written(OTHERS)))
    reply = gathered(model.reply(ask(tools=(ADD, SEE))))
    assert [one.arguments for one in reply.calls] == [OTHERS]


def test_one_that_never_fits_is_given_on_where_nobody_wants_it_strict_and_an_error_where_somebody_does() -> None:
    for strict in (False, True):
        tool = ToolSpec("see", "", PLACES, strict=strict)
        model = Masked(turn(call("see", SAME)))
        if strict:
            with pytest.raises(ModelUnavailable, match="what was asked"):
                gathered(Held(model).reply(ask(tools=(tool,))))
        else:
            assert gathered(Held(model).reply(ask(tools=(tool,)))).calls == (call("see", SAME),)
        assert len(model.asked) == 2


def test_where_nothing_was_lost_every_piece_goes_straight_on() -> None:
    model = chat(follow(("?\n", "Hm, " + CALL)))
    assert list(Held(model).reply(ask(seed=1))) == list(model.reply(ask(seed=1)))
    assert len([one for one in Held(model).reply(ask()) if isinstance(one, CallDelta)]) > 2


def test_calls_before_one_of_a_tool_that_lost_something_come_as_they_are_written() -> None:
    first, second = call("add", '{"a": 1, "b": 2}'), call("see", OTHERS, "c2")
    tools = (ADD, SEE)
    model = Held(Masked(turn(first, second, text="Hm.")))
    given = list(model.reply(ask(tools=tools)))
    assert gathered(given) == turn(first, second, text="Hm.")
    bad = turn(first, call("see", SAME, "c2"))
    model = Masked(bad)
    assert gathered(Held(model).reply(ask(tools=tools))) == bad
    strict = (ADD, ToolSpec("see", "", PLACES, strict=True))
    with pytest.raises(ModelUnavailable):
        gathered(Held(model).reply(ask(tools=strict)))
    assert len(model.asked) == 2  # once each: a client has the first call already


def test_an_answer_whose_schema_lost_something_is_held_back_until_it_fits() -> None:
    output = OutputSchema(PLACES)
    model = said(("user: ?\n", SAME), ("Write it anew.\n", OTHERS))
    assert [one.text for one in model.reply(ask(tools=(), output=output)) if isinstance(one, TextDelta)] == [OTHERS]
    with pytest.raises(ModelUnavailable, match="not the JSON"):
        gathered(said(("\n", SAME)).reply(ask(tools=(), output=output)))


def test_tools_that_cannot_be_masked_are_refused_before_the_turn() -> None:
    outside = ToolSpec("x", "", {"type": "object", "properties": {"a": {"$ref": "http://example.org/a"}}})
    with pytest.raises(BadInput):
        next(said(("?\n", "Hm.")).reply(ask(tools=(outside,))))


def test_of_many_tools_those_that_are_shown_are_told() -> None:
    many = tuple(ToolSpec(f"see_{kind}", f"Sees {kind}.", PLACES) for kind in ("cats", "dogs", "cows"))
    lost = downgrades(Catalogued(said(("\n", "")), most=1), ask("Look at the dogs.", tools=many))
    assert [one.tool for one in lost or ()] == ["see_dogs"]


def test_what_a_held_model_can_besides_can_be_asked_of_it() -> None:
    assert said(("\n", "")).prompt_tokens(ask()) == len("user: ?\n")
    assert not hasattr(Held(Turns(turn(text="Hm."))), "prompt_tokens")
