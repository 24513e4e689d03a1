"""`toolwise chat`: a question and its answer in a terminal, with tools that run through the gate."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import (
    DEFAULT_MODEL,
    DEFAULT_STATE,
    Format,
    JsonOption,
    ShowToolsOption,
    StartThresholdOption,
    StateOption,
    ThreadsOption,
    ToolOptionsOption,
    ToolsOption,
    at_a_terminal,
    examples,
    gated,
    read_text,
    say,
    show,
    showing,
    tell_unmasked,
    with_state,
)
from toolwise.console import screen, text_or_standard_input
from toolwise.core.durable import write_output
from toolwise.core.errors import BadInput

if TYPE_CHECKING:
    from toolwise.core.chat import ChatModel, ToolChoice
    from toolwise.decode.agent import Agent
    from toolwise.decode.run_state import RunState
    from toolwise.gate.gate import Gate
    from toolwise.tools.registry import Registry

app = typer.Typer()

PRINCIPAL = "local"
SCRIPTED = "scripted"


@app.command(
    epilog=examples(
        'toolwise chat "What is 17 * 23?" --tools Calculator',
        'toolwise chat --upstream http://127.0.0.1:11434 --model qwen3 "What is new?"',
        'toolwise chat --tools mine.py --run talk.json "Send it to Ann."',
        "toolwise chat --tools mine.py --run talk.json  # goes on after a pause",
    )
)
def chat(
    question: Annotated[
        str | None, typer.Argument(help="What to ask; - reads standard input; nothing at a terminal: a conversation.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            help=f"A pulled name, a folder, a hub id, scripted; or one of the server's. Default: {DEFAULT_MODEL}.",
        ),
    ] = None,
    upstream: Annotated[
        str | None,
        typer.Option(help="A server whose model answers, as http://127.0.0.1:8000, in place of a local one."),
    ] = None,
    format: Annotated[Format, typer.Option(help="What the server speaks.")] = Format.OPENAI,
    key_env: Annotated[str, typer.Option(help="The variable of the environment that holds the server's key.")] = "",
    tools: ToolsOption = None,
    option: ToolOptionsOption = None,
    policy: Annotated[
        Path | None, typer.Option(help="What the tools may do, in Cedar. Default: looks; asks before it changes.")
    ] = None,
    show_tools: ShowToolsOption = None,
    where: StateOption = DEFAULT_STATE,
    run: Annotated[
        Path | None, typer.Option(help="Where the conversation is kept: it goes on from there, also after a pause.")
    ] = None,
    interrupt: Annotated[
        bool, typer.Option("--interrupt", help="Give up the calls that wait in the conversation that is kept.")
    ] = False,
    system: Annotated[str, typer.Option(help="Instructions, before everything that is said.")] = "",
    choice: Annotated[str, typer.Option(help="auto, none, required, or the tool that must be called first.")] = "auto",
    react: Annotated[
        bool, typer.Option("--react", help="Tell and read calls as plain text, for models without a way of their own.")
    ] = False,
    dialect: Annotated[
        str, typer.Option(help="How the local model writes calls; told from its chat template if left out.")
    ] = "",
    start_threshold: StartThresholdOption = None,
    one_call: Annotated[bool, typer.Option("--one-call", help="Let one call of a turn run.")] = False,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Of one turn of the model.")] = None,
    temperature: Annotated[float | None, typer.Option(min=0, help="0 is greedy.")] = None,
    as_json: JsonOption = False,
    threads: ThreadsOption = None,
) -> None:
    """Ask a model, local or behind a server, and let it call tools; text and calls are shown as they happen.

    At a terminal a call that needs a person is asked about at once. Elsewhere the conversation pauses (exit code 1);
    `toolwise approvals` decides, and the same command without a question goes on.
    """
    from toolwise.decode.agent import Agent, AgentSettings

    state, wanted = _state(run), _choice(choice)
    state = state.interrupted() if interrupt else state
    goes_on = bool(state.pending) and question is None
    talks = question is None and not goes_on and at_a_terminal()
    asked = None if goes_on or talks else text_or_standard_input(question, "question")
    state = state if asked is None else state.asked(asked, wanted)
    with _gate(tools, option, policy, where) as (gate, registry):
        unknown = next((name for name in wanted.names if name not in registry), None)
        if unknown is not None:
            raise BadInput(f"--choice {unknown!r}: give auto, none, required, or one of the tools.")
        settings = AgentSettings(system, parallel=not one_call, max_tokens=max_tokens, temperature=temperature)
        answers = _model(model, upstream, format, key_env, dialect, threads, start_threshold)
        if react:
            from toolwise.decode.react import ReActChat

            answers = ReActChat(answers)
        tell_unmasked(answers, registry, show_tools)
        talk = _Talk(Agent(showing(answers, show_tools), gate, tuple(registry.values()), settings), run, where, as_json)
        if talks:
            talk.converse(state, wanted)
        elif not talk.answer(state):
            raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class _Talk:
    """A conversation on this terminal; `kept` is the file that it is kept in, `where` the state that has its calls."""

    agent: Agent
    kept: Path | None
    where: str
    as_json: bool

    def answer(self, state: RunState) -> bool:
        """Go on until there is an answer; whether there is one."""
        state, reason = self._gone_on(state)
        if reason == "approval" and not self.as_json:
            then = f"--run {str(self.kept)!r} goes on" if self.kept else "ask again with --run, which keeps what waits"
            say(f"Decide with `toolwise approvals{with_state(self.where)}`; then {then}.")
        return reason in ("end", "stop")

    def converse(self, state: RunState, choice: ToolChoice) -> None:
        """Questions and answers, until there is no further question."""
        while question := _line("> "):
            state = self._gone_on(state.asked(question, choice))[0]
            state = state.interrupted()  # a call that was not decided here waits for nobody

    def _gone_on(self, state: RunState) -> tuple[RunState, str]:
        while True:
            state, reason = self._run(state)
            if reason != "approval" or not at_a_terminal() or not self._decided(state):
                return state, reason

    def _run(self, state: RunState) -> tuple[RunState, str]:
        """What the run came to. One that is interrupted here keeps a result for each of its calls."""
        from toolwise.core.types import CallContext, Principal
        from toolwise.decode.events import RunEnded, Saved
        from toolwise.decode.show_run import event_json, event_text

        agent, console, reason, begins = self.agent, screen(), "interrupted", True
        try:
            for event in agent.run(state, CallContext(Principal(state.principal), state.id)):
                if isinstance(event, Saved | RunEnded):
                    state = event.state
                    self._keep(state)
                if isinstance(event, RunEnded):
                    reason = event.reason
                if not self.as_json:
                    shown = event_text(event)
                    shown = shown[1:] if begins and shown.plain.startswith("\n") else shown
                    begins = shown.plain.endswith("\n") if shown.plain else begins
                    console.print(shown, end="", soft_wrap=True)
                elif line := event_json(event):
                    print(line, flush=True)
        except KeyboardInterrupt:
            state = state.interrupted()
            self._keep(state)
            raise
        if not self.as_json:
            console.print()
        return state, reason

    def _keep(self, state: RunState) -> None:
        if self.kept is not None:
            write_output(self.kept, state.to_json() + "\n", private=True)

    def _decided(self, state: RunState) -> bool:
        """Ask about every call that waits, each shown whole; whether all were decided."""
        approvals = self.agent.gate.approvals
        for _, id in state.waiting:
            asked = approvals.get(id)
            show(asked.shown)
            agreed = _line("Let this call run? [y/n] ").lower()
            if agreed not in ("y", "yes", "n", "no"):
                return False
            verdict = "approved" if agreed.startswith("y") else "rejected"
            approvals.decide(id, verdict, PRINCIPAL, asked.digest)  # type: ignore[arg-type]
        return True


def _line(prompt: str) -> str:
    """A line that a person types; nothing at the end of them."""
    print(prompt, end="", flush=True)
    return sys.stdin.readline().strip()


def _state(run: Path | None) -> RunState:
    from toolwise.decode.run_state import RunState

    if run is None or not run.exists():
        return RunState.begin(PRINCIPAL)
    return RunState.from_json(read_text(run), PRINCIPAL)


def _choice(text: str) -> ToolChoice:
    from toolwise.core.chat import ToolChoice

    match text:
        case "auto" | "none" | "required":
            return ToolChoice(text)
    return ToolChoice("required", (text,))


def _model(
    name: str | None,
    upstream: str | None,
    format: Format,
    key_env: str,
    dialect: str,
    threads: int | None,
    start_threshold: float | None,
) -> ChatModel:
    if start_threshold is not None and (upstream is not None or name == SCRIPTED):
        raise BadInput("--start-threshold is for a model here: leave it out with a server's or the scripted one.")
    if upstream is not None:
        from toolwise.decode.upstream import connect

        return connect(upstream, name or "", format.value, key_env)
    if key_env:
        raise BadInput("--key-env is for a server: give its address with --upstream.")
    if name == SCRIPTED:
        from toolwise.models.scripted_chat import ScriptedChat

        return ScriptedChat()
    from toolwise.decode.load import load_chat

    return load_chat(name or DEFAULT_MODEL, dialect=dialect, start_threshold=start_threshold, threads=threads)


@contextmanager
def _gate(
    tools: str | None, options: list[str] | None, policy: Path | None, where: str
) -> Iterator[tuple[Gate, Registry]]:
    """The gate of these tools, made before a model is loaded; without tools nothing is written anywhere."""
    if tools is not None:
        with gated(tools, options, policy, where) as (gate, registry, _):
            yield gate, registry
        return
    if policy or options:
        raise BadInput("--policy and --option are for tools: name them with --tools.")
    from toolwise.gate.offline import offline_gate
    from toolwise.tools.registry import Registry

    nothing = Registry([])
    with offline_gate(nothing) as gate:
        yield gate, nothing
