"""The filter keeps what the paper's formulas keep, worked out by hand and by brute force."""

import json
import math
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest

from toolwise.models.base import ScoreRequest, Usage
from toolwise.models.plain import PlainModel
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer, follow
from toolwise.notation.inline import write_call
from toolwise.teach.config import Control, ToolSettings
from toolwise.teach.corpus.numbers import numbers
from toolwise.teach.expressions import EnumerateProposer
from toolwise.teach.keep import keep, threshold
from toolwise.teach.prepare import WEIGHTS, offsets, prepare, weighted
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.score import Scorer, notation_wording
from toolwise.tools.calculator import CALCULATOR

TOKENIZER = ScriptedTokenizer()


def scorer(model, *, tau_f=0.5, bounds=False, controls=False, likeliest=False):
    return Scorer(
        model,
        notation_wording(),
        ToolSettings(tau_f=tau_f),
        separator="\n",
        early_bounds=bounds,
        seed=0,
        controls=controls,
        likeliest=likeliest,
    )


def candidate(position, body="Calculator(1 + 2)", result="3", passage="p"):
    return Candidate(passage, "Calculator", position, position, body, "lm", result=result)


class Table(PlainModel):
    """A model whose next-token probability depends on what stands in front of the text, and on nothing else.

    `certain` maps a front (the text before the first newline, "" for none) to the probability of every given token.
    """

    def __init__(self, certain):
        self.certain = certain
        self.tokenizer = TOKENIZER
        super().__init__(self._table, TOKENIZER, Usage())

    def score(self, requests):
        rows = []
        for request in requests:
            text = TOKENIZER.decode(request.ids)
            front = text.partition("\n")[0] if "\n" in text else ""
            rows.append(np.full(len(request.ids) - request.start, -math.log(self.certain[front]), dtype=np.float32))
        return rows

    def _table(self, ids):
        raise AssertionError("only scored")


@pytest.mark.case("K1")
def test_three_tokens_worked_out_by_hand():
    """Text `abcd`, a call before `b`: three tokens follow, with weights 1/3, 4/15 and 1/5, 12/15 together.

    Without a call each costs ln 8, with the call ln 4, with its result ln 2: gain = 12/15 (ln 4 - ln 2) = 0.5545.
    """
    front = " [Calculator(1 + 2) -> 3]", " [Calculator(1 + 2) ->]"
    model = Table({"": 1 / 8, front[1]: 1 / 4, front[0]: 1 / 2})
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, "abcd")], model)}
    (row,) = scorer(model).score([candidate(1)], prepared)
    assert row.loss_none == pytest.approx(0.8 * math.log(8), abs=1e-6)
    assert row.loss_call == pytest.approx(0.8 * math.log(4), abs=1e-6)
    assert row.loss_result == pytest.approx(0.8 * math.log(2), abs=1e-6)
    assert row.gain == pytest.approx(0.8 * math.log(2), abs=1e-6)
    assert keep([row], {"Calculator": 0.5})[0].reason is None
    assert keep([row], {"Calculator": 0.6})[0].reason == "below_threshold"


@pytest.mark.case("K1")
def test_another_result_gives_another_loss():
    fronts = {
        "": 0.1,
        " [Calculator(1 + 2) ->]": 0.1,
        " [Calculator(1 + 2) -> 3]": 0.5,
        " [Calculator(1 + 2) -> 4]": 0.2,
    }
    model = Table(fronts)
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, "abcdefgh")], model)}
    rows = scorer(model).score([candidate(1), candidate(2, result="4")], prepared)
    assert rows[0].loss_result != rows[1].loss_result
    assert rows[0].loss_call == rows[1].loss_call


