"""OpenAI's official client, unmodified, on the loopback: whole conversations in both of its APIs, streamed and not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import openai
import pydantic
import pytest
from openai import OpenAI

from recording_api import Received, RecordingApi
from toolwise.core import jsonio
from toolwise.core.chat import (
    ChatCall,
    ChatReply,
    ChatRequest,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolChoice,
)
from toolwise.core.errors import BadInput, Denied, ModelUnavailable, NotFound, Overloaded, Unauthenticated
from toolwise.notation.wire import openai_chat, openai_responses
from wire_talk import Door

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
USAGE = TokenUsage(20, 7, 4)
ONE = ChatReply("I look.", (ChatCall("call_1", "f", '{"n":9007199254740993}'),), StopReason.CALLS, USAGE)
TWO = ChatReply("", (ChatCall("a", "f", '{"n":1}'), ChatCall("b", "g", '{"n":2}')), StopReason.CALLS, USAGE)
CUT = ChatReply("Well", (ChatCall("a", "f", '{"n":1', complete=False),), StopReason.LENGTH, USAGE)
ANSWER = ChatReply("Ærlig talt: 42 😀", usage=USAGE)


@dataclass(frozen=True)
class Turn:
    """What the client says of a turn. `end` is the finish reason, or the reason why it is incomplete, or the status."""

    text: str
    calls: list[tuple[str, str, str]]
    end: str
    usage: tuple[int, int, int]
    history: list[Any]


class Talk:
    """One API of the client, at a door that answers with these turns."""

    path: str
    wire: Any

    def __init__(self, api: RecordingApi, streamed: bool, *turns: Any) -> None:
        self.door = Door(self.wire, self._read, *turns)
        api.answers[f"POST {self.path}"] = self.door
        self.client = OpenAI(api_key="k", base_url=f"{api.url}/v1", max_retries=0)
        self.streamed = streamed

    def _read(self, received: Received) -> ChatRequest:
        found: ChatRequest = self.wire.read_request(jsonio.loads(received.body))
        return found


class Chat(Talk):
    path = "/v1/chat/completions"
    wire = openai_chat
    named: ClassVar[Any] = {"type": "function", "function": {"name": "g"}}
    some: ClassVar[Any] = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    cut, refused = "length", "content_filter"

    def ask(self, messages: list[Any], **fields: Any) -> Turn:
        tools: Any = [{"type": "function", "function": {"name": n, "parameters": SCHEMA, "strict": True}} for n in "fg"]
        fields = {"model": "m", "messages": messages, "tools": tools, "max_completion_tokens": 100, **fields}
        if self.streamed:
            options: Any = {"include_usage": True}
            with self.client.chat.completions.stream(**fields, stream_options=options) as stream:
                completion: Any = stream.until_done().current_completion_snapshot
        else:
            completion = self.client.chat.completions.create(**fields)
        [choice] = completion.choices
        used, message = completion.usage, choice.message
        calls = [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or []]
        told = message.model_dump(exclude_unset=True)
        for call in told.get("tool_calls") or []:
            call.pop("index", None)
            call["function"].pop("parsed_arguments", None)
        told.pop("parsed", None)
        counts = (used.prompt_tokens, used.completion_tokens, used.prompt_tokens_details.cached_tokens)
        return Turn(message.content or "", calls, choice.finish_reason, counts, [told])

    def result(self, id: str, text: str) -> Any:
        return {"role": "tool", "tool_call_id": id, "content": text}

    def raw(self, **fields: Any) -> list[Any]:
        fields = {"model": "m", "messages": [user("go")], "stream": True, **fields}
        return list(self.client.chat.completions.create(**fields))


class Responses(Talk):
    path = "/v1/responses"
    wire = openai_responses
    named: ClassVar[Any] = {"type": "function", "name": "g"}
    some: ClassVar[Any] = {"type": "allowed_tools", "mode": "required", "tools": [named]}
    cut, refused = "max_output_tokens", "content_filter"

    def ask(self, messages: list[Any], **fields: Any) -> Turn:
        tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": True} for name in "fg"]
        fields = {"model": "m", "input": messages, "tools": tools, "max_output_tokens": 100, **fields}
        if self.streamed:
            with self.client.responses.stream(**fields) as stream:
                for event in stream:
                    if event.type in ("response.completed", "response.incomplete"):
                        response: Any = event.response
        else:
            response = self.client.responses.create(**fields)
        calls = [(item.call_id, item.name, item.arguments) for item in response.output if item.type == "function_call"]
        end = response.incomplete_details.reason if response.incomplete_details else "tool_calls" if calls else "stop"
        used = response.usage
        counts = (used.input_tokens, used.output_tokens, used.input_tokens_details.cached_tokens)
        history = [item.model_dump(exclude_unset=True) for item in response.output]
        for item in history:
            item.pop("parsed_arguments", None)
            for part in item.get("content", []):
                part.pop("parsed", None)
        return Turn(response.output_text, calls, end, counts, history)

    def result(self, id: str, text: str) -> Any:
        return {"type": "function_call_output", "call_id": id, "output": text}

    def raw(self, **fields: Any) -> list[Any]:
        return list(self.client.responses.create(**{"model": "m", "input": "go", "stream": True, **fields}))


def user(text: str) -> Any:
    return {"role": "user", "content": text}


@pytest.fixture(params=[Chat, Responses])
def talk(request: pytest.FixtureRequest) -> type[Chat] | type[Responses]:
    found: type[Chat] | type[Responses] = request.param
    return found


Kind = type[Chat] | type[Responses]


def test_a_call_its_result_and_the_answer(api: RecordingApi, talk: Kind, streamed: bool) -> None:
    client = talk(api, streamed, ONE, ANSWER)
    asked: list[Any] = [{"role": "system", "content": "Be brief."}, user("go")]
    first = client.ask(asked)
    assert first.text == "I look."
    assert first.calls == [("call_1", "f", '{"n":9007199254740993}')]
    assert (first.end, first.usage) == ("tool_calls", (20, 7, 4))

    second = client.ask([*asked, *first.history, client.result("call_1", "Error (timeout): late")])
    assert (second.text, second.end) == ("Ærlig talt: 42 😀", "stop")
    messages = client.door.asked[1].messages
    assert [message.role for message in messages] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL]
    assert (messages[2].text, messages[2].calls) == (ONE.text, ONE.calls)
    assert messages[3].is_error


def test_parallel_calls_keep_their_order_and_so_do_their_results(api: RecordingApi, talk: Kind, streamed: bool) -> None:
    client = talk(api, streamed, TWO, ANSWER)
    first = client.ask([user("go")])
    assert [call[:2] for call in first.calls] == [("a", "f"), ("b", "g")]
    client.ask([user("go"), *first.history, client.result("b", "2"), client.result("a", "1")])
    assert [message.text for message in client.door.asked[1].messages[2:]] == ["1", "2"]


def test_every_form_of_the_choice_arrives(api: RecordingApi, talk: Kind, streamed: bool) -> None:
    client = talk(api, streamed, *[ANSWER] * 5)
    for choice in ("auto", "none", "required", talk.named, talk.some):
        client.ask([user("go")], tool_choice=choice, parallel_tool_calls=False)
    assert [(asked.choice, asked.parallel) for asked in client.door.asked] == [
        (ToolChoice("auto"), False),
        (ToolChoice("none"), False),
        (ToolChoice("required"), False),
        (ToolChoice("required", ("g",)), False),
        (ToolChoice("required", ("g",)), False),
    ]


def test_what_was_asked_arrives(api: RecordingApi, talk: Kind, streamed: bool) -> None:
    client = talk(api, streamed, ANSWER)
    client.ask([user("go")], temperature=0.5, top_p=0.9)
    [asked] = client.door.asked
    assert (asked.model, asked.max_tokens, asked.temperature, asked.top_p) == ("m", 100, 0.5, 0.9)
    assert [(tool.name, tool.parameters, tool.strict) for tool in asked.tools] == [
        ("f", SCHEMA, True),
        ("g", SCHEMA, True),
    ]


def test_a_turn_that_was_declined_says_so(api: RecordingApi, talk: Kind) -> None:
    turn = talk(api, False, ChatReply("No.", stop=StopReason.REFUSED, usage=USAGE)).ask([user("go")])
    assert (turn.text, turn.end) == ("No.", talk.refused)


def test_a_turn_that_was_cut_off_says_so(api: RecordingApi, talk: Kind) -> None:
    turn = talk(api, False, CUT).ask([user("go")])
    assert (turn.text, turn.calls, turn.end) == ("Well", [("a", "f", '{"n":1')], talk.cut)


def test_a_stream_that_was_cut_off_says_so(api: RecordingApi) -> None:
    *_, last = Chat(api, True, CUT).raw()
    assert last.choices[0].finish_reason == "length"
    *_, last = Responses(api, True, CUT).raw()
    assert (last.type, last.response.incomplete_details.reason) == ("response.incomplete", "max_output_tokens")
    assert [item.status for item in last.response.output] == ["completed", "incomplete"]


class Answered(pydantic.BaseModel):
    n: int


@pytest.mark.parametrize("kind", [Chat, Responses])
def test_an_answer_of_a_schema_is_parsed_by_the_client(api: RecordingApi, kind: Kind) -> None:
    talking = kind(api, False, ChatReply('{"n": 7}', usage=USAGE))
    if kind is Chat:
        completion = talking.client.chat.completions.parse(model="m", messages=[user("go")], response_format=Answered)
        parsed: Any = completion.choices[0].message.parsed
    else:
        parsed = talking.client.responses.parse(model="m", input="go", text_format=Answered).output_parsed
    assert parsed == Answered(n=7)
    output = talking.door.asked[0].output
    assert output is not None
    assert output.strict
    assert output.schema is not None
    assert output.schema["required"] == ["n"]


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (BadInput("It is so.", "tools[0]"), openai.BadRequestError),
        (Unauthenticated("It is so."), openai.AuthenticationError),
        (Denied("It is so."), openai.PermissionDeniedError),
        (NotFound("It is so."), openai.NotFoundError),
        (Overloaded("It is so."), openai.InternalServerError),
        (ModelUnavailable("It is so."), openai.InternalServerError),
    ],
)
def test_every_error_is_raised_by_the_client_as_what_it_is(
    api: RecordingApi, talk: Kind, streamed: bool, error: Any, raised: type[openai.APIStatusError]
) -> None:
    with pytest.raises(raised) as found:
        talk(api, streamed, error).ask([user("go")])
    assert "It is so." in found.value.message
    assert found.value.code == error.code
    assert found.value.param == (getattr(error, "field", "") or None)


def test_a_request_that_is_refused_names_its_field(api: RecordingApi, talk: Kind, streamed: bool) -> None:
    client = talk(api, streamed, ANSWER)
    with pytest.raises(openai.BadRequestError) as found:
        client.ask([user("go")], tools=[{"type": "web_search"}])
    assert found.value.param == "tools[0].type"


def test_a_failure_in_a_stream_reaches_the_client(api: RecordingApi) -> None:
    turn = [TextDelta("a"), ModelUnavailable("The model is gone.")]
    with pytest.raises(openai.APIError, match="The model is gone"):
        Chat(api, True, turn).raw()
    *_, last = Responses(api, True, turn).raw()
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert last.response.error.message == "The model is gone."


def test_a_stream_tells_its_pieces_one_by_one(api: RecordingApi) -> None:
    chunks = Chat(api, True, [TextDelta("a"), TextDelta("b"), ReplyEnded(StopReason.END)]).raw()
    assert [chunk.choices[0].delta.content for chunk in chunks] == ["a", "b", None]
    events = Responses(api, True, [TextDelta("a"), TextDelta("b"), ReplyEnded(StopReason.END)]).raw()
    assert [event.delta for event in events if event.type == "response.output_text.delta"] == ["a", "b"]
