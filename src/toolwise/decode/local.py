"""One turn of a local model in a conversation: read it, write, meet a call, and let only a valid one through.

    conversation -> dialect -> token ids -> session -> sampled tokens -> text -> dialect's reader -> pieces of the turn

Free text is sampled freely. Where the model begins to call, the session is taken back to that place and a mask takes
over: the layout's fixed texts and whatever else can only be one way are fed without being sampled, the name is one
that exists, the arguments fit its schema. A forced choice and an answer of a given schema are masked from their first
token on. Only what was sampled here is ever read for calls; the conversation is data.

Not covered: running calls. The turn ends with them, and whoever asked executes them (`decode.agent`, a client).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatDelta,
    ChatRequest,
    OutputSchema,
    ReplyEnded,
    StopReason,
    TextDelta,
    TokenUsage,
    ToolSpec,
)
from toolwise.core.errors import BadInput, ResultInvalid
from toolwise.core.limits import LIMITS, Limits
from toolwise.decode.sample import draw, finite, probability
from toolwise.decode.stream import TextStream, agreed
from toolwise.decode.trigger import Trigger
from toolwise.models.base import LanguageModel, Session
from toolwise.models.masks import Masks
from toolwise.models.masks import Matcher as Held
from toolwise.notation.chat.base import CallReader, Dialect
from toolwise.notation.chat.layout import Layout
from toolwise.notation.grammar import Downgrade, Grammar, json_grammar
from toolwise.notation.matcher import Matcher
from toolwise.notation.segments import Ids, Tokenizer

_ANY = {"type": "object"}


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """How a local model answers where a request does not say.

    `strict`: whose arguments are masked by their schema: `always` every tool's, `asked` those that a request calls
    strict, `never` none. A name that exists and JSON are masked wherever anything is. `start_top_k`: a call begins when
    its first token is among so many of the likeliest (the paper's rule); 0 leaves that to the sampling. With a
    `start_threshold` it begins in place of that where this token has at least that probability, and nowhere else.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = LIMITS.generated_tokens
    strict: Literal["always", "asked", "never"] = "always"
    start_top_k: int = 0
    start_threshold: float | None = None


class LocalChat:
    """A ChatModel over a language model and its dialect.

    `template` is the Jinja text that came with the model; `masks` are made over its tokenizer, and without them nothing
    can be forced. `open_session` starts a session of a request's ids for whoever's it is: one of a pool
    (`models.pool`), or the model's own; what it has read before counts as cached. Raises BadInput for a request that
    asks for what cannot be done.
    """

    def __init__(
        self,
        model: LanguageModel,
        dialect: Dialect,
        *,
        template: str | None = None,
        masks: Masks | None = None,
        open_session: Callable[[Ids, str], Session] | None = None,
        settings: ChatSettings = ChatSettings(),
        limits: Limits = LIMITS,
    ) -> None:
        self.model = model
        self.dialect = dialect
        self.settings = settings
        self.masks = masks
        self.limits = limits
        self._grammars: OrderedDict[str, Grammar] = OrderedDict()
        self._lock = threading.Lock()
        self._template = template
        self._open = open_session or (lambda ids, whose: model.session(ids))

    @property
    def name(self) -> str:
        return self.model.name

    def prompt_tokens(self, request: ChatRequest) -> int:
        """How many tokens the conversation and the tools are, as the model reads them."""
        return len(self.dialect.render(request, self.model.tokenizer, self._template))

    def reply(self, request: ChatRequest) -> Iterator[ChatDelta]:
        session = self._open(self.dialect.render(request, self.model.tokenizer, self._template), request.whose)
        try:
            yield from _Turn(self, session, request).pieces()
        finally:
            close = getattr(session, "close", None)
            if close is not None:
                close()

    def masks_calls(self, request: ChatRequest) -> bool:
        """Whether calls of this request are masked where the model begins one by itself."""
        asked = self.settings.strict == "asked" and any(tool.strict for tool in request.callable)
        return bool(request.callable) and (asked or (self.settings.strict == "always" and self.masks is not None))

    def call_mask(self, request: ChatRequest) -> Held:
        """From the call's first character on: the layout, a name that exists, arguments that fit."""
        tools = tuple(tool if self._fits(tool) else replace(tool, parameters=_ANY) for tool in request.callable)
        if not tools:
            raise BadInput("A call is required, and no tool may be called: name one of those that are given.")
        return self._masks.matcher(self._grammar(tools, request.parallel))

    def output_mask(self, output: OutputSchema) -> Held:
        return self._masks.matcher(json_grammar(output.schema))

    def downgrades(self, request: ChatRequest) -> tuple[Downgrade, ...]:
        """What the masks leave open of the schemas that this request's calls, or its answer, are held to; a tool that
        nobody asked to be strict is held to none. Raises BadInput for tools that cannot be masked."""
        held = [tool.name for tool in request.callable if self._fits(tool)]
        if self.masks is None:
            return tuple(Downgrade(name, "", "schema") for name in held)
        lost = [one for one in self.call_mask(request).downgrades if one.tool in held] if held else []
        if request.output is not None and request.output.schema is not None and not request.choice.forced:
            lost += self.output_mask(request.output).downgrades
        return tuple(lost)

    def _grammar(self, tools: Sequence[ToolSpec], parallel: bool) -> Grammar:
        """The dialect's; the last ones are kept, since a conversation brings the same tools again."""
        bounds = replace(self.limits, json_depth=self.limits.chat_depth)
        try:
            key = jsonio.compact([parallel, [[tool.name, tool.parameters] for tool in tools]], bounds)
        except ResultInvalid as error:
            raise BadInput(f"The tools cannot be masked: {error}.", "tools") from None
        with self._lock:
            found = self._grammars.get(key)
        if found is None:
            found = self.dialect.grammar(tools, parallel)
        with self._lock:
            self._grammars[key] = found
            self._grammars.move_to_end(key)
            while len(self._grammars) > self.limits.grammars:
                self._grammars.popitem(last=False)
        return found

    def _fits(self, tool: ToolSpec) -> bool:
        return self.settings.strict == "always" or (self.settings.strict == "asked" and tool.strict)

    @property
    def _masks(self) -> Masks:
        if self.masks is None:
            raise BadInput("This model runs without masks, so nothing can be forced: pip install 'toolwise[strict]'.")
        return self.masks


class _Turn:
    """One turn in the making.

    `_held` is the mask that the next token is held to, if there is one. Outside of it `_marks` says where each token
    of the current free text began: its character, and how many ids stood before it.
    """

    def __init__(self, chat: LocalChat, session: Session, request: ChatRequest) -> None:
        settings, self._tokenizer = chat.settings, chat.model.tokenizer
        self._chat = chat
        self._session = session
        self._request = request
        self._random = np.random.default_rng(_seed(request))
        self._temperature = settings.temperature if request.temperature is None else request.temperature
        self._top_p = settings.top_p if request.top_p is None else request.top_p
        self._most = settings.max_tokens if request.max_tokens is None else request.max_tokens
        self._prompt = len(session.ids)
        self._stream = TextStream(self._tokenizer)
        self._spelled = _spelled(chat.dialect.layout, self._tokenizer.control_ids)
        self._reader: CallReader = chat.dialect.reader(request) if request.callable else _NoCalls()
        self._stops = Matcher(request.stop)
        self._stopped = self._called = False
        self._held: Held | None = None
        self._masked = chat.masks_calls(request)
        self._trigger = Trigger(chat.dialect.layout)
        self._starts = _starts(chat.dialect.layout.trigger, self._tokenizer)
        self._marks: list[tuple[int, int]] = []

    @property
    def written(self) -> int:
        return len(self._session.ids) - self._prompt

    def pieces(self) -> Iterator[ChatDelta]:
        stop = yield from self._write()
        rest = self._trigger.flush() + self._stream.flush()  # in this order they were written
        yield from self._visible([*self._read(rest), *self._reader.flush()], last=True)
        if self._stopped:
            stop = StopReason.STOP
        elif self._called and stop is StopReason.END:
            stop = StopReason.CALLS
        yield ReplyEnded(stop, TokenUsage(self._prompt, self.written, _shared(self._session)), self._reader.broken)

    def _write(self) -> Generator[ChatDelta, None, StopReason]:
        self._hold_from_the_start()
        while self.written < self._most and not (self.written and self._session.full):
            forced: Sequence[int] = ()
            if self._held is not None:
                forced = self._held.forced()[: self._most - self.written]
                if not forced and self._held.ended:
                    return StopReason.END
            tokens = forced or [self._choose()]
            if tokens[0] in self._tokenizer.end:  # a mask allows it where the call or the answer may end
                return StopReason.END
            if self._held is not None and not forced:
                self._held.accept(tokens[0])
            yield from self._take(tokens)
            if self._stopped:
                return StopReason.STOP
            if self._reader.done:
                return StopReason.END
        return StopReason.LENGTH

    def _hold_from_the_start(self) -> None:
        request = self._request
        answered = request.output is not None and not request.choice.forced
        if request.choice.forced or (answered and request.callable and self._wants_to_call()):
            self._held = self._chat.call_mask(request)
        elif request.output is not None:
            self._held, self._reader = self._chat.output_mask(request.output), _NoCalls()

    def _wants_to_call(self) -> bool:
        """Where the answer is to be JSON and tools are there: whether the model begins a call, left to itself.

        What it writes for that is taken back; the mask that is chosen by it decides what it can write.
        """
        begun, trigger, said = len(self._session.ids), self._chat.dialect.layout.trigger.strip(), ""
        while len(said) < len(trigger) and trigger.startswith(said) and not self._session.full:
            token = self._choose()
            if token in self._tokenizer.end:
                break
            self._session.feed([token])
            said = (said + self._spell(token)).lstrip()
        self._stream.flush()
        self._session.rewind(begun)
        return said.startswith(trigger)

    def _choose(self) -> int:
        logits = finite(self._session.logits())
        if self._held is not None:
            return draw(self._held.masked(logits), self._temperature, self._random, self._top_p)
        if self._starts is not None:
            top_k, threshold = self._chat.settings.start_top_k, self._chat.settings.start_threshold
            if self._request.callable and threshold is not None and probability(logits, self._starts) >= threshold:
                return self._starts
            if not self._request.callable or threshold is not None:
                logits = logits.copy()
                logits[self._starts] = -np.inf
            elif np.count_nonzero(logits > logits[self._starts]) < top_k:
                return self._starts
        return draw(logits, self._temperature, self._random, self._top_p)

    def _take(self, tokens: Sequence[int]) -> Iterator[ChatDelta]:
        if self._stream.whole:  # nothing can be put in the place of half a character
            self._marks.append((len(self._trigger.text), len(self._session.ids)))
        self._session.feed(tokens)
        text = "".join(map(self._spell, tokens))
        if self._held is not None or not self._masked:
            yield from self._visible(self._read(text))
            return
        said, began = self._trigger.push(text)
        yield from self._visible(self._read(said))
        if began is not None and not self._stopped:
            self._begin_call(began)

    def _begin_call(self, began: int) -> None:
        """Go back to the character where the call began; from there on it is masked."""
        offset, keep = max((mark for mark in self._marks if mark[0] <= began), key=lambda mark: mark[1])
        lead = self._tokenizer.encode(self._trigger.text[offset:began])
        same = agreed(lead, self._session.ids[keep:])
        self._session.rewind(keep + same)
        self._session.feed(lead[same:])
        self._stream.flush()
        self._held = self._chat.call_mask(self._request)

    def _spell(self, token: int) -> str:
        """The text that a token completes. The layout's control tokens are text to the reader."""
        spelled = self._spelled.get(token)
        return self._stream.push(token) if spelled is None else self._stream.flush() + spelled

    def _read(self, text: str) -> list[ChatDelta]:
        return self._reader.push(text) if text else []

    def _visible(self, deltas: Iterable[ChatDelta], *, last: bool = False) -> Iterator[ChatDelta]:
        """The pieces without what stands behind a stop string. Text that may be the start of one is held back."""
        ends: list[ChatDelta | None] = [None] if last else []
        for delta in (*deltas, *ends):
            if self._stopped:
                return
            fed = self._stops.feed(delta.text) if isinstance(delta, TextDelta) else self._stops.flush()
            if fed.text:
                yield TextDelta(fed.text)
            self._stopped = fed.marker is not None
            if isinstance(delta, CallDelta) and not self._stopped:
                self._called = self._called or bool(delta.name)
                yield delta


class _NoCalls:
    """Where nothing may be called, all is text, whatever it looks like."""

    done = False
    broken: tuple[int, ...] = ()

    def push(self, text: str) -> list[ChatDelta]:
        return [TextDelta(text)]

    def flush(self) -> list[ChatDelta]:
        return []


def _seed(request: ChatRequest) -> int | None:
    """numpy takes no negative one, and APIs any."""
    return None if request.seed is None else request.seed % 2**64


def _spelled(layout: Layout, control: Mapping[str, int]) -> dict[int, str]:
    """The control tokens of which a call is made, with their texts."""
    parts = (layout.trigger, layout.open, layout.before, layout.middle, layout.after, layout.separator, layout.close)
    return {id_: text for text, id_ in control.items() if any(text in part for part in parts)}


def _starts(trigger: str, tokenizer: Tokenizer) -> int | None:
    """The token that begins a call and nothing else, where there is one."""
    ids = tokenizer.encode(trigger)
    return tokenizer.control_ids.get(trigger, ids[0] if len(ids) == 1 else None)


def _shared(session: Session) -> int:
    return getattr(session, "shared", 0)
