"""The naive scheme, for comparison: what the method costs when it is written down as the paper says it.

A prefill of the whole prompt for every sample, three full forwards over the whole text for every candidate, the logits
of every token projected, nothing shared and nothing dropped early. It must find what the pipeline finds; `toolwise
bench teach` runs both on the same passages and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolwise.models.base import Branch, Context, Floats, LanguageModel, Sampling, ScoreRequest, Session, Usage
from toolwise.models.sampling import Tree
from toolwise.notation.segments import Ids, Segment, encode
from toolwise.teach.prepare import Prepared, weighted
from toolwise.teach.records import Candidate
from toolwise.teach.score import Wording, Z


class NaiveSampler:
    """Proposes over another model's sessions: the whole prompt for every text, one prefill a sample."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.name = f"{model.name}, naive"
        self.fingerprint = model.fingerprint
        self.tokenizer = model.tokenizer
        self.usage: Usage = model.usage

    def marker_probs(self, contexts: Sequence[Context], marker: int) -> list[Floats]:
        return [self._model.marker_probs([_whole(context)], marker)[0] for context in contexts]

    def branch(self, context: Context, cuts: Sequence[int], sampling: Sampling) -> list[list[Branch]]:
        before = context.head + context.body
        rows = []
        for cut in cuts:
            row = []
            for sample in range(sampling.n):
                tree = Tree(self.tokenizer, context, [cut], sampling, only=sample)
                session = self._model.session(before + context.text[:cut])
                while tree.live:
                    session.feed(tree.live)
                    tree.grow(session.logits()[None])
                row.append(tree.branches()[0][0])
            rows.append(row)
        return rows

    def score(self, requests: Sequence[ScoreRequest]) -> list[Floats]:
        return self._model.score(requests)

    def session(self, context: Ids) -> Session:
        return self._model.session(context)


def naive_score(
    model: LanguageModel, wording: Wording, separator: str, prepared: Prepared, candidate: Candidate
) -> Candidate:
    """The paper's three losses of one executed candidate, each from a forward over the whole text."""

    def loss(z: Z) -> float:
        said = encode([*z, Segment(separator)], model.tokenizer)[0] if z else ()
        before = model.tokenizer.begin + said
        start = max(1, len(before))
        nll = model.score([ScoreRequest(before + prepared.ids, start)])[0]
        return weighted([float(nll[len(before) + at - start]) for at in prepared.targets[candidate.position]])

    none, call, result = loss(()), loss(wording(candidate, None)), loss(wording(candidate, candidate.result))
    gain = min(none, call) - result
    return replace(candidate, loss_none=none, loss_call=call, loss_result=result, gain=gain)


def _whole(context: Context) -> Context:
    """The same context without a shared head, so that the whole prompt is read for every text."""
    return Context((), context.head + context.body, context.text)
