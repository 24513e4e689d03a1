"""OpenAPI tools in use: where they may go, what is sent along and never shown, and how the gate runs them."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from loopback_site import CERTIFICATE, ODD_SPELLINGS, OTHER, PUBLIC, moved, page, site, trusting
from openapi_descriptions import PETS, WEATHER, weather
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from recording_api import RecordingApi, recording_api
from toolwise.core.errors import BadInput, UnsafeTarget
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, CallContext, Principal, Result, Tool
from toolwise.gate.audit import Audit
from toolwise.gate.gate import Gate
from toolwise.gate.offline import offline_gate
from toolwise.gate.policy import CedarPolicy
from toolwise.gate.state import open_state
from toolwise.models.toolbox import toolbox
from toolwise.tools import Registry
from toolwise.tools.confined.fetch import safe_fetch
from toolwise.tools.confined.network import ScriptedNetwork
from toolwise.tools.openapi import openapi_tools, yaml_text

PET_SHOP = yaml_text.loads(PETS, LIMITS)
ANN = CallContext(Principal("ann"), "run-1")
CANARY = 'tok"en-canary-\\1'
POLICY = """
@id("the shop may be looked at") permit (principal, action == Action::"call", resource)
when { resource.effect == "read" };
@id("a person looks") permit (principal, action == Action::"ask", resource) when { resource.effect == "write" };
"""


@pytest.fixture(scope="module")
def served() -> Iterator[RecordingApi]:
    with recording_api() as made:
        yield made


@pytest.fixture
def api(served: RecordingApi) -> RecordingApi:
    served.answers.clear()
    return served


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", CANARY)


def one(description: Any = None, **options: Any) -> Tool:
    (tool,) = openapi_tools(weather() if description is None else description, **options)
    return tool


def at(url: str) -> dict[str, Any]:
    return {**weather(), "servers": [{"url": url}]}


# Where requests go


@pytest.mark.case("I5")
@pytest.mark.parametrize(
    "host",
    [
        *(
            "169.254.169.254",
            "127.0.0.1",
            "localhost",
            "api.localhost",
            "10.0.0.1",
            "[::1]",
            "intranet",
            "a.example:8443",
        ),
        *("user@a.example", "metadata", *ODD_SPELLINGS),
    ],
)
def test_a_description_leads_only_to_one_public_https_server(host: str) -> None:
    with pytest.raises(BadInput, match=r"base_url|is no address|has a query"):
        openapi_tools(at(f"https://{host}/v1"))


@pytest.mark.parametrize(
    "servers",
    [
        *([], None, {}, [{}], [{"url": 7}], ["https://a.example"], [{"url": "/v1"}], [{"url": "http://a.example"}]),
        *(
            [{"url": "https://{region}.a.example", "variables": {"region": {"default": "eu"}}}],
            [{"url": "ftp://a.example"}],
        ),
        *([{"url": "https://a.example"}, {"url": "https://b.example"}], [{"url": "https://a.example/../b"}]),
        *(
            [{"url": "https://a.example/v1?x=1"}],
            [{"url": "https://a.example/%2e%2e"}],
            [{"url": "file:///etc/passwd"}],
        ),
    ],
)
def test_servers_that_leave_a_choice_are_the_operators_to_make(servers: Any) -> None:
    described = {**weather(), "servers": servers}
    with pytest.raises(BadInput):
        openapi_tools(described)
    assert "https://c.example/x)" in one(described, base_url="https://c.example").description


def test_servers_of_a_path_or_an_operation_are_not_followed() -> None:
    for described in (weather(servers=[{"url": "https://evil.example"}]), weather()):
        if "servers" not in described["paths"]["/x"]["get"]:
            described["paths"]["/x"]["servers"] = [{"url": "https://evil.example"}]
        with pytest.raises(BadInput, match="servers of its own: give base_url"):
            openapi_tools(described)
        assert "evil" not in one(described, base_url="https://a.example").description


@pytest.mark.parametrize("url", ["ftp://a.example", "a.example", "https://a.example/?x", "https://a.example/#x", "", 5])
def test_a_base_url_that_is_none_is_refused(url: Any) -> None:
    with pytest.raises(BadInput, match=r"base_url|server"):
        openapi_tools(weather(), base_url=url)


@pytest.mark.case("I6")
def test_a_public_name_that_leads_inside_is_refused_when_it_is_called() -> None:
    network = ScriptedNetwork({"weather.example": [["10.0.0.1"]], "shop.example": [[PUBLIC, "127.0.0.1"]]})
    fetch = partial(safe_fetch, network=network)
    for options in ({}, {"base_url": "https://shop.example"}):
        with pytest.raises(UnsafeTarget):
            one(fetch=fetch, **options).run()
    assert network.connected == []


def test_the_own_network_is_entered_where_the_operator_says_so(api: RecordingApi) -> None:
    inside = ScriptedNetwork({"shop.internal": [["10.0.0.1"]]}, api.address)
    fetch = partial(safe_fetch, network=inside)
    with pytest.raises(UnsafeTarget):
        one(base_url="http://shop.internal:8080", fetch=fetch).run()
    tool = one(base_url="http://shop.internal:8080", own_network=True, fetch=fetch)
    assert (tool.run(), inside.connected, tool.public) == ('{"ok":true}', [("10.0.0.1", 8080)], False)
    for url in (api.url, api.url.replace("127.0.0.1", "localhost")):
        assert one(base_url=url).run() == '{"ok":true}'


def test_what_a_tool_is_given_leaves_the_house_unless_the_server_is_inside() -> None:
    assert one().public
    assert one(base_url="http://93.184.216.34").public
    assert not one(base_url="http://127.0.0.1:1").public
    assert not one(base_url="http://10.0.0.1").public
    assert not one(public=False).public
    assert one(base_url="http://127.0.0.1:1", public=True, private=True).private


# What is sent along


def test_the_operators_headers_are_sent_and_are_no_arguments(api: RecordingApi) -> None:
    tool = one(
        PET_SHOP, base_url=api.url, operations="delete_pets_id", auth="API_KEY: $SHOP_TOKEN; X-Trace: t ${SHOP_TOKEN}"
    )
    assert list(tool.parameters["properties"]) == ["id"]
    assert CANARY not in repr(tool)
    tool.run(id=1)
    assert (api.last.headers["api_key"], api.last.headers["x-trace"]) == (CANARY, f"t {CANARY}")
    keyed = weather(parameters=[{"name": name, "in": "query", "schema": {}} for name in ("key", "q")])
    tool = one(keyed, base_url=api.url, auth={"?key": "$SHOP_TOKEN"})
    assert list(tool.parameters["properties"]) == ["q"]
    tool.run(q="1&key=mine")
    assert api.last.query == "key=tok%22en-canary-%5C1&q=1%26key%3Dmine"


def test_no_argument_takes_the_place_of_what_the_operator_sends(api: RecordingApi) -> None:
    described = weather(parameters=[{"name": "X-Key", "in": "header", "schema": {}, "required": True}])
    one(described, base_url=api.url, auth={"x-key": "$SHOP_TOKEN", "Accept": "text/$SHOP_TOKEN"}).run()
    assert (api.last.headers["x-key"], api.last.headers["accept"]) == (CANARY, f"text/{CANARY}")


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        ("Authorization: Bearer abcdef", "name one variable of the environment"),
        ("Authorization: $SHOP_TOKEN $SHOP_TOKEN", "name one variable"),
        ("Authorization", "name one variable"),
        ({"Authorization": 7}, "name one variable"),
        ("Authorization: Bearer $NOT_SET_ANYWHERE", "NOT_SET_ANYWHERE is not set: export it"),
        ("Authorization: $EMPTY", "EMPTY is not set"),
        ("Authorization: $TWO_LINES", "cannot be sent"),
        ("Host: $SHOP_TOKEN", "cannot be sent"),
        ("X Y: $SHOP_TOKEN", "cannot be sent"),
    ],
)
def test_a_secret_that_is_written_down_or_missing_is_refused_and_not_quoted(
    auth: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", " ")
    monkeypatch.setenv("TWO_LINES", f"{CANARY}\r\nX-Admin: 1")
    with pytest.raises(BadInput, match=words) as refused:
        openapi_tools(weather(), base_url="https://a.example", auth=auth)
    assert "canary" not in str(refused.value)


def test_a_description_never_says_where_a_secret_goes() -> None:
    for options, words in (
        ({}, "Give base_url with auth"),
        ({"base_url": "http://a.example"}, "plain text"),
        ({"base_url": "http://93.184.216.34"}, "plain text"),
    ):
        with pytest.raises(BadInput, match=words):
            openapi_tools(weather(), auth="Authorization: $SHOP_TOKEN", **options)
    assert one(base_url="http://shop.internal", own_network=True, auth="Authorization: $SHOP_TOKEN")


@pytest.mark.case("I7")
def test_a_secret_stays_with_the_operators_server_when_a_page_moves() -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(CERTIFICATE)
    with site(serving, x=moved("https://other.test/away"), away=page(b"there")) as there:
        network = ScriptedNetwork({"example.test": [[PUBLIC]], "other.test": [[OTHER]]}, there.address)
        anybody = trusting()
        anybody.check_hostname = False
        fetch = partial(safe_fetch, network=network, tls=anybody)
        tool = one(base_url="https://example.test", auth="Authorization: Bearer $SHOP_TOKEN", fetch=fetch)
        assert tool.run() == "there"
    (first, _), (second, _) = there.requests
    assert (first, second) == ("/x", "/away")
    assert [headers.get("authorization") for _, headers in there.requests] == [f"Bearer {CANARY}", None]


@pytest.mark.parametrize("status", [200, 400, 503])
def test_a_server_that_repeats_a_secret_does_not_show_it(api: RecordingApi, status: int) -> None:
    tool = one(base_url=api.url, auth="Authorization: Bearer $SHOP_TOKEN")
    for answer in (
        PlainTextResponse(f"you sent Bearer {CANARY} and {CANARY}", status),
        Response(json.dumps({"authorization": f"Bearer {CANARY}"}), status, media_type="application/json"),
    ):
        api.answers["GET /x"] = answer
        try:
            said = tool.run()
        except Exception as error:
            said = str(error)
        assert "[secret]" in said
        assert "canary" not in said


# Through the gate


class Shop:
    """The pet shop behind a gate; the calls of one run."""

    def __init__(self, api: RecordingApi, policy: str = POLICY, **options: Any) -> None:
        self.state = open_state(":memory:")
        tools = openapi_tools(PET_SHOP, base_url=api.url, **{"auth": "api_key: $SHOP_TOKEN", **options})
        self.gate = Gate(Registry(tools), CedarPolicy.from_text(policy), self.state)

    def ask(self, call: str, tool: str, /, **arguments: Any) -> Result:
        return self.gate.execute(Call(call, tool, arguments), ANN)

    def close(self) -> None:
        self.gate.close()
        self.state.close()


def test_a_get_is_allowed_and_a_post_is_asked_about_and_runs_once(api: RecordingApi) -> None:
    api.answers["GET /pets"] = [{"name": "Rex"}]
    with closing(Shop(api)) as shop:
        before = len(api.received)
        assert shop.ask("1", "listPets", limit=1).text == '[{"name":"Rex"}]'
        asked = shop.ask("2", "addPet", name="Tom")
        assert (asked.code, len(api.received)) == ("approval_required", before + 1)
        (waiting,) = shop.gate.approvals.pending()
        shop.gate.approvals.decide(asked.approval, "approved", by="bob", digest=waiting.digest)
        done = [shop.ask("2", "addPet", name="Tom") for _ in range(2)]
        assert [result.code for result in done] == ["ok", "ok"]
        assert (api.last.method, api.last.body, len(api.received)) == ("POST", b'{"name":"Tom"}', before + 2)
        assert len(api.last.headers["idempotency-key"]) == 64
        assert shop.ask("3", "listPets", limit=100).code == "invalid_arguments"
        assert shop.ask("4", "hasPhoto", shop="..", id="1").code == "invalid_arguments"
        assert shop.ask("5", "listPets", **{"X-Trace": "a\r\nX-Admin: 1"}).code == "invalid_arguments"
        assert shop.ask("6", "getPet", id=1, api_key="mine").code == "invalid_arguments"
        assert len(api.received) == before + 2


def test_the_default_policy_lets_a_shop_inside_be_looked_at_and_asks_about_one_outside(api: RecordingApi) -> None:
    text = Path(__file__).parents[2].joinpath("src/toolwise/gate/default.cedar").read_text("utf-8")
    for options, code in (({}, "ok"), ({"public": True}, "approval_required")):
        with closing(Shop(api, text, **options)) as shop:
            assert shop.ask("1", "listPets").code == code
            assert shop.ask("2", "addPet", name="Tom").code == "approval_required"


def test_an_idempotency_key_is_the_same_for_every_attempt_of_one_call(api: RecordingApi) -> None:
    api.answers["POST /pets"] = PlainTextResponse("busy", 503)
    everything = 'permit (principal, action == Action::"call", resource);'
    with closing(Shop(api, everything)) as shop:
        before = len(api.received)
        failed = shop.ask("1", "addPet", name="Tom")
        assert (failed.code, failed.text) == (
            "tool_unavailable",
            "Error (tool_unavailable): The server answered 503: busy",
        )
        shop.ask("2", "addPet", name="Tom")
    keys = [each.headers["idempotency-key"] for each in api.received[before:]]
    assert [keys.count(key) for key in dict.fromkeys(keys)] == [LIMITS.attempts, LIMITS.attempts]


def test_a_post_without_a_key_is_never_sent_twice_and_its_loss_is_an_unknown_outcome() -> None:
    everything = 'permit (principal, action == Action::"call", resource);'
    with site(x=b"nonsense") as there, closing(open_state(":memory:")) as state:
        gate = Gate(
            Registry([one(weather(method="post"), base_url=there.url)]), CedarPolicy.from_text(everything), state
        )
        with closing(gate):
            results = [gate.execute(Call("1", "op", {}), ANN) for _ in range(2)]
    assert [result.code for result in results] == ["outcome_unknown", "outcome_unknown"]
    assert len(there.requests) == 1


def test_no_record_of_a_call_holds_the_operators_secret(api: RecordingApi) -> None:
    api.answers |= {"GET /pets": PlainTextResponse(CANARY), "GET /pets/1": PlainTextResponse(CANARY, 500)}
    with closing(Shop(api)) as shop:
        results = [shop.ask("1", "listPets"), shop.ask("2", "getPet", id=1), shop.ask("3", "addPet", name="Tom")]
        assert [result.code for result in results] == ["ok", "tool_failed", "approval_required"]
        recorded = repr([row.line for row in Audit(shop.state).rows()]) + repr(list(shop.gate.approvals.pending()))
        assert "canary" not in recorded + repr(results)
    assert "canary" in os.environ["SHOP_TOKEN"]


def test_teaching_runs_what_looks_and_nothing_else(api: RecordingApi) -> None:
    with closing(offline_gate(Registry(openapi_tools(PET_SHOP, base_url=api.url)))) as gate:
        assert gate.execute(Call("1", "getPet", {"id": 1}), ANN).ok
        assert gate.execute(Call("2", "addPet", {"name": "Tom"}), ANN).code == "denied"


def test_a_password_in_a_body_is_shown_to_nobody(api: RecordingApi) -> None:
    content = {"application/json": {"schema": {"type": "object", "properties": {"pin": {"writeOnly": True}}}}}
    described = weather(method="post", requestBody={"required": True, "content": content})
    with closing(open_state(":memory:")) as state:
        gate = Gate(Registry([one(described, base_url=api.url)]), CedarPolicy.from_text(POLICY), state)
        with closing(gate):
            asked = gate.execute(Call("1", "op", {"pin": CANARY}), ANN)
            assert asked.code == "approval_required"
            assert "canary" not in repr(list(gate.approvals.pending())) + repr(
                [row.line for row in Audit(state).rows()]
            )


@pytest.mark.case("H2")
def test_another_server_path_or_method_is_another_definition() -> None:
    hashes = {
        Registry([tool]).hash_of("op")
        for tool in (
            one(),
            one(base_url="https://evil.example"),
            one(weather(path="/y")),
            one(weather(method="delete")),
            one(weather(summary="x")),
        )
    }
    assert len(hashes) == 5


# Loading


def test_descriptions_files_and_names_of_ours_make_one_registry(tmp_path: Path, api: RecordingApi) -> None:
    pets, sky = tmp_path / "pets.yaml", tmp_path / "weather.json"
    pets.write_text(PETS)
    sky.write_text(json.dumps(WEATHER))
    assert toolbox([str(sky), "Calculator"]).registry.names == (
        *("forecast.forPlace", "search_reports", "patch_reports", "Calculator"),
    )
    options = {"base_url": api.url, "prefix": "shop.", "operations": "getPet,addPet"}
    chosen = toolbox([str(pets), str(sky)], {str(pets): {**options, "effects": "addPet=read"}}).registry
    assert chosen.names[:2] == ("shop.addPet", "shop.getPet")
    assert chosen["shop.addPet"].effect == "read"
    assert chosen["shop.getPet"].run(id=1) == '{"ok":true}'
    for wanted in ([str(tmp_path / "none.yml")], [str(tmp_path / "none.json")]):
        with pytest.raises(BadInput):
            toolbox(wanted)


def test_a_redirect_of_a_get_is_checked_like_any_address(api: RecordingApi) -> None:
    for location in ("http://169.254.169.254/latest/", "http://localhost:1/", "file:///etc/passwd"):
        api.answers["GET /x"] = RedirectResponse(location)
        with pytest.raises(UnsafeTarget):
            one(base_url=api.url).run()
