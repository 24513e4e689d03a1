"""How many calls each threshold keeps, told without keeping again."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from report_runs import passage, scored, settings, write_run

from toolwise.teach.config import Control
from toolwise.teach.report import render_html, summarise, to_json
from toolwise.teach.report.kept_at import kept_at


def test_every_threshold_keeps_what_a_run_with_it_keeps(tmp_path: Path) -> None:
    gains = [0.06, 0.11, 0.3, 0.35, 0.6, 1.0, 1.7, 2.5]
    rows = [scored(n // 2, gain, gain / 4, position=20 + n % 2) for n, gain in enumerate(gains)]
    work = [([passage(n) for n in range(4)], rows)]
    (tool,) = summarise(write_run(tmp_path / "run", work, settings(0.05))).tools
    for at in tool.kept_at:
        (alone,) = summarise(write_run(tmp_path / f"run-{at.tau}", work, settings(at.tau))).tools
        assert (at.kept, at.passages) == (alone.kept, alone.passages_with_call)
        assert (at.passing, at.controls) == (alone.threshold.passing, len(gains))
    assert [at.kept for at in tool.kept_at] == [4, 4, 3, 3, 2, 2, 1]


@pytest.mark.parametrize(("tau_f", "first"), [(0.5, 0.5), (Control(alpha=0.02, floor=0.2), 0.2), (9.0, None)])
def test_no_threshold_below_the_floor_of_the_run_is_told(tmp_path: Path, tau_f: float | Control, first: float) -> None:
    report = summarise(write_run(tmp_path, [([passage(0)], [scored(0, 3.0)])], settings(tau_f)))
    assert next((at.tau for at in report.tools[0].kept_at), None) == first
    assert to_json(report)["tools"][0]["kept_at"] == [
        {"tau": at.tau, "kept": 1 if at.tau <= 3 else 0, "passages": 1, "passing": 0, "controls": 1}
        for at in report.tools[0].kept_at
    ]


def test_a_tool_of_which_nothing_is_scored_keeps_nothing_at_any() -> None:
    found = kept_at([[scored(0, math.nan, math.nan)]], {}, {"Calculator": 0.5, "QA": 1.0})
    assert {name: [(at.tau, at.kept, at.controls) for at in rows] for name, rows in found.items()} == {
        "Calculator": [(0.5, 0, 0), (1.0, 0, 0), (2.0, 0, 0)],
        "QA": [(1.0, 0, 0), (2.0, 0, 0)],
    }


def test_the_page_says_them_in_the_papers_layout(tmp_path: Path) -> None:
    rows = [scored(n, 0.4 + n / 2) for n in range(4)]
    page = render_html(summarise(write_run(tmp_path, [([passage(n) for n in range(4)], rows)], settings(0.5))))
    assert '<th scope="col">0.5</th><th scope="col">1</th><th scope="col">2</th>' in page
    assert '<td>calls kept</td><td class="number">3</td><td class="number">2</td><td class="number">0</td>' in page
