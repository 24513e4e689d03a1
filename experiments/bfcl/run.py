"""SmolLM2 on BFCL, free and strict, asked and forced to call, in one process: each prompt is read once for all of them.

    python run.py --data .../bfcl_eval --out FOLDER [--model smollm2-135m] [--examples 40] [--seed 0] [--report]

Writes four folders of lines as `toolwise eval bfcl` does, one for each way, and goes on where it was killed. `free` is
without masks; where it is forced, the call's form and a name that exists are masked all the same, and its arguments are
any JSON object. Where the free answer holds no beginning of a call, the strict one is the same, token by token, and is
not sampled again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolwise.decode.load import load_chat
from toolwise.decode.local import ChatSettings, LocalChat
from toolwise.evals.answers import ANSWERS, answers
from toolwise.evals.bfcl.data import Example, sample
from toolwise.evals.bfcl.judge import bfcl_checker
from toolwise.evals.bfcl.report import table
from toolwise.evals.bfcl.run import Asking, answer
from toolwise.models.base import LanguageModel, Session

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")
WAYS = (("never", "auto"), ("always", "auto"), ("never", "required"), ("always", "required"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder bfcl_eval of BFCL's package")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--categories", nargs="*", default=CATEGORIES)
    parser.add_argument("--examples", type=int, default=40, help="of each category")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--report", action="store_true", help="print what is there")
    options = parser.parse_args()
    if not options.report:
        ask(options)
    for way in WAYS:
        sys.stdout.write(f"{way}\n{table(list(answers(folder(options, way))))}\n")


def folder(options: argparse.Namespace, way: tuple[str, str]) -> Path:
    path: Path = options.out / "-".join(way)
    path.mkdir(parents=True, exist_ok=True)
    return path


def ask(options: argparse.Namespace) -> None:
    examples = sample(options.data / "data", options.categories, options.examples, options.seed)
    done = {way: {row["id"]: row for row in answers(folder(options, way))} for way in WAYS}
    check, chats, began = bfcl_checker(options.data), ways(options.model), time.monotonic()
    for number, example in enumerate(examples, 1):
        for way in WAYS:
            if example.id in done[way] or not wanted(example, way[1]):
                continue
            free = done["never", "auto"].get(example.id)
            if way == ("always", "auto") and free and not begun(free, chats[way]):
                row = free
            else:
                row = answer(chats[way], example, check, Asking(options.max_tokens, way[1]))
            done[way][example.id] = row
            with (folder(options, way) / ANSWERS).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
        sys.stderr.write(f"{number}/{len(examples)} after {time.monotonic() - began:.0f} s\n")


def wanted(example: Example, choice: str) -> bool:
    """Where no call is right, nobody is forced to make one."""
    return choice == "auto" or "irrelevance" not in example.category


def begun(row: Mapping[str, Any], chat: LocalChat) -> bool:
    return bool(row["reply"]["calls"]) or chat.dialect.layout.trigger in row["reply"]["text"]


class Once:
    """Sessions of a model; the last prompt is not read again."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._read: Session = model.session((0,))

    def __call__(self, ids: tuple[int, ...], whose: str) -> Session:
        if self._read.ids != ids:
            self._read = self._model.session(ids)
            self._read.logits()
        return self._read.fork()


def ways(name: str) -> Mapping[tuple[str, str], LocalChat]:
    """The same model in all settings."""
    chat = load_chat(name, threads=1)
    template, once = chat.model.tokenizer.chat_template, Once(chat.model)
    return {
        way: LocalChat(
            chat.model,
            chat.dialect,
            template=template,
            masks=chat.masks,
            open_session=once,
            settings=ChatSettings(strict=way[0]),
        )
        for way in WAYS
    }


if __name__ == "__main__":
    main()
