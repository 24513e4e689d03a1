"""Grammars -> which tokens may come next, over any of our tokenizers (llguidance).

    masks = Masks(model.tokenizer)
    matcher = masks.matcher(call_grammar(layout, tools, parallel=True))
    while not matcher.ended:
        forced = matcher.forced()                   # what can only go one way, appended in one forward
        ...
        token = draw(matcher.masked(logits))
        matcher.accept(token)

Control ids are allowed only where the grammar's own texts (`<tool_call>`) are such tokens: there they are, and nowhere
else, so that no string of an argument can hold one. A schema that the engine refuses becomes any JSON object, and is
recorded in `Matcher.downgrades`; a mask is never open.

Not covered: which text a tokenizer would write. Every way to spell a text in tokens is allowed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from toolwise.core.errors import BadInput, LimitExceeded
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS, Limits
from toolwise.models.base import Floats
from toolwise.notation.grammar.engine import engine, parser_limits
from toolwise.notation.grammar.grammar import Downgrade, Grammar, quoted
from toolwise.notation.segments import Ids, Tokenizer

Bits = npt.NDArray[np.bool_]


class Masks:
    """The grammars of one tokenizer, compiled once each; threads may share it. Making it takes about a second for a
    large vocabulary.

    Raises BadInput where llguidance is not installed, or the tokenizer does not say which bytes its tokens are.
    """

    def __init__(self, tokenizer: Tokenizer, limits: Limits = LIMITS) -> None:
        self._tokenizer = tokenizer
        self._limits = limits
        self._package = engine()
        self.pieces = token_bytes(tokenizer)
        self.size = len(self.pieces)
        self._controls = {text: i for i, text in _control_texts(tokenizer, self.pieces) if text}
        wrapper = self._package.TokenizerWrapper(_Bytes(tokenizer, self.pieces))
        ends = sorted(tokenizer.end)
        self._vocabulary = self._package.LLTokenizer(wrapper, eos_token=ends or [self.size])
        self._compiled: OrderedDict[Grammar, Matcher] = OrderedDict()
        self._turn = threading.Lock()

    def matcher(self, grammar: Grammar) -> Matcher:
        """A fresh matcher. Raises BadInput for a grammar that is too large even with its schemas left open."""
        with self._turn:  # one grammar at a time, and none twice
            found = self._compiled.get(grammar)
            if found is None:
                found = self._compiled[grammar] = self._compile(grammar)
                while len(self._compiled) > self._limits.grammars:
                    self._compiled.popitem(last=False)
            self._compiled.move_to_end(grammar)
            return found.fork()

    def spell(self, text: str) -> str:
        """A text of a grammar as Lark: what is a control token of this tokenizer is that token."""
        parts: list[str] = []
        while text:
            at, name = min(
                ((text.find(name), name) for name in self._controls if name in text),
                key=lambda found: (found[0], -len(found[1])),
                default=(len(text), ""),
            )
            parts += [quoted(text[:at])] if at else []
            parts += [f"<[{self._controls[name]}]>"] if name else []
            text = text[at + len(name) :]
        return " ".join(parts)

    def _compile(self, grammar: Grammar) -> Matcher:
        tried = grammar
        made, said = self._made(tried)
        if said:
            for number, schema in enumerate(grammar.schemas[: self._limits.alone_grammars]):
                if self._made(Grammar("start: schema_0", (), (schema,)))[1]:
                    tried = tried.opened(number)
            made, said = self._made(tried)
        if said:  # none that was looked at is refused alone, but all of them together
            for number in range(len(grammar.schemas)):
                tried = tried.opened(number)
            made, said = self._made(tried)
        if said:
            raise BadInput(f"The tools make too large a grammar for strict decoding ({said}); show fewer of them.")
        return Matcher(made, self.size, self._tokenizer, tried.downgrades)

    def _made(self, grammar: Grammar) -> tuple[Any, str]:
        """The compiled grammar, and why it was refused, or `""`."""
        lark = grammar.lark(self.spell)
        if len(lark.encode()) > self._limits.grammar_bytes:
            return None, f"over {self._limits.grammar_bytes} bytes"
        made = self._package.LLMatcher(self._vocabulary, lark, log_level=0, limits=parser_limits(self._limits))
        probe = made.deep_copy()  # some bounds are only met at the first mask
        probe.consume_tokens(probe.compute_ff_tokens())
        probe.compute_bitmask()
        return made, _first(probe.get_error()) if probe.is_error() else ""


class Matcher:
    """Where a text stands in its grammar. `downgrades`: what the masks do not enforce."""

    def __init__(self, made: Any, size: int, tokenizer: Tokenizer, downgrades: tuple[Downgrade, ...]) -> None:
        self._made = made
        self._size = size
        self._tokenizer = tokenizer
        self._closed = False
        self.downgrades = downgrades

    def mask(self) -> Bits:
        """Which tokens may come next, shape [vocabulary of the tokenizer]; those that end a text where it may end.

        Raises LimitExceeded where the engine's bounds are met.
        """
        bits = np.frombuffer(self._made.compute_bitmask(), dtype=np.uint8)
        self._check()
        return np.unpackbits(bits, count=self._size, bitorder="little").astype(np.bool_)

    def masked(self, logits: Floats) -> Floats:
        """A copy of `logits` [at least vocabulary] in which what may not come next has no chance."""
        mask = self.mask()
        held = np.full_like(logits, -np.inf)
        held[: self._size][mask] = logits[: self._size][mask]
        return held

    def accepts(self, token: int) -> bool:
        """Whether this token may come next."""
        return bool(self._made.validate_tokens([token]) == 1) if token < self._size else False

    def accept(self, token: int) -> None:
        """Go on with a token. Raises BadInput for one that may not come next."""
        if not self.accepts(token):
            raise BadInput("This token does not fit the grammar; sample only what the mask allows.")
        self._closed = self._closed or token in self._tokenizer.end
        self._made.consume_token(token)
        self._check()

    def read(self, ids: Sequence[int]) -> bool:
        """Go on with tokens that were written already. False, and nothing happens, where they do not all fit."""
        ids = list(ids)
        if any(i >= self._size for i in ids) or self._made.validate_tokens(ids) != len(ids):
            return False
        for i in ids:
            self.accept(i)
        return True

    def forced(self) -> Ids:
        """The tokens that must come next, taken as accepted: append them to what is decoded, in one forward."""
        ids: list[int] = [] if self.ended else self._made.compute_ff_tokens()
        for i in ids:
            self.accept(i)
        return tuple(ids)

    @property
    def complete(self) -> bool:
        """Whether what was written may end here."""
        return bool(self._made.is_accepting())

    @property
    def ended(self) -> bool:
        """Whether nothing can follow but a token that ends the text."""
        self._check()
        return self._closed or bool(self._made.is_stopped())

    def fork(self) -> Self:
        """An independent copy that goes on from here."""
        copy = type(self)(self._made.deep_copy(), self._size, self._tokenizer, self.downgrades)
        copy._closed = self._closed
        return copy

    def _check(self) -> None:
        if self._made.is_error():
            raise LimitExceeded(f"Strict decoding met a bound ({_first(self._made.get_error())}); simplify the schema.")


@lru_cache(maxsize=2)  # a large vocabulary takes some 20 MB, and a process has one model
def masks_of(tokenizer: Tokenizer) -> Masks:
    """The masks of a tokenizer that several share, made when they are first asked for."""
    return Masks(tokenizer)


def token_bytes(tokenizer: Tokenizer) -> list[bytes]:
    """What each token stands for, by id; `b""` for ids that no token has.

    Raises BadInput for a tokenizer of neither kind.
    """
    own = getattr(tokenizer, "bytes_of", None)
    if own is not None:
        return [own(i) for i in range(tokenizer.size)]  # type: ignore[attr-defined]
    backend = getattr(getattr(tokenizer, "wrapped", None), "backend_tokenizer", None)
    if backend is None:
        raise BadInput("Strict decoding needs a tokenizer that says which bytes its tokens are, as fast ones do.")
    read = engine().LLTokenizer(backend.to_str())
    return [read.decode_bytes([i]) for i in range(read.vocab_size)]


def _control_texts(tokenizer: Tokenizer, pieces: Sequence[bytes]) -> Iterable[tuple[int, str]]:
    added = getattr(getattr(tokenizer, "wrapped", None), "added_tokens_decoder", {})
    for i in tokenizer.control:
        yield i, str(added[i].content) if i in added else pieces[i].decode(errors="replace")


@dataclass(slots=True)
class _Bytes:
    """A tokenizer as the engine wants to see it."""

    tokenizer: Tokenizer
    tokens: Sequence[bytes]

    @property
    def eos_token_id(self) -> int:
        return min(self.tokenizer.end, default=len(self.tokens))

    @property
    def bos_token_id(self) -> None:
        return None

    @property
    def special_token_ids(self) -> list[int]:
        return sorted(self.tokenizer.control)

    def __call__(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text))


def _first(error: str) -> str:
    return printable(error.strip().split("\n")[0], 120)
