"""The likeliest words of some passages as what comes next, found without asking for every one.

All spans of a passage that begin and end with a word make a tree of tokens. A span's probability is that of its tokens
one after another, and then of the answer's end; it only falls while a span grows, so the one that is looked at next is
always the likeliest of all that were begun, and the first one that is finished is the best of all.

Not covered: two ways to write the same span in tokens, of which one counts.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

import numpy as np
import numpy.typing as npt

from toolwise.models.base import Floats, Session
from toolwise.notation.segments import Ids, Tokenizer
from toolwise.tools.index.words import WORD

#: A word with what belongs to it: a currency, a percent sign, what joins two parts (`co-op`, `12.50`, `O'Hara`).
_WORD = re.compile(rf"[$€£¥]?(?:{WORD.pattern})(?:[.,'’:/-](?:{WORD.pattern}))*%?")


@dataclass(slots=True)
class Node:
    """What may come next, by token; `span` is the text if a span may end here."""

    following: dict[int, Node] = field(default_factory=dict)
    span: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """A session that has read up to where the span stands, the spans that may stand there, and a bonus in nats."""

    session: Session
    spans: Node
    bonus: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    """`score` is the span's log-probability, its end and its start's bonus included."""

    start: int
    span: str
    score: float


def spans_of(text: str, tokenizer: Tokenizer, most: int) -> Node:
    """All spans of a text of at most `most` tokens, each written behind a space."""
    words = list(_WORD.finditer(text))
    firsts = [tokenizer.encode(f" {word[0]}") for word in words]
    others = [tokenizer.encode(text[a.end() : b.end()]) for a, b in pairwise(words)]
    root = Node()
    for number, word in enumerate(words):
        node, left = root, most
        for last, piece in zip(words[number:], (firsts[number], *others[number : number + most]), strict=False):
            if (left := left - len(piece)) < 0:
                break
            node = _grown(node, piece)
            node.span = text[word.start() : last.end()]
    return root


def likeliest(starts: Sequence[Start], ends: Iterable[int], steps: int) -> Iterator[Found]:
    """The spans by falling score, for as long as at most `steps` looks further were needed.

    The sessions are left somewhere behind where they were: to keep one for every span that was begun would take a copy
    of the whole cache each.
    """
    order, end_ids = count(), list(ends)
    bases = [len(start.session.ids) for start in starts]
    begun: list[tuple[float, int, int, Ids, Node]] = []  # what was written of it; nothing: it is finished

    def push(score: float, start: int, written: Ids, node: Node) -> None:
        heapq.heappush(begun, (-score, next(order), start, written, node))

    for number, start in enumerate(starts):
        logs = _log_softmax(start.session.logits())
        for token, node in start.spans.following.items():
            push(start.bonus + logs[token], number, (token,), node)
    while begun:
        loss, _, number, written, node = heapq.heappop(begun)
        if not written:
            yield Found(number, node.span, -loss)
            continue
        if steps <= 0:
            return
        steps -= 1
        session = starts[number].session
        session.rewind(bases[number])
        session.feed(written)
        logs = _log_softmax(session.logits())
        if node.span:
            push(np.logaddexp.reduce(logs[end_ids]) - loss, number, (), node)
        for token, child in node.following.items():
            push(logs[token] - loss, number, (*written, token), child)


def _grown(node: Node, piece: Ids) -> Node:
    for token in piece:
        node = node.following.setdefault(token, Node())
    return node


def _log_softmax(logits: Floats) -> npt.NDArray[np.float64]:
    wide = logits.astype(np.float64)
    wide -= wide.max()
    return np.asarray(wide - np.log(np.exp(wide).sum()))
