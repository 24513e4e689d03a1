"""Questions of several tasks asked of one model in one way: an arm of an experiment, in a folder of its own.

Many are asked at a time. Each has a thread and a session of the model's pool, and whoever waits for the network waits
for the same forward pass: that is all the batching there is, and an answer is the one that it would be alone (but for
rounding, where two tokens are equally likely). `answers.py` keeps the rows and goes on after a kill.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from toolwise.core.jsonio import fingerprint
from toolwise.core.limits import LIMITS
from toolwise.decode.engine import DecodeSettings
from toolwise.evals.answers import Progress, Row, fill
from toolwise.evals.asking import Asking, Together, ask
from toolwise.evals.tasks.base import Example, Source, Task
from toolwise.evals.tasks.source import sample
from toolwise.gate.budget import Budgets
from toolwise.gate.gate import Gate
from toolwise.gate.offline import offline_gate
from toolwise.models.about import About
from toolwise.models.base import LanguageModel, Writer, marker_id
from toolwise.models.hf import HFModel
from toolwise.models.masks import Masks
from toolwise.models.toolbox import Toolbox
from toolwise.notation.segments import Tokenizer
from toolwise.tools.registry import Registry

FORMAT = 1
_RESULT = 256  # tokens that a result may add, when it is counted how many questions have room
Gates = Mapping[str, Gate]
Ask = Callable[[Writer, Example, Task, Gate, Asking, str], Row]


@dataclass(frozen=True, slots=True)
class Questions:
    """What is asked: tasks with their examples, drawn by lot, and which data that is."""

    tasks: tuple[Task, ...]
    drawn: Mapping[str, tuple[Example, ...]]
    settings: Mapping[str, Any]

    def __iter__(self) -> Iterator[tuple[Task, Example]]:
        return ((task, example) for task in self.tasks for example in self.drawn[task.name])


@dataclass(frozen=True, slots=True)
class Way:
    """How a model is asked. `today` is what the calendar says where a set has no day of its own."""

    decode: DecodeSettings
    today: str
    strict: bool = False
    at_once: int = 16


def draw(tasks: Sequence[Task], source: Source, most: int | None, seed: int) -> Questions:
    """The first `most` examples of each task in an order by lot. Raises BadInput as the tasks do."""
    drawn, settings = {}, {}
    for task in tasks:
        loaded = task.load(source)
        drawn[task.name] = tuple(sample(loaded.examples, most, seed))
        settings[task.name] = {
            **{"data": task.digest(source), "examples": len(drawn[task.name]), "of": len(loaded.examples)},
            **{"dropped": dict(loaded.dropped), "prompt": task.prompt, "rule": task.rule.said},
            **{"max_tokens": task.max_tokens, "without": list(task.without)},
        }
    return Questions(tuple(tasks), drawn, {"tasks": settings, "seed": 0 if most is None else seed})


@contextmanager
def gates(box: Toolbox, tasks: Sequence[Task]) -> Iterator[Gates]:
    """For each task the gate over the tools that it may have: `pure` and `read` ones, a bounded number of calls an
    answer."""
    with ExitStack() as opened:
        made: dict[tuple[str, ...], Gate] = {}
        for task in tasks:
            names = tuple(name for name in box.registry if name not in task.without)
            if names not in made:
                registry = Registry(box.registry[name] for name in names)
                made[names] = opened.enter_context(offline_gate(registry, budgets=Budgets()))
        yield {task.name: made[tuple(n for n in box.registry if n not in task.without)] for task in tasks}


def run_settings(
    model: str, box: Toolbox, questions: Questions, way: Way, about: About | None = None
) -> dict[str, Any]:
    """What the rows of a run depend on; `model` is its fingerprint, and a report may say what it is `about`."""
    tools = {name: [box.registry.hash_of(name), box.identity.get(name, "")] for name in box.registry}
    decode = {name: value for name, value in asdict(way.decode).items() if name != "max_tokens" and value is not None}
    asked = {"decode": decode | {"strict": way.strict}, "today": way.today, **questions.settings}
    return {"format": FORMAT, "model": model, **({"about": asdict(about)} if about else {}), "tools": tools, **asked}


def run(
    out: Path,
    settings: Mapping[str, Any],
    questions: Questions,
    model: Callable[[], LanguageModel],
    gates: Gates,
    way: Way,
    progress: Progress = lambda done, total: None,
    ask: Ask = ask,
    shared: Callable[[LanguageModel], Writer] | None = None,
) -> list[Row]:
    """The rows of all questions, in their order; `model` is loaded only if something is left to ask. What makes a row
    is `ask`, or what is given in its place; the sessions are those of `together`, unless `shared` has others.

    Raises as `answers.fill` does, and what asking a model raises.
    """

    def asker() -> Callable[[tuple[Task, Example]], Row]:
        loaded = model()
        marker_id(loaded.tokenizer, loaded.tokenizer.notation)  # raises for all questions, before the first
        asking = Asking(way.decode, way.today, Masks(loaded.tokenizer) if way.strict else None)
        writer = (shared or together)(loaded)

        def answer(question: tuple[Task, Example]) -> Row:
            task, example = question
            run_id = fingerprint([str(out), task.name, example.id])  # arms may share a gate
            return ask(writer, example, task, gates[task.name], asking, run_id)

        return answer

    asked = {(task.name, example.id): (task, example) for task, example in questions}
    return fill(out, settings, asked, asker, key_of, at_once=way.at_once, progress=progress)


def key_of(row: Row) -> tuple[str, str]:
    """What tells a row from all others of its run."""
    return str(row["task"]), str(row["id"])


def together(model: LanguageModel) -> Writer:
    """The model with sessions that share a cache and its forward passes, where its network can be asked that way."""
    pool = model.pool() if isinstance(model, HFModel) else None
    return model if pool is None else Together(model.tokenizer, pool.session)


def with_room(way: Way, questions: Questions, tokenizer: Tokenizer, held: int = LIMITS.pooled_tokens) -> Way:
    """The same, asking so few at a time that all of them have room in the pool, whatever their length."""
    longest = max((len(tokenizer.encode(example.prompt)) + task.max_tokens for task, example in questions), default=1)
    return replace(way, at_once=max(1, min(way.at_once, held // (longest + _RESULT))))
