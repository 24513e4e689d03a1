"""Google's Gemini API: what was written is read, whole and in any pieces, and what cannot be carried is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from formats import cut_replies, gemini_requests, through_json
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core import jsonio
from toolwise.core.chat import (
    ChatCall,
    ChatReply,
    ChatRequest,
    Message,
    OutputSchema,
    Role,
    StopReason,
    ToolChoice,
    ToolSpec,
    gathered,
    pieces,
)
from toolwise.core.errors import BadInput
from toolwise.notation.wire import gemini as wire
from toolwise.notation.wire.sse import encode
from wire_talk import IDENT, cut_pieces, read, replies, told, written

ASKED = ChatRequest((Message(Role.USER, "Hello"),))
DECLARED = [{"functionDeclarations": [{"name": name} for name in "fg"]}]


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return user(*parts) | {"role": "model"}


def body(*contents: Any, **fields: Any) -> dict[str, Any]:
    return {"contents": list(contents or [user("Hello")]), **fields}


# --- the official types, and the stream as an array --------------------------------------------------------------


@given(gemini_requests())
def test_a_request_fits_the_official_types(request: ChatRequest) -> None:
    sent = through_json(wire.write_request(request))
    for content in [*sent["contents"], *([sent["systemInstruction"]] if "systemInstruction" in sent else [])]:
        types.Content.model_validate(content)
    for tool in sent.get("tools", ()):
        types.Tool.model_validate(tool)
    types.ToolConfig.model_validate(sent.get("toolConfig", {}))
    types.GenerationConfig.model_validate(sent.get("generationConfig", {}))


@given(cut_replies(broken=False))
def test_a_reply_and_its_stream_fit_the_official_type(reply: ChatReply) -> None:
    response = types.GenerateContentResponse.model_validate(through_json(wire.write_reply(reply, ASKED, IDENT)))
    assert [call.args for call in response.function_calls or ()] == [
        jsonio.loads(call.arguments) for call in reply.calls
    ]
    for event in written(wire.writer(ASKED, IDENT), pieces(reply)):
        types.GenerateContentResponse.model_validate(jsonio.loads(event.data))


@given(st.data())
def test_the_same_stream_as_one_json_array(data: st.DataObject) -> None:
    reply = data.draw(replies())
    writer, array = wire.writer(ASKED, IDENT), wire.JsonArray()
    sent = b"".join(array.push(writer.push(delta)) for delta in data.draw(cut_pieces(reply))) + array.end()
    reader = wire.reader()
    found = [delta for event in told(jsonio.loads(sent)) for delta in reader.push(event)]
    assert gathered([*found, *reader.flush()]) == reply


def test_a_stream_of_nothing_is_an_empty_array() -> None:
    assert wire.JsonArray().push([]) + wire.JsonArray().end() == b"[]"


# --- reading requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"contents": []}, "contents"),
        ({"contents": [{"role": "user", "parts": []}]}, "contents"),
        ({"contents": "Hello"}, "contents"),
        (
            {"contents": [user({"inlineData": {"mimeType": "image/png", "data": ""}})]},
            "contents[0].parts[0].inlineData",
        ),
        ({"contents": [user({"file_data": {"fileUri": "x"}})]}, "contents[0].parts[0].fileData"),
        ({"contents": [user("a", {"executableCode": {}})]}, "contents[0].parts[1].executableCode"),
        ({"contents": [user("a"), model("an answer that goes")]}, "contents[1].role"),
        ({"contents": [user("a") | {"role": "system"}]}, "contents[0].role"),
        ({"cachedContent": "c"}, "cachedContent"),
        ({"tools": [{"googleSearch": {}}]}, "tools[0].googleSearch"),
        ({"tools": [{"code_execution": {}}]}, "tools[0].codeExecution"),
        ({"tools": [{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]}, "tools.functionDeclarations[1]"),
        (
            {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "STRING"}}]}]},
            "tools[0].functionDeclarations[0].parameters.type",
        ),
        ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, "toolConfig.functionCallingConfig.mode"),
        ({"toolConfig": {"functionCallingConfig": {"mode": "SOME"}}}, "toolConfig.functionCallingConfig.mode"),
        (
            {
                "tools": DECLARED,
                "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["h"]}},
            },
            "toolConfig.functionCallingConfig.allowedFunctionNames",
        ),
        ({"generationConfig": {"candidateCount": 2}}, "generationConfig.candidateCount"),
        ({"generationConfig": {"topK": 40}}, "generationConfig.topK"),
        ({"generationConfig": {"temperature": 3}}, "generationConfig.temperature"),
        ({"generationConfig": {"responseModalities": ["AUDIO"]}}, "generationConfig.responseModalities[0]"),
        ({"generationConfig": {"responseMimeType": "text/x.enum"}}, "generationConfig.responseMimeType"),
        ({"generationConfig": {"maxOutputTokens": 1, "max_output_tokens": 2}}, "generationConfig.maxOutputTokens"),
    ],
)
def test_what_is_not_carried_is_refused_by_its_place(fields: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as refused:
        wire.read_request(body() | fields)
    assert refused.value.field == place


def test_both_spellings_of_a_field_are_read() -> None:
    calling = {"mode": "any", "allowedFunctionNames": ["f"]}
    one = body(
        systemInstruction={"parts": [{"text": "Be brief."}]},
        tools=DECLARED,
        toolConfig={"functionCallingConfig": calling},
        generationConfig={"maxOutputTokens": 5, "topP": 0.5, "stopSequences": ["x"], "candidateCount": 1},
        safetySettings=[],
    )
    other = body(
        system_instruction={"parts": [{"text": "Be brief."}]},
        tools=[{"function_declarations": DECLARED[0]["functionDeclarations"]}],
        tool_config={"function_calling_config": {"mode": "any", "allowed_function_names": ["f"]}},
        generation_config={"max_output_tokens": 5, "top_p": 0.5, "stop_sequences": ["x"], "candidate_count": 1},
        safety_settings=[],
    )
    assert wire.read_request(one) == wire.read_request(other)
    assert wire.read_request(one).choice == ToolChoice("required", ("f",))


@pytest.mark.parametrize(
    ("calling", "choice", "strict"),
    [
        (None, ToolChoice("auto"), False),
        ({}, ToolChoice("auto"), False),
        ({"mode": "MODE_UNSPECIFIED"}, ToolChoice("auto"), False),
        ({"mode": "NONE"}, ToolChoice("none"), False),
        ({"mode": "ANY"}, ToolChoice("required"), True),
        ({"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, ToolChoice("required", ("f", "g")), True),
        ({"mode": "VALIDATED"}, ToolChoice("auto"), True),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["g"]}, ToolChoice("auto", ("g",)), True),
    ],
)
@pytest.mark.case("R29")
def test_every_form_of_the_choice_is_read(calling: Any, choice: ToolChoice, strict: bool) -> None:
    request = wire.read_request(body(tools=DECLARED, toolConfig={"functionCallingConfig": calling}))
    assert (request.choice, request.tools[0].strict) == (choice, strict)


@pytest.mark.parametrize(
    ("config", "output"),
    [
        ({}, None),
        ({"responseMimeType": "text/plain"}, None),
        ({"responseMimeType": "application/json"}, OutputSchema()),
        ({"responseJsonSchema": {"type": "object"}}, OutputSchema({"type": "object"})),
        ({"response_schema": {"type": "OBJECT"}}, OutputSchema({"type": "object"})),
    ],
)
def test_a_schema_for_the_answer_is_read_in_both_its_forms(config: Any, output: Any) -> None:
    assert wire.read_request(body(generationConfig=config)).output == output


# --- writing -----------------------------------------------------------------------------------------------------


@pytest.mark.case("R11")
@pytest.mark.case("R9")
@pytest.mark.parametrize("arguments", ["", "  ", "null", "{}"])
def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    call = ChatCall("a", "f", arguments)
    sent = wire.write_reply(ChatReply("", (call,), StopReason.CALLS), ASKED, IDENT)
    assert sent["candidates"][0]["content"]["parts"][0]["functionCall"]["args"] == {}


@pytest.mark.parametrize(
    "call",
    [ChatCall("a", "f", '{"a": 1', complete=False), ChatCall("a", "f", "[1]"), ChatCall("a", "", "<tool_call> f")],
    ids=["cut off", "no object", "no call"],
)
def test_what_is_no_call_is_shown_as_text_whole_and_streamed(call: ChatCall) -> None:
    reply = ChatReply("Well. ", (call,), StopReason.CALLS)
    sent = wire.write_reply(reply, ASKED, IDENT)["candidates"][0]
    assert sent["finishReason"] == ("MALFORMED_FUNCTION_CALL" if call.complete else "MAX_TOKENS")
    assert all("functionCall" not in part for part in sent["content"]["parts"])
    streamed = gathered(read(wire.reader(), map(encode, written(wire.writer(ASKED, IDENT), pieces(reply)))))
    assert call.arguments in streamed.text
    assert streamed.text == "".join(part["text"] for part in sent["content"]["parts"])


def test_of_a_free_choice_among_several_only_these_are_sent() -> None:
    tools = tuple(ToolSpec(name, "", {"type": "object"}) for name in "abc")
    sent = wire.write_request(replace(ASKED, tools=tools, choice=ToolChoice("auto", ("a", "c"))))
    assert [tool["name"] for tool in sent["tools"][0]["functionDeclarations"]] == ["a", "c"]
    assert "toolConfig" not in sent
