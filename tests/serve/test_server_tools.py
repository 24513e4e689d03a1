"""Tools that the server runs: through the gate, in the name of whoever's key it is, once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_server import Served, metric, serving, until
from official_clients import Chat, Client, Gemini, How, Messages, Responses, Told

from toolwise.core.chat import (
    CallDelta,
    ChatDelta,
    ChatModel,
    ChatRequest,
    ReplyEnded,
    Role,
    StopReason,
    TextDelta,
)
from toolwise.core.limits import LIMITS
from toolwise.core.types import Effect, Tool, ToolContext
from toolwise.gate.gate import Gate
from toolwise.gate.policy import DEFAULT, CedarPolicy
from toolwise.gate.state import open_state
from toolwise.models.scripted_chat import ScriptedChat
from toolwise.serve.keys import Key, Keys, digest_of
from toolwise.serve.server_tools import ServerTools
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.registry import Registry

ANN, BOB = "tw-ann-" + "a" * 30, "tw-bob-" + "b" * 30
TEXT = {"type": "string"}
SUM = 'call Calculator {"expression": "6 * 7"}'
SEND = 'call send {"to": "bob"}'
CLIENTS = [Chat, Messages, Responses, Gemini]


class House:
    """A gate with a calculator and a letter box that asks first, behind a server; what was sent is counted."""

    def __init__(self, where: str | Path = ":memory:", model: ChatModel | None = None, **limits: Any) -> None:
        self.sent: list[tuple[str, str]] = []
        self.hold = threading.Event()
        self.hold.set()
        self.sending = threading.Event()
        self.limits = replace(LIMITS, **limits)
        schema = {"type": "object", "properties": {"to": TEXT}, "required": ["to"], "additionalProperties": False}
        told = {"bounded": True, "context_parameter": "context", "trusted": True}
        letter = Tool("send", "Sends.", schema, Effect.WRITE, self._send, **told)
        note = replace(letter, name="note", effect=Effect.READ)
        self.registry = Registry([CALCULATOR, letter, note], self.limits)
        self.state = open_state(where)
        self.gate = Gate(self.registry, CedarPolicy.from_text(DEFAULT), self.state, limits=self.limits)
        self.model = model or ScriptedChat()

    def _send(self, to: str, context: ToolContext) -> str:
        self.sending.set()
        assert self.hold.wait(20)
        self.sent.append((context.principal.id, to))
        return "sent"

    @contextmanager
    def open(self, keys: Keys | None = None) -> Iterator[Served]:
        tools = ServerTools(self.gate, self.registry, self.state, limits=self.limits)
        with serving([self.model], tools=tools, keys=keys) as at:
            yield at

    def decide(self, verdict: Any) -> None:
        for asked in self.gate.approvals.pending():
            self.gate.approvals.decide(asked.id, verdict, "a person", asked.digest)

    @property
    def events(self) -> list[str]:
        return [f"{row.line.event} {row.line.code}".strip() for row in self.gate.audit.rows()]


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture(params=CLIENTS, ids=lambda client: client.__name__)
def speaks(request: pytest.FixtureRequest) -> type[Client]:
    kind: type[Client] = request.param
    return kind


def people() -> Keys:
    return Keys([Key(digest_of(ANN), "ann"), Key(digest_of(BOB), "bob")])


@pytest.mark.parametrize("stream", [False, True])
def test_the_server_runs_its_tools_and_the_model_answers(speaks: type[Client], stream: bool, house: House) -> None:
    with house.open() as at:
        turn = speaks(at).turn([f"say Let me see.\n{SUM}"], How(stream=stream, tools=()))
        assert (turn.text, turn.calls, turn.stop) == ("Let me see.\nThe results: 42", [], "end")
        text = at.get("/metrics").text
        assert metric(text, 'toolwise_calls_total{by="server",code="ok"}') == 1
    assert house.events == ["intent", "result ok"]


@pytest.mark.parametrize("stream", [False, True])
def test_json_that_was_asked_for_is_the_last_turns_alone(stream: bool) -> None:
    class Eager(ScriptedChat):
        """Writes its JSON at once, and calls nevertheless."""

        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            if request.messages[-1].role is not Role.TOOL:
                yield TextDelta('{"sum": 0}')
                yield CallDelta(0, '{"expression": "6 * 7"}', "c1", "Calculator")
                yield ReplyEnded(StopReason.CALLS)
            else:
                yield TextDelta('{"sum": 42}')
                yield ReplyEnded(StopReason.END)

    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    with House(model=Eager()).open() as at:
        turn = Chat(at).turn(["What is 6 * 7?"], How(stream=stream, tools=(), more={"response_format": form}))
        assert (turn.text, turn.stop) == ('{"sum": 42}', "end")


def test_a_client_has_its_own_tools_besides(speaks: type[Client], house: House) -> None:
    with house.open() as at:
        client, said = speaks(at), f'{SUM}\ncall add {{"a": 1, "b": 2}}'
        turn = client.turn([said])
        assert (turn.text, turn.calls) == ("The results: 42", [])
        turn = client.turn(['say Now.\ncall add {"a": 1, "b": 2}'])
        assert [(call.name, call.arguments) for call in turn.calls] == [("add", {"a": 1, "b": 2})]
        assert turn.stop == "calls"
        end = client.turn(['say Now.\ncall add {"a": 1, "b": 2}', turn, [Told(turn.calls[0], "3")]])
        assert end.text == "The results: 3"


def test_a_tool_of_the_clients_with_a_name_of_the_servers_is_refused(house: House) -> None:
    tool = {"type": "function", "function": {"name": "send", "parameters": {"type": "object"}}}
    with house.open() as at, pytest.raises(Chat.error, match="a tool of this server"):
        Chat(at).turn(["hi"], How(tools=(), more={"tools": [tool]}))


def test_a_call_waits_for_a_person_and_goes_on_when_it_is_asked_for_again(speaks: type[Client], house: House) -> None:
    with house.open() as at:
        client, how = speaks(at), How(tools=())
        for _ in range(2):
            turn = client.turn([SEND], how)
            ((asked),) = house.gate.approvals.pending()
            assert asked.id in turn.text
            assert "toolwise approvals" in turn.text
            assert (house.sent, turn.stop) == ([], "end")
        house.decide("approved")
        assert client.turn([SEND], how).text == "The results: sent"
        assert house.sent == [("local", "bob")]
        assert "A person must confirm" in client.turn([SEND], how).text  # another letter, which is asked about anew
        house.decide("rejected")
        assert "denied" in client.turn([SEND], how).text
        assert house.sent == [("local", "bob")]


def test_who_goes_on_talking_goes_on_with_the_run_once_it_is_decided(speaks: type[Client], house: House) -> None:
    with house.open() as at:
        client, how = speaks(at), How(tools=())
        first = client.turn([SEND], how)
        other = client.turn([SEND, first, "say Something else"], how)
        assert (other.text, house.sent) == ("Something else", [])
        first = client.turn([SEND], how)
        house.decide("approved")
        assert client.turn([SEND, first, "say It was approved"], how).text == "It was approved"
        assert house.sent == [("local", "bob")]


def test_a_call_that_waits_outlives_the_server(tmp_path: Path) -> None:
    with House(tmp_path / "state.db").open() as at:
        assert "A person must confirm" in Chat(at).turn([SEND], How(tools=())).text
    later = House(tmp_path / "state.db")
    later.decide("approved")
    with later.open() as at:
        assert Chat(at).turn([SEND], How(tools=())).text == "The results: sent"
    assert later.sent == [("local", "bob")]


def test_nobody_comes_into_the_run_of_somebody_else(house: House) -> None:
    with house.open(people()) as at:
        assert "A person must confirm" in Chat(at, ANN).turn([SEND], How(tools=())).text
        house.decide("approved")
        assert "A person must confirm" in Chat(at, BOB).turn([SEND], How(tools=())).text
        assert Chat(at, ANN).turn([SEND], How(tools=())).text == "The results: sent"
    assert house.sent == [("ann", "bob")]


@pytest.mark.case("H10")
def test_whoever_has_no_key_calls_nothing(house: House) -> None:
    with house.open(people()) as at, pytest.raises(Chat.error):
        Chat(at, "tw-nobody").turn([SUM], How(tools=()))
    assert house.events == []


def test_a_request_that_is_tried_again_repeats_no_call(house: House) -> None:
    with house.open() as at:
        how = How(tools=(), more={"extra_headers": {"Idempotency-Key": "letter-1"}})
        Chat(at).turn([SEND], how)
        house.decide("approved")
        for _ in range(3):
            assert Chat(at).turn([SEND], how).text == "The results: sent"
        assert len(house.sent) == 1
        body = {"model": "scripted", "messages": [{"role": "user", "content": 'call note {"to": "x"}'}]}
        for tried in ("0", "1", "2"):
            at.post("/v1/chat/completions", body, **{"x-stainless-retry-count": tried})
        assert house.sent[1:] == [("local", "x")]
        assert house.events[-2:] == ["replayed ok"] * 2


def test_a_request_that_went_on_with_a_run_comes_back_into_it_when_it_is_tried_again(house: House) -> None:
    keyed = How(tools=(), more={"extra_headers": {"Idempotency-Key": "letter-1"}})
    with house.open() as at:
        Chat(at).turn([SEND], How(tools=()))
        house.decide("approved")
        assert Chat(at).turn([SEND], keyed).text == "The results: sent"
        assert "A person must confirm" in Chat(at).turn([SEND], How(tools=())).text  # somebody asks for another letter
        house.decide("approved")
        for _ in range(2):
            assert Chat(at).turn([SEND], keyed).text == "The results: sent"
        assert len(house.sent) == 1
        assert Chat(at).turn([SEND], How(tools=())).text == "The results: sent"
        again = How(tools=(), more={"extra_headers": {"x-stainless-retry-count": "1"}})
        assert Chat(at).turn([SEND], again).text == "The results: sent"
    assert len(house.sent) == 2


def test_an_idempotency_key_that_is_none_is_refused(house: House) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}]}
    with house.open() as at:
        for key in ("x" * 300, "two words", "\xfcber"):
            assert (
                at.post("/v1/chat/completions", body, **{"idempotency-key": key.encode("latin-1")}).status_code == 400
            )


@pytest.mark.case("D10")
def test_a_client_that_goes_away_leaves_no_call_without_an_outcome(house: House) -> None:
    said = {"model": "scripted", "messages": [{"role": "user", "content": 'say Hm.\ncall note {"to": "x"}'}]}
    house.hold.clear()
    with house.open() as at:
        with at.http() as client, client.stream("POST", "/v1/chat/completions", json=said | {"stream": True}) as answer:
            coming = answer.iter_raw()
            next(coming)
            assert house.sending.wait(20)
        house.hold.set()
        until(lambda: metric(at.get("/metrics").text, "toolwise_places_taken") == 0)
        until(lambda: house.events == ["intent", "result ok"])
    assert house.sent == [("local", "x")]


def test_a_model_that_calls_for_ever_is_stopped() -> None:
    class Tireless:
        name = "scripted"

        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            number = len(request.messages)
            said = f'call Calculator {{"expression": "{number}"}}'
            last = replace(request.messages[0], text=said)
            return ScriptedChat().reply(replace(request, messages=(last,)))

    with House(model=Tireless(), turns_per_reply=4).open() as at:
        turn = Chat(at).turn(["hi"], How(tools=()))
    assert (turn.text, turn.stop) == ("[Stopped: it took too many turns.]", "length")


@pytest.mark.case("H9")
@pytest.mark.parametrize("header", ["authorization", "x-api-key", "x-goog-api-key"])
def test_an_inbound_key_appears_nowhere_else(
    header: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    class Curious(ScriptedChat):
        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            seen.append(f"{request!r} {dict(os.environ)}")
            return super().reply(request)

    house = House(tmp_path / "state.db", Curious())
    said = f'{SUM}\ncall note {{"to": "x"}}\ncall nothing {{}}\n{SEND}'
    with house.open(people()) as at:
        sent = {header: f"Bearer {ANN}" if header == "authorization" else ANN}
        for path, body in (
            ("/v1/chat/completions", {"model": "scripted", "messages": [{"role": "user", "content": said}]}),
            ("/v1/chat/completions", {"model": "none", "messages": [{"role": "user", "content": said}]}),
            ("/v1/chat/completions", {"model": "scripted", "messages": [{"role": "user", "content": "fail"}]}),
            ("/v1beta/models/scripted:generateContent", {"contents": [{"parts": [{"text": said}]}]}),
        ):
            answer = at.post(path, body, **sent)
            seen += [answer.text, str(answer.headers)]
        seen.append(at.get("/metrics", **sent).text)
    house.gate.close()
    house.state.close()
    seen += [file.read_bytes().decode(errors="replace") for file in tmp_path.iterdir()]
    seen += [str(house.sent), *capfd.readouterr()]
    assert "ann" in str(house.sent)
    assert not [text for text in seen if ANN in text or ANN[10:] in text]
