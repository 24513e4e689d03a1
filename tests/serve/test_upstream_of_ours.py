"""A server of ours as somebody's upstream: agents over both formats, and what a probe finds out about a server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import openai
import pytest
from api_server import ADD, Served, serving

from agent_runs import Desk, results, went
from toolwise.core.chat import ChatDelta, ChatRequest, ToolChoice
from toolwise.core.errors import ModelUnavailable
from toolwise.decode.probe import probe
from toolwise.decode.run_state import RunState
from toolwise.decode.upstream import connect
from toolwise.models.scripted_chat import ScriptedChat

CALLS = 'call add {"a": 1, "b": 2}\ncall look {}'


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving([ScriptedChat(), Deaf()]) as running:
        yield running


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_server_stands_in_front_of_another_says_what_it_honours_and_holds_it(served: Served, format: str) -> None:
    command = ["serve", "--upstream", served.url, "--model", "deaf", "--format", format, "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "toolwise", *command],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(6)]
        assert lines[0] == "a call that is required: not honoured, and held to it here"
        found = re.search(r"deaf: http://127\.0\.0\.1:(\d+) ", lines[5])
        assert found is not None, lines
        client = Served(int(found[1])).openai()
        tool = {"type": "function", "function": {"name": "add", "parameters": ADD, "strict": True}}
        asked = {"model": "deaf", "tools": [tool], "parallel_tool_calls": False}
        both = 'call add {"a": 1, "b": 2}\ncall add {"a": 3, "b": 4}'
        reply = client.chat.completions.create(messages=[{"role": "user", "content": both}], **asked)
        assert [call.function.arguments for call in reply.choices[0].message.tool_calls] == ['{"a": 1, "b": 2}']
        wrong = [{"role": "user", "content": 'call add {"a": "1"}'}]
        again = client.chat.completions.create(messages=wrong, **asked)  # told, it answers without a call
        assert "invalid_arguments" in again.choices[0].message.content
        with pytest.raises(openai.InternalServerError, match="a call was required, and none came"):
            client.chat.completions.create(
                messages=[{"role": "user", "content": "say Hello."}], tool_choice="required", **asked
            )
    finally:
        process.kill()
        process.wait(20)


class Deaf(ScriptedChat):
    """Takes every request, and honours nothing of how calls are to be made."""

    def __init__(self) -> None:
        super().__init__("deaf")

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        return super().reply(replace(request, choice=ToolChoice(), parallel=True))


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_an_agent_answers_over_a_server(served: Served, format: str) -> None:
    state = RunState.begin("ann").asked(CALLS)
    ended, _ = went(connect(served.url, "scripted", format), Desk(), state, mark_untrusted=False)
    assert (ended.reason, ended.state.text) == ("end", "The results: 3; look done")
    assert [message.is_error for message in results(ended.state)] == [False, False]
    assert ended.state.usage.completion > 0


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_what_began_like_a_call_goes_back_over_a_server_too(served: Served, format: str) -> None:
    state = RunState.begin("ann").asked('call add {"a": 1}\ncall nosuch {}')
    ended, _ = went(connect(served.url, "scripted", format), Desk(), state)
    assert [m.text.split(":")[0] for m in results(ended.state)] == ["Error (invalid_arguments)", "Error (unknown_tool)"]
    assert ended.reason == "end"


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_probe_says_what_a_server_honours(served: Served, format: str) -> None:
    found = probe(connect(served.url, "scripted", format))
    assert (found.forced, found.none, found.one_call, found.failed_results) == ("yes", "yes", "yes", "yes")
    assert "a call that is required: honoured" in found.words()


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_a_probe_says_what_a_server_does_not_honour(served: Served, format: str) -> None:
    found = probe(connect(served.url, "deaf", format))
    assert (found.forced, found.none, found.one_call, found.strict) == ("no", "no", "no", "no")
    assert "one call a turn: not honoured, and held to it here" in found.words()


def test_a_model_that_never_calls_shows_nothing() -> None:
    class Quiet(ScriptedChat):
        def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
            return super().reply(replace(request, tools=(), choice=ToolChoice()))

    found = probe(Quiet())
    assert (found.forced, found.none, found.one_call, found.strict) == ("no", "unknown", "unknown", "unknown")


def test_a_server_that_is_not_there_is_no_finding() -> None:
    class Gone:
        name = "gone"

        def reply(self, request: ChatRequest) -> Any:
            raise ModelUnavailable("It is not there.")

    with pytest.raises(ModelUnavailable):
        probe(Gone())