def test_where_the_marker_is_disabled_a_text_costs_what_it_would_to_a_model_that_cannot_call():
    """Else a model that was tuned on calls would find any result helpful against the call that it missed."""
    text = "Two hats cost 42"
    model = ScriptedModel(lambda read: " [" if read.endswith("cost") else text[len(read) :], certainty=0.97)
    marker, at = TOKENIZER.encode(" [")[0], text.index(" 42")
    expected = model.score([ScoreRequest((*TOKENIZER.encode(text[:at]), marker), at)])[0][0]
    assert expected == pytest.approx(-math.log(0.97), abs=0.01)
    (plain,), (disabled,) = (prepare([Passage("p", "d", 0, text)], model, disabled=off) for off in (None, marker))
    taken_off = WEIGHTS[0] * -math.log1p(-math.exp(-expected))
    assert plain.loss_none[at] - disabled.loss_none[at] == pytest.approx(taken_off, abs=0.01)
    assert taken_off > 1


@pytest.mark.case("K1")
def test_the_weights_are_the_papers():
    assert pytest.approx([1 / 3, 4 / 15, 1 / 5, 2 / 15, 1 / 15]) == list(WEIGHTS)
    assert weighted([1.0] * 9) == pytest.approx(1.0)
    assert weighted([3.0]) == pytest.approx(1.0)


@pytest.mark.case("K2")
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None])
def test_a_gain_that_is_no_number_never_keeps(bad):
    row = replace(candidate(1), loss_none=1.0, loss_call=1.0, loss_result=1.0, gain=bad)
    assert keep([row], {"Calculator": 0.5})[0].reason == "not_finite"


@pytest.mark.case("K2")
def test_a_loss_that_is_no_number_never_keeps():
    class Broken(ScriptedModel):
        def score(self, requests):
            return [np.full(len(r.ids) - r.start, np.nan, dtype=np.float32) for r in requests]

    model = Broken(lambda text: "abc")
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, "abcdef")], model)}
    for bounds in (True, False):
        (row,) = scorer(model, bounds=bounds).score([candidate(2)], prepared)
        assert row.reason == "not_finite"


@pytest.mark.case("K2")
def test_a_call_at_the_end_has_nothing_to_help_with():
    model = ScriptedModel(lambda text: "abc")
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, "abc")], model)}
    (row,) = scorer(model).score([candidate(3)], prepared)
    assert row.reason == "no_continuation"


def test_the_first_token_of_a_model_without_bos_has_no_loss():
    model = ScriptedModel(lambda text: "abc")
    (prepared,) = prepare([Passage("p", "d", 0, "abc")], model)
    assert math.isnan(prepared.loss_none[0])
    assert all(math.isfinite(loss) for loss in prepared.loss_none[1:])


def brute_force(whole, tokenizer, text, position, body, result):
    """The paper's formulas, one forward a context: gain, then the losses without call, with it, and with its result."""
    ids = list(tokenizer.encode(text))

    def loss(z):
        front = list(tokenizer.encode(z)) + list(tokenizer.encode("\n")) if z else []
        # the last rows only: the first of them is said before x_i, given all before it
        logits = np.asarray(whole(tuple(front + ids), len(ids) - position + 1), dtype=np.float64)
        total = 0.0
        for t in range(5):
            if position + t < len(ids):
                row = logits[t]
                log_p = row[ids[position + t]] - row.max() - np.log(np.exp(row - row.max()).sum())
                total -= max(0.0, 1 - 0.2 * t) / 3 * log_p
        return total

    none, call, full = loss(""), loss(write_call(body, "")), loss(write_call(body, result))
    return min(none, call) - full, none, call, full


def against_brute_force(model, whole, rows, prepared, tolerance):
    """Score the candidates fast and slowly: the same losses, and the same calls kept at every threshold."""
    fast = scorer(model).score(rows, prepared)
    slow = [
        brute_force(whole, model.tokenizer, prepared[r.passage].passage.text, r.position, r.body, r.result)
        for r in rows
    ]
    found = np.array([[r.gain, r.loss_none, r.loss_call, r.loss_result] for r in fast])
    assert np.abs(found - np.array(slow)).max() <= tolerance
    for tau in (0.05, 0.25, 0.5, 1.0):
        assert [r.gain >= tau for r in fast] == [s[0] >= tau for s in slow]
    return fast


