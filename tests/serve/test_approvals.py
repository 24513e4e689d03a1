"""The door for people who decide: a real client, a real server, and whoever else may try to come in."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib import resources
from itertools import count
from typing import Any

import httpx2
import pytest

from asking_gate import AskingGate
from toolwise.core.errors import BadInput, StorageUnavailable
from toolwise.core.limits import LIMITS
from toolwise.gate.approval import Approval
from toolwise.serve.approvals import approvals_app, new_token
from toolwise.serve.run import bound, server

NUMBERS = count()
ANN, BOB = "a" * 32, "b" * 32
HIDDEN = "\n" * 5_000 + "pay \u202eeve\u2066 \u3164\ufe0f <img src=x onerror=alert(1)> \x1b[2J" + "x" * 20_000


class Door(AskingGate):
    """A gate that asks, behind a server, and a client of Ann's."""

    def __init__(self, **settings: Any) -> None:
        served = settings.pop("serving", {})
        super().__init__(**settings)
        self.socket = bound(0)
        self.host = f"127.0.0.1:{self.socket.getsockname()[1]}"
        people = {"Ann": ANN, "Bob": BOB}
        self.server = server(approvals_app(self.approvals, people, **served), served.get("limits", LIMITS))
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()
        self.client = httpx2.Client(base_url=f"http://{self.host}", timeout=20)

    def headers(self, **more: str | None) -> dict[str, str]:
        """What a page of ours sends; None leaves a header out."""
        sent: dict[str, str | None] = {"Authorization": f"Bearer {ANN}", "Origin": f"http://{self.host}"}
        sent |= {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in more.items()}
        return {name: value for name, value in sent.items() if value is not None}

    def get(self, path: str = "/approvals", **headers: str | None) -> httpx2.Response:
        return self.client.get(path, headers=self.headers(**headers))

    def post(self, path: str, content: bytes = b"", **headers: str | None) -> httpx2.Response:
        return self.client.post(path, content=content, headers=self.headers(**headers))

    def decide(self, id: str, verdict: str = "approved", **more: Any) -> httpx2.Response:
        body = {"verdict": verdict, "digest": self.get(f"/approvals/{id}").json().get("digest", "")} | more
        return self.client.post(f"/approvals/{id}", json=body, headers=self.headers())

    def raw(self, data: bytes) -> bytes:
        """What the server answers to these bytes, until it hangs up."""
        with closing(socket.create_connection(("127.0.0.1", self.socket.getsockname()[1]), timeout=20)) as end:
            end.sendall(data)
            return b"".join(iter(lambda: end.recv(65_536), b""))


@contextmanager
def door(**settings: Any) -> Iterator[Door]:
    made = Door(**settings)
    try:
        yield made
    finally:
        made.client.close()
        made.server.should_exit = True
        made.thread.join(20)
        assert not made.thread.is_alive()


@pytest.fixture(scope="module")
def shared() -> Iterator[Door]:
    """One door for all that is refused."""
    with door() as made:
        yield made


def waiting(at: Door) -> Approval:
    """A question that nobody has decided, of a user who has no other."""
    return at.approvals.get(at.ask(who=f"user-{next(NUMBERS)}", to="bob").approval)


def refused(answer: httpx2.Response, status: int, code: str) -> str:
    """It was refused as every refusal is; what it says."""
    told = answer.json()
    assert (answer.status_code, told["error"]["code"], told.keys()) == (status, code, {"error"})
    return str(told["error"]["message"])


# Deciding


def test_what_waits_is_listed_shown_whole_and_approved_by_whoever_the_token_stands_for() -> None:
    with door() as at:
        asked = at.ask(to="bob", text="hello").approval
        listed = at.get().json()
        assert listed["you"] == "Ann"
        ((one,),) = (listed["approvals"],)
        assert (one["id"], one["tool"], one["principal"], "shown" in one) == (asked, "send", "ann", False)
        whole = at.get(f"/approvals/{asked}").json()
        assert whole["shown"] == at.approvals.get(asked).shown
        assert whole["characters"] == len(whole["shown"]) == one["characters"]
        assert at.decide(asked).json()["decided_by"] == "Ann"
        assert at.ask(to="bob", text="hello").ok
        assert at.sent == [{"to": "bob", "text": "hello"}]
        assert at.get().json()["approvals"] == []
        assert at.events == ["refused", "approved", "intent", "result"]


