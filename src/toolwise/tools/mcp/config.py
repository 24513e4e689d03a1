"""Which MCP servers there are, and what the operator says of their tools: a TOML or JSON file.

    [servers.files]
    command = "npx"                          a program: absolute, or a name that PATH finds
    args = ["-y", "some-server", "/data"]
    env = { TOKEN = "$FILES_TOKEN" }         besides PATH, HOME, LANG and TMPDIR; "$NAME": from our own environment

    [servers.shop]
    url = "https://shop.example/mcp"         streamable HTTP
    bearer_env = "SHOP_TOKEN"                the variable that holds the token

    effects = { find = "read" }              every tool else is `write`: what a server says of itself is not believed
    idempotent = ["put"]                     to run twice is to run once
    keyed = ["order"]                        the server runs one idempotency key once
    tools = ["find"]                         only these; or `without`, all but these
    private = true                           results hold private data
    public = false                           what its tools are given stays in the house; otherwise it counts as leaving
    own_network = true                       the url may lead into the own network, or to an unusual port
    seconds = 20                             of one call
    start_seconds = 60                       until it has listed its tools
    revision = "2025-11-25"                  instead of finding out

A program is started from its list of arguments with this environment and no more: there is no shell, and one that
would read a text as a program is refused, as is a program named by a relative path. JSON has the same names; the
`mcpServers` of other clients are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, ModelFault, UnsafeTarget
from toolwise.core.jsonio import quote
from toolwise.core.limits import Limits
from toolwise.core.toml import read_toml
from toolwise.core.types import Effect
from toolwise.tools.confined.targets import Target
from toolwise.tools.mcp.names import SERVER

REVISIONS = ("2025-11-25", "2026-07-28")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh"})
_STARTED = ("command", "args", "env")
_REACHED = ("url", "bearer_env", "own_network")
_ABOUT = (
    *("effects", "idempotent", "keyed", "tools", "without", "private", "public", "seconds", "start_seconds"),
    "revision",
)
_IGNORED = ("type",)  # other clients' files say `stdio` or `http` there, which the rest says as well


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One server, checked. `argv` or `url` is empty. A value of `environment` that begins with $ names a variable."""

    name: str
    argv: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    bearer_env: str = ""
    own_network: bool = False
    effects: Mapping[str, Effect] = field(default_factory=dict)
    idempotent: frozenset[str] = frozenset()
    keyed: frozenset[str] = frozenset()
    tools: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    private: bool = False
    public: bool = True
    seconds: float = 0.0
    start_seconds: float = 0.0
    revision: str = ""

    @property
    def shown(self) -> str:
        """Where its calls go, in full: the address, or the list of arguments and the names of the environment."""
        if self.url:
            return self.url
        with_ = f" with {', '.join(sorted(self.environment))}" if self.environment else ""
        return jsonio.printable(jsonio.dumps(list(self.argv))) + with_

    @property
    def named(self) -> frozenset[str]:
        """The tools that the operator speaks of."""
        return frozenset(self.effects) | self.idempotent | self.keyed | (self.tools or frozenset()) | self.without


def read_config(source: str | Path | Mapping[str, Any], limits: Limits) -> list[ServerConfig]:
    """The servers of a file (`.json`, else TOML), or of a value that was read already. Raises BadInput."""
    name = "The configuration" if isinstance(source, Mapping) else repr(str(source))
    told = source if isinstance(source, Mapping) else _read(Path(source), limits)
    servers = told.get("servers", told.get("mcpServers"))
    if len(told) != 1 or not isinstance(servers, Mapping) or not 0 < len(servers) <= limits.mcp_servers:
        raise BadInput(f"{name} needs tables [servers.NAME] and nothing else, at most {limits.mcp_servers}.")
    try:
        return [_server(str(each), said, limits) for each, said in servers.items()]
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def _read(file: Path, limits: Limits) -> Mapping[str, Any]:
    if file.suffix.lower() != ".json":
        return read_toml(file, limits)
    try:
        with file.open("rb") as stream:
            data = stream.read(limits.settings_bytes + 1)
        if len(data) > limits.settings_bytes:
            raise BadInput(f"{str(file)!r} has more than {limits.settings_bytes} bytes; is it a list of servers?")
        told = jsonio.loads(data, limits)
    except OSError as error:
        raise BadInput(f"Cannot read {str(file)!r}: {error.strerror or error}.") from error
    except ModelFault as error:
        raise BadInput(f"{str(file)!r} cannot be read: {error}.") from error
    return told if isinstance(told, dict) else {}


