"""The decode loop: sample, meet a call, pause, execute, insert, go on.

`generate` yields events. The model writes text and calls; what stands behind an arrow is never the model's: sampling
stops there, the gate runs the call, and the result is forced into the same session, so that the prompt is read once.
Only sampled text can start a call. A prompt, a document or a result is fed as data and never looked at for calls.

Before the model goes on, the session is taken back to where the call began and the call is fed as the training text
has it, piece by piece; tokens that already agree are kept. So a marker that the model split over tokens in an unusual
way, or a token that reached past the arrow, leaves no trace in what the model reads next.

With `masks` every call is valid: from behind its marker on it is held to the tools of the gate (`strict.py`), and what
can only be one way is fed without being sampled, all of it in one forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import CallContext, Result, WrittenCall
from toolwise.decode.sample import draw, finite, probability
from toolwise.decode.stream import TextStream, agreed
from toolwise.decode.strict import StrictCalls
from toolwise.gate.gate import Gate
from toolwise.models.base import Session, Writer, marker_id
from toolwise.models.masks import Masks, Matcher
from toolwise.notation.pieces import call_segments
from toolwise.notation.segments import Segment, encode
from toolwise.notation.watch import CallWatcher, Halt, Met


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """A call that the model wrote, on its way to the gate."""

    call: WrittenCall


@dataclass(frozen=True, slots=True)
class CallEnded:
    """Its one result. `inserted` is the call as it now stands in the context, `""` when it was broken off."""

    result: Result
    inserted: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The last event. `reason`: `end` (the model ended), `stop` (a stop string), `length`, `calls`, or `enough`.

    `sampled` counts the tokens that the model chose, `fed` all that it read: prompt, forced and sampled ones. In a
    strict call, what could only be one way is forced.
    """

    reason: str
    sampled: int
    fed: int


