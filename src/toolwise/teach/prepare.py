"""A passage made ready for the stages: its tokens, where each stands in the text, and the loss of each with no call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolwise.models.base import LanguageModel, ScoreRequest
from toolwise.notation.segments import Ids, Tokenizer
from toolwise.teach.records import Passage

#: The paper's w_t, proportional to max(0, 1 - 0.2 t) and normalised: only five tokens count.
WEIGHTS = (5 / 15, 4 / 15, 3 / 15, 2 / 15, 1 / 15)


def weighted(nll: Sequence[float]) -> float:
    """L_i from the negative log-likelihoods of the tokens from i on; behind the end of the text nothing is added."""
    return float(sum(weight * value for weight, value in zip(WEIGHTS, nll, strict=False)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """`offsets[i]` is the character before which token i stands, None inside a character; one more for the end.

    `loss_none[i]` is the paper's L_i(eps) in nats; NaN at position 0 of a model without a BOS, where it is undefined.
    """

    passage: Passage
    ids: Ids
    offsets: tuple[int | None, ...]
    loss_none: tuple[float, ...]


def prepare(passages: Sequence[Passage], model: LanguageModel) -> list[Prepared]:
    """One forward pass a passage gives the loss of every position without a call."""
    begin = model.tokenizer.begin
    first = 0 if begin else 1
    texts = [model.tokenizer.encode(passage.text) for passage in passages]
    long_enough = [ids for ids in texts if len(ids) > first]
    rows = iter(model.score([ScoreRequest(begin + ids, max(1, len(begin))) for ids in long_enough]))
    prepared = []
    for passage, ids in zip(passages, texts, strict=True):
        losses = next(rows).tolist() if len(ids) > first else []
        undefined = [float("nan")] * (len(ids) - len(losses))
        nll = undefined + losses
        prepared.append(
            Prepared(
                passage,
                ids,
                offsets(passage.text, ids, model.tokenizer),
                tuple(weighted(nll[i:]) for i in range(len(ids))),
            )
        )
    return prepared


def offsets(text: str, ids: Ids, tokenizer: Tokenizer) -> tuple[int | None, ...]:
    """For every token boundary of `text`, the character at which it stands; None where it cuts a character in two."""
    found: list[int | None] = [0]
    at = 0
    pending: list[int] = []
    for i, token in enumerate(ids):
        pending.append(token)
        piece = tokenizer.decode(pending)
        whole = text.startswith(piece, at)
        if whole and "\ufffd" in piece:  # a real U+FFFD, or half a character that merely looks like one
            whole = tokenizer.decode(ids[i + 1 :]) == text[at + len(piece) :]
        if whole:
            at += len(piece)
            pending.clear()
        found.append(at if whole else None)
    return tuple(found)
