"""What every language model of the package must do, as a suite that ships with it.

`conformance(model)` runs the four operations against each other on short texts: cached = uncached, batch = single,
forced = prefilled, a rewound or forked session = a fresh one. It returns what it measured and raises
`AssertionError` with the name of the first promise that is broken.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from toolwise.models.base import Context, Floats, LanguageModel, Sampling, ScoreRequest
from toolwise.models.sampling import softmax
from toolwise.notation.segments import Ids

_HEAD = "Texts with notes in them.\n"
_BODY = "Input: a box of 12 pens costs 3 crowns, so two cost 6.\nOutput: "
_TEXT = "a box of 12 pens costs 3 crowns, so two cost 6."


def conformance(model: LanguageModel, *, tolerance: float = 1e-4) -> Mapping[str, float]:
    """The largest difference found for each promise, in nats or probability; all must be below `tolerance`."""
    encode = model.tokenizer.encode
    context = Context(model.tokenizer.begin + encode(_HEAD), encode(_BODY), encode(_TEXT))
    found = {
        "a session says what a score says": _session_equals_score(model, context),
        "a batch scores like single requests": _batch_equals_single(model, context),
        "forced tokens count like prefilled ones": _forced_equals_prefilled(model, context),
        "a rewound session is a fresh one": _rewound_equals_fresh(model, context),
        "a fork leaves its parent alone": _fork_is_independent(model, context),
        "marker probabilities are those of a session": _markers_equal_session(model, context),
        "a greedy branch writes what a session writes": _branch_equals_session(model, context),
        "a branch does not depend on its neighbours": _branches_are_independent(model, context),
    }
    broken = {promise: value for promise, value in found.items() if not value <= tolerance}
    assert not broken, f"{model.name} breaks: {broken}"
    return found


def _difference(a: Floats, b: Floats) -> float:
    return float(np.abs(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)).max())


def _nll(logits: Floats, token: int) -> float:
    return float(-np.log(np.maximum(softmax(logits)[token], 1e-30)))


def _session_equals_score(model: LanguageModel, context: Context) -> float:
    ids, start = context.ids, len(context.ids) - 6
    scored = model.score([ScoreRequest(ids, start)])[0]
    session = model.session(ids[:start])
    stepwise = []
    for token in ids[start:]:
        stepwise.append(_nll(session.logits(), token))
        session.feed([token])
    return _difference(scored, np.array(stepwise, dtype=np.float32))


def _batch_equals_single(model: LanguageModel, context: Context) -> float:
    text = context.text
    requests = [ScoreRequest(text[:length], max(1, length - 5)) for length in (3, len(text), 9, 6, len(text) - 2)]
    requests.append(ScoreRequest(context.ids, 1))
    together = model.score(requests)
    alone = [model.score([request])[0] for request in requests]
    assert [len(row) for row in together] == [len(r.ids) - r.start for r in requests], "one loss a scored token"
    return max(_difference(a, b) for a, b in zip(together, alone, strict=True))


def _forced_equals_prefilled(model: LanguageModel, context: Context) -> float:
    prefilled = model.session(context.ids)
    forced = model.session(context.head)
    forced.logits()
    forced.feed(context.body)
    forced.feed(context.text[:3])
    forced.logits()
    for token in context.text[3:]:
        forced.feed([token])
    assert forced.ids == prefilled.ids, "a session knows what it was fed"
    return _difference(forced.logits(), prefilled.logits())


def _rewound_equals_fresh(model: LanguageModel, context: Context) -> float:
    session = model.session(context.ids)
    session.logits()
    session.rewind(len(context.ids) - 4)
    worst = _difference(session.logits(), model.session(context.ids[:-4]).logits())
    session.feed(context.ids[-4:])
    return max(worst, _difference(session.logits(), model.session(context.ids).logits()))


def _fork_is_independent(model: LanguageModel, context: Context) -> float:
    session = model.session(context.head + context.body)
    before = session.logits()
    fork = session.fork()
    fork.feed(context.text)
    worst = _difference(fork.logits(), model.session(context.ids).logits())
    assert session.ids == context.head + context.body, "a fork must not move its parent"
    session.feed([context.text[0]])
    session.logits()
    session.rewind(len(context.head + context.body))
    return max(worst, _difference(session.logits(), before))


def _markers_equal_session(model: LanguageModel, context: Context) -> float:
    marker = context.text[0]
    other = Context(context.head, context.body, context.text[:5])
    probs, short = model.marker_probs([context, other], marker)
    assert len(probs) == len(context.text) + 1, "one probability before every token and one at the end"
    session = model.session(context.head + context.body)
    expected = [softmax(session.logits())[marker]]
    for token in context.text:
        session.feed([token])
        expected.append(softmax(session.logits())[marker])
    array = np.array(expected, dtype=np.float32)
    return max(_difference(probs, array), _difference(short, array[:6]))


def _greedy(model: LanguageModel, ids: Ids, n: int) -> Ids:
    session, written = model.session(ids), []
    for _ in range(n):
        token = int(session.logits().argmax())
        written.append(token)
        session.feed([token])
        if token in model.tokenizer.end:
            break
    return tuple(written)


def _branch_equals_session(model: LanguageModel, context: Context) -> float:
    forced = model.tokenizer.encode(" [")
    cuts = [2, 5, len(context.text)]
    rows = model.branch(context, cuts, Sampling(2, forced, _never, max_tokens=4, temperature=0.0, seed=0))
    before = context.head + context.body
    expected = [_greedy(model, before + context.text[:cut] + forced, 4) for cut in cuts]
    return float(sum(branch.ids != want for row, want in zip(rows, expected, strict=True) for branch in row))


def _branches_are_independent(model: LanguageModel, context: Context) -> float:
    sampling = Sampling(3, model.tokenizer.encode(" ["), _never, max_tokens=4, temperature=1.0, seed=7)
    many = model.branch(context, [1, 4, 6], sampling)
    one = model.branch(context, [4], sampling)
    return float(sum(a.ids != b.ids for a, b in zip(many[1], one[0], strict=True)))


def _never(text: str) -> bool:
    return False
