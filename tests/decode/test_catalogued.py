"""A chat model that is shown the tools that fit, and looks for others itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatDelta,
    ChatReply,
    ChatRequest,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolChoice,
    ToolSpec,
    gathered,
    pieces,
)
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.decode.catalogued import Catalogued
from toolwise.models.scripted_chat import ScriptedChat
from toolwise.tools.catalogue import FIND, Catalogue

AUTO = ToolChoice()
ANIMALS = ("ant", "bear", "cat", "dog", "eel", "fox", "goat", "hen", "ibis", "jay")
TOOLS = tuple(ToolSpec(f"feed_{animal}", f"Gives food to the {animal}.", {"type": "object"}) for animal in ANIMALS)


class Replies:
    """Gives prepared turns, and remembers what it was asked."""

    name = "replies"

    def __init__(self, *turns: ChatReply) -> None:
        self.turns = list(turns)
        self.asked: list[ChatRequest] = []

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        self.asked.append(request)
        yield from pieces(self.turns.pop(0) if self.turns else ChatReply("Done."))


def calls(*made: tuple[str, str], text: str = "", stop: StopReason = StopReason.CALLS) -> ChatReply:
    told = tuple(ChatCall(f"id{number}", name, arguments) for number, (name, arguments) in enumerate(made))
    return ChatReply(text, told, stop, TokenUsage(10, 1))


def find(words: str) -> tuple[str, str]:
    return FIND, f'{{"query": "{words}"}}'


def request(*texts: str, tools: Sequence[ToolSpec] = TOOLS, choice: ToolChoice = AUTO) -> ChatRequest:
    return ChatRequest(tuple(Message(Role.USER, text) for text in texts), tools=tuple(tools), choice=choice)


def shown(asked: ChatRequest) -> list[str]:
    return [tool.name.removeprefix("feed_") for tool in asked.tools]


def answered(model: Replies, asked: ChatRequest, most: int = 2, catalogue: Catalogue | None = None) -> ChatReply:
    return gathered(Catalogued(model, catalogue, most=most).reply(asked))


def test_few_tools_are_shown_as_they_are() -> None:
    model = Replies()
    asked = request("the cat", tools=TOOLS[:2])
    answered(model, asked)
    assert model.asked == [asked]


def test_of_many_tools_those_that_fit_are_shown_behind_find_tools() -> None:
    model = Replies()
    answered(model, request("food for the cat and the dog"))
    assert shown(model.asked[0]) == [FIND, "cat", "dog"]


def test_a_tool_once_shown_stays_in_its_place() -> None:
    model = Replies()
    answered(model, request("the cat", "the dog", "the cat, the eel"))
    assert shown(model.asked[0]) == [FIND, "cat", "dog", "eel"]


def test_the_same_conversation_shows_the_same_and_a_longer_one_begins_with_it() -> None:
    texts = ["the cat", "the fox", "the hen", "the goat"]
    seen = []
    for count in range(1, 5):
        model = Replies()
        answered(model, request(*texts[:count]))
        seen.append(shown(model.asked[0]))
    assert all(longer[: len(one)] == one for one, longer in pairwise(seen))


def test_what_was_called_before_is_shown() -> None:
    model = Replies()
    past = (
        Message(Role.USER, "hello"),
        Message(Role.ASSISTANT, calls=(ChatCall("1", "feed_jay", "{}"),)),
        Message(Role.TOOL, "fed", call_id="1"),
    )
    answered(model, replace(request(), messages=past))
    assert shown(model.asked[0]) == [FIND, "jay"]


def test_a_model_that_looks_for_a_tool_has_it_in_its_next_turn_and_the_client_sees_only_the_call_of_it() -> None:
    model = Replies(calls(find("the ibis"), text="Let me see."), calls(("feed_ibis", "{}")))
    reply = answered(model, request("the cat"))
    assert [call.name for call in reply.calls] == ["feed_ibis"]
    assert (reply.text, reply.stop, reply.usage) == ("Let me see.", StopReason.CALLS, TokenUsage(20, 2))
    assert shown(model.asked[1]) == [FIND, "cat", "ibis"]
    last = model.asked[1].messages[-1]
    assert (last.role, last.text, last.call_id) == (Role.TOOL, "feed_ibis: Gives food to the ibis.", "id0")


def test_several_searches_in_one_turn_are_all_answered() -> None:
    model = Replies(calls(find("ibis"), find("jay")))
    assert answered(model, request("the cat")).text == "Done."
    assert shown(model.asked[1]) == [FIND, "cat", "ibis", "jay"]


def test_texts_of_several_turns_are_apart() -> None:
    model = Replies(calls(find("ibis"), text="One."), ChatReply("Two."))
    assert answered(model, request("the cat")).text == "One.\nTwo."


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{}", "Error (invalid_arguments): "),
        ('{"query": 3}', "Error (invalid_arguments): "),
        ('{"query": ', "Error (invalid_arguments): "),
        ('{"query": " "}', "Error (invalid_arguments): "),
        ('{"query": "zyx"}', "Error (tool_failed): no tool fits"),
    ],
)
def test_a_search_that_fails_is_told_in_its_result(arguments: str, said: str) -> None:
    model = Replies(calls((FIND, arguments)))
    answered(model, request("the cat"))
    last = model.asked[1].messages[-1]
    assert last.is_error
    assert last.text.startswith(said)


def test_a_model_that_looks_for_tools_for_ever_has_to_go_on_without() -> None:
    model = Replies(*[calls(find("ibis"))] * 10)
    reply = answered(model, request("the cat"))
    assert len(model.asked) == LIMITS.find_turns + 1
    assert FIND not in shown(model.asked[-1])
    assert [call.name for call in reply.calls] == [FIND]  # it was not offered, and is nobody's


def test_other_calls_behind_a_search_are_to_be_made_again() -> None:
    model = Replies(calls(find("ibis"), ("feed_cat", "{}")))
    assert answered(model, request("the cat")).calls == ()
    assert [message.is_error for message in model.asked[1].messages[-2:]] == [False, True]


def test_a_search_behind_another_call_is_left_out_and_numbers_have_no_gap() -> None:
    model = Replies(calls(("feed_cat", '{"a": 1}'), find("ibis"), ("feed_cat", '{"a": 2}')))
    deltas = list(Catalogued(model, most=2).reply(request("the cat")))
    assert [delta.index for delta in deltas if isinstance(delta, CallDelta)] == [0, 1]
    assert [call.arguments for call in gathered(deltas).calls] == ['{"a": 1}', '{"a": 2}']


@pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.STOP, StopReason.REFUSED])
def test_a_search_in_a_turn_that_was_cut_is_not_made(stop: StopReason) -> None:
    model = Replies(calls(find("ibis"), text="Hm.", stop=stop))
    reply = answered(model, request("the cat"))
    assert (reply.calls, reply.text, reply.stop, len(model.asked)) == ((), "Hm.", stop, 1)


def test_a_broken_call_keeps_its_mark() -> None:
    broken = replace(calls(("feed_cat", "{"), stop=StopReason.LENGTH))
    broken = replace(broken, calls=(replace(broken.calls[0], complete=False),))
    assert answered(Replies(broken), request("the cat")) == broken


def test_named_tools_are_shown_and_nothing_is_looked_for() -> None:
    model = Replies()
    answered(model, request("the cat", choice=ToolChoice("required", ("feed_jay",))))
    assert shown(model.asked[0]) == ["cat", "jay"]
    assert [tool.name for tool in model.asked[0].callable] == ["feed_jay"]


def test_a_catalogue_of_its_own_stands_behind_the_requests_tools() -> None:
    own = ToolSpec("feed_cat", "The client's own.", {"type": "object"})
    model = Replies()
    answered(model, request("the cat and the dog", tools=[own]), catalogue=Catalogue(TOOLS))
    assert shown(model.asked[0]) == [FIND, "cat", "dog"]
    assert model.asked[0].tools[1] is own


def test_a_small_catalogue_is_shown_whole() -> None:
    model = Replies()
    answered(model, request("hello", tools=[]), most=10, catalogue=Catalogue(TOOLS))
    assert shown(model.asked[0]) == list(ANIMALS)


def test_a_client_with_a_find_tools_of_its_own_keeps_it() -> None:
    own = ToolSpec(FIND, "Looks for tools in the shed.", {"type": "object"})
    model = Replies(calls(find("shed")))
    reply = answered(model, request("tools in the shed", tools=[*TOOLS, own]))
    assert shown(model.asked[0]).count(FIND) == 1
    assert [call.name for call in reply.calls] == [FIND]


def test_a_long_conversation_shows_no_more_than_the_bound() -> None:
    many = [ToolSpec(f"tool_{n}", f"word{n}", {"type": "object"}) for n in range(200)]
    model = Replies()
    answered(model, request(*(f"word{n}" for n in range(200)), tools=many))
    assert len(model.asked[0].tools) == 1 + LIMITS.chosen_tools


def test_text_comes_at_once_and_leaving_ends_the_work() -> None:
    ended = []

    class Slow:
        name = "slow"

        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            try:
                yield TextDelta("first")
                raise AssertionError("it went on")
            finally:
                ended.append(True)

    reply = Catalogued(Slow(), most=2).reply(request("the cat"))
    assert next(reply) == TextDelta("first")
    reply.close()  # type: ignore[attr-defined]
    assert ended == [True]


def test_the_scripted_model_finds_and_calls_through_it() -> None:
    model = Catalogued(ScriptedChat(), most=2)
    reply = gathered(model.reply(request('call feed_cat {"much": true}')))
    assert [(call.name, call.arguments) for call in reply.calls] == [("feed_cat", '{"much": true}')]
    looked = gathered(model.reply(request('call find_tools {"query": "jay"}')))
    assert looked.text == "The results: feed_jay: Gives food to the jay."
    assert isinstance(list(model.reply(request("hello")))[-1], ReplyEnded)


def test_showing_nothing_is_refused() -> None:
    with pytest.raises(BadInput):
        Catalogued(Replies(), most=0)
