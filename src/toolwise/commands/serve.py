"""`toolwise serve`: the chat APIs that the world uses, over a model of one's own, and the keys to them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolwise.commands.common import (
    DEFAULT_MODEL,
    DEFAULT_STATE,
    TOOLS_HELP,
    Format,
    ShowToolsOption,
    StartThresholdOption,
    StateOption,
    ThreadsOption,
    ToolOptionsOption,
    examples,
    gated,
    read_text,
    say,
    showing,
    tell_unmasked,
    warn,
)
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS

if TYPE_CHECKING:
    from toolwise.core.chat import ChatModel
    from toolwise.serve.keys import Keys
    from toolwise.serve.server_tools import ServerTools

app = typer.Typer(name="serve", invoke_without_command=True)
keys_app = typer.Typer(name="keys", help="The keys of those who may use the server.", no_args_is_help=True)
app.add_typer(keys_app)

SCRIPTED = "scripted"


class Strict(StrEnum):
    """Every tool's, those that a request calls strict, or none."""

    ALWAYS = "always"
    ASKED = "asked"
    NEVER = "never"


@app.callback(
    epilog=examples(
        "toolwise serve --model smollm2-135m --port 8000",
        "toolwise serve --model scripted --tools Calculator,mine.py --policy policy.cedar",
        "toolwise serve --upstream http://127.0.0.1:11434 --model qwen3 --tools mine.py",
        "toolwise serve --host 0.0.0.0 --allow-host models.example --keys keys.toml",
    )
)
def serve(
    context: typer.Context,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help=f"A pulled name, a folder, a hub id, {SCRIPTED}; or one of the upstream's. Default: {DEFAULT_MODEL}.",
        ),
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes any that is free.")] = 8_000,
    host: Annotated[str, typer.Option(help="The address to answer at; other ones than this machine's need keys.")] = (
        "127.0.0.1"
    ),
    keys: Annotated[Path | None, typer.Option(help="The file of those who may use it; without: this machine.")] = None,
    audience: Annotated[str, typer.Option(help="The server's name in keys that are only for some servers.")] = "",
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name besides this machine's own under which the server is reached.")
    ] = None,
    tools: Annotated[str | None, typer.Option(help=f"Tools that the server runs itself. {TOOLS_HELP}")] = None,
    option: ToolOptionsOption = None,
    policy: Annotated[
        Path | None, typer.Option(help="What its tools may do, in Cedar. Default: looks; asks before it changes.")
    ] = None,
    state: StateOption = DEFAULT_STATE,
    upstream: Annotated[
        str | None,
        typer.Option(help="A server whose model answers, as http://127.0.0.1:11434, in place of a local one."),
    ] = None,
    format: Annotated[Format, typer.Option(help="What that server speaks.")] = Format.OPENAI,
    key_env: Annotated[str, typer.Option(help="The variable of the environment that holds that server's key.")] = "",
    dialect: Annotated[
        str, typer.Option(help="How the model writes calls; told from its chat template if left out.")
    ] = "",
    strict: Annotated[Strict, typer.Option(help="Whose arguments are held to their schema while they are written.")] = (
        Strict.ALWAYS
    ),
    start_threshold: StartThresholdOption = None,
    show_tools: ShowToolsOption = None,
    places: Annotated[int, typer.Option(min=1, max=1_024, help="Replies made at one time.")] = LIMITS.replies,
    threads: ThreadsOption = None,
) -> None:
    """Answer the clients of OpenAI, Anthropic and Gemini over HTTP, with this model.

    Point a client here: OPENAI_BASE_URL=http://127.0.0.1:8000/v1, ANTHROPIC_BASE_URL=http://127.0.0.1:8000. Without
    keys only this machine is answered, whatever key a client sends. For other machines put a server with TLS in front.
    """
    if context.invoked_subcommand is not None:
        return
    try:
        from toolwise.serve.app import api_app
        from toolwise.serve.run import bound, run
    except ModuleNotFoundError as error:
        raise BadInput(f"This needs the extra `serve` ({error.name}): pip install 'toolwise[serve]'.") from error
    if keys is None and not is_near(host):
        raise BadInput(f"Whoever reaches {host} could use the model: give --keys, or answer at 127.0.0.1.")
    if start_threshold is not None and (upstream is not None or model == SCRIPTED):
        raise BadInput("--start-threshold is for a model here: leave it out with a server's or the scripted one.")
    if key_env and upstream is None:
        raise BadInput("--key-env is for a server: give its address with --upstream.")
    known = known_keys(keys, audience)
    with bound(port, host) as socket, _server_tools(tools, option, policy, state) as equipped:
        if upstream is not None:
            answers = _upstream(upstream, model, format, key_env, strict)
        else:
            answers = _chat_model(model or DEFAULT_MODEL, dialect, strict, threads, start_threshold)
        if equipped is not None:
            tell_unmasked(answers, equipped.registry, show_tools)
        served = api_app(
            [showing(answers, show_tools)],
            keys=known,
            tools=equipped,
            hosts=answered_hosts(host, allow_host),
            places=places,
        )
        shown = f"[{host}]" if ":" in host else host
        say(f"{answers.name}: http://{shown}:{socket.getsockname()[1]} (Ctrl-C ends it)")
        run(served, socket, connections=LIMITS.chat_connections)


