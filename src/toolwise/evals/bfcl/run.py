"""BFCL's questions asked of a chat model, one line an answer; killed, it goes on behind the last one.

    settings.json    what was asked of whom; another run in the same folder is refused
    answers.jsonl    prompt, tools, reply, whether it is right and why not

A question that got no answer (a dead server, a refused request) is wrong in every category, also where no call is
right; it is counted apart and asked again when the run goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from toolwise.core import jsonio
from toolwise.core.chat import ChatModel, ChatReply, ChatRequest, ToolChoice, gathered
from toolwise.core.durable import replace_file, storage, write_all
from toolwise.core.errors import ToolwiseError
from toolwise.core.work_folder import begin
from toolwise.documents.read import read_objects
from toolwise.evals.bfcl.data import Example
from toolwise.evals.bfcl.judge import Checker, judged
from toolwise.notation.wire.names import WireNames

ANSWERS = "answers.jsonl"
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asking:
    """How a question is asked. `required` makes the model call in every turn, also where no call is right."""

    max_tokens: int = 256
    choice: Literal["auto", "required"] = "auto"
    at_once: int = 1


def run(
    out: Path,
    settings: Mapping[str, Any],
    examples: Sequence[Example],
    model: Callable[[], ChatModel],
    check: Checker,
    asking: Asking,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[Row]:
    """The rows of all examples, in their order. `model` is made only if something is left to ask.

    `settings` are what the answers depend on. Raises SettingsDiffer for a folder begun with others, InProgress where
    another process fills it, StorageUnavailable where the disk refuses.
    """
    with closing(begin(out, settings, (), (ANSWERS,))):
        rows = {row["id"]: row for row in answers(out) if row["failed"] is None}
        replace_file(out / ANSWERS, b"".join(map(_line, rows.values())))
        waiting = [example for example in examples if example.id not in rows]
        if waiting:
            asked = model()
            with _appending(out / ANSWERS) as write, ThreadPoolExecutor(asking.at_once) as threads:
                for row in threads.map(lambda example: answer(asked, example, check, asking), waiting):
                    write(_line(row))
                    rows[row["id"]] = row
                    progress("questions", len(rows), len(examples))
        return [rows[example.id] for example in examples]


def answers(out: Path) -> Iterator[Row]:
    """The rows of a run's folder; a last line that a kill cut off is left out."""
    file = out / ANSWERS
    if not file.exists():
        return
    with storage(file):
        data = file.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            replace_file(file, whole)
    for _, row in read_objects(file):
        yield row


def answer(model: ChatModel, example: Example, check: Checker, asking: Asking) -> Row:
    """One question, asked and judged."""
    names = WireNames([tool.name for tool in example.tools])
    request = ChatRequest(
        example.messages,
        model.name,
        example.tools,
        ToolChoice(asking.choice if example.tools else "auto"),
        max_tokens=asking.max_tokens,
        temperature=0.0,
    )
    reply, failed = None, None
    try:
        reply = names.meant_reply(gathered(model.reply(names.sent(request))))
        verdict = judged(example, reply, check)
        right, why = verdict.right, verdict.why
    except ToolwiseError as error:
        right, why, failed = False, jsonio.one_line(str(error)), error.code
    return {
        "id": example.id,
        "category": example.category,
        "prompt": [{"role": said.role.value, "text": said.text} for said in example.messages],
        "tools": [asdict(tool) for tool in example.tools],
        "reply": None if reply is None else _told(reply),
        "failed": failed,
        "right": right,
        "why": why,
    }


def _told(reply: ChatReply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "calls": [asdict(call) for call in reply.calls],
        "stop": reply.stop.value,
        "usage": asdict(reply.usage),
    }


def _line(row: Row) -> bytes:
    return (jsonio.dumps(row) + "\n").encode()


class _appending:
    """A file's end, to which whole lines are written at once."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> Callable[[bytes], None]:
        with storage(self._file):
            self._descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._write

    def __exit__(self, *raised: object) -> None:
        os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        with storage(self._file):
            write_all(self._descriptor, data)
