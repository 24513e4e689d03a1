"""The answers of a run, a line each; killed at any instant, the run goes on behind the lines that are whole.

    settings.json    what the answers depend on; a run with others is refused in this folder
    answers.jsonl    one row a question: what was asked and written, and the verdict

Rows are written as they are finished. When all are there the file is put into the order of the questions, so that it
does not depend on how many were asked at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from toolwise.core import jsonio
from toolwise.core.durable import replace_file, storage, write_all
from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.core.work_folder import begin

ANSWERS = "answers.jsonl"
Row = Mapping[str, Any]
#: (rows that are there, rows that there will be)
Progress = Callable[[int, int], None]
K = TypeVar("K", bound=Hashable)
Q = TypeVar("Q")
_GENEROUS = replace(LIMITS, string_bytes=LIMITS.json_size)  # what `dumps` writes can be read


def fill(
    out: Path,
    settings: Mapping[str, Any],
    questions: Mapping[K, Q],
    asker: Callable[[], Callable[[Q], Row]],
    key: Callable[[Row], K],
    *,
    at_once: int = 1,
    final: Callable[[Row], bool] = lambda row: True,
    progress: Progress = lambda done, total: None,
) -> list[Row]:
    """The rows of all questions, in their order; those that the folder has already are not asked again.

    `asker` gives what answers one question, from `at_once` threads; it is called only if something is left to ask.
    A row that is not `final` is asked again when the run is repeated. What an answer raises ends the run; the rows
    that are there stay. Raises SettingsDiffer for a folder begun with other settings, InProgress where another process
    fills it, StorageUnavailable where the disk refuses.
    """
    with closing(begin(out, settings, (), (ANSWERS,))):
        rows = {key(row): row for row in answers(out) if final(row)}
        rows = {name: row for name, row in rows.items() if name in questions}
        replace_file(out / ANSWERS, _lines(rows.values()))
        waiting = [question for name, question in questions.items() if name not in rows]
        progress(len(rows), len(questions))
        if waiting:
            ask = asker()
            with _appending(out / ANSWERS) as write:
                for row in _asked(ask, waiting, at_once):
                    write(_lines([row]))
                    rows[key(row)] = row
                    progress(len(rows), len(questions))
            replace_file(out / ANSWERS, _lines(rows[name] for name in questions))
        return [rows[name] for name in questions]


def answers(out: Path) -> Iterator[Row]:
    """The rows of a run's folder as they stand, also while it is filled; a last line that is not whole is left out.

    Raises BadInput where a line is no row.
    """
    file = out / ANSWERS
    if not file.exists():
        return
    with storage(file):
        *lines, _ = file.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        try:
            row = jsonio.loads(line, _GENEROUS)
        except ToolwiseError as error:
            raise BadInput(f"{str(file)!r}, line {number}: {error}; remove that line and run again.") from error
        if not isinstance(row, dict):
            raise BadInput(f"{str(file)!r}, line {number}: no row of answers; remove that line and run again.")
        yield row


def _asked(ask: Callable[[Q], Row], waiting: Sequence[Q], at_once: int) -> Iterator[Row]:
    """Rows as they come. After an error no other question is begun; it is raised when those in work are told."""
    left, errors, work = iter(waiting), list[BaseException](), set[Future[Row]]()
    with ThreadPoolExecutor(at_once) as threads:
        while True:
            begun = () if errors else islice(left, at_once - len(work))
            work |= {threads.submit(ask, question) for question in begun}
            if not work:
                break
            done, work = wait(work, return_when=FIRST_COMPLETED)
            for one in done:
                error = one.exception()
                if error is None:
                    yield one.result()
                else:
                    errors.append(error)
    if errors:
        raise errors[0]


def _lines(rows: Iterable[Row]) -> bytes:
    return "".join(jsonio.dumps(row) + "\n" for row in rows).encode()


@contextmanager
def _appending(file: Path) -> Iterator[Callable[[bytes], None]]:
    """A file's end, to which whole lines are written at once."""
    with storage(file):
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:

        def write(data: bytes) -> None:
            with storage(file):
                write_all(descriptor, data)

        yield write
    finally:
        os.close(descriptor)
