"""Keeping once more what a run has scored: the same calls as annotating with that threshold, and no model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from report_runs import TEXT, passage, scored, settings, write_run

from toolwise.core.errors import BadInput, SettingsDiffer
from toolwise.teach.config import Settings
from toolwise.teach.finish import keep_again
from toolwise.teach.keep import keep, standing
from toolwise.teach.records import Augmented, Candidate, Passage
from toolwise.teach.store import Store

GAINS = [0.2, 0.6, 1.1, 2.4]


def write(folder: Path, own: Settings | None = None, shards: int | None = None) -> Path:
    """Four passages in two shards, a call in each, and one beside the last that gains less."""
    last = scored(3, 1.5, position=22, offset=len(TEXT) - 9, body="Calculator(24 - 18)")
    rows = [[scored(0, GAINS[0]), scored(1, GAINS[1])], [scored(2, GAINS[2]), last, scored(3, GAINS[3])]]
    work = [([passage(2 * n), passage(2 * n + 1)], rows[n]) for n in range(2)]
    return write_run(folder, work, own or settings(0.1), scored_shards=shards)


def kept(folder: Path) -> list[float | None]:
    return [row.gain for row in Store.load(folder).read("candidates", Candidate) if row.reason is None]


def test_a_run_kept_again_is_the_run_of_that_threshold(tmp_path: Path) -> None:
    report = keep_again(write(tmp_path / "low"), tmp_path / "again", {"Calculator": 1.0})
    rows = list(Store.load(write(tmp_path / "high", settings(1.0))).read("candidates", Candidate))
    assert list(Store.load(tmp_path / "again").read("candidates", Candidate)) == rows
    assert report["counts"] == Counter(f"Calculator.{row.reason or 'kept'}" for row in rows)
    assert report["thresholds"] == {"Calculator": 1.0}
    assert [row.passage for row in Store.load(tmp_path / "again").read("augmented", Augmented)] == ["doc2#0", "doc3#0"]
    assert Store.load(tmp_path / "again").settings["settings"]["tools"]["Calculator"]["tau_f"] == 1.0


def test_of_an_unfinished_run_what_is_scored_is_kept(tmp_path: Path) -> None:
    keep_again(write(tmp_path / "begun", shards=1), tmp_path / "again", {"Calculator": 0.5})
    assert kept(tmp_path / "again") == [0.6]
    assert [one.id for one in Store.load(tmp_path / "again").read("passages", Passage)] == ["doc0#0", "doc1#0"]
    with Store.open(tmp_path / "begun", Store.load(tmp_path / "begun", partial=True).settings) as store:
        store.write_shard("scored", 1, [scored(2, 9.0)])
    with pytest.raises(SettingsDiffer):
        keep_again(tmp_path / "begun", tmp_path / "again", {"Calculator": 0.5})


def test_kept_again_twice_it_is_kept_once(tmp_path: Path) -> None:
    write(tmp_path / "run")
    first = keep_again(tmp_path / "run", tmp_path / "again", {"Calculator": 1.0})
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "again").rglob("*.parquet")}
    assert keep_again(tmp_path / "run", tmp_path / "again", {"Calculator": 1.0}) == first
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "again").rglob("*.parquet")} == before
    with pytest.raises(SettingsDiffer):
        keep_again(tmp_path / "run", tmp_path / "again", {"Calculator": 2.0})


def test_what_cannot_be_known_from_the_rows_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "run")
    with pytest.raises(BadInput, match=r"take 0\.1 or more"):
        keep_again(tmp_path / "run", tmp_path / "again", {"Calculator": 0.05})
    with pytest.raises(BadInput, match="it tried Calculator"):
        keep_again(tmp_path / "run", tmp_path / "again", {"Calender": 0.5})
    with pytest.raises(BadInput, match="annotate first"):
        keep_again(write(tmp_path / "empty", shards=0), tmp_path / "again", {"Calculator": 0.5})
    assert not (tmp_path / "again").exists()
    keep_again(
        write(tmp_path / "whole", settings(0.1).model_copy(update={"early_bounds": False})),
        tmp_path / "again",
        {"Calculator": 0.01},
    )
    assert kept(tmp_path / "again") == GAINS


@pytest.mark.parametrize("tau", [0.05, 0.3, 0.7, 1.2, 2.0, 9.0])
def test_one_pass_knows_what_every_threshold_keeps(tau: float) -> None:
    rows = [
        scored(n % 3, gain, position=n % 7, body=f"Calculator({n})", tool="Calculator" if n % 4 else "Calendar")
        for n, gain in enumerate((0.1 * k * (1 + k % 5)) for k in range(40))
    ]
    price = {"Calendar": 0.25}
    found = [row for row in keep(rows, {"Calculator": tau, "Calendar": tau}, price) if row.reason is None]
    assert [r for r in standing(rows, price) if (r.gain or 0) >= tau + price.get(r.tool, 0.0)] == found
    assert all(replace(row, reason=None) in rows for row in found)