def test_what_a_person_rejects_is_denied() -> None:
    with door() as at:
        asked = at.ask(to="bob").approval
        assert at.decide(asked, "rejected").json()["state"] == "rejected"
        assert (at.ask(to="bob").code, at.sent) == ("denied", [])


def test_each_token_stands_for_one_person_and_nothing_else_does() -> None:
    with door() as at:
        asked = at.ask(to="bob").approval
        assert at.get(Authorization=f"bearer {BOB}").json()["you"] == "Bob"
        for wrong in (None, "", ANN, f"Basic {ANN}", f"Bearer {ANN}x", f"Bearer {ANN[:-1]}", "Bearer", "Bearer Ann"):
            for path in ("/approvals", f"/approvals/{asked}"):
                answer = at.get(path, Authorization=wrong)
                refused(answer, 401, "denied")
                assert answer.headers["www-authenticate"] == "Bearer"
            refused(at.post(f"/approvals/{asked}", b"{}", Authorization=wrong), 401, "denied")
        assert at.approvals.get(asked).state == "pending"


@pytest.mark.case("G11")
def test_a_body_cannot_say_who_decides() -> None:
    with door() as at:
        asked = at.ask(to="bob").approval
        for name in ("by", "decided_by", "principal"):
            refused(at.decide(asked, **{name: "Bob"}), 400, "bad_input")
        assert at.approvals.get(asked).state == "pending"
        assert at.decide(asked).json()["decided_by"] == "Ann"


def test_a_decision_is_about_the_text_that_was_shown_and_comes_once() -> None:
    with door() as at:
        asked = at.ask(to="bob").approval
        refused(at.decide(asked, digest="0" * 64), 409, "bad_input")
        assert at.decide(asked).status_code == 200
        assert "nothing to decide" in refused(at.decide(asked, "rejected"), 409, "bad_input")
        for unknown in ("none", "..%2f", "%00", "a" * 5_000):
            refused(at.get(f"/approvals/{unknown}"), 404, "bad_input")
            refused(at.decide(unknown), 404, "bad_input")
        assert at.ask(to="bob").ok


@pytest.mark.case("D11")
def test_an_approval_that_comes_too_late_over_http_approves_nothing() -> None:
    with door(ago=1.0) as at:
        late = at.ask(to="bob").approval
        at.clock.advance(LIMITS.approval_seconds + 1)  # type: ignore[attr-defined]
        assert at.get().json()["approvals"] == []
        refused(at.decide(late), 410, "approval_expired")
        refused(at.decide(late), 409, "bad_input")
        assert (at.ask(to="bob").code, at.sent) == ("approval_required", [])


@pytest.mark.case("G7")
def test_a_call_is_shown_whole_and_escaped_however_long_and_odd_it_is() -> None:
    with door() as at:
        asked = at.ask(to="bob", text=HIDDEN).approval
        whole = at.get(f"/approvals/{asked}").json()
        assert "\\n" * 5_000 in whole["shown"]
        assert "x" * 20_000 in whole["shown"]
        assert whole["characters"] == len(whole["shown"]) > 30_000
        assert all(line.isprintable() for line in whole["shown"].split("\n"))
        assert "\\u202eeve\\u2066 \\u3164\\ufe0f <img" in whole["shown"]


@pytest.mark.case("G8")
def test_a_flood_of_questions_is_listed_in_bounds_and_none_is_approved_by_itself() -> None:
    with door() as at:
        codes = [at.ask(f"c{number}", to="bob", text=HIDDEN[-9_000:]).code for number in range(200)]
        assert codes.count("limit") == 200 - LIMITS.pending_approvals
        answer = at.get()
        assert len(answer.json()["approvals"]) == LIMITS.pending_approvals
        assert len(answer.content) < 100_000, "the list holds no texts"
        assert at.sent == []


