"""Questions asked of models by a command: every arm in a folder of its own, one model held at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from toolwise.commands.common import DEFAULT_MODEL, tell_left_out, tool_names
from toolwise.commands.values import counts, thresholds
from toolwise.console import paced, progress_bar

if TYPE_CHECKING:
    from toolwise.evals.arms import Planned
    from toolwise.evals.run import Questions, Way
    from toolwise.evals.tasks import Task
    from toolwise.models.base import LanguageModel


def ask_arms(
    place: Path,
    models: Sequence[str] | None,
    way: Way,
    starts: tuple[str | None, str | None],
    calls: bool | None,
    asked: tuple[Sequence[Task], Questions],
    tools: tuple[str, Sequence[str] | None],
    machine_threads: int | None,
) -> list[Path]:
    """The folders of all arms, filled. `starts` are the options --top-k and --start-threshold, `tools` those of the
    tools."""
    from toolwise.evals.arms import plan
    from toolwise.evals.run import gates, run, run_settings, with_room
    from toolwise.models.toolbox import parse_options, toolbox

    tasks, drawn = asked
    loaded: list[LanguageModel] = []
    box = toolbox(tool_names(tools[0]), parse_options(tools[1] or ()), lambda: loaded[0])
    tell_left_out(box)
    at = thresholds(starts[1]) if starts[1] is not None else ()
    tops = counts(("" if at else "10") if starts[0] is None else starts[0])
    planned = plan(models or [DEFAULT_MODEL], way, tops, calls, at)
    with gates(box, tasks) as opened, progress_bar() as bar:  # before the models: tools' processes are copies of this
        show = paced(bar)
        for arm in planned:
            settings = run_settings(arm.fingerprint, box, drawn, arm.way, arm.about)
            fitting = with_room(arm.way, drawn, arm.tokenizer)
            ask = _loading(loaded, arm, machine_threads)
            run(place / arm.label, settings, drawn, ask, opened, fitting, partial(show, arm.label))
    return [place / arm.label for arm in planned]


def _loading(loaded: list[LanguageModel], arm: Planned, threads: int | None) -> Callable[[], LanguageModel]:
    """Loads the arm's model when it is asked for, unless it is the one that is there; one is held at a time."""

    def load() -> LanguageModel:
        from toolwise.models.load import load_model

        if not loaded or loaded[0].fingerprint != arm.fingerprint:
            loaded.clear()
            loaded.append(load_model(arm.model, threads=threads))
        return loaded[0]

    return load
