"""The tools that a user names, each with what stands behind it.

    Calculator, Calendar, Search, QA, Translate    what the package brings; some take options: an index, a translator
    mine.py                                        the tools of a Python file
    api.yaml, api.json                             the operations of an OpenAPI description
    mcp:servers.toml, mcp:servers.toml/NAME        the tools of MCP servers, or of one of them

Tools never import models; here they are given theirs. Everything that a tool needs is looked for when it is made, so
that what is missing is one line at the start and not an error in the middle of a run.
The servers of a list run until the program ends.

Not covered: what a Python file does when it is imported; only files that the user chose are given to this module.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from toolwise.core.durable import sha256
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import fingerprint, quote
from toolwise.core.types import Tool
from toolwise.models.base import LanguageModel
from toolwise.models.readers.lm import LMReader
from toolwise.models.readers.upstream import connect
from toolwise.models.texts import open_index
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.language import FastText
from toolwise.tools.load import load_tools
from toolwise.tools.mcp import mcp_tools
from toolwise.tools.openapi import openapi_tools
from toolwise.tools.qa import Reader, make_qa
from toolwise.tools.registry import Registry
from toolwise.tools.search import Reranker, make_search
from toolwise.tools.translate import make_translate
from toolwise.tools.translators import Translator, translator_named

Option = str | int | float | bool
#: By the name of a tool or a file: `{"Search": {"index": "wiki-vital"}}`.
Options = Mapping[str, Mapping[str, Option]]
#: The model of the run, loaded when it is first asked for.
ModelOf = Callable[[], LanguageModel]
#: How the file of an OpenAPI description ends.
DESCRIPTIONS = (".json", ".yaml", ".yml")
#: Before the file of a list of MCP servers.
MCP = "mcp:"
_MCP = re.compile(r"mcp:(.+?\.(?:toml|json))(?:/([^/]+))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Toolbox:
    """`identity` says what stands behind each tool that can change its answers: part of a run's fingerprint.

    `foreign` are the tools whose words come from elsewhere, and are worth being pinned; `left_out` says of each tool
    that could not be had, and cost the others nothing, why.
    """

    registry: Registry
    identity: Mapping[str, str] = field(default_factory=dict)
    foreign: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Made:
    """The tools of one source, and what stands behind each of them; `end` ends what runs for them."""

    tools: list[Tool]
    behind: Mapping[str, str] = field(default_factory=dict)
    foreign: bool = False
    left_out: tuple[str, ...] = ()
    end: Callable[[], None] = lambda: None


def toolbox(wanted: Iterable[str], options: Options | None = None, model: ModelOf | None = None) -> Toolbox:
    """The tools of `wanted`, in that order. `model` is for tools that ask a language model (QA's reader).

    Raises BadInput for what is not there, and for options that nobody takes.
    """
    made = [_made(source, own, model or _no_model) for source, own in _with_options(wanted, options)]
    identity = {name: behind for each in made for name, behind in each.behind.items() if behind}
    foreign = frozenset(tool.name for each in made if each.foreign for tool in each.tools)
    left_out = tuple(line for each in made for line in each.left_out)
    return Toolbox(Registry(tool for each in made for tool in each.tools), identity, foreign, left_out)


def names_of(wanted: Iterable[str], options: Options | None = None) -> tuple[str, ...]:
    """The names of these tools; of the package's without opening the index or the model that they need.

    Raises BadInput as `toolbox` does, but for what only making them would show.
    """
    names: list[str] = []
    for source, own in _with_options(wanted, options):
        if source in _MAKERS:
            _check_options(source, _MAKERS[source], own)
            names.append(source)
        else:
            made = _made(source, own, _no_model)
            names += [tool.name for tool in made.tools]
            made.end()
    return tuple(names)


def package_tools() -> dict[str, dict[str, Any]]:
    """The tools that the package brings, each with the options that it takes and what they are if nobody says."""
    return {name: _takes(maker) for name, maker in _MAKERS.items()}


def parse_options(written: Iterable[str]) -> dict[str, dict[str, Option]]:
    """Options from a command line, `Search.index=wiki-vital`; numbers, true and false are read as such
    where an option is not known to be a text.

    Raises BadInput.
    """
    options: dict[str, dict[str, Option]] = {}
    for each in written:
        left, equals, value = each.partition("=")
        tool, dot, name = left.rpartition(".")
        if not (equals and dot and tool and name):
            raise BadInput(f"Write an option as Tool.name=value, such as Search.index=wiki-vital, not {quote(each)}.")
        options.setdefault(tool, {})[name] = value if _is_text(tool, name) else _value(value)
    return options


def _is_text(tool: str, name: str) -> bool:
    """Whether the option is known to be a text, of which `007` and `1.10` are two."""
    maker = openapi_tools if tool.endswith(DESCRIPTIONS) else _MAKERS.get(tool)
    return maker is not None and isinstance(_takes(maker).get(name), str)


def _value(text: str) -> Option:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _no_model() -> LanguageModel:
    raise BadInput("This tool asks a language model, and none was given to it; name one in its options.")


def _with_options(wanted: Iterable[str], options: Options | None) -> list[tuple[str, Mapping[str, Option]]]:
    options, sources = options or {}, list(dict.fromkeys(wanted))
    stray = [name for name in options if name not in sources]
    if stray:
        raise BadInput(f"There are options for {quote(stray[0])}, which is not among the tools: {', '.join(sources)}.")
    return [(source, options.get(source, {})) for source in sources]


def _made(source: str, options: Mapping[str, Option], model: ModelOf) -> _Made:
    if source.startswith(MCP):
        return _of_servers(source, options)
    if source.endswith(".py"):
        _check_options(source, load_tools, options)
        tools = load_tools(Path(source))
        return _Made(tools, dict.fromkeys(_names(tools), f"file {sha256(Path(source))[:16]}"))
    if source.endswith(DESCRIPTIONS):
        _check_options(source, openapi_tools, options)
        tools = openapi_tools(source, **cast(Any, options))  # it looks at their types itself
        behind = f"file {sha256(Path(source))[:16]}, options {fingerprint(dict(options))[:16]}"
        return _Made(tools, dict.fromkeys(_names(tools), behind), foreign=True)
    if source not in _MAKERS:
        near = get_close_matches(source, _MAKERS, n=1)
        brought = f"the package brings {', '.join(_MAKERS)}; a file ends in .py, .json or .yaml."
        hint = f"did you mean {near[0]}?" if near else brought
        raise BadInput(f"There is no tool {quote(source)}; {hint}")
    maker = _MAKERS[source]
    _check_options(source, maker, options)
    tool, behind = maker(model, **options)
    return _Made([tool], {tool.name: behind})


def _names(tools: Iterable[Tool]) -> list[str]:
    return [tool.name for tool in tools]


def _of_servers(source: str, options: Mapping[str, Option]) -> _Made:
    if options:
        raise BadInput(f"{source} takes no options here: what its servers are given stands in the file.")
    found = _MCP.fullmatch(source)
    if found is None:
        raise BadInput(f"{quote(source)} names no servers: write mcp:servers.toml, or mcp:servers.toml/NAME for one.")
    brought = mcp_tools(found[1], only=found[2] or "")
    left_out = tuple(map(str, brought.left_out))
    return _Made(list(brought.tools), brought.identity, foreign=True, left_out=left_out, end=brought.close)


_NUMBERS: Mapping[type, tuple[type, ...]] = {int: (int,), float: (int, float)}


def _check_options(source: str, maker: Callable[..., Any], options: Mapping[str, Option]) -> None:
    takes = _takes(maker)
    strange = [name for name in options if name not in takes]
    if strange:
        said = f"it takes {', '.join(takes)}" if takes else "it takes none"
        raise BadInput(f"{source} has no option {quote(strange[0])}; {said}.")
    for name, value in options.items():
        kinds = _NUMBERS.get(type(takes[name]))
        if kinds and type(value) not in kinds:
            raise BadInput(f"{source}.{name} is a number, such as {takes[name]}, and not {quote(str(value))}.")


def _takes(maker: Callable[..., Any]) -> dict[str, Any]:
    return {p.name: p.default for p in inspect.signature(maker).parameters.values() if p.kind is p.KEYWORD_ONLY}


def _calculator(model: ModelOf) -> tuple[Tool, str]:
    return CALCULATOR, ""


def _calendar(model: ModelOf) -> tuple[Tool, str]:
    return CALENDAR, ""


def _search(
    model: ModelOf, *, index: str = "wiki-vital", hits: int = 2, snippet_words: int = 32, encoder: str = ""
) -> tuple[Tool, str]:
    opened = open_index(str(index))
    rerank: Reranker | None = None
    if encoder:  # torch is loaded for those who ask for it
        rerank = import_module("toolwise.models.encoder").load_encoder(str(encoder))
    behind = [opened.identity, f"{hits} hits of {snippet_words} words", *([rerank.identity] if rerank else [])]
    return make_search(opened, hits=hits, snippet_words=snippet_words, rerank=rerank), ", ".join(behind)


def _qa(
    model: ModelOf,
    *,
    index: str = "wiki-vital",
    passages: int = 3,
    reader: str = "model",
    reader_model: str = "",
    key_env: str = "",
) -> tuple[Tool, str]:
    """`reader`: `model` (the run's own), `extractive:NAME`, or the address of a server, with `reader_model` there."""
    opened = open_index(str(index))
    read = _reader(str(reader), str(reader_model), str(key_env), model)
    return make_qa(opened, read, passages=passages), f"{opened.identity}, {passages} passages, {read.identity}"


def _reader(reader: str, upstream_model: str, key_env: str, model: ModelOf) -> Reader:
    kind, _, name = reader.partition(":")
    if kind in ("http", "https"):
        return connect(reader, upstream_model, key_env)
    if upstream_model or key_env:
        raise BadInput("reader_model and key_env belong to a reader with an address, such as http://localhost:8000/v1.")
    if kind == "extractive" and name:  # torch is loaded for those who ask for it
        found: Reader = import_module("toolwise.models.readers.extractive").load_reader(name)
        return found
    if reader != "model":
        raise BadInput(f"There is no reader {quote(reader)}; use model, extractive:NAME, or an http(s) address.")
    return LMReader(model)


def _translate(
    model: ModelOf, *, translator: str = "apertium", sources: str = "", sure: float = 0.5
) -> tuple[Tool, str]:
    """`translator`: `apertium`, `ct2:FOLDER` or `hf:NAME`; `sources`: codes of languages that it must have, `es,fr`."""
    detect = FastText()
    codes = [code.strip() for code in str(sources).split(",") if code.strip()] or None
    made = translator_named(str(translator), sources=codes, others={"hf": _seq2seq})
    behind = f"{made.identity}, {detect.identity}, sure {sure}"
    return make_translate(made, detect=detect, sure=float(sure)), behind


def _seq2seq(name: str, sources: Iterable[str] | None) -> Translator:
    found: Translator = import_module("toolwise.models.translator").load_translator(name, sources)
    return found


_MAKERS: Mapping[str, Callable[..., tuple[Tool, str]]] = {
    "Calculator": _calculator,
    "Calendar": _calendar,
    "Search": _search,
    "QA": _qa,
    "Translate": _translate,
}