Event = Text | CallStarted | CallEnded | Stop


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How to decode. `temperature` 0 is greedy.

    A call starts when its marker is among the `start_top_k` likeliest next tokens (paper: 10; 1 is plain greedy), as
    long as fewer than `max_calls` were made. With a `start_threshold`, in 0..1, it starts in place of that where the
    model gives the marker at least this probability, and nowhere else: what is likely to be worth a call can be
    measured (`evals.calibration`). `enabled` False gives the marker probability 0: the paper's "disabled".
    """

    enabled: bool = True
    start_top_k: int = 10
    max_calls: int = 1
    max_tokens: int = LIMITS.generated_tokens
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    start_threshold: float | None = None


DEFAULTS = DecodeSettings()


def generate(
    model: Writer,
    prompt: str,
    gate: Gate,
    context: CallContext,
    settings: DecodeSettings = DEFAULTS,
    *,
    masks: Masks | None = None,
    limits: Limits = LIMITS,
    enough: Callable[[], bool] = lambda: False,
    likely: Callable[[float], None] = lambda probability: None,
) -> Iterator[Event]:
    """Continue `prompt`, yielding events as they happen; the last one is a Stop. Calls are written in the notation of
    the model's tokenizer; with `masks`, made over it, they are strict. Before each token `enough` may end the answer.
    With a `start_threshold`, `likely` is told the marker's probability wherever a call may start.

    `context.run_id` is to be this answer's own: in a run that the gate knows already, a call gets the result that the
    call of the same number got, or is a conflict.

    Raises BadInput for an open marker that is not one token of this model, and for a prompt that is longer than the
    model's context, or empty where the model has no BOS; ModelUnavailable for a model that gives no finite numbers;
    LimitExceeded for a schema that is too complicated to mask. A call that fails raises nothing: it is a result.
    """
    strict = StrictCalls(masks, tuple(gate.registry.values()), model.tokenizer.notation, limits) if masks else None
    answer = _Answer(model, prompt, settings, strict, likely, limits)
    reason, calls = "length", 0
    while answer.sampled < settings.max_tokens and not answer.full:
        if enough():
            yield Stop("enough", answer.sampled, answer.fed)
            return
        token = answer.choose(may_call=settings.enabled and calls < settings.max_calls)
        if token in model.tokenizer.end:
            reason = "end"
            break
        for event in answer.write(token):
            match event:
                case str():
                    yield Text(event)
                case Halt():
                    yield Stop("stop", answer.sampled, answer.fed)
                    return
                case Met() if calls >= settings.max_calls:
                    yield Stop("calls", answer.sampled, answer.fed)
                    return
                case Met():
                    call, result = yield from _execute(event, gate, context, calls)
                    calls += 1
                    yield CallEnded(result, answer.insert(event, result) if call.complete else "")
    for event in answer.flush():
        if isinstance(event, str):
            yield Text(event)
        elif isinstance(event, Met):  # the answer ended inside a call
            _, result = yield from _execute(event, gate, context, calls)
            yield CallEnded(result, "")
        else:
            reason = "stop"
    yield Stop(reason, answer.sampled, answer.fed)


def _execute(
    met: Met, gate: Gate, context: CallContext, number: int
) -> Generator[Event, None, tuple[WrittenCall, Result]]:
    call = WrittenCall(f"{context.run_id}:{number}", met.body, complete=met.complete)
    yield CallStarted(call)
    return call, gate.execute(call, context)


class _Answer:
    """One answer in the making: the session, the tokens of the current stretch of text, and what is held back."""

    def __init__(
        self,
        model: Writer,
        prompt: str,
        settings: DecodeSettings,
        strict: StrictCalls | None,
        likely: Callable[[float], None],
        limits: Limits,
    ) -> None:
        self._tokenizer = model.tokenizer
        self._settings = settings
        self._strict = strict
        self._likely = likely
        self._notation = model.tokenizer.notation
        self._limits = limits
        self._marker = marker_id(model.tokenizer, self._notation)
        #: Tokens that mean nothing outside a call: there a model would only write a result of its own with them.
        self._inside = [i for text in self._notation.tokens[1:] for i in self._tokenizer.encode_marker(text)]
        self._session: Session = model.session(self._tokenizer.begin + self._tokenizer.encode(prompt))
        self._random = np.random.default_rng(settings.seed)
        self._held: Matcher | None = None  # the mask of the call that is being written
        self._may_call = True
        self.sampled = 0
        self._start()

    @property
    def fed(self) -> int:
        return len(self._session.ids)

    @property
    def full(self) -> bool:
        """Whether what was written fills the model's context; a prompt that does is refused when it is read."""
        return self.sampled > 0 and self._session.full

    def choose(self, *, may_call: bool) -> int:
        """The next token, by the start rule first. Raises ModelUnavailable where the model gives no numbers."""
        logits = finite(self._session.logits())
        if self._watcher.in_call:
            held = logits if self._held is None else self._held.masked(logits)
            return draw(held, self._settings.temperature, self._random)
        self._may_call = may_call
        threshold = self._settings.start_threshold
        if may_call and threshold is not None:
            share = probability(logits, self._marker)
            self._likely(share)
            if share >= threshold:
                return self._marker
            may_call = False  # not by chance either
        logits = logits.copy()
        logits[self._inside] = -np.inf
        if self._strict is not None:
            logits[self._strict.seams] = -np.inf
        if not may_call:
            logits[self._marker] = -np.inf
        elif np.count_nonzero(logits > logits[self._marker]) < self._settings.start_top_k:
            return self._marker
        return draw(logits, self._settings.temperature, self._random)

    def write(self, token: int) -> list[str | Met | Halt]:
        """Append a sampled token, and in a strict call whatever can only follow it; what they complete."""
        self.sampled += 1
        if self._held is not None:
            self._held.accept(token)
        found = self._append([token])
        if not self._watcher.in_call:
            self._held = None
        elif self._held is None and self._strict is not None and self._may_call:
            self._held = self._strict.begin()
        return found if self._held is None else [*found, *self._append(self._held.forced())]

    def _append(self, ids: Sequence[int]) -> list[str | Met | Halt]:
        before, found = len(self._session.ids), list[str | Met | Halt]()
        self._session.feed(ids)
        for number, i in enumerate(ids):
            if self._stream.whole:  # nothing can be put in the place of half a character
                self._tokens.append((self._characters, before + number))
            piece = self._stream.push(i)
            self._characters += len(piece)
            self._text += piece
            found += self._watcher.push(piece)
        return found

    def insert(self, met: Met, result: Result) -> str:
        """Put the call with its result into the context, in place of what was sampled of it."""
        offset, keep = max((t for t in self._tokens if t[0] <= met.began), key=lambda t: t[1])
        lead = Segment(self._text[offset : met.began])  # text of the token in which the marker began
        call = call_segments(met.body, result.text, self._notation)
        canonical, _ = encode([lead, *call], self._tokenizer)
        same = agreed(self._session.ids[keep:], canonical)
        self._session.rewind(keep + same)
        self._session.feed(canonical[same:])
        self._start()
        return "".join(piece.text for piece in call)  # `write_call` would refuse a body that the gate refused

    def flush(self) -> list[str | Met | Halt]:
        return [*self._watcher.push(self._stream.flush()), *self._watcher.flush()]

    def _start(self) -> None:
        """Begin a stretch of text: nothing is held back, and no call can reach back over this point."""
        self._stream = TextStream(self._tokenizer)
        self._watcher = CallWatcher(
            self._notation, self._settings.stop, calls=self._settings.enabled, limits=self._limits
        )
        self._held = None
        self._text = ""
        self._characters = 0
        self._tokens: list[tuple[int, int]] = []  # for each token: its first character, and how many ids stand before
