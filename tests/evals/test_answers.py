"""A run's file of answers: what a kill, an error and other settings leave of it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from toolwise.core.errors import BadInput, SettingsDiffer
from toolwise.evals.answers import ANSWERS, Row, answers, fill

QUESTIONS = {number: f"{number} and ä" for number in range(4)}


class Asker:
    """Answers a question with itself; what it was asked stays in `asked`."""

    def __init__(self, fails_at: int | None = None, error: type[BaseException] = BadInput) -> None:
        self.asked: list[str] = []
        self.made = 0
        self._fails_at, self._error = fails_at, error

    def __call__(self) -> Any:
        self.made += 1
        return self.answer

    def answer(self, question: str) -> Row:
        self.asked.append(question)
        if len(self.asked) == self._fails_at:
            raise self._error("no more")
        return {"id": int(question[0]), "said": question}


def filled(out: Path, asker: Asker, **how: Any) -> list[Row]:
    return fill(out, {"a": 1}, QUESTIONS, asker, lambda row: int(row["id"]), **how)


def test_a_file_cut_at_any_byte_loses_the_row_that_was_being_written_and_no_other(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rows = filled(out, Asker())
    whole = (out / ANSWERS).read_bytes()
    for length in range(len(whole)):
        (out / ANSWERS).write_bytes(whole[:length])
        asker, kept = Asker(), whole[:length].count(b"\n")
        assert len(list(answers(out))) == kept
        assert filled(out, asker) == rows
        assert asker.asked == list(QUESTIONS.values())[kept:]
        assert (out / ANSWERS).read_bytes() == whole


def test_reading_a_run_while_it_is_filled_changes_nothing_in_it(tmp_path: Path) -> None:
    filled(tmp_path / "out", Asker())
    cut = (tmp_path / "out" / ANSWERS).read_bytes()[:-3]
    (tmp_path / "out" / ANSWERS).write_bytes(cut)
    assert len(list(answers(tmp_path / "out"))) == 3
    assert (tmp_path / "out" / ANSWERS).read_bytes() == cut


KILLED = """
import sys, threading
from pathlib import Path
from toolwise.evals.answers import fill

def answer(question):
    if question.startswith("2"):
        print("in work", flush=True)
        threading.Event().wait()
    return {"id": int(question[0]), "said": question}

questions = {number: f"{number} and ä" for number in range(4)}
fill(Path(sys.argv[1]), {"a": 1}, questions, lambda: answer, lambda row: int(row["id"]))
"""


def test_a_process_that_is_killed_loses_what_was_in_work_and_leaves_its_folder_free(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "utf8", "-c", KILLED, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in work\n"
        process.kill()
    assert [row["id"] for row in answers(tmp_path / "out")] == [0, 1]
    again = Asker()
    assert len(filled(tmp_path / "out", again)) == 4
    assert again.asked == [QUESTIONS[2], QUESTIONS[3]]


@pytest.mark.parametrize("error", [BadInput, KeyboardInterrupt])
@pytest.mark.parametrize("at_once", [1, 2])
def test_what_stops_a_run_leaves_its_rows_and_begins_no_other(
    tmp_path: Path, error: type[BaseException], at_once: int
) -> None:
    failing = Asker(fails_at=2, error=error)
    with pytest.raises(error):
        filled(tmp_path / "out", failing, at_once=at_once)
    assert len(failing.asked) <= 1 + at_once
    assert len(list(answers(tmp_path / "out"))) == len(failing.asked) - 1
    again = Asker()
    assert filled(tmp_path / "out", again) == filled(tmp_path / "one", Asker())
    assert len(again.asked) == 4 - (len(failing.asked) - 1)


def test_rows_are_kept_as_they_are_finished_and_stand_in_order_at_the_end(tmp_path: Path) -> None:
    out, others = tmp_path / "out", threading.Semaphore(0)
    seen: list[list[int]] = []

    def answer(question: str) -> Row:
        if question[0] == "0":  # the first waits for all others
            for _ in range(4):  # once for what was there before
                assert others.acquire(timeout=10)
        return {"id": int(question[0])}

    def progress(done: int, total: int) -> None:
        seen.append([row["id"] for row in answers(out)])
        others.release()

    fill(out, {}, QUESTIONS, lambda: answer, lambda row: int(row["id"]), at_once=2, progress=progress)
    assert seen[-2] in ([1, 2, 3], [1, 2, 3, 0])
    assert [row["id"] for row in answers(out)] == [0, 1, 2, 3]


def test_a_finished_run_makes_no_asker_and_rows_that_are_not_final_are_asked_again(tmp_path: Path) -> None:
    filled(tmp_path / "out", Asker())
    idle, again = Asker(), Asker()
    filled(tmp_path / "out", idle)
    assert idle.made == 0
    filled(tmp_path / "out", again, final=lambda row: row["id"] != 2)
    assert again.asked == [QUESTIONS[2]]


def test_other_settings_are_refused_with_what_differs(tmp_path: Path) -> None:
    filled(tmp_path / "out", Asker())
    with pytest.raises(SettingsDiffer, match=r"a \(1 -> 2\)"):
        fill(tmp_path / "out", {"a": 2}, QUESTIONS, Asker(), lambda row: int(row["id"]))


@pytest.mark.parametrize("line", ["{", "[]", "1"])
def test_a_line_that_is_no_row_is_refused_with_its_place(tmp_path: Path, line: str) -> None:
    filled(tmp_path / "out", Asker())
    (tmp_path / "out" / ANSWERS).write_text('{"id": 0}\n' + line + "\n")
    with pytest.raises(BadInput, match=r"answers.jsonl', line 2"):
        list(answers(tmp_path / "out"))
