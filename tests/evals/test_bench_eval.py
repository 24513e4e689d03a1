"""The bench of questions one at a time and together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from task_files import write_task_files
from tiny_models import network, tokenizer
from toolwise.decode.engine import DecodeSettings
from toolwise.evals.bench_eval import Found, bench_eval, table
from toolwise.evals.run import Questions, Way, draw, gates
from toolwise.evals.tasks import data_source, named
from toolwise.models.hf import HFModel
from toolwise.models.tokenizers import HFTokenizer
from toolwise.models.toolbox import toolbox


def found(folder: Path, names: Sequence[str] = ("lama-trex", "asdiv")) -> Found:
    model = HFModel(network(), HFTokenizer(tokenizer()), name="tiny", fingerprint="tiny")
    tasks = [replace(task, max_tokens=8) for task in named(names)]
    questions: Questions = draw(tasks, data_source(str(write_task_files(folder))), None, 0)
    with gates(toolbox(("Calculator",)), tasks) as opened:
        return bench_eval(model, questions, opened, Way(DecodeSettings(start_top_k=1), "2023-01-30", at_once=4))


def test_both_sides_give_the_same_answers_and_together_takes_fewer_passes(tmp_path: Path) -> None:
    bench = found(tmp_path)
    assert bench.differing == ()
    assert bench.alone.questions == bench.many.questions > 2
    assert bench.many.passes < bench.alone.passes
    assert bench.ratio > 0
    assert bench.as_json()["equal"] == bench.alone.questions


def test_answers_that_differ_are_counted_and_shown(tmp_path: Path) -> None:
    bench = replace(found(tmp_path), differing=(("('asdiv', 'a1')", " 9 [bold]", " 8"),))
    console = Console(width=120)
    with console.capture() as captured:
        console.print(table(bench))
    assert "[bold]" in captured.get()
    assert bench.as_json()["equal"] == bench.alone.questions - 1
