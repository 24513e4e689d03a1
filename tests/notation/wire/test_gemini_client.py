"""The official client of the Gemini API, unmodified, on the loopback: whole conversations, streamed and not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel, Field

from recording_api import Received, RecordingApi
from toolwise.core import jsonio
from toolwise.core.chat import ChatCall, ChatReply, ChatRequest, Role, StopReason, TextDelta, TokenUsage
from toolwise.core.errors import BadInput, Denied, InvalidArguments, NotFound, Overloaded, Unauthenticated
from toolwise.core.schema import Validator
from toolwise.notation.wire import gemini as wire
from wire_talk import Door

NUMBER = types.Schema(type=types.Type.OBJECT, properties={"n": types.Schema(type=types.Type.INTEGER)})
TOOLS = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name="f", description="F.", parameters=NUMBER),
            types.FunctionDeclaration(name="g", parameters_json_schema={"type": "object", "properties": {}}),
        ]
    )
]
USAGE = TokenUsage(20, 7, 4)
ONE = ChatReply("I look.", (ChatCall("call_1", "f", '{"n":9007199254740993}'),), StopReason.CALLS, USAGE)
TWO = ChatReply("", (ChatCall("a", "f", '{"n":1}'), ChatCall("b", "g", "{}")), StopReason.CALLS)
ANSWER = ChatReply("Ærlig talt: 42 😀", usage=USAGE)


def asked(received: Received) -> ChatRequest:
    """The model and the way of answering stand in the path."""
    model, _, method = received.path.rpartition("/")[2].partition(":")
    request = wire.read_request(jsonio.loads(received.body))
    return replace(request, model=model, stream=method == "streamGenerateContent")


class Client:
    """The official client, at a door that answers with these turns."""

    def __init__(self, api: RecordingApi, streamed: bool, *turns: Any) -> None:
        self.door = Door(wire, asked, *turns)
        for method in ("generateContent", "streamGenerateContent"):
            api.answers[f"POST /v1/models/m:{method}"] = self.door
        once = types.HttpRetryOptions(attempts=1)
        options = types.HttpOptions(base_url=api.url, retry_options=once)
        self.official = genai.Client(api_key="k", http_options=options)
        self._streamed = streamed

    def ask(self, contents: Any, **config: Any) -> types.GenerateContentResponse:
        """One response; of a stream, its pieces put together as a user would."""
        told = types.GenerateContentConfig(**({"tools": TOOLS} | config))
        if not self._streamed:
            return self.official.models.generate_content(model="m", contents=contents, config=told)
        found = list(self.official.models.generate_content_stream(model="m", contents=contents, config=told))
        parts = [part for piece in found for part in (piece.parts or []) if part.text != ""]
        last = found[-1]
        assert last.candidates
        last.candidates[0].content = types.Content(role="model", parts=parts)
        return last


def user(*parts: Any) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=p) if isinstance(p, str) else p for p in parts])


def result(name: str, **response: Any) -> types.Part:
    return types.Part.from_function_response(name=name, response=response)


def turn(response: types.GenerateContentResponse) -> types.Content:
    assert response.candidates
    content = response.candidates[0].content
    assert content is not None
    return content


def test_a_call_its_result_and_the_answer(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, ONE, ANSWER)
    first = client.ask([user("go")], system_instruction="Be brief.", max_output_tokens=50)
    assert first.function_calls is not None
    [call] = first.function_calls
    assert (call.id, call.name, call.args) == ("call_1", "f", {"n": 9007199254740993})
    assert turn(first).parts[0].text == "I look."
    assert first.usage_metadata is not None
    counts = first.usage_metadata.model_dump(
        include={"prompt_token_count", "candidates_token_count", "total_token_count"}
    )
    assert list(counts.values()) == [7, 20, 27]

    second = client.ask([user("go"), turn(first), user(result("f", error="42"))])
    assert second.text == "Ærlig talt: 42 😀"
    assert second.candidates[0].finish_reason is types.FinishReason.STOP
    messages = client.door.asked[1].messages
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert messages[1].calls == ONE.calls
    assert (messages[2].is_error, messages[2].call_id) == (True, "call_1")
    assert client.door.asked[0].messages[0].text == "Be brief."
    assert (client.door.asked[0].max_tokens, client.door.asked[0].model) == (50, "m")


def test_parallel_calls_keep_their_order_and_so_do_their_results(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, TWO, ANSWER)
    first = client.ask([user("go")])
    assert [(call.id, call.name) for call in first.function_calls or ()] == [("a", "f"), ("b", "g")]
    client.ask([user("go"), turn(first), user(result("g", output="2"), result("f", output="1"))])
    assert [message.text for message in client.door.asked[1].messages[2:]] == ["1", "2"]


def test_a_python_function_is_called_by_the_client_itself(api: RecordingApi) -> None:
    def double(n: int) -> int:
        """Twice a number."""
        return 2 * n

    asks = ChatReply("", (ChatCall("a", "double", '{"n":21}'),), StopReason.CALLS)
    client = Client(api, False, asks, ANSWER)
    assert client.ask("go", tools=[double]).text == "Ærlig talt: 42 😀"
    [first, second] = client.door.asked
    assert first.tools[0].parameters["properties"]["n"]["type"] == "integer"
    assert (second.messages[-1].text, second.messages[-1].is_error) == ("42", False)


def test_a_chat_keeps_a_streamed_turn_in_pieces_and_is_understood(api: RecordingApi) -> None:
    deltas = [TextDelta("One, "), TextDelta("two.")]
    client = Client(api, True, ChatReply("".join(delta.text for delta in deltas)), ANSWER)
    chat = client.official.chats.create(model="m")
    assert "".join(piece.text or "" for piece in chat.send_message_stream("go")) == "One, two."
    assert "".join(piece.text or "" for piece in chat.send_message_stream("on")) == "Ærlig talt: 42 😀"
    assert [message.text for message in client.door.asked[1].messages] == ["go", "One, two.", "on"]


@pytest.mark.case("R29")
def test_every_form_of_the_choice_arrives(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, ANSWER, ANSWER, ANSWER, ANSWER)
    for mode, names in (("AUTO", None), ("ANY", None), ("ANY", ["g"]), ("NONE", None)):
        calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=names)
        client.ask("go", tool_config=types.ToolConfig(function_calling_config=calling))
    assert [(request.choice.mode, request.choice.names) for request in client.door.asked] == [
        ("auto", ()),
        ("required", ()),
        ("required", ("g",)),
        ("none", ()),
    ]


def test_a_turn_that_was_cut_off_says_so(api: RecordingApi, streamed: bool) -> None:
    cut = ChatReply("Well", (ChatCall("a", "f", '{"n":1', complete=False),), StopReason.LENGTH)
    response = Client(api, streamed, cut).ask("go")
    assert response.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    assert not response.function_calls


def test_a_refusal_says_so(api: RecordingApi, streamed: bool) -> None:
    response = Client(api, streamed, ChatReply(stop=StopReason.REFUSED)).ask("go")
    assert response.candidates[0].finish_reason is types.FinishReason.SAFETY


def test_a_schema_for_the_answer_arrives_in_both_its_forms(api: RecordingApi, streamed: bool) -> None:
    client = Client(api, streamed, ChatReply('{"n":1}'), ChatReply('{"n":1}'))
    client.ask("go", response_mime_type="application/json", response_schema=NUMBER)
    plain = {"type": "object", "properties": {"n": {"type": "integer"}}}
    client.ask("go", response_mime_type="application/json", response_json_schema=plain)
    assert [request.output and request.output.schema for request in client.door.asked] == [plain, plain]


def test_the_client_reads_an_answer_into_its_own_type(api: RecordingApi) -> None:
    class Part(BaseModel):
        kind: Literal["p", "q"]
        size: int = Field(ge=1)

    class Whole(BaseModel):
        parts: list[Part]
        name: str | None = None

    client = Client(api, False, ChatReply('{"parts":[{"kind":"q","size":2}]}'))
    answer = client.ask("go", response_mime_type="application/json", response_schema=Whole)
    assert answer.parsed == Whole(parts=[Part(kind="q", size=2)])
    asked_for = client.door.asked[0].output
    assert asked_for is not None
    assert asked_for.schema is not None
    validator = Validator(asked_for.schema)
    validator.validate(jsonio.loads(answer.text))
    for wrong in ({}, {"parts": [{"kind": "x", "size": 2}]}, {"parts": [{"kind": "p", "size": 0}]}):
        with pytest.raises(InvalidArguments):
            validator.validate(wrong)


@pytest.mark.parametrize(
    ("error", "code", "raised"),
    [
        (BadInput("x"), 400, errors.ClientError),
        (Unauthenticated("x"), 401, errors.ClientError),
        (Denied("x"), 403, errors.ClientError),
        (NotFound("x"), 404, errors.ClientError),
        (Overloaded("x"), 503, errors.ServerError),
    ],
)
def test_an_error_is_the_client_s_own(api: RecordingApi, streamed: bool, error: Any, code: int, raised: Any) -> None:
    with pytest.raises(raised) as refused:
        Client(api, streamed, error).ask("go")
    assert (refused.value.code, refused.value.message) == (code, "x")


def test_a_picture_is_refused_by_its_place(api: RecordingApi, streamed: bool) -> None:
    with pytest.raises(errors.ClientError, match=r"contents\[0\]\.parts\[0\]\.inlineData"):
        Client(api, streamed).ask([user(types.Part.from_bytes(data=b"x", mime_type="image/png"))])


def test_a_failure_in_the_middle_of_a_stream_is_raised(api: RecordingApi) -> None:
    with pytest.raises(errors.APIError, match="the model is gone"):
        Client(api, True, [TextDelta("a"), Overloaded("the model is gone")]).ask("go")