def _server(name: str, said: Any, limits: Limits) -> ServerConfig:
    where = f"server {quote(name)}"
    if not SERVER.fullmatch(name):
        raise BadInput(f"{where}: use up to 24 letters, digits and - as its name, a letter first.")
    ways = [way for way in ("command", "url") if isinstance(said, Mapping) and way in said]
    if len(ways) != 1:
        raise BadInput(f"{where}: give either a command or a url.")
    own = _STARTED if ways == ["command"] else _REACHED
    strange = [key for key in said if key not in (*own, *_ABOUT, *_IGNORED)]
    if strange:
        raise BadInput(f"{where} has no {quote(str(strange[0]))}; it may have {', '.join((*own, *_ABOUT))}.")
    reached = _reached(where, said, limits) if ways == ["url"] else _started(where, said)
    revision = said.get("revision", "")
    if revision not in ("", *REVISIONS):
        raise BadInput(f"{where}: revision is {' or '.join(REVISIONS)}.")
    about = ServerConfig(
        name=name,
        effects=_effects(where, said.get("effects", {})),
        idempotent=_names(where, "idempotent", said) or frozenset(),
        keyed=_names(where, "keyed", said) or frozenset(),
        tools=_names(where, "tools", said),
        without=_names(where, "without", said) or frozenset(),
        private=_switch(where, "private", said, False),
        public=_switch(where, "public", said, True),
        seconds=_seconds(where, "seconds", said, limits.mcp_call_seconds),
        start_seconds=_seconds(where, "start_seconds", said, limits.mcp_start_seconds),
        revision=revision,
        **reached,
    )
    if about.tools is not None and about.without:
        raise BadInput(f"{where}: give tools or without, not both.")
    return about


def _started(where: str, said: Mapping[str, Any]) -> dict[str, Any]:
    command, args, environment = said["command"], said.get("args", []), said.get("env", {})
    if not isinstance(command, str) or not (_PROGRAM.fullmatch(command) or _absolute(command)):
        raise BadInput(
            f"{where}: command is one program, absolute or a name that PATH finds, not {quote(str(command))}; "
            "its arguments stand in args, each by itself."
        )
    if not isinstance(args, list) or not all(isinstance(arg, str) and "\0" not in arg for arg in args):
        raise BadInput(f"{where}: args is a list of texts.")
    program = PurePath(command.replace("\\", "/")).name.lower().removesuffix(".exe")
    if program in _SHELLS:
        raise BadInput(f"{where}: {program} would read a text as a program; name the program itself, or a script's.")
    if not isinstance(environment, Mapping) or not all(
        isinstance(value, str) and "\0" not in value and _VARIABLE.fullmatch(key) for key, value in environment.items()
    ):
        raise BadInput(f'{where}: env is a table of texts, such as {{ TOKEN = "$FILES_TOKEN" }}.')
    return {"argv": (command, *args), "environment": dict(environment)}


def _absolute(command: str) -> bool:
    path = PurePath(command)
    return path.is_absolute() and command.isprintable() and ".." not in path.parts


def _reached(where: str, said: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    url, bearer = said["url"], said.get("bearer_env", "")
    own_network = _switch(where, "own_network", said, False)
    try:
        target = Target.read(url if isinstance(url, str) else "", limits)
    except UnsafeTarget as error:
        raise BadInput(f"{where}: its url cannot be used: {error}") from None
    if "?" in target.path or "#" in url:
        raise BadInput(f"{where}: leave query and fragment out of its url.")
    if not isinstance(bearer, str) or (bearer and not _VARIABLE.fullmatch(bearer)):
        raise BadInput(f"{where}: bearer_env is the name of a variable, never the token itself.")
    if bearer and target.scheme == "http" and not (target.is_near or own_network):
        raise BadInput(f"{where}: its token would cross the network in plain text: give an https url.")
    return {"url": str(target), "bearer_env": bearer, "own_network": own_network}


def _effects(where: str, said: Any) -> dict[str, Effect]:
    if not isinstance(said, Mapping) or not all(each in ("read", "write") for each in said.values()):
        raise BadInput(f'{where}: effects says of its tools that they "read" or "write".')
    return {str(name): Effect(effect) for name, effect in said.items()}


def _names(where: str, key: str, said: Mapping[str, Any]) -> frozenset[str] | None:
    names = said.get(key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{where}: {key} is a list of names.")
    return frozenset(names)


def _switch(where: str, key: str, said: Mapping[str, Any], usual: bool) -> bool:
    value = said.get(key, usual)
    if not isinstance(value, bool):
        raise BadInput(f"{where}: {key} is true or false.")
    return value


def _seconds(where: str, key: str, said: Mapping[str, Any], usual: float) -> float:
    value = said.get(key, usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 3_600:
        raise BadInput(f"{where}: {key} is a number of seconds, at most an hour.")
    return float(value)