@keys_app.command("new", epilog=examples("toolwise serve keys new ann --keys keys.toml --days 90"))
def new(
    name: Annotated[str, typer.Argument(help="Who the key stands for: the principal of every call.")],
    keys: Annotated[Path, typer.Option(help="The file to add it to; made if there is none.")],
    days: Annotated[int | None, typer.Option(min=1, max=3_650, help="Days until it expires.")] = None,
) -> None:
    """Make a key, add its digest to a file of keys, and print it: this once, for it is kept nowhere."""
    try:
        from toolwise.serve.keys import entry, new_key, read_keys
    except ModuleNotFoundError as error:
        raise BadInput(f"This needs the extra `serve` ({error.name}): pip install 'toolwise[serve]'.") from error
    from toolwise.core.clock import SystemClock
    from toolwise.core.durable import write_output

    before = ""
    if keys.exists():
        read_keys(keys)
        before = read_text(keys).rstrip() + "\n\n"
    expires = (SystemClock().now().astimezone(UTC) + timedelta(days=days)).replace(microsecond=0) if days else None
    key = new_key()
    write_output(keys, before + entry(key, name, expires), private=True)
    say(key)


def is_near(host: str) -> bool:
    """Whether only this machine reaches the address. Raises BadInput for what is none."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        raise BadInput(f"--host {host!r}: give an address, such as 127.0.0.1 or 0.0.0.0.") from None


def known_keys(file: Path | None, audience: str) -> Keys | None:
    """The keys of a file, and a line on standard error where other users of this machine can read it."""
    if file is None:
        return None
    from toolwise.serve.keys import read_keys, readable_by_others

    keys = read_keys(file, audience)
    if readable_by_others(file):
        warn(f"{str(file)!r} can be read by other users of this machine: chmod 600 it.")
    return keys


def answered_hosts(host: str, allowed: list[str] | None) -> list[str]:
    """The names under which it is reached: those that were given, and the address itself where it is one."""
    address = ip_address(host)
    own = [] if address.is_unspecified else [f"[{address}]" if address.version == 6 else str(address)]
    return [*own, *(allowed or ())]


def _upstream(url: str, model: str, format: Format, key_env: str, strict: Strict) -> ChatModel:
    """A server's model, held here to what it does not honour; what that is, is said."""
    from toolwise.decode.held import Held
    from toolwise.decode.probe import probe
    from toolwise.decode.upstream import connect

    found = connect(url, model, format.value, key_env)
    for line in probe(found).words():
        say(line)
    return Held(found, strict.value)


def _chat_model(
    name: str, dialect: str, strict: Strict, threads: int | None, start_threshold: float | None
) -> ChatModel:
    if name == SCRIPTED:
        from toolwise.models.scripted_chat import ScriptedChat

        return ScriptedChat(SCRIPTED)
    from toolwise.decode.held import Held
    from toolwise.decode.load import load_chat

    return Held(load_chat(name, dialect=dialect, strict=strict.value, start_threshold=start_threshold, threads=threads))


@contextmanager
def _server_tools(
    tools: str | None, options: list[str] | None, policy: Path | None, where: str
) -> Iterator[ServerTools | None]:
    """The tools that the server runs, behind a gate of their own; made before a model is loaded and threads start."""
    if tools is None:
        if policy or options:
            raise BadInput("--policy and --option are for tools that the server runs: name them with --tools.")
        yield None
        return
    from toolwise.serve.server_tools import ServerTools

    with gated(tools, options, policy, where) as (gate, registry, opened):
        yield ServerTools(gate, registry, opened)