# Who may come in


@pytest.mark.case("L1")
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:{port}", "evil@127.0.0.1", "127.0.0.1@evil.example", "127.0.0.1.evil.example"),
        *("127.0.0.2", "0.0.0.0", "2130706433", "0x7f000001", "127.1", "[::]", "localhost..", ".localhost", "", " "),
        *(
            "localhost:",
            "localhost:x",
            "localhost:123456",
            "localhost/",
            "localhost, evil.example",
            "ⓛocalhost",
            "[::1",
        ),
    ],
)
def test_a_request_for_another_host_is_refused(host: str, shared: Door) -> None:
    name = host.format(port=shared.host.rpartition(":")[2])
    for path in ("/", "/approvals", f"/approvals/{waiting(shared).id}"):
        head = f"GET {path} HTTP/1.1\r\nHost: {name}\r\nAuthorization: Bearer {ANN}\r\nConnection: close\r\n\r\n"
        assert re.match(rb"HTTP/1.1 (403|400) ", shared.raw(head.encode())), name


@pytest.mark.case("L1")
def test_this_machines_names_and_the_chosen_ones_are_served_with_any_port() -> None:
    with door(serving={"hosts": ["Gate.Example."]}) as at:
        names = ("localhost", "LOCALHOST", "localhost.", "localhost:8000", "127.0.0.1:1", "[::1]:7933", "gate.example")
        for name in names:
            assert at.get(Host=name).status_code == 200, name
        refused(at.get(Host="gate.example.evil.example"), 403, "denied")
        for lines in ("", f"Host: {at.host}\r\nHost: evil.example\r\n"):
            answer = at.raw(f"GET /approvals HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 400 "), "none, or two of them"


@pytest.mark.case("L2")
@pytest.mark.parametrize(
    "origin",
    [
        *(None, "", "null", "http://evil.example", "http://{host}.evil.example", "http://evil.example@{host}"),
        *(
            "http://127.0.0.1",
            "http://localhost:{port}",
            "ftp://{host}",
            "http://{host}/",
            "{host}",
            "http://127.0.0.1:1",
        ),
    ],
)
def test_a_request_from_another_page_changes_nothing(origin: str | None, shared: Door) -> None:
    asked = waiting(shared)
    sent = None if origin is None else origin.format(host=shared.host, port=shared.host.rpartition(":")[2])
    body = f'{{"verdict": "approved", "digest": "{asked.digest}"}}'.encode()
    refused(shared.post(f"/approvals/{asked.id}", body, Origin=sent), 403, "denied")
    assert shared.approvals.get(asked.id).state == "pending"


@pytest.mark.case("L2")
def test_a_form_of_any_page_changes_nothing(shared: Door) -> None:
    asked = waiting(shared)
    body = f'{{"verdict": "approved", "digest": "{asked.digest}"}}'.encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", None):
        refused(shared.post(f"/approvals/{asked.id}", body, Content_Type=kind), 415, "bad_input")
        foreign = shared.post(f"/approvals/{asked.id}", body, Content_Type=kind, Origin="http://evil.example")
        refused(foreign, 403, "denied")
    assert shared.approvals.get(asked.id).state == "pending"
    assert shared.post(f"/approvals/{asked.id}", body, Content_Type="Application/JSON; charset=utf-8").is_success


@pytest.mark.case("L2")
def test_every_answer_forbids_framing_sniffing_scripts_from_elsewhere_and_caches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with door() as at:
        answers = [
            *(at.get(path) for path in ("/", "/approvals.js", "/approvals.css", "/approvals", "/none", "/approvals/x")),
            *(at.get(Host="evil.example"), at.get(Authorization=None), at.post("/approvals/x"), at.post("/")),
        ]
        monkeypatch.setattr(at.approvals, "pending", lambda: 1 / 0)
        answers.append(at.get())
        refused(answers[-1], 500, "error")
        assert {answer.status_code for answer in answers} == {200, 400, 401, 403, 404, 405, 500}
        for answer in answers:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in answer.headers
            assert "set-cookie" not in answer.headers
            assert "server" not in answer.headers


