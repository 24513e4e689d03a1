"""A second round: calls that stand on earlier results are found, scored where they stand, kept and woven in."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tiny_models import model_folder
from toolwise.core.errors import BadInput
from toolwise.models.load import load_model
from toolwise.models.scripted import ScriptedModel, follow
from toolwise.notation.inline import strip
from toolwise.teach.annotate import annotate, annotate_rounds, load_augmented, make_pipeline
from toolwise.teach.config import load_settings
from toolwise.teach.keep import keep
from toolwise.teach.prepare import WEIGHTS, prepare
from toolwise.teach.propose import new_candidate
from toolwise.teach.records import Candidate, Earlier, Passage
from toolwise.teach.source import passages_of
from toolwise.teach.store import Store
from toolwise.teach.training.examples import training_example
from toolwise.teach.weave import augment

BRIDGE = "It is Monday, and the bridge of 1931 is now 92 years old."
TODAY = "Today is Monday, January 30, 2023."
CALENDAR = Earlier(BRIDGE.index(" Monday"), "Calendar()", TODAY, "Calendar")


def bridge(*calls: Earlier) -> Passage:
    return Passage("d#0", "d", 0, BRIDGE, "2023-01-30", calls=calls)


def settings_of(tmp_path, text, *tools):
    file = tmp_path / "settings.toml"
    file.write_text(text)
    return load_settings("paper", tools, file)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return str(model_folder(tmp_path_factory.mktemp("model") / "tiny"))


def test_a_date_feeds_a_calculation(tmp_path):
    model = ScriptedModel(
        follow(
            ("Output:\nIt is", " [Calendar()"),
            (f"-> {TODAY}]\nIt is", " Monday,"),
            (f"-> {TODAY}] Monday, and the bridge of 1931 is now [Calculator(2023 - 1931) -> 92]", " 92 years"),
        )
    )
    first = make_pipeline(
        model,
        settings_of(tmp_path, "[tools.Calendar]\ntau_s = 0.5\nproposers=['lm_positions']", "Calendar"),
        "1",
    )
    kept = keep(first.annotate([bridge()]), {"Calendar": 1.0})
    rows = augment([bridge()], kept)
    assert rows[0].text == BRIDGE.replace(" Monday", f" [Calendar() -> {TODAY}] Monday")

    second = make_pipeline(
        model,
        settings_of(tmp_path, "scoring = 'inline'\n[tools.Calculator]\nproposers = ['enumerate']", "Calculator"),
        "2",
    )
    again = keep(second.annotate([bridge(CALENDAR)]), {"Calculator": 0.5})
    (call,) = [row for row in again if row.reason is None]
    assert (call.body, call.result, call.stands_on) == ("Calculator(2023 - 1931)", "92", True)
    both = augment([bridge(CALENDAR)], again)[0]
    assert both.text == BRIDGE.replace(" Monday", f" [Calendar() -> {TODAY}] Monday").replace(
        " 92", " [Calculator(2023 - 1931) -> 92] 92"
    )
    assert [span.tool for span in both.spans] == ["Calendar", "Calculator"]


def test_a_passage_is_read_as_training_will_read_it(tiny):
    model = load_model(tiny)
    prepared = prepare([bridge(CALENDAR)], model)[0]
    example = training_example(augment([bridge(CALENDAR)], [])[0], model.tokenizer)
    assert model.tokenizer.begin + prepared.ids == example.ids


def test_only_the_words_of_the_text_are_targets_and_no_call_is_put_into_an_earlier_one(tiny):
    model = load_model(tiny)
    plain, woven = prepare([bridge(), bridge(CALENDAR)], model)
    longer = len(woven.ids) - len(plain.ids)
    at = plain.offsets.index(CALENDAR.offset)
    assert woven.offsets == plain.offsets
    # Directly behind the earlier call, where a call may stand on it, and never before or within it.
    assert list(woven.places) == [*range(at), *range(at + longer, len(woven.ids))]
    assert [woven.ids[place] for place in woven.places] == list(plain.ids)
    for i, targets in enumerate(woven.targets):
        assert list(targets) == list(woven.places)[i : i + len(WEIGHTS)]


def test_calls_on_both_sides_of_an_earlier_one_that_teach_the_same_words_are_not_both_kept(tiny):
    """However long the earlier call between them is."""
    plain, woven = prepare([bridge(), bridge(CALENDAR)], load_model(tiny))
    at = woven.offsets.index(CALENDAR.offset)
    assert woven.places[at] - woven.places[at - 1] > len(WEIGHTS)

    def judged(prepared, *positions):
        rows = [new_candidate(prepared, "QA", i, f"QA({i})", "lm", None, None) for i in positions]
        return [row.reason for row in keep([replace(row, gain=2.0) for row in rows], {"QA": 1.0})]

    for prepared in (plain, woven):
        assert judged(prepared, at - 1, at, at + len(WEIGHTS)) == [None, "overlap", None]


@pytest.mark.parametrize("scoring", ["front", "inline"])
def test_losses_of_the_second_round_are_those_of_whole_forwards(tiny, tmp_path, scoring):
    model = load_model(tiny)
    text = f"scoring = '{scoring}'\nearly_bounds = false\n[tools.Calculator]\nproposers = ['enumerate']"
    rows = make_pipeline(model, settings_of(tmp_path, text, "Calculator"), "r").annotate([bridge(CALENDAR)])
    (row,) = [row for row in rows if row.gain is not None]
    woven, tokenizer = prepare([bridge(CALENDAR)], model)[0], model.tokenizer
    place = woven.places[row.position]

    def loss(*pieces: tuple[str, bool]) -> float:
        said = [i for text, marker in pieces for i in (tokenizer.encode_marker if marker else tokenizer.encode)(text)]
        if scoring == "front":
            before = [*tokenizer.begin, *said, *(tokenizer.encode("\n") if said else ())]
            ids, at = [*before, *woven.ids], len(before) + place
        else:
            before = [*tokenizer.begin, *woven.ids[:place], *said]
            ids, at = [*before, *woven.ids[place:]], len(before)
        session = model.session(tuple(ids[:at]))
        nll = []
        for token in ids[at : at + len(WEIGHTS)]:
            logits = session.logits().astype(np.float64)
            if scoring == "inline" and not said:  # a text without a call is that of a model that cannot call
                logits[tokenizer.encode_marker(" [")] = -np.inf
            nll.append(float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[token]))
            session.feed([token])
        return sum(weight * value for weight, value in zip(WEIGHTS, nll, strict=False))

    opened, body, arrow, closed = (" [", True), (row.body, False), (" ->", True), ("]", True)
    assert row.loss_none == pytest.approx(loss(), abs=1e-4)
    assert row.loss_call == pytest.approx(loss(opened, body, arrow, closed), abs=1e-4)
    assert row.loss_result == pytest.approx(loss(opened, body, arrow, (" 92", False), closed), abs=1e-4)


def test_a_call_that_an_earlier_round_kept_is_not_kept_again(tiny, tmp_path):
    text = "early_bounds = false\n[tools.Calendar]\ntau_s = 0.0\nk = 99\ntau_f = 1e-9\nproposers = ['lm_positions']"
    pipeline = make_pipeline(load_model(tiny), settings_of(tmp_path, text, "Calendar"), "r")
    rows = pipeline.annotate([bridge(CALENDAR)])
    there = [row for row in rows if row.offset == CALENDAR.offset]
    assert [row.reason for row in there] == ["duplicate"]


def test_rounds_keep_what_was_kept_and_add_to_it(tiny, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    texts = [BRIDGE, "Rows of 18 and columns of 24 make 432 places; the year 1950 was 73 years ago.", "Nothing here."]
    rows = [{"id": f"d{i}", "text": text, "date": "2023-01-30"} for i, text in enumerate(texts)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = settings_of(
        tmp_path,
        "shard_passages = 1\ncall_tokens = 4\n"
        "[tools.Calculator]\nk = 1\nm = 1\ntau_f = 1e-6\nproposers = ['enumerate']\n"
        "[tools.Calendar]\ntau_s = 0.0\nk = 4\ntau_f = 1e-6\nproposers = ['lm_positions']",
    )
    annotate_rounds(corpus, tmp_path / "run", tiny, settings, 2)
    first, second = load_augmented(tmp_path / "run-round-1"), load_augmented(tmp_path / "run")
    assert first, "a threshold this low keeps some call, or this test shows nothing"
    assert [row.passage for row in first] == [row.passage for row in second]
    for before, after in zip(first, second, strict=True):
        assert strip(after.text) == after.plain == before.plain
        assert not Counter(before.text[s.start : s.end] for s in before.spans) - Counter(
            after.text[s.start : s.end] for s in after.spans
        )
    rows = list(Store.load(tmp_path / "run").read("candidates", Candidate))
    new = sum(row.reason is None for row in rows)
    assert sum(len(row.spans) for row in second) == new + sum(len(row.spans) for row in first)
    report = Store.load(tmp_path / "run").manifest["report"]
    assert report["kept_on_earlier_calls"] == sum(row.stands_on and row.reason is None for row in rows)
    assert (
        annotate(tmp_path / "run-round-1", tmp_path / "run", tiny, settings) == report
    )  # finished, and not begun anew


def test_a_round_reads_the_calls_of_the_one_before_with_its_passages(tiny, tmp_path):
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "d", "text": BRIDGE, "date": "2023-01-30"}) + "\n")
    text = "[tools.Calendar]\ntau_s = 0.0\nk = 9\ntau_f = 1e-9\nproposers = ['lm_positions']"
    annotate(corpus, tmp_path / "run", tiny, settings_of(tmp_path, text, "Calendar"))
    (passage,) = passages_of(tmp_path / "run", load_model(tiny).tokenizer, 99, None)
    assert replace(passage, calls=()) == replace(bridge(), id="d#0", document="d")
    assert {call.body for call in passage.calls} == {"Calendar()"}
    assert augment([passage], []) == load_augmented(tmp_path / "run")


def test_a_call_inside_a_token_of_another_model_is_refused(tiny):
    boundaries = set(prepare([bridge()], load_model(tiny))[0].offsets)
    inside = next(offset for offset in range(len(BRIDGE)) if offset not in boundaries)
    with pytest.raises(BadInput, match="inside tokens"):
        prepare([bridge(replace(CALENDAR, offset=inside))], load_model(tiny))


def test_what_costs_more_must_gain_more(tmp_path):
    row = Candidate("d#0", "Search", 3, 9, "Search(x)", "lm", gain=1.2)
    kept = [keep([row], {"Search": 1.0}, {"Search": price})[0].reason for price in (0.0, 0.2, 0.21)]
    assert kept == [None, None, "too_dear"]
    assert keep([row], {"Search": 1.3}, {"Search": 0.1})[0].reason == "below_threshold"
    cheap = replace(row, tool="QA", body="QA(x)", position=4, gain=1.15)
    judged = keep([row, cheap], {"Search": 1.0, "QA": 1.0}, {"Search": 0.1})
    assert [one.reason for one in judged] == ["overlap", None]  # 1.1 beyond its price against 1.15
    assert keep([replace(row, gain=math.nan)], {"Search": 1.0}, {"Search": 0.1})[0].reason == "not_finite"
