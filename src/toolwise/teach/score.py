"""Did the result help? The paper's filter (section 2, filtering API calls).

    L_i(z)  = - sum_t w_t log p(x_{i+t} | z, x_1..x_{i+t-1})      w = 1/3, 4/15, 1/5, 2/15, 1/15
    loss_none = L_i(nothing)   loss_call = L_i(call without result)   loss_result = L_i(call with result)
    gain = min(loss_none, loss_call) - loss_result

z stands in front of the whole text, since a model that has not seen calls would be interrupted by one at i; for one
that was tuned on calls it may stand at i (`scoring = "inline"`), as in decoding. Only five tokens carry weight, so the
text is cut behind them and only their rows are projected. In front, one forward serves all positions at which the same
z is tried.

The bounds are exact. Losses are never negative, so gain <= loss_none: below the floor, the smallest threshold that can
come out, nothing is scored. And gain <= loss_none - loss_result: so the result is scored first, and the call without it
only where the result takes enough off; that drops far more than the bound by loss_call would, which is therefore not
taken. Neither changes what is kept.

Controls, calls with a result taken from another candidate, are scored for calls that reach the floor: only these can be
kept, and what a wrong result does where none helps says nothing of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from toolwise.core.errors import BadInput
from toolwise.core.types import Tool
from toolwise.models.base import LanguageModel, ScoreRequest
from toolwise.notation.inline import PLAIN, Notation, read_arguments, read_body
from toolwise.notation.pieces import call_segments
from toolwise.notation.segments import Ids, Segment, encode
from toolwise.teach.config import ToolSettings
from toolwise.teach.prepare import Prepared, weighted
from toolwise.teach.prompts import Prompt
from toolwise.teach.records import Candidate

#: z in its pieces, and those of a call and a result (None: the call without its result).
Z = tuple[Segment, ...]
Wording = Callable[[Candidate, "str | None"], Z]


def notation_wording(notation: Notation = PLAIN) -> Wording:
    """The paper's: the call as it is written in text, e(c, eps) and e(c, r)."""
    return lambda candidate, result: tuple(call_segments(candidate.body, result or "", notation))


def plain_wording(prompt: Prompt, tool: Tool, notation: Notation = PLAIN) -> Wording:
    """The same in plain words, for models that have never seen the notation."""

    def wording(candidate: Candidate, result: str | None) -> Z:
        raw = read_body(candidate.body, notation)[1]
        arguments = read_arguments(raw, tool, notation)
        said = str(next(iter(arguments.values()))) if len(arguments) == 1 else raw
        if result is None:
            return (Segment(prompt.call_wording.format(input=said)),)
        return (Segment(prompt.result_wording.format(input=said, result=result)),)

    return wording


def wording_named(name: str, prompt: Prompt, tool: Tool, notation: Notation = PLAIN) -> Wording:
    """The wording `notation` or `plain`. Raises BadInput for another name."""
    if name not in ("notation", "plain"):
        raise BadInput(f"There is no wording {name!r}; use notation or plain.")
    return plain_wording(prompt, tool, notation) if name == "plain" else notation_wording(notation)


class _Key(NamedTuple):
    """What one request serves: all positions of a passage with z in front, or one with z before its token `at`."""

    passage: str
    z: Z
    at: int


