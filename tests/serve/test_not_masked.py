"""A client is told in a header which words of its schemas no mask enforces; an ordinary one hears of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from api_server import ADD, Served, serving

from toolwise.commands.common import tell_unmasked
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Tool
from toolwise.decode.held import Held
from toolwise.decode.local import LocalChat
from toolwise.gate.offline import offline_gate
from toolwise.gate.state import open_state
from toolwise.models.masks import Masks
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer, follow
from toolwise.models.scripted_chat import ScriptedChat
from toolwise.notation.chat.hermes import HERMES
from toolwise.notation.grammar import Downgrade
from toolwise.serve.formats import APIS
from toolwise.serve.not_masked import NOT_MASKED, not_masked
from toolwise.serve.server_tools import ServerTools
from toolwise.tools.registry import Registry

CITIES = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
SEE = {"type": "object", "properties": {"cities": CITIES}, "required": ["cities"]}
TOLD = "see uniqueItems /properties/cities"


def written(name: str, arguments: str) -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


#: Calls what the question names, with arguments that do not fit, until it is told so.
SCRIPT = follow(
    ("use see\n", written("see", '{"cities": ["a", "a"]}')),
    ("use add\n", written("add", '{"a": 1, "b": 2}')),
    ("\n", written("see", '{"cities": ["a", "b"]}')),
)


def local() -> Held:
    model = ScriptedModel(SCRIPT, ScriptedTokenizer())
    return Held(LocalChat(model, Plain(), masks=Masks(model.tokenizer)))


class Plain:
    """A dialect of test: the conversation is its texts."""

    name = "plain"
    layout = HERMES.layout
    reader = staticmethod(HERMES.reader)
    grammar = staticmethod(HERMES.grammar)

    def render(self, request: Any, tokenizer: Any, template: str | None) -> Any:
        return tokenizer.encode("".join(f"{message.role}: {message.text}\n" for message in request.messages))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving([local()]) as made:
        yield made


def asked(served: Served, text: str, tools: dict[str, Any], **more: Any) -> Any:
    declared: list[Any] = [{"type": "function", "function": {"name": n, "parameters": s}} for n, s in tools.items()]
    messages: list[Any] = [{"role": "user", "content": text}]
    client = served.openai().chat.completions.with_raw_response
    return client.create(model="scripted", messages=messages, tools=declared, **more)


def test_what_was_lost_is_in_the_header_and_what_does_not_fit_is_made_anew(served: Served) -> None:
    answer = asked(served, "use see", {"see": SEE, "add": ADD})
    assert answer.headers[NOT_MASKED] == TOLD
    (call,) = answer.parse().choices[0].message.tool_calls
    assert call.function.arguments == '{"cities": ["a", "b"]}'


def test_a_stream_has_it_before_its_first_piece(served: Served) -> None:
    answer = asked(served, "use see", {"see": SEE}, stream=True)
    assert answer.headers[NOT_MASKED] == TOLD
    pieces = [piece for chunk in answer.parse() for piece in chunk.choices[0].delta.tool_calls or ()]
    assert "".join(piece.function.arguments for piece in pieces) == '{"cities": ["a", "b"]}'


def test_where_nothing_was_lost_there_is_no_header_and_calls_come_as_they_are_written(served: Served) -> None:
    answer = asked(served, "use add", {"add": ADD}, stream=True)
    assert NOT_MASKED not in answer.headers
    assert len([1 for chunk in answer.parse() for _ in chunk.choices[0].delta.tool_calls or ()]) > 3


def test_every_api_says_it(served: Served) -> None:
    bodies: dict[str, Any] = {
        "chat": {
            "messages": [{"role": "user", "content": "use see"}],
            "tools": [{"type": "function", "function": {"name": "see", "parameters": SEE}}],
        },
        "responses": {"input": "use see", "tools": [{"type": "function", "name": "see", "parameters": SEE}]},
        "messages": {
            "max_tokens": 200,
            "messages": [{"role": "user", "content": "use see"}],
            "tools": [{"name": "see", "input_schema": SEE}],
        },
        "gemini": {
            "contents": [{"role": "user", "parts": [{"text": "use see"}]}],
            "tools": [{"functionDeclarations": [{"name": "see", "parametersJsonSchema": SEE}]}],
        },
    }
    for api in APIS:
        path = api.paths[0].replace("{model:path}", "scripted")
        model = {} if api.name == "gemini" else {"model": "scripted"}
        answer = served.post(path, model | bodies[api.name])
        assert (answer.status_code, answer.headers.get(NOT_MASKED)) == (200, TOLD), answer.text


def test_an_answer_of_a_schema_is_told_too(served: Served) -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "cities", "schema": {**SEE, "not": {"required": ["b"]}}}}
    answer = asked(served, "use nothing", {}, response_format=shape)
    assert answer.headers[NOT_MASKED] == "(output) not /; (output) uniqueItems /properties/cities"


def test_tools_that_cannot_be_masked_are_refused_with_a_status(served: Served) -> None:
    outside = {"type": "object", "properties": {"a": {"$ref": "http://example.org/a"}}}
    with pytest.raises(Exception, match="400"):
        asked(served, "use add", {"add": outside}, stream=True)


def test_of_the_servers_own_tools_a_client_hears_nothing() -> None:
    gather = Tool("gather", "Gathers.", SEE, Effect.READ, str, bounded=True)
    registry = Registry([gather])
    state = open_state(":memory:")
    with offline_gate(registry) as gate, serving([local()], tools=ServerTools(gate, registry, state)) as at:
        assert asked(at, "use see", {"see": SEE}).headers[NOT_MASKED] == TOLD
        assert NOT_MASKED not in asked(at, "use add", {"add": ADD}).headers


def test_whoever_starts_a_server_or_a_chat_is_told_of_its_tools_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    tools = [Tool(f"gather_{number}", "Gathers.", SEE, Effect.READ, str) for number in range(12)]
    add = Tool("add", "Adds.", ADD, Effect.READ, str)
    for most in (None, 5):
        tell_unmasked(local(), Registry([add, *tools]), most)
        told = capsys.readouterr().err
        assert told.count("gather_") == told.count("uniqueItems /properties/cities") == 8
        assert told.endswith("; and 4 more.\n")
    tell_unmasked(local(), Registry([add]))
    tell_unmasked(ScriptedChat(), Registry([add, *tools]))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["a\r\nset-cookie: x", "tool; two", "värld", "a b", "(output)", "☃"])
def test_a_header_holds_one_line_of_ascii_whatever_a_schema_names(name: str) -> None:
    told = not_masked([Downgrade(name, f"/properties/{name}", "pattern")])[NOT_MASKED]
    assert told.isascii()
    assert told.isprintable()
    assert [len(one.split(" ")) for one in told.split("; ")] == [3]
    assert not told.startswith("(")


def test_a_header_is_bounded_and_counts_what_it_leaves_out() -> None:
    told = not_masked([Downgrade("see", f"/properties/{i}" * 4, "pattern") for i in range(500)])[NOT_MASKED]
    assert len(told) <= LIMITS.told_bytes + 20
    shown = told.split("; ")
    assert shown[-1] == f"and {501 - len(shown)} more"
    assert not_masked([]) == {}
