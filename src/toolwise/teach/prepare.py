"""A passage made ready for the stages: its tokens, where each stands in the text, and the loss of each with no call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolwise.core.errors import BadInput
from toolwise.models.base import LanguageModel, ScoreRequest
from toolwise.notation.pieces import call_segments
from toolwise.notation.segments import Ids, Tokenizer, encode
from toolwise.teach.records import Passage

#: The paper's w_t, proportional to max(0, 1 - 0.2 t) and normalised: only five tokens count.
WEIGHTS = (5 / 15, 4 / 15, 3 / 15, 2 / 15, 1 / 15)


_SURE = 1 - 1e-6  # a marker more certain than this leaves nothing to divide by


def weighted(nll: Sequence[float]) -> float:
    """L_i from the negative log-likelihoods of the tokens from i on; behind the end of the text nothing is added."""
    return float(sum(weight * value for weight, value in zip(WEIGHTS, nll, strict=False)))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A passage as the model reads it: its tokens, with those of the calls of earlier rounds between them.

    A position i counts tokens of the text alone. `places[i]` is where that token stands in `ids`: behind the earlier
    calls that were put before it, since in front of one a call could not use it. `offsets[i]` is the character before
    which it stands, one more for the end; None inside a character, where no call can be put. `targets[i]` are the
    places of the tokens over which a call before token i is judged: the next five from i on, or from the next one where
    i is a lone space and spaces are not weighed. `loss_none[i]` is the paper's L_i(eps) over them in nats; NaN where it
    is undefined, at the first token of a model without a BOS.
    """

    passage: Passage
    ids: Ids
    places: Sequence[int]
    offsets: tuple[int | None, ...]
    targets: tuple[tuple[int, ...], ...]
    loss_none: tuple[float, ...]


def prepare(
    passages: Sequence[Passage], model: LanguageModel, *, weigh_spaces: bool = True, disabled: int | None = None
) -> list[Prepared]:
    """One forward pass a passage gives the loss of every position without a call.

    `weigh_spaces` False is for tokenizers that make a token of the space before a number: it would take a third of the
    weight and says nothing. `disabled` is a marker that has no chance (the paper's "disabled"): a model that was tuned
    on calls expects one where the text goes on, and any result would seem to help against that. Raises BadInput where
    an earlier call stands inside a token of this model.
    """
    begin = model.tokenizer.begin
    first = 0 if begin else 1
    read = [_read(passage, model.tokenizer) for passage in passages]
    long_enough = [ids for ids, _, _ in read if len(ids) > first]
    rows = iter(_losses(model, [ScoreRequest(begin + ids, max(1, len(begin))) for ids in long_enough], disabled))
    prepared = []
    for passage, (ids, places, where) in zip(passages, read, strict=True):
        losses = next(rows) if len(ids) > first else []
        nll = [float("nan")] * (len(ids) - len(losses)) + losses
        lone = [not weigh_spaces and model.tokenizer.decode(ids[at : at + 1]) == " " for at in places]
        begins = (i + (lone[i] and i + 1 < len(places)) for i in range(len(places)))
        targets = tuple(tuple(places[start : start + len(WEIGHTS)]) for start in begins)
        losses_none = tuple(weighted([nll[j] for j in at]) for at in targets)
        prepared.append(Prepared(passage, ids, places, where, targets, losses_none))
    return prepared


def _losses(model: LanguageModel, requests: Sequence[ScoreRequest], disabled: int | None) -> list[list[float]]:
    """Of each scored token, `-log p`; with a marker disabled, `-log (p / (1 - p of the marker))`."""
    if disabled is None:
        return [row.tolist() for row in model.score(requests)]
    marked = [
        ScoreRequest((*request.ids[:at], disabled), at)
        for request in requests
        for at in range(request.start, len(request.ids))
    ]  # no token more is read for these
    rows = model.score([*requests, *marked])
    against = iter(rows[len(requests) :])
    found = []
    for request, row in zip(requests, rows, strict=False):
        chances = [min(_SURE, math.exp(-float(next(against)[0]))) for _ in row]
        told = zip(request.ids[request.start :], row.tolist(), chances, strict=True)
        found.append([loss if token == disabled else loss + math.log1p(-chance) for token, loss, chance in told])
    return found


def tokens_of(passage: Passage, tokenizer: Tokenizer) -> int:
    """How many tokens a passage has with its calls."""
    return len(_read(passage, tokenizer)[0])


def _read(passage: Passage, tokenizer: Tokenizer) -> tuple[Ids, Sequence[int], tuple[int | None, ...]]:
    """The ids of a passage, where those of its text stand among them, and before which characters of the text.

    As in training, the text is tokenised once, as a whole, and the ids of each call are put between its own.
    """
    document = tokenizer.encode(passage.text)
    where = offsets(passage.text, document, tokenizer)
    if not passage.calls:
        return document, range(len(document)), where
    cuts = {offset: i for i, offset in enumerate(where) if offset is not None}
    if not all(call.offset in cuts for call in passage.calls):
        raise BadInput(f"The calls of {passage.id!r} stand inside tokens of this model; use one with that tokenizer.")
    taken = [cuts[call.offset] for call in passage.calls]
    ids: list[int] = []
    places: list[int] = []
    for i in range(len(document) + 1):
        for call in (call for call, at in zip(passage.calls, taken, strict=True) if at == i):
            ids += encode(call_segments(call.body, call.result, tokenizer.notation), tokenizer)[0]
        if i < len(document):
            places.append(len(ids))
            ids.append(document[i])
    return tuple(ids), places, where


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