def test_nothing_is_answered_to_a_preflight_that_would_let_another_page_in(shared: Door) -> None:
    answer = shared.client.options("/approvals/x", headers=shared.headers(Origin="http://evil.example"))
    refused(answer, 403, "denied")


# What may come in


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"null", b"[]", b"{}", b'{"verdict": "approved"}', b'{"verdict": "yes", "digest": "x"}', b"\xff"),
        *(b'{"verdict": "approved", "verdict": "rejected", "digest": "x"}', b'{"verdict": "approved", "digest": NaN}'),
        *(b'{"verdict": "approved", "digest": 5}', b"[" * 10_000, b'{"verdict": ["approved"], "digest": "x"}'),
    ],
)
def test_a_body_that_is_no_decision_is_refused(body: bytes, shared: Door) -> None:
    asked = waiting(shared)
    refused(shared.post(f"/approvals/{asked.id}", body), 400, "bad_input")
    assert shared.approvals.get(asked.id).state == "pending"


def test_large_and_slow_requests_are_refused() -> None:
    with door(serving={"limits": replace(LIMITS, request_bytes=2_000, request_seconds=0.3)}) as at:
        asked = at.ask(to="bob").approval
        refused(at.post(f"/approvals/{asked}", b" " * 2_001), 413, "limit")
        head = "".join(f"{name}: {value}\r\n" for name, value in at.headers(Host=at.host).items())
        slow = f"POST /approvals/{asked} HTTP/1.1\r\n{head}Content-Length: 100\r\nConnection: close\r\n\r\n{{"
        answer = at.raw(slow.encode())
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"timeout"' in answer
        long = f"GET / HTTP/1.1\r\nHost: {at.host}\r\nX: {'x' * 100_000}"
        assert at.raw(long.encode()).startswith(b"HTTP/1.1 431 ")
        for begun in (b"G", f"GET /approvals HTTP/1.1\r\nHost: {at.host}\r\nX: ".encode()):
            assert at.raw(begun).startswith(b"HTTP/1.1 408 ")
        assert at.raw(b"") == b""  # a connection that says nothing is closed, and told nothing
        assert at.get().status_code == 200


def test_a_state_that_fails_is_said_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise StorageUnavailable("The state is gone.")

    with door() as at:
        monkeypatch.setattr(at.approvals, "pending", gone)
        assert refused(at.get(), 503, "storage_unavailable") == "The state is gone."


@pytest.mark.parametrize(
    "people", [{}, {"Ann": "short"}, {"Ann": ANN, "Bob": ANN}, {"Ann": "a" * 20 + "\n"}, {"Ann": "é" * 20}]
)
def test_a_token_that_is_weak_or_shared_is_refused(people: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        approvals_app(AskingGate().approvals, people)


def test_tokens_are_made_to_be_unguessable() -> None:
    made = {new_token() for _ in range(100)}
    assert len(made) == 100
    assert min(map(len, made)) >= 43


def test_a_port_that_is_taken_is_said() -> None:
    with closing(bound(0)) as taken, pytest.raises(BadInput, match="cannot be used"):
        bound(taken.getsockname()[1])


# The page


def test_the_page_takes_nothing_from_elsewhere_and_makes_no_markup_of_texts() -> None:
    files = {
        file.name: file.read_text("utf-8") for file in resources.files("toolwise.serve").joinpath("static").iterdir()
    }
    assert files.keys() == {"approvals.html", "approvals.js", "approvals.css"}
    whole = "".join(files.values())
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", whole)
    banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|srcdoc|localStorage|\.cookie"
    assert not re.search(banned, files["approvals.js"])
    assert not re.search(r"<script>|\son\w+=|\sstyle=", files["approvals.html"]), "the policy would block them"
