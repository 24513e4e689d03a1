"""What the tools of MCP servers are called: there and back, whatever their servers call them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_talk import brought, hostile

from toolwise.core.errors import BadInput
from toolwise.tools.mcp.names import full_name, parts

ODD = st.text(alphabet="a_.-x2e/ é0", min_size=1, max_size=12) | st.text(min_size=1, max_size=8)


@given(ODD.filter(str.isprintable))
def test_a_name_can_be_read_back_and_fits_every_api(tool: str) -> None:
    name = full_name("srv", tool, 1_000)
    assert parts(name) == ("srv", tool)
    assert re.fullmatch("[A-Za-z0-9_-]+", name)


@pytest.mark.case("R15")
def test_names_that_apis_do_not_take_have_others_that_can_be_read_back() -> None:
    with brought(s=hostile("odd names")) as found:
        names = [tool.name for tool in found.tools]
        assert len(names) == 7
        assert not found.left_out
        assert all(re.fullmatch("[A-Za-z_][A-Za-z0-9_-]{0,63}", name) for name in names)
        assert {parts(name) for name in names} >= {("s", "calendar.update"), ("s", "a/b"), ("s", "né"), ("s", "search")}


@pytest.mark.case("R16")
def test_two_servers_with_one_name_and_long_names_are_told_apart_whatever_came_first() -> None:
    with brought(one=hostile("odd names"), two=hostile("odd names")) as found:
        names = [tool.name for tool in found.tools]
        assert len(set(names)) == 14
        assert {"one__search", "two__search"} <= set(names)
        assert names[2] == full_name("one", "a" * 70, 64) != names[3]
    with brought(two=hostile("odd names"), one=hostile("odd names")) as again:
        assert {tool.name for tool in again.tools} == set(names)


def test_a_name_that_was_cut_ends_in_a_digest_and_cannot_be_read_back() -> None:
    name = full_name("srv", "a" * 70, 64)
    assert len(name) == 64
    assert re.search("__x[0-9a-f]{16}$", name)
    assert parts(name) is None


@pytest.mark.parametrize("name", ["", "plain", "a__", "__a", "a b__c", "a__b__2E__c", "a__b__5f__c", "a__b__61__c"])
def test_what_no_tool_can_be_called_is_read_as_none(name: str) -> None:
    assert parts(name) is None


@pytest.mark.parametrize("server", ["", "a_b", "a__b", "1a", "-a", "a-", "a" * 25, "é"])
def test_a_server_has_a_plain_name(server: str) -> None:
    with pytest.raises(BadInput):
        full_name(server, "tool", 64)
