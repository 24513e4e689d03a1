"""A run's calls held against people's: places, arguments, thresholds, and what a run took."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from toolwise.core.errors import BadInput
from toolwise.evals.agreement import Agreement, At, agreement, as_json, table
from toolwise.evals.annotations import is_written, normal, problems, solid
from toolwise.teach.config import Settings, ToolSettings
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.store import Store, put

PROBLEMS = [
    (
        "Ann sold 48 clips. Bo sold half.",
        "Bo sold 48/2 = <<48/2=24>>24 clips.\nIn all 48+24 = <<48+24=72>>72.\n#### 72",
    ),
    ("A hat costs $7. What do 6 cost?", "They cost 7*6 = $<<7*6=42>>42.\n#### 42"),
    ("Half of 10 go. How many stay?", "So <<10/2=5>>5 stay.\n#### 5"),
]
PROSE = [
    "Ann sold 48 clips. Bo sold half. Bo sold 48/2 = 24 clips. In all 48+24 = 72. The answer is 72.",
    "A hat costs $7.  What do 6 cost?\nThey cost 7*6 = $42. The answer is 42.",
    "Half of 10 go. How many stay? So 5 stay. The answer is 5.",
]


def data(folder: Path) -> Path:
    file = folder / "gsm8k.jsonl"
    file.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in PROBLEMS))
    return file


def call(number: int, before: str, body: str, gain: float, **more: object) -> Candidate:
    """A scored call in front of the first place where `before` stands in text `number`."""
    at = PROSE[number].index(before)
    row = Candidate(f"d{number}#0", "Calculator", at, at, f"Calculator({body})", "lm", result="1", gain=gain)
    return replace(row, **more)  # type: ignore[arg-type]


CALLS = [
    call(0, " 24 clips", "48 / 2", 2.0, control_gain=0.7),
    call(0, " 72. The", "24 + 48", 1.0, control_gain=-0.5),
    call(1, " $42", "6 x $7", 0.6),
    call(1, " 42.", "7 * 6", 0.6),
    call(2, " 5 stay", "10 - 5", 0.3),
]


def run(
    folder: Path, rows: list[Candidate] = CALLS, shards: int = 3, floor: float = 0.1, counted: bool = False
) -> Path:
    """An unfinished run over the prose, a text a shard, of which so many are scored."""
    own = Settings(tools={"Calculator": ToolSettings(tau_f=floor)})
    with Store.open(folder, {"settings": own.model_dump(mode="json")}) as store:
        for number, text in enumerate(PROSE):
            store.write_shard("passages", number, [Passage(f"d{number}#0", f"d{number}", 0, text)])
        for number in range(shards):
            info = put(folder, "scored", number, [row for row in rows if row.passage == f"d{number}#0"])
            store.commit(replace(info, cpu_seconds=30.0, positions=250_000) if counted else info)
    return folder


def at(found: Agreement, tau: float, kind: str = "all") -> At:
    (one,) = [one for one in found.at if (one.tau, one.kind) == (tau, kind)]
    return one


def shares(one: At) -> tuple[float | None, ...]:
    means = (part.mean if part else None for part in (one.precision, one.recall))
    return (*means, one.place, one.arguments)


def test_kept_calls_are_held_against_peoples_at_every_threshold(tmp_path: Path) -> None:
    found = agreement(run(tmp_path / "run"), data(tmp_path), (0.05, 0.1, 0.5, 1.5))
    assert (found.documents, found.elsewhere, found.people) == (3, 0, 4)
    assert {one.tau for one in found.at} == {0.1, 0.5, 1.5}, "below its floor a run does not know what it would keep"
    assert (at(found, 0.1).kept, shares(at(found, 0.1))) == (5, (3 / 5, 3 / 4, 4 / 5, 3 / 4))
    assert (at(found, 0.5).kept, shares(at(found, 0.5))) == (4, (3 / 4, 3 / 4, 3 / 4, 1.0))
    assert (at(found, 1.5).kept, shares(at(found, 1.5))) == (1, (1.0, 1 / 4, 1.0, 1.0))


def test_copied_and_found_expressions_are_told_apart(tmp_path: Path) -> None:
    found = agreement(run(tmp_path / "run"), data(tmp_path), (0.1,))
    written, free = at(found, 0.1, "written"), at(found, 0.1, "free")
    assert (written.kept, written.people, shares(written)) == (3, 3, (1.0, 1.0, 1.0, 1.0))
    assert (free.kept, free.people, shares(free)) == (2, 1, (0.0, 0.0, 0.5, 0.0))


def test_of_an_unfinished_run_only_what_is_scored_counts(tmp_path: Path) -> None:
    found = agreement(run(tmp_path / "run", shards=1), data(tmp_path), (0.1,))
    assert (found.documents, found.people, at(found, 0.1).kept) == (1, 2, 2)


def test_of_calls_that_compete_the_best_is_counted(tmp_path: Path) -> None:
    beside = replace(CALLS[0], body="Calculator(48 - 2)", position=CALLS[0].position + 1, gain=0.9)
    found = agreement(run(tmp_path / "run", [*CALLS, beside]), data(tmp_path), (0.1,))
    assert at(found, 0.1).kept == len(CALLS)


def test_a_document_in_several_passages_is_put_together(tmp_path: Path) -> None:
    cut = PROSE[0].index(" In all")
    own = Settings(tools={"Calculator": ToolSettings(tau_f=0.1)})
    place = PROSE[0].index(" 72. The") - cut
    row = Candidate("d#1", "Calculator", 9, place, "Calculator(48 + 24)", "lm", result="72", gain=1.0)
    with Store.open(tmp_path / "run", {"settings": own.model_dump(mode="json")}) as store:
        passages = [Passage("d#0", "d", 0, PROSE[0][:cut]), Passage("d#1", "d", cut, PROSE[0][cut:])]
        store.write_shard("passages", 0, passages)
        store.write_shard("scored", 0, [row])
    assert shares(at(agreement(tmp_path / "run", data(tmp_path), (0.1,)), 0.1)) == (1.0, 0.5, 1.0, 1.0)


def test_what_is_kept_is_told_for_what_it_took(tmp_path: Path) -> None:
    found = agreement(run(tmp_path / "run", counted=True), data(tmp_path), (0.1, 0.5))
    (low, high) = found.yields
    assert (low.kept, low.per_cpu_minute, low.controls) == (5, 5 / 1.5, 0.5)
    assert low.per_million_positions == pytest.approx(5 / 0.75)
    assert low.per_thousand_documents == pytest.approx(5000 / 3)
    assert (high.kept, high.controls) == (4, 0.5)
    (none,) = agreement(run(tmp_path / "old"), data(tmp_path), (0.1,)).yields
    assert (none.per_cpu_minute, none.per_million_positions) == (None, None)


def test_the_table_and_the_json_say_the_same(tmp_path: Path) -> None:
    found = agreement(run(tmp_path / "run"), data(tmp_path), (0.5,))
    assert "| 0.5 | all | 4 | 75.0 |" in table(found)
    assert as_json(found)["at"][0]["precision"]["mean"] == 0.75


def test_what_cannot_be_held_against_people_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({"question": "What?", "answer": "Nothing.\n#### 0"}) + "\n")
    with pytest.raises(BadInput, match="over the same problems"):
        agreement(run(tmp_path / "run"), other)
    with Store.open(tmp_path / "qa", {"settings": Settings(tools={"QA": ToolSettings()}).model_dump(mode="json")}):
        pass
    with pytest.raises(BadInput, match="tried no Calculator"):
        agreement(tmp_path / "qa", data(tmp_path))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("48/2", "48 / 2"), ("3 x 4", "4*3"), ("$1,000 + 5", "5+1000"), ("1+2+3", "3 + (2 + 1)"), ("((7))*6", "6*7")],
        *[("20% * 50", "50*(20/100)"), (".5*8", "8 * 0.5"), ("6 ÷ 2", "6/2"), ("05+1", "1+5"), ("+3-1", "3−1")],
        *[("2*(3+4)", "(4+3) × 2"), ("10-(2+3)", "10 - (3 + 2)"), ("2.50*4", "4*2.5")],
    ],
)
def test_expressions_that_differ_only_in_writing_are_the_same(one: str, other: str) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[
            ("48/2", "2/48"),
            ("5-3", "3-5"),
            ("2+2", "2*2"),
            ("10-2-3", "10-(2-3)"),
            ("4+20", "24"),
            ("2*3+4", "2*(3+4)"),
        ],
        *[("1.5", "15"), ("-3", "3"), ("seven", "8"), ("2**3", "2*3"), ("(" * 900, "((")],
    ],
)
def test_other_expressions_are_not(one: str, other: str) -> None:
    assert normal(one) != normal(other)


def test_annotations_stand_where_people_put_them(tmp_path: Path) -> None:
    found = dict(problems(data(tmp_path)))
    for (text, calls), prose in zip(found.items(), PROSE, strict=True):
        assert solid(text) == solid(prose)
        assert all(len(solid(text[: one.offset])) == one.solid for one in calls)
    assert [one.written for calls in found.values() for one in calls] == [True, True, True, False]
    assert is_written("so 6*7 = $")
    assert not is_written("so the price is ")
