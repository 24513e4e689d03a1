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

    `weighed[i]` is the token from which a call before token i is judged: i, or the next one where i is a lone space
    and spaces are not weighed. `loss_none[i]` is the paper's L_i(eps) from there on in nats; NaN where it is undefined,
    at the first token of a model without a BOS.
    """

    passage: Passage
    ids: Ids
    offsets: tuple[int | None, ...]
    weighed: tuple[int, ...]
    loss_none: tuple[float, ...]


def prepare(passages: Sequence[Passage], model: LanguageModel, *, weigh_spaces: bool = True) -> list[Prepared]:
    """One forward pass a passage gives the loss of every position without a call.

    `weigh_spaces` False is for tokenizers that make a token of the space before a number: it would take a third of the
    weight and says nothing.
    """
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
        spaces = (
            set() if weigh_spaces else {i for i in range(len(ids) - 1) if model.tokenizer.decode(ids[i : i + 1]) == " "}
        )
        weighed = tuple(i + 1 if i in spaces else i for i in range(len(ids)))
        losses_none = tuple(weighted(nll[i:]) for i in weighed)
        prepared.append(Prepared(passage, ids, offsets(passage.text, ids, model.tokenizer), weighed, losses_none))
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
