"""Deny by default, forbid wins, an error is a denial."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.types import Confidentiality, Effect, Integrity, Labels, Principal, Tool
from toolwise.gate.policy import DEFAULT, OFFLINE, CedarPolicy, Decision, DenyAll

ANN = Principal("ann")
PERMIT_ALL = "permit (principal, action, resource);"
ALL = {"arguments", "hosts", "integrity", "confidentiality"}


def tool(name: str = "send", effect: Effect = Effect.WRITE) -> Tool:
    return Tool(name, "", {"type": "object"}, effect, lambda: None)


def decide(text: str, arguments: dict[str, Any] | None = None, **settings: Any) -> Decision:
    return CedarPolicy.from_text(text).decide(ANN, tool(**settings), arguments or {}, Labels())


@pytest.mark.case("G4")
def test_whatever_is_no_usable_policy_denies(tmp_path: Path) -> None:
    empty, broken, binary = tmp_path / "empty.cedar", tmp_path / "broken.cedar", tmp_path / "binary.cedar"
    empty.write_text("\n")
    broken.write_text("permit everything")
    binary.write_bytes(b"\xff\xfe")
    for path in (tmp_path / "missing.cedar", empty, broken, binary, tmp_path):
        policy = CedarPolicy.from_file(path)
        assert policy.problem
        assert policy.decide(ANN, tool(), {}, Labels()) == Decision("deny", policy.problem)
    assert decide("// only a comment").verdict == "deny"
    assert DenyAll().decide(ANN, tool(), {}, Labels()).verdict == "deny"


def test_a_permit_allows_and_is_named() -> None:
    assert decide(f'@id("anything") {PERMIT_ALL}') == Decision("allow", "anything")


def test_a_forbid_wins_and_is_named() -> None:
    assert decide(f'{PERMIT_ALL} @id("not today") forbid (principal, action, resource);') == Decision(
        "deny", "not today"
    )


@pytest.mark.case("G4")
def test_a_permit_does_not_count_when_another_policy_fails() -> None:
    decision = decide(f"{PERMIT_ALL} forbid (principal, action, resource) when {{ context.arguments.n > 5 }};")
    assert decision.verdict == "deny"
    assert "could not be evaluated" in decision.policy


@pytest.mark.case("G1")
def test_a_name_is_compared_whole() -> None:
    text = 'permit (principal, action, resource == Tool::"read");'
    assert decide(text, name="read").verdict == "allow"
    assert decide(text, name="read_and_delete").verdict == "deny"


def test_an_address_that_only_begins_like_the_permitted_one_is_denied() -> None:
    text = 'permit (principal, action, resource) when { context.arguments.url == "https://good.example" };'
    assert decide(text, {"url": "https://good.example"}).verdict == "allow"
    for url in ("https://good.example.evil.net/", "https://good.example@evil.net/"):
        assert decide(text, {"url": url}).verdict == "deny"


@pytest.mark.case("G3")
def test_a_constrained_argument_that_is_left_out_is_denied() -> None:
    text = 'permit (principal, action, resource) when { context.arguments.to == "bob" };'
    assert decide(text, {"to": "bob"}).verdict == "allow"
    assert decide(text, {}).verdict == "deny"


def test_only_this_principal_is_permitted() -> None:
    policy = CedarPolicy.from_text('permit (principal == User::"ann", action, resource);')
    assert policy.decide(ANN, tool(), {}, Labels()).verdict == "allow"
    assert policy.decide(Principal('ann"\n'), tool(), {}, Labels()).verdict == "deny"


def test_what_nothing_decides_may_be_asked_about() -> None:
    ask = '@id("with a person") permit (principal, action == Action::"ask", resource);'
    assert decide(ask) == Decision("ask", "with a person")
    assert decide(f"{ask} {PERMIT_ALL}").verdict == "allow"
    assert decide(f'{ask} forbid (principal, action == Action::"call", resource);').verdict == "deny"


@pytest.mark.parametrize("value", [1.5, None, 2**80, 1e300])
def test_a_value_that_cedar_lacks_cannot_slip_under_a_bound(value: Any) -> None:
    text = f"{PERMIT_ALL} forbid (principal, action, resource) when {{ context.arguments.n > 5 }};"
    assert decide(text, {"n": 5.0}).verdict == "allow"
    assert decide(text, {"n": value}).verdict == "deny"
    assert decide(PERMIT_ALL, {"n": value}).verdict == "allow"


@pytest.mark.parametrize(
    "value",
    [
        {"__entity": {"type": "User", "id": "root"}},
        {"__extn": {"fn": "ip", "arg": "127.0.0.1"}},
        [{"__entity": {"type": "User", "id": "root"}}],
    ],
)
def test_an_argument_cannot_become_an_entity_or_an_address(value: Any) -> None:
    text = """permit (principal, action, resource) when {
        context.arguments.who == User::"root" || context.arguments.who == ip("127.0.0.1")
        || context.arguments.who == [User::"root"] };"""
    assert decide(text, {"who": value}).verdict == "deny"
    assert decide(PERMIT_ALL, {"who": value}).verdict == "allow"


def test_nested_arguments_can_be_tested() -> None:
    text = (
        'permit (principal, action, resource) when { context.arguments.tags.contains("a") && context.arguments.o.k };'
    )
    assert decide(text, {"tags": ["a", 1, None], "o": {"k": True}}).verdict == "allow"


@pytest.mark.case("K7")
def test_offline_only_tools_that_compute_or_look_are_permitted() -> None:
    verdicts = {effect: decide(OFFLINE, effect=effect).verdict for effect in Effect}
    assert verdicts == {Effect.PURE: "allow", Effect.READ: "allow", Effect.WRITE: "deny"}


@pytest.mark.case("G2")
@pytest.mark.parametrize(
    ("url", "verdict"),
    [
        ("https://good.example", "allow"),
        ("https://GOOD.example:443/path?q=1#x", "allow"),
        ("https://good.example./", "deny"),
        ("https://good%2eexample/", "deny"),
        ("https://good.example.evil.net/", "deny"),
        ("https://good.example@evil.net/", "deny"),
        ("https://good.example:80@evil.net/", "deny"),
        ("https://evil.net/good.example", "deny"),
        ("https://evil.net#https://good.example", "deny"),
        ("https://evil.net\\@good.example", "deny"),
        ("https:\\\\good.example", "deny"),
        ("https://good.example\t.evil.net", "deny"),
        (" https://good.example", "deny"),
        ("ftp://good.example", "deny"),
        ("//good.example", "deny"),
        ("good.example", "deny"),
        ("https://good.example:0/", "deny"),
        ("https://good.example:x/", "deny"),
        ("https://göod.example", "deny"),
        ("https://[good.example", "deny"),
        ("", "deny"),
    ],
)
def test_an_address_is_compared_by_its_parsed_host(url: str, verdict: str) -> None:
    text = 'permit (principal, action == Action::"call", resource) when { context.hosts.url == "good.example" };'
    assert decide(text, {"url": url}).verdict == verdict


@pytest.mark.case("G2")
@pytest.mark.parametrize(
    "url",
    [
        "https://evil%2eexample/",
        "https://ev%69l.example/",
        "https://evil.example../",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://[0:0::1]/",
    ],
)
def test_a_host_that_is_forbidden_is_forbidden_however_it_is_spelled(url: str) -> None:
    forbidden = '["evil.example", "127.0.0.1", "::1"].contains(context.hosts.url)'
    text = f"{PERMIT_ALL} forbid (principal, action, resource) when {{ {forbidden} }};"
    assert decide(text, {"url": url}).verdict == "deny"
    assert decide(text, {"url": "https://good.example/"}).verdict == "allow"


@pytest.mark.case("G2")
def test_a_host_of_an_argument_that_is_left_out_denies() -> None:
    text = 'permit (principal, action == Action::"call", resource) when { context.hosts.url == "good.example" };'
    assert decide(text, {}).verdict == "deny"
    assert decide(text, {"other": "https://good.example"}).verdict == "deny"
    assert decide(PERMIT_ALL, {"__entity": "https://good.example"}).verdict == "allow"


def test_the_default_policy_permits_looking_asks_about_writing_and_keeps_private_data_in() -> None:
    policy = CedarPolicy.from_text(DEFAULT)
    private = Labels(confidentiality=Confidentiality.PRIVATE)
    public = replace(tool("http_get", Effect.READ), public=True)
    assert [policy.decide(ANN, tool(effect=effect), {}, private).verdict for effect in Effect] == [
        *("allow", "allow", "ask")
    ]
    assert policy.decide(ANN, public, {}, Labels()).verdict == "ask"
    assert policy.decide(ANN, public, {}, private).verdict == "deny"
    sink = replace(tool("post", Effect.WRITE), public=True)
    assert policy.decide(ANN, sink, {}, private).verdict == "deny"


def test_a_policys_version_changes_with_its_text() -> None:
    one, other = CedarPolicy.from_text(PERMIT_ALL), CedarPolicy.from_text(f"{PERMIT_ALL} ")
    assert one.version != other.version
    assert one.version == CedarPolicy.from_text(PERMIT_ALL).version


READS = {
    PERMIT_ALL: set(),
    DEFAULT: {"confidentiality"},
    "permit (principal, action, resource) when { context has integrity };": {"integrity"},
    "permit (principal, action, resource) when { context.arguments.to == context.hosts.to };": {"arguments", "hosts"},
    "permit (principal, action, resource) when { context has arguments.to };": {"arguments"},
    "permit (principal, action, resource) when { [context].contains(context) };": ALL,
    "permit (principal, action, resource) unless { if context == {} then true else false };": ALL,
    'permit (principal, action, resource) when { resource.name == "context.hosts" };': set(),
}


@pytest.mark.parametrize("text", READS)
def test_a_policy_is_given_what_its_rules_read_and_decides_as_if_it_were_given_all(text: str) -> None:
    policy = CedarPolicy.from_text(text)
    assert policy._reads == READS[text]
    whole = CedarPolicy(policy._policies)
    private = Labels(confidentiality=Confidentiality.PRIVATE)
    public = replace(tool("http_get", Effect.READ), public=True)
    for arguments in ({}, {"to": "https://good.example"}, {"to": 1.5}):
        for labels in (Labels(), private, Labels(Integrity.UNTRUSTED)):
            for asked in (tool(), tool(effect=Effect.PURE), public):
                for _ in range(2):  # decided, then known
                    assert policy.decide(ANN, asked, arguments, labels) == whole.decide(ANN, asked, arguments, labels)


class Forgetful(dict[Any, Any]):
    """Another thread makes room behind whatever is put in."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.clear()


