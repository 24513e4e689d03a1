"""The official client of Anthropic's Messages, unmodified, on the loopback: whole conversations, streamed and not."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, beta_tool
from pydantic import BaseModel

from recording_api import RecordingApi
from toolwise.core import jsonio
from toolwise.core.chat import CallDelta, ChatCall, ChatReply, ReplyEnded, Role, StopReason, TextDelta, TokenUsage
from toolwise.core.errors import BadInput, Denied, NotFound, Overloaded, Unauthenticated
from toolwise.notation.wire import anthropic as wire
from wire_talk import Door

TOOLS: Any = [
    {"name": name, "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}} for name in "fg"
]
USAGE = TokenUsage(20, 7, 4)
ONE = ChatReply("I look.", (ChatCall("call_1", "f", '{"n":9007199254740993}'),), StopReason.CALLS, USAGE)
TWO = ChatReply("", (ChatCall("a", "f", '{"n":1}'), ChatCall("b", "g", "{}")), StopReason.CALLS)
ANSWER = ChatReply("Ærlig talt: 42 😀", usage=USAGE)


class Client:
    """The official client, at a door that answers with these turns."""

    def __init__(self, api: RecordingApi, streamed: bool, *turns: Any) -> None:
        self.door = Door(wire, lambda received: wire.read_request(jsonio.loads(received.body)), *turns)
        api.answers["POST /v1/messages"] = self.door
        self.official = Anthropic(api_key="k", base_url=api.url, max_retries=0)
        self._streamed = streamed

    def ask(self, messages: Any, **fields: Any) -> anthropic.types.Message:
        fields = {"model": "m", "max_tokens": 100, "tools": TOOLS, "messages": messages, **fields}
        if not self._streamed:
            return self.official.messages.create(**fields)
        with self.official.messages.stream(**fields) as stream:
            return stream.get_final_message()


def user(content: Any) -> Any:
    return {"role": "user", "content": content}


def result(id: str, content: str, **fields: Any) -> Any:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **fields}


def test_a_call_its_result_and_the_answer(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, ONE, ANSWER)
    first = client.ask([user("go")], system="Be brief.")
    assert first.stop_reason == "tool_use"
    told, call = first.content
    assert told.type == "text"
    assert told.text == "I look."
    assert call.type == "tool_use"
    assert (call.id, call.name, call.input) == ("call_1", "f", {"n": 9007199254740993})
    assert (first.usage.input_tokens, first.usage.cache_read_input_tokens, first.usage.output_tokens) == (16, 4, 7)

    history = [
        user("go"),
        {"role": "assistant", "content": first.content},
        user([result("call_1", "42", is_error=True)]),
    ]
    second = client.ask(history)
    assert second.stop_reason == "end_turn"
    assert [block.text for block in second.content if block.type == "text"] == ["Ærlig talt: 42 😀"]
    asked = client.door.asked[1].messages
    assert [message.role for message in asked] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert asked[1].calls == ONE.calls
    assert asked[2].is_error


def test_parallel_calls_keep_their_order_and_so_do_their_results(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, TWO, ANSWER)
    first = client.ask([user("go")])
    assert [(block.id, block.name) for block in first.content if block.type == "tool_use"] == [("a", "f"), ("b", "g")]
    answered = user([result("b", "2"), result("a", "1")])
    client.ask([user("go"), {"role": "assistant", "content": first.content}, answered])
    assert [message.text for message in client.door.asked[1].messages[2:]] == ["1", "2"]


@pytest.mark.case("R29")
def test_every_form_of_the_choice_arrives(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, ANSWER, ANSWER, ANSWER, ANSWER)
    for choice in (
        {"type": "auto", "disable_parallel_tool_use": True},
        {"type": "any"},
        {"type": "tool", "name": "g"},
        {"type": "none"},
    ):
        client.ask([user("go")], tool_choice=choice)
    assert [(asked.choice.mode, asked.choice.names, asked.parallel) for asked in client.door.asked] == [
        ("auto", (), False),
        ("required", (), True),
        ("required", ("g",), True),
        ("none", (), True),
    ]


def test_a_turn_that_was_cut_off_says_so(api: RecordingApi, streamed: bool) -> None:
    cut = ChatReply("Well", (ChatCall("a", "f", '{"n":1', complete=False),), StopReason.LENGTH)
    assert Client(api, streamed, cut).ask([user("go")]).stop_reason == "max_tokens"


def test_a_refusal_says_so(api: RecordingApi, streamed: bool) -> None:
    assert Client(api, streamed, ChatReply(stop=StopReason.REFUSED)).ask([user("go")]).stop_reason == "refusal"


def test_a_schema_for_the_answer_arrives(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, ChatReply('{"a":1}'))
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    client.ask([user("go")], output_config={"format": {"type": "json_schema", "schema": schema}})
    assert client.door.asked[0].output is not None
    assert client.door.asked[0].output.schema == schema


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (BadInput("x"), anthropic.BadRequestError),
        (Unauthenticated("x"), anthropic.AuthenticationError),
        (Denied("x"), anthropic.PermissionDeniedError),
        (NotFound("x"), anthropic.NotFoundError),
        (Overloaded("x"), anthropic.InternalServerError),
    ],
)
def test_an_error_is_the_client_s_own(api: RecordingApi, streamed: bool, error: Any, raised: Any) -> None:
    with pytest.raises(raised) as refused:
        Client(api, streamed, error).ask([user("go")])
    assert refused.value.body["error"]["message"] == "x"


def test_a_picture_is_refused_by_its_place(api: RecordingApi, streamed: bool) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}}
    with pytest.raises(anthropic.BadRequestError, match=r"messages\[0\]\.content\[0\]"):
        Client(api, streamed).ask([user([picture])])


def test_a_failure_in_the_middle_of_a_stream_is_raised(api: RecordingApi) -> None:
    with pytest.raises(anthropic.APIStatusError, match="the model is gone"):
        Client(api, True, [TextDelta("a"), Overloaded("the model is gone")]).ask([user("go")])


def test_pieces_arrive_as_they_were_made(api: RecordingApi) -> None:
    turn = [TextDelta("a"), CallDelta(0, "", "i", "f"), CallDelta(0, '{"n":'), CallDelta(0, "1}")]
    client = Client(api, True, [*turn, ReplyEnded(StopReason.CALLS)])
    with client.official.messages.stream(model="m", max_tokens=9, messages=[user("go")]) as stream:
        found = [event.partial_json for event in stream if event.type == "input_json"]
    assert found == ['{"n":', "1}"]


def test_the_client_s_own_loop_runs_tools_and_tells_failures(api: RecordingApi) -> None:
    @beta_tool
    def double(n: int) -> str:
        """Twice a number."""
        return str(2 * n)

    @beta_tool
    def fails() -> str:
        """Fails."""
        raise ValueError

    asks = ChatReply("", (ChatCall("a", "double", '{"n":21}'), ChatCall("b", "fails", "{}")), StopReason.CALLS)
    client = Client(api, False, asks, ANSWER)
    messages = client.official.beta.messages
    runner = messages.tool_runner(model="m", max_tokens=50, tools=[double, fails], messages=[user("go")])
    assert [block.text for block in runner.until_done().content if block.type == "text"] == [ANSWER.text]
    first, second = client.door.asked
    assert first.tools[0].parameters["properties"]["n"]["type"] == "integer"
    assert [(message.text[:2], message.is_error) for message in second.messages[2:]] == [("42", False), ("Va", True)]


def test_the_client_reads_an_answer_into_its_own_type(api: RecordingApi) -> None:
    class Sum(BaseModel):
        n: int

    client = Client(api, False, ChatReply('{"n":42}'))
    answer = client.official.messages.parse(model="m", max_tokens=9, messages=[user("go")], output_format=Sum)
    assert answer.parsed_output == Sum(n=42)
