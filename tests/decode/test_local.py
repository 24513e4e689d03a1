"""One turn of a local model: free text, calls that are held to their schema, answers of a given shape."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.chat import (
    ChatRequest,
    Message,
    OutputSchema,
    Role,
    StopReason,
    TextDelta,
    ToolChoice,
    ToolSpec,
    gathered,
)
from toolwise.core.errors import BadInput
from toolwise.decode.local import ChatSettings, LocalChat
from toolwise.models.masks import Masks
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer, follow
from toolwise.notation.chat.hermes import HERMES as SPOKEN_HERMES
from toolwise.notation.chat.inline import INLINE
from toolwise.notation.chat.llama3 import LLAMA3 as SPOKEN_LLAMA3
from toolwise.notation.chat.reader import Reader
from toolwise.notation.grammar import call_grammar

HERMES, LLAMA3 = SPOKEN_HERMES.layout, SPOKEN_LLAMA3.layout
ADD = ToolSpec("add", "Adds.", {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"],
    "additionalProperties": False,
})  # fmt: skip
NOW = ToolSpec("now", "The time.", {"type": "object", "properties": {}, "additionalProperties": False})
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


class Plain:
    """A dialect of test: the conversation is its texts, one behind the other."""

    name = "plain"

    def __init__(self, layout=HERMES):
        self.layout = layout

    def render(self, request, tokenizer, template):
        return tokenizer.encode("".join(f"{message.role}: {message.text}\n" for message in request.messages))

    def reader(self, request):
        return Reader(self.layout, request)

    def grammar(self, tools, parallel):
        return call_grammar(self.layout, tools, parallel)


def chat(script, *, layout=HERMES, masked=True, pieces=(), **how):
    model = ScriptedModel(script, ScriptedTokenizer(pieces))
    return LocalChat(
        model, Plain(layout), masks=Masks(model.tokenizer) if masked else None, settings=ChatSettings(**how)
    )


def ask(text="?", **given):
    given = {"tools": (ADD, NOW), "max_tokens": 200} | given
    return ChatRequest((Message(Role.USER, text),), **given)


def replied(model, **given):
    return gathered(model.reply(ask(**given)))


def test_text_without_a_call_is_an_answer():
    reply = replied(chat(follow(("?\n", "It is 4."))))
    assert (reply.text, reply.calls, reply.stop) == ("It is 4.", (), StopReason.END)
    assert (reply.usage.prompt, reply.usage.completion) == (len("user: ?\n"), len("It is 4."))


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("pieces", [(), ("<tool_call>",), ("Hm, <", "tool_", "call>\n{"), ('call>\n{"na', "{", "}\n")])
def test_a_call_is_met_however_the_model_spells_its_beginning(masked, pieces):
    model = chat(follow(("?\n", "Hm, " + CALL)), masked=masked, pieces=pieces)
    reply = replied(model)
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("add", {"a": 1, "b": 2})]
    assert (reply.text.strip(), reply.stop) == ("Hm,", StopReason.CALLS)


def test_what_a_model_would_write_of_itself_is_held_to_names_and_schemas():
    wrong = '<tool_call>\n{"name": "subtract", "arguments": {"c": "x"}}\n</tool_call>'
    (call,) = replied(chat(follow(("?\n", wrong)))).calls
    assert call.name in ("add", "now")
    assert call.complete
    json.loads(call.arguments)


def test_without_masks_the_call_is_what_the_model_wrote():
    wrong = '<tool_call>\n{"name": "subtract", "arguments": {"c": "x"}}\n</tool_call>'
    (call,) = replied(chat(follow(("?\n", wrong)), strict="never")).calls
    assert (call.name, call.arguments) == ("subtract", '{"c": "x"}')


def test_where_tools_are_asked_to_be_strict_the_others_are_free():
    script = follow(("?\n", '<tool_call>\n{"name": "add", "arguments": {"c": "x"}}\n</tool_call>'))
    loose = ToolSpec("now", "", NOW.parameters, strict=True)
    (call,) = replied(chat(script, strict="asked"), tools=(ADD, loose)).calls
    assert call.arguments == '{"c": "x"}'
    assert replied(chat(script, strict="asked")).calls[0].arguments == '{"c": "x"}'
    strict = ToolSpec("add", "", ADD.parameters, strict=True)
    assert set(json.loads(replied(chat(script, strict="asked"), tools=(strict, NOW)).calls[0].arguments)) == {"a", "b"}


@pytest.mark.parametrize("names", [(), ("now",), ("add", "now")])
def test_a_call_that_is_required_is_made_of_those_that_are_allowed(names):
    reply = replied(chat(follow(("?\n", "I would rather talk."))), choice=ToolChoice("required", names))
    assert reply.stop is StopReason.CALLS
    assert {call.name for call in reply.calls} <= set(names or ("add", "now"))


def test_a_call_cannot_be_forced_without_masks():
    with pytest.raises(BadInput, match="strict"):
        replied(chat(follow(("?\n", "No.")), masked=False), choice=ToolChoice("required"))


@pytest.mark.case("R29")
def test_where_nothing_may_be_called_what_looks_like_a_call_is_text():
    reply = replied(chat(follow(("?\n", CALL))), choice=ToolChoice("none"))
    assert (reply.text, reply.calls, reply.stop) == (CALL, (), StopReason.END)


@pytest.mark.parametrize("masked", [True, False])
def test_two_calls_of_one_turn_and_one_where_one_is_allowed(masked):
    script = follow(("?\n", f"{CALL}\n{CALL}"))
    assert len(replied(chat(script, masked=masked)).calls) == 2
    assert len(replied(chat(script, masked=masked), parallel=False).calls) == 1


def test_a_call_that_the_token_bound_cuts_is_broken_and_waits_for_nobody():
    reply = replied(chat(follow(("?\n", CALL))), max_tokens=45)
    assert (reply.stop, [call.complete for call in reply.calls]) == (StopReason.LENGTH, [False])


def test_an_answer_is_held_to_the_schema_that_was_asked_for():
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": False}
    reply = replied(chat(follow(("?\n", "Well, seven."))), tools=(), output=OutputSchema(schema))
    assert (json.loads(reply.text), reply.stop) == ({"n": 7}, StopReason.END)


def test_where_an_answer_has_a_schema_the_model_may_still_call():
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": False}
    assert len(replied(chat(follow(("?\n", CALL))), output=OutputSchema(schema)).calls) == 1
    assert json.loads(replied(chat(follow(("?\n", "Well."))), output=OutputSchema(schema)).text) == {"n": 7}


@given(st.text(max_size=12), st.text(min_size=1, max_size=3))
@settings(deadline=None, max_examples=60)
def test_text_ends_before_a_stop_string_wherever_it_comes(text, stop):
    text = text.encode("utf-8", "ignore").decode().replace("\0", "")
    stop = stop.encode("utf-8", "ignore").decode() or "x"
    pieces = list(chat(follow(("?\n", text)), masked=False).reply(ask(stop=(stop,))))
    said = "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
    assert said == text.partition(stop)[0]
    assert pieces[-1].stop is (StopReason.STOP if stop in text else StopReason.END)


def test_a_call_of_bare_json_begins_the_turn_or_is_text():
    call = '{"name": "add", "parameters": {"a": 1, "b": 2}}'
    assert len(replied(chat(follow(("?\n", call)), layout=LLAMA3)).calls) == 1
    assert replied(chat(follow(("?\n", f"As in {call}")), layout=LLAMA3)).text == f"As in {call}"


def test_forced_texts_cost_no_forward_each():
    model = chat(follow(("?\n", CALL)))
    reply = replied(model, choice=ToolChoice("required", ("add",)))
    assert model.model.usage.forwards < reply.usage.completion / 3


def test_the_iterator_that_is_closed_ends_the_work():
    class Session:
        closed = 0

        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, name):
            return getattr(self._inner, name)

        def close(self):
            Session.closed += 1

    model = chat(follow(("?\n", "A long answer.")))
    opened = LocalChat(model.model, model.dialect, open_session=lambda ids, whose: Session(model.model.session(ids)))
    pieces = opened.reply(ask())
    next(pieces)
    pieces.close()
    assert Session.closed == 1


def test_what_stands_before_a_call_in_its_first_token_is_kept_however_it_is_spelled_alone():
    # alone, `ab ` is two tokens where the model wrote one with the trigger's beginning
    model = chat(follow(("?\n", "ab " + CALL)), pieces=("ab <tool", "ab", " <"))
    reply = replied(model)
    assert (reply.text.strip(), len(reply.calls)) == ("ab", 1)


def test_half_a_character_at_the_end_stands_behind_the_text_that_waited_for_a_trigger():
    begun = follow(("?\n", "<tool"))
    model = chat(lambda text: (0xC3,) if text.endswith("<tool") else begun(text))
    assert replied(model).text == "<tool\ufffd"


@pytest.mark.parametrize("seed", range(8))
def test_an_answer_that_has_a_schema_is_of_it_or_a_call_whatever_is_sampled(seed):
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": False}
    model = chat(follow(("?\n", CALL)), pieces=("<tool_call>",))
    model.model._certainty = 0.5  # half of the turns begin otherwise
    reply = replied(model, output=OutputSchema(schema), temperature=1.0, seed=seed, max_tokens=400)
    assert reply.calls or json.loads(reply.text) == {"n": 7}


def test_where_calls_are_bare_json_an_answer_that_has_a_schema_is_not_taken_for_one():
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": False}
    said = [
        replied(chat(follow(("?\n", written)), layout=LLAMA3), output=OutputSchema(schema))
        for written in ('{"m": 8}', '{"name": "add", "parameters": {"a": 1, "b": 2}}')
    ]
    assert json.loads(said[0].text) == {"n": 7}
    assert [call.name for call in said[1].calls] == ["add"]


@pytest.mark.parametrize("seed", [-1, -(2**70), 2**70])
def test_any_integer_is_a_seed(seed):
    model = chat(follow(("?\n", "Hm.")))
    assert len({replied(model, seed=seed, temperature=1.0, max_tokens=5).text for _ in range(2)}) == 1


def test_without_masks_a_turn_ends_where_no_call_can_come_any_more():
    written = "It is [Calculator(1 + 2) -> and on and on"
    tool = ToolSpec("Calculator", "", {"type": "object", "properties": {"e": {"type": "string"}}, "required": ["e"]})
    model = ScriptedModel(follow(("?", written)))
    reply = replied(LocalChat(model, INLINE, settings=ChatSettings(strict="never")), tools=(tool,))
    assert (reply.text, reply.stop) == ("It is", StopReason.CALLS)
    assert [(call.name, json.loads(call.arguments)) for call in reply.calls] == [("Calculator", {"e": "1 + 2"})]
    assert reply.usage.completion < len(written) - len("and on and on")


@pytest.mark.parametrize(("threshold", "called"), [(0.05, True), (0.2, False), (None, False)])
def test_a_call_begins_where_its_first_token_is_as_likely_as_the_threshold_says(threshold, called):
    class Hesitant(ScriptedModel):
        def _next(self, ids):
            row = super()._next(ids)
            if "[" not in self.tokenizer.decode(ids):
                row[self.tokenizer.encode(" [")[0]] = np.log(0.1)
            return row

    model = Hesitant(follow((" [", "add(a=1, b=2)"), ("?\n", "It is 4.")), ScriptedTokenizer(), certainty=0.89)
    dialect = Plain(INLINE.layout)
    dialect.grammar = INLINE.grammar
    dialect.reader = INLINE.reader
    local = LocalChat(model, dialect, masks=Masks(model.tokenizer), settings=ChatSettings(start_threshold=threshold))
    assert [call.name for call in replied(local).calls] == (["add"] if called else [])


def test_below_the_threshold_even_the_likeliest_first_token_begins_nothing():
    eager = follow(("?\n", " [add(a=1, b=2)"))
    model = ScriptedModel(eager, ScriptedTokenizer())
    dialect = Plain(INLINE.layout)
    dialect.grammar = INLINE.grammar
    dialect.reader = INLINE.reader
    for threshold, count in ((0.5, 1), (0.99, 0)):
        settings = ChatSettings(start_threshold=threshold)
        local = LocalChat(model, dialect, masks=Masks(model.tokenizer), settings=settings)
        assert len(replied(local, max_tokens=60).calls) == count