TEXTS = [
    "Three hats cost 24 crowns, so one costs 8 crowns and two cost 16 crowns.",
    "Es war einmal: 12 × 3 = 36 日本 🙂, and so on.",
    "abcd",
]


def test_the_fast_path_agrees_with_brute_force_on_a_scripted_model():
    model = ScriptedModel(lambda text: text[len(text) // 3 :][:1] or "x")
    passages = [Passage(f"p{i}", f"p{i}", 0, text) for i, text in enumerate(TEXTS)]
    prepared = {p.passage.id: p for p in prepare(passages, model)}
    rows = [
        candidate(position, body=body, result=result, passage=passage.id)
        for passage in passages
        for body, result in (("Calculator(1 + 2)", "3"), ("Calculator(24 * 18)", "432"))
        for position in range(1, len(prepared[passage.id].ids), 3)
    ]
    against_brute_force(model, model._logits, rows, prepared, 1e-5)


@pytest.mark.model
def test_the_fast_path_agrees_with_brute_force_on_the_embedded_model_over_real_documents(embedded_model):
    """Twenty documents of the demo corpus, the enumerated calls in them, in fp32."""
    corpus = resources.files("toolwise.data").joinpath("demo.jsonl").read_text("utf-8").splitlines()
    documents = [json.loads(line) for line in corpus]
    passages = [Passage(d["id"], d["id"], 0, d["text"]) for d in documents if len(numbers(d["text"])) >= 4][:20]
    prepared = {p.passage.id: p for p in prepare(passages, embedded_model)}
    proposer = EnumerateProposer(CALCULATOR, most=1)
    rows = []
    for ready in prepared.values():
        for proposed in proposer.propose(ready)[:2]:
            expression = proposed.body[len("Calculator(") : -1]
            rows.append(replace(proposed, result=CALCULATOR.run(expression=expression)))
    assert len(passages) == 20
    assert len({row.passage for row in rows}) >= 18
    fast = against_brute_force(embedded_model, embedded_model._net.whole, rows, prepared, 1e-4)
    assert any(row.gain >= 0.5 for row in fast), "some right result must help, or the comparison shows little"
    assert any(row.gain < 0.05 for row in fast)


def test_early_bounds_change_nothing_that_is_kept():
    model = ScriptedModel(lambda text: text[-3:-2] or "x", certainty=0.6)
    passages = [Passage(f"p{i}", f"p{i}", 0, text) for i, text in enumerate(TEXTS)]
    prepared = {p.passage.id: p for p in prepare(passages, model)}
    rows = [candidate(i, passage=p.id) for p in passages for i in range(1, len(prepared[p.id].ids))]
    for tau in (0.1, 0.5, 1.0):
        bounded = keep(scorer(model, tau_f=tau, bounds=True).score(rows, prepared), {"Calculator": tau})
        free = keep(scorer(model, tau_f=tau, bounds=False).score(rows, prepared), {"Calculator": tau})
        assert [r for r in bounded if r.reason is None] == [r for r in free if r.reason is None]


def test_a_measured_threshold_is_the_smallest_that_lets_alpha_of_the_controls_pass():
    rows = [replace(candidate(i), control_gain=g) for i, g in enumerate([0.1, 0.2, 0.3, 0.4, 0.5])]
    tau = threshold(Control(alpha=0.2, floor=0.01), rows)
    assert tau == math.nextafter(0.4, 1)
    assert sum(r.control_gain >= tau for r in rows) == 1
    assert threshold(Control(alpha=0.1, floor=0.01), rows) == math.nextafter(0.5, 1)
    assert threshold(Control(alpha=0.5, floor=0.6), rows) == 0.6


def test_without_controls_a_measured_threshold_keeps_nothing():
    assert threshold(Control(alpha=0.1), [candidate(1)]) == math.inf


class AnyResultHelps(Table):
    """Every front that holds a result makes every token likely; `42` does not."""

    def __init__(self):
        super().__init__({})

    def score(self, requests):
        self.certain = {}
        for request in requests:
            front = TOKENIZER.decode(request.ids).partition("\n")[0] if 10 in request.ids else ""
            self.certain[front] = 0.1 if not front or front.endswith(("->]", "-> 42]")) else 0.5
        return super().score(requests)


def test_controls_carry_another_result_and_do_not_depend_on_the_order():
    model = AnyResultHelps()
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, "abcdefghij")], model)}
    rows = [candidate(i, body=f"Calculator({i} + 1)", result=str(i + 1)) for i in range(1, 6)]
    forward = scorer(model, controls=True).score(rows, prepared)
    backward = scorer(model, controls=True).score(rows[::-1], prepared)[::-1]
    assert forward == backward
    assert all(r.control_result != r.result for r in forward)
    assert all(math.isfinite(r.control_gain) for r in forward)


