"""Requests that are no GET: what arrives, what is not sent twice or elsewhere, and what may have arrived."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from loopback_site import PUBLIC, site
from starlette.responses import RedirectResponse

from recording_api import RecordingApi, recording_api
from toolwise.core.errors import BadInput, ToolFailed, UnsafeTarget
from toolwise.tools.confined.fetch import METHODS, safe_fetch
from toolwise.tools.confined.network import ScriptedNetwork


@pytest.fixture(scope="module")
def api() -> Iterator[RecordingApi]:
    with recording_api() as made:
        yield made


def test_every_method_arrives_with_its_body(api: RecordingApi) -> None:
    for method in METHODS:
        body = None if method in ("GET", "HEAD") else b'{"a": 1}\0\xff'
        answer = safe_fetch(f"{api.url}/pets?x=1", method=method, body=body, allowed={api.address})
        assert answer.status == 200
        assert answer.body == (b"" if method == "HEAD" else b'{"ok":true}')
        assert (api.last.method, api.last.path, api.last.query, api.last.body) == (method, "/pets", "x=1", body or b"")


def test_a_request_without_a_body_says_so_where_a_server_may_wait_for_one(api: RecordingApi) -> None:
    for method, length in (("POST", "0"), ("PUT", "0"), ("PATCH", "0"), ("DELETE", None), ("GET", None)):
        safe_fetch(api.url, method=method, allowed={api.address})
        assert api.last.headers.get("content-length") == length


@pytest.mark.parametrize(
    ("method", "body"),
    [
        *(
            ("TRACE", None),
            ("CONNECT", None),
            ("get", None),
            ("GET\r\nX: y", None),
            ("", None),
            ("GET", b""),
            ("HEAD", b""),
        )
    ],
)
def test_another_method_or_a_body_without_meaning_is_refused(method: str, body: bytes | None) -> None:
    network = ScriptedNetwork({"a.example": [[PUBLIC]]})
    with pytest.raises(BadInput, match="cannot be sent"):
        safe_fetch("http://a.example/", method=method, body=body, network=network)
    assert network.asked == []


@pytest.mark.case("I7")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_what_changes_something_is_asked_once_and_of_one_server(api: RecordingApi, status: int) -> None:
    api.answers["POST /pay"] = RedirectResponse("/pets", status)
    before = len(api.received)
    answer = safe_fetch(f"{api.url}/pay", method="POST", body=b"{}", allowed={api.address})
    assert (answer.status, len(api.received)) == (status, before + 1)


@pytest.mark.case("I5")
def test_the_address_is_checked_for_every_method() -> None:
    network = ScriptedNetwork({"inside.example": [["10.0.0.1"]]})
    for method in METHODS:
        for url in ("http://169.254.169.254/", "http://localhost/", "http://inside.example/"):
            with pytest.raises(UnsafeTarget):
                safe_fetch(url, method=method, network=network)
    assert network.connected == []


def test_whoever_asks_knows_whether_the_request_may_have_arrived() -> None:
    left: list[str] = []
    unreachable = ScriptedNetwork({"a.example": [[PUBLIC]]})
    with pytest.raises(ToolFailed, match="cannot be reached"):
        safe_fetch("http://a.example/", method="POST", network=unreachable, leaving=lambda: left.append("early"))
    assert left == []
    with site(index=b"nonsense") as there, pytest.raises(ToolFailed, match=r"plain HTTP|broke off"):
        there.fetch(method="POST", body=b"x", leaving=lambda: left.append("post"))
    assert set(left) == {"post"}
