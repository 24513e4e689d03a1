"""Gains held against people's judgements; the paper's ten examples hold the figures still."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolwise.core.errors import BadInput
from toolwise.evals.usefulness import Judged, Usefulness, as_json, judged, table, usefulness

# Schick et al. 2023, table 10: the gain of a call, and whether it was judged useful.
PAPER = [(5.49, True), (2.11, True), (2.08, True), (1.59, True), (0.92, False), (0.70, True), (0.33, True)]
PAPER += [(-0.02, False), (-0.41, False), (-1.23, False)]


def of(pairs: list[tuple[float, bool]], *taus: float) -> Usefulness:
    return usefulness([Judged(gain, useful) for gain, useful in pairs], taus)


def test_the_papers_ten_examples_say_that_gain_means_use() -> None:
    found = of(PAPER, 0.3, 0.5, 1.0, 2.0)
    assert (found.calls, found.useful) == (10, 6)
    assert found.correlation == pytest.approx(0.7107, abs=1e-4)
    assert found.chance == pytest.approx(22 / 24)
    assert [(tau, right.mean) for tau, right in found.right] == [(0.3, 0.9), (0.5, 0.8), (1.0, 0.8), (2.0, 0.7)]


def test_an_order_that_is_right_and_one_that_is_wrong() -> None:
    rows = [(1.0, True), (0.9, True), (0.1, False), (0.0, False)]
    turned = [(-gain, useful) for gain, useful in rows]
    right, wrong = of(rows, 0.5), of(turned, 0.5)
    assert (right.chance, wrong.chance) == (1.0, 0.0)
    assert right.correlation == pytest.approx(-(wrong.correlation or 0))
    assert of([(1.0, True), (1.0, False)], 0.5).chance == 0.5


@pytest.mark.parametrize("pairs", [[(1.0, True)], [(1.0, False), (2.0, False)]])
def test_where_all_are_alike_nothing_can_be_ordered(pairs: list[tuple[float, bool]]) -> None:
    found = of(pairs, 1.0)
    assert found.chance is found.correlation is None
    assert "correlation with the gain –" in table(found)


def test_equal_gains_have_no_rank_correlation() -> None:
    assert of([(1.0, True), (1.0, False)], 0.5).correlation is None


def test_judgements_are_read_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "judged.jsonl"
    file.write_text("".join(json.dumps({"gain": gain, "useful": useful}) + "\n" for gain, useful in PAPER))
    assert judged(file) == [Judged(gain, useful) for gain, useful in PAPER]
    assert as_json(of(PAPER, 1.0))["right"][0]["right"]["mean"] == 0.8
    assert "| 1 | 80.0 | 50.0 to 100.0 |" in table(of(PAPER, 1.0))
    for line in ('{"gain": "1", "useful": true}', '{"gain": true, "useful": true}', '{"gain": 1}'):
        file.write_text(line + "\n")
        with pytest.raises(BadInput, match="line 1"):
            judged(file)
    with pytest.raises(BadInput, match="no judged calls"):
        of([])