def test_a_decision_that_another_thread_forgets_is_made_all_the_same() -> None:
    policy = CedarPolicy.from_text(PERMIT_ALL)
    policy._known = Forgetful()
    assert policy.decide(ANN, tool(), {}, Labels()).verdict == "allow"


def test_a_decision_that_is_known_is_one_users_and_one_tools_own() -> None:
    policy = CedarPolicy.from_text('permit (principal == User::"ann", action, resource == Tool::"send");')
    eve = Principal("eve")
    for _ in range(2):
        assert policy.decide(ANN, tool(), {}, Labels()).verdict == "allow"
        assert policy.decide(eve, tool(), {}, Labels()).verdict == "deny"
        assert policy.decide(ANN, tool("send_all"), {}, Labels()).verdict == "deny"
    for number in range(3_000):
        policy.decide(Principal(f"user-{number}"), tool(), {}, Labels())
    assert len(policy._known) <= 1_024


def test_a_policy_that_is_too_deep_to_look_through_is_given_everything() -> None:
    deep = " && ".join(["context.arguments.to == context.arguments.to"] * 300)
    policy = CedarPolicy.from_text(f"permit (principal, action, resource) when {{ {deep} }};")
    assert policy._reads == ALL
    assert policy.decide(ANN, tool(), {"to": "x"}, Labels()).verdict == "allow"