class Scorer:
    """Scores candidates of one tool with one model."""

    def __init__(
        self,
        model: LanguageModel,
        wording: Wording,
        settings: ToolSettings,
        *,
        separator: str,
        early_bounds: bool,
        seed: int,
        controls: bool = True,
        inline: bool = False,
        likeliest: bool = False,
    ) -> None:
        self._model = model
        self._wording = wording
        self._floor = settings.floor
        self._early_bounds = early_bounds
        self._separator = separator
        self._seed = seed
        self._controls = controls
        self._inline = inline
        self._likeliest = likeliest

    def score(self, candidates: Sequence[Candidate], texts: Mapping[str, Prepared]) -> list[Candidate]:
        """The candidates with their losses and gains, dropped ones untouched. `texts`: by passage id.

        What comes back without a reason has finite losses and may be kept by a threshold of at least the floor.
        """
        rows = [self.begin(c, texts[c.passage]) if c.reason is None else c for c in candidates]
        rows = self._fill(rows, texts, _put_result, lambda c: self._wording(c, c.result))
        rows = [self._bounded(c, _taken_off(c)) for c in rows]
        rows = self._fill(rows, texts, _put_call, lambda c: self._wording(c, None))
        rows = [_with_gain(c) if c.reason is None else c for c in rows]
        if self._likeliest:
            rows = self._likelier(rows, texts)
        if self._controls:
            rows = self._give_controls(rows)
            rows = self._fill(rows, texts, _put_control, self._wording_of_control, wanted=_has_control)
        return rows

    def _likelier(self, rows: list[Candidate], texts: Mapping[str, Prepared]) -> list[Candidate]:
        """Of calls at one place that have the same result, the one that the model would sooner write."""
        alike: dict[tuple[str, int, str], list[int]] = {}
        for i, row in enumerate(rows):
            if row.reason is None and (row.gain or -math.inf) >= self._floor:
                alike.setdefault((row.passage, row.position, row.result or ""), []).append(i)
        several = [i for same in alike.values() if len(same) > 1 for i in same]
        written = self._model.score([self._written(rows[i], texts[rows[i].passage]) for i in several])
        cost = {i: float(nll.sum()) for i, nll in zip(several, written, strict=True)}
        best = {min(same, key=lambda i: (cost[i], i)) for same in alike.values() if len(same) > 1}
        return [
            replace(row, reason="less_likely") if i in cost and i not in best else row for i, row in enumerate(rows)
        ]

    def _written(self, row: Candidate, prepared: Prepared) -> ScoreRequest:
        """Asks for the losses of a call and its result where they would stand."""
        tokenizer, at = self._model.tokenizer, prepared.places[row.position]
        said = encode(call_segments(row.body, row.result or "", tokenizer.notation), tokenizer)[0]
        before = tokenizer.begin + prepared.ids[:at]
        return ScoreRequest(before + said, max(1, len(before)))

    def _wording_of_control(self, candidate: Candidate) -> Z:
        return self._wording(candidate, candidate.control_result)

    def begin(self, candidate: Candidate, prepared: Prepared) -> Candidate:
        """The candidate with its loss without a call; dropped where that alone says that it cannot be kept."""
        if candidate.position >= len(prepared.targets) or not prepared.targets[candidate.position]:
            return replace(candidate, reason="no_continuation")
        candidate = replace(candidate, loss_none=prepared.loss_none[candidate.position])
        return self._bounded(candidate, candidate.loss_none)

    def _bounded(self, candidate: Candidate, most: float | None) -> Candidate:
        """Drop a candidate whose gain can be at most `most`, where that is below the floor or is no number."""
        if candidate.reason is not None or most is None:
            return candidate
        if not math.isfinite(most):
            return replace(candidate, reason="not_finite")
        return replace(candidate, reason="bound") if self._early_bounds and most < self._floor else candidate

    def _fill(
        self,
        rows: list[Candidate],
        texts: Mapping[str, Prepared],
        put: Callable[[Candidate, float], Candidate],
        z: Callable[[Candidate], Z],
        wanted: Callable[[Candidate], bool] = lambda candidate: True,
    ) -> list[Candidate]:
        """Put the loss with z into every live row: one request for each passage and z, inline for each position too."""
        asked = [i for i, row in enumerate(rows) if row.reason is None and wanted(row)]
        live = [(i, self._key(rows[i], z(rows[i]), texts[rows[i].passage])) for i in asked]
        needed: dict[_Key, list[int]] = {}
        for i, key in live:
            needed.setdefault(key, []).extend(texts[key.passage].targets[rows[i].position])
        requests = [self._request(key, texts[key.passage].ids, needed[key]) for key in needed]
        nll = dict(zip(needed, self._model.score(requests), strict=True))
        filled = list(rows)
        for i, key in live:
            first, targets = min(needed[key]), texts[key.passage].targets[rows[i].position]
            filled[i] = put(rows[i], weighted([float(nll[key][at - first]) for at in targets]))
        return filled

    def _key(self, row: Candidate, said: Z, prepared: Prepared) -> _Key:
        return _Key(row.passage, said, prepared.places[row.position] if self._inline else 0)

    def _request(self, key: _Key, ids: Ids, needed: Sequence[int]) -> ScoreRequest:
        """Asks for the losses of the tokens from the first of `needed` to the last, z before token `key.at`."""
        tokenizer = self._model.tokenizer
        said = encode(key.z if self._inline else [*key.z, Segment(self._separator)], tokenizer)[0]
        whole = tokenizer.begin + ids[: key.at] + said + ids[key.at : max(needed) + 1]
        return ScoreRequest(whole, len(tokenizer.begin) + len(said) + min(needed))

    def _give_controls(self, rows: list[Candidate]) -> list[Candidate]:
        """Give the result of another candidate, chosen by a hash, to every row that reaches the floor.

        Results come from rows that exist with and without early bounds, so that both measure the same threshold.
        """
        donors = sorted({row.result for row in rows if row.result is not None and (row.loss_none or 0) >= self._floor})
        return [self._with_control(row, donors) if (row.gain or -math.inf) >= self._floor else row for row in rows]

    def _with_control(self, row: Candidate, donors: list[str]) -> Candidate:
        others = [donor for donor in donors if donor != row.result]
        if not others:
            return row
        key = f"{self._seed}|{row.passage}|{row.position}|{row.body}".encode()
        draw = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")
        return replace(row, control_result=others[draw % len(others)])


def _taken_off(candidate: Candidate) -> float | None:
    """What the result takes off the loss without a call; the gain is at most that."""
    if candidate.loss_none is None or candidate.loss_result is None:
        return None
    return candidate.loss_none - candidate.loss_result


def _put_call(candidate: Candidate, loss: float) -> Candidate:
    return replace(candidate, loss_call=loss)


def _put_result(candidate: Candidate, loss: float) -> Candidate:
    return replace(candidate, loss_result=loss)


def _put_control(candidate: Candidate, loss: float) -> Candidate:
    assert candidate.loss_none is not None
    assert candidate.loss_call is not None
    return replace(candidate, loss_control=loss, control_gain=min(candidate.loss_none, candidate.loss_call) - loss)


def _has_control(candidate: Candidate) -> bool:
    return candidate.control_result is not None


def _with_gain(candidate: Candidate) -> Candidate:
    none, call, result = candidate.loss_none, candidate.loss_call, candidate.loss_result
    if none is None or call is None or result is None or not math.isfinite(none + call + result):
        return replace(candidate, reason="not_finite")
    return replace(candidate, gain=min(none, call) - result)