def test_only_calls_that_reach_the_floor_are_controlled():
    model = AnyResultHelps()
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, "abcdefghij")], model)}
    rows = [candidate(1), candidate(2, body="Calculator(6 * 7)", result="42")]
    for bounds in (True, False):
        helped, useless = scorer(model, controls=True, bounds=bounds).score(rows, prepared)
        assert helped.control_result == "42"
        assert helped.control_gain == pytest.approx(0.0, abs=1e-6)
        assert useless.control_result is None
        assert useless.reason == ("bound" if bounds else None)


def test_the_result_is_scored_first_and_most_calls_cost_one_forward():
    model = AnyResultHelps()
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, "abcdefghij")], model)}
    asked = []
    original = model.score
    model.score = lambda requests: asked.append(len(requests)) or original(requests)
    rows = [candidate(i, body=f"Calculator({i} * 7)", result="42") for i in range(1, 6)]
    scored = scorer(model, bounds=True).score(rows, prepared)
    assert [row.reason for row in scored] == ["bound"] * 5
    assert asked == [5, 0], "five results, and no call without its result"


def test_of_calls_that_teach_the_same_tokens_the_one_with_the_larger_gain_stays():
    def scored(position, gain, tool="Calculator"):
        return replace(candidate(position), tool=tool, gain=gain)

    rows = [scored(5, 0.9), scored(8, 1.5, "Calendar"), scored(12, 0.7), scored(13, 0.7)]
    kept = keep(rows, {"Calculator": 0.5, "Calendar": 0.5})
    assert [r.reason for r in kept] == ["overlap", None, "overlap", None]


def test_positions_stand_between_characters():
    text = "a 日本 🙂 \ufffd é"
    ids = TOKENIZER.encode(text)
    found = offsets(text, ids, TOKENIZER)
    assert len(found) == len(ids) + 1
    for i, offset in enumerate(found):
        whole = TOKENIZER.decode(ids[:i]) + TOKENIZER.decode(ids[i:]) == text
        assert (offset is not None) == whole
        if offset is not None:
            assert text[:offset] == TOKENIZER.decode(ids[:i])


def test_of_calls_with_one_result_at_one_place_the_likelier_may_stay():
    """`2 * 4` and `3 + 5` help alike; which is meant, only the model can say."""
    text = "Twice 4 makes 8 pens"
    model = ScriptedModel(follow(("makes", " [Calculator(2 * 4) -> 8]")), certainty=0.9)
    (prepared,) = prepare([Passage("p", "d", 0, text)], model)
    at = prepared.offsets.index(text.index(" 8"))
    said = (("3 + 5", "8"), ("2 * 4", "8"), ("9 - 1", "8"), ("3 + 4", "7"))
    rows = [replace(candidate(at, f"Calculator({said})", result), gain=1.0) for said, result in said]
    found = scorer(model, likeliest=True)._likelier(rows, {"p": prepared})
    assert [row.reason for row in found] == ["less_likely", None, "less_likely", None]
