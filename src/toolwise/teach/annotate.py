"""A corpus and a model in, a finished run folder out: passages, candidates with their reasons, and C*.

In a second round the corpus is the folder of a run: calls may then stand on the results of those that it kept.

Shards run in worker processes of one thread each (two threads in one process are slower than two processes as soon as
the machine is busy). Workers write their shards; this process alone writes the journal. Killed at any instant, a run
loses the shards in work; started again it goes on where it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from toolwise.core.clock import SystemClock, cpu_seconds
from toolwise.core.limits import LIMITS
from toolwise.documents.sources import LocalSource, refuse_among
from toolwise.gate.isolate import Runner, Runs
from toolwise.gate.offline import offline_gate
from toolwise.models.base import LanguageModel
from toolwise.models.load import cpu_threads, describe_model, load_model
from toolwise.teach.config import Settings
from toolwise.teach.finish import Progress, finish
from toolwise.teach.keep import prices
from toolwise.teach.lessons import Lessons, lessons
from toolwise.teach.pipeline import FORMAT, Pipeline
from toolwise.teach.records import Augmented, Passage
from toolwise.teach.source import digest_of, in_lists, passages_of
from toolwise.teach.store import Store, shards
from toolwise.teach.store.shards import ShardInfo
from toolwise.teach.workers import spread


@dataclass(frozen=True, slots=True)
class Job:
    """What a worker must know to be made: names and values only, so that it can start anywhere."""

    folder: str
    model: str
    settings: Settings
    run_id: str
    dtype: str = "auto"
    device: str = "auto"
    threads: int | None = 1


def annotate(
    corpus: Path,
    out: Path,
    model: str,
    settings: Settings,
    *,
    workers: int = 1,
    limit: int | None = None,
    dtype: str = "auto",
    device: str = "auto",
    progress: Progress = lambda stage, done, total: None,
) -> Mapping[str, Any]:
    """Annotate `corpus` (at most `limit` documents of it, or passages of a run) into `out`. Returns the run's report.

    Raises BadInput, ModelUnavailable, SettingsDiffer, StorageUnavailable; nothing half-written is left behind.
    """
    tokenizer, identity = describe_model(model, dtype=dtype, device=device)
    taught = lessons(settings)
    described = {
        "stages": FORMAT,
        "model": identity,
        **taught.described,
        # One that cannot be read to its end leaves no folder behind, which a mended one would not fit.
        "corpus": digest_of(corpus, limit),
        "limit": limit,
        # Files and indexes may move: what `behind` says of them is what they are, and not where.
        "settings": settings.model_dump(mode="json", exclude={"sources", "options"}),
    }
    refuse_among([LocalSource(corpus)], out)
    with Store.open(out, described) as store:
        if store.manifest is not None:
            return dict(store.manifest["report"])
        passages = passages_of(corpus, tokenizer, settings.passage_tokens, limit)
        total = _write_passages(store, in_lists(passages, settings.shard_passages))
        job = Job(str(out), model, settings, f"annotate-{store.fingerprint[:12]}", dtype, device)
        _score(store, job, total, workers, progress)
        return finish(
            store, settings, prices(settings, {name: tool.cost for name, tool in taught.registry.items()}), progress
        )


def annotate_rounds(
    corpus: Path, out: Path, model: str, settings: Settings, rounds: int, **how: Any
) -> Mapping[str, Any]:
    """`annotate` several times, each round over C* of the one before; the last one's folder is `out`.

    The others are `<out>-round-1` and on. `how`: as for `annotate`.
    """
    out = Path(os.path.abspath(out))  # `.` has no name to put a number to
    for number in range(1, rounds):
        folder = out.with_name(f"{out.name}-round-{number}")
        annotate(corpus, folder, model, settings, **how)
        corpus, how = folder, {**how, "limit": None}
    return annotate(corpus, out, model, settings, **how)


def _write_passages(store: Store, found: Iterable[Sequence[Passage]]) -> int:
    """Write the shards that are not written yet; the number of all."""
    done, count = store.done("passages"), 0
    for rows in found:
        if count not in done:
            store.write_shard("passages", count, rows)
        count += 1
    return count


def _score(store: Store, job: Job, total: int, workers: int, progress: Progress) -> None:
    """Propose, execute and score every shard that is not done yet."""
    passages, done = store.done("passages"), store.done("scored")
    waiting = [passages[index] for index in range(total) if index not in done]
    finished = total - len(waiting)
    progress("annotate", finished, total)
    for info in _scored(job, waiting, workers):
        store.commit(info)
        finished += 1
        progress("annotate", finished, total)


def _scored(job: Job, waiting: Sequence[ShardInfo], workers: int) -> Iterator[ShardInfo]:
    workers = min(workers, len(waiting))
    if workers > 1:
        yield from spread(partial(_score_shard, job), waiting, workers)
    elif waiting:
        with cpu_threads(job.threads):
            pipeline = _pipeline_of(job)
            yield from (_score_with(pipeline, job, info) for info in waiting)


def _pipeline_of(job: Job) -> Pipeline:
    loaded: list[LanguageModel] = []
    taught = lessons(job.settings, lambda: loaded[0])
    runner = _Shared(Runner(taught.registry.values(), LIMITS, SystemClock()))  # its processes are copies of this one
    loaded.append(load_model(job.model, device=job.device, dtype=job.dtype, threads=job.threads))
    return _pipeline(loaded[0], taught, job.settings, job.run_id, runner)


class _Shared:
    """A runner for several gates, one after another: none of them closes it."""

    def __init__(self, runner: Runner) -> None:
        self.run = runner.run

    def close(self) -> None: ...


def _score_with(pipeline: Pipeline, job: Job, info: ShardInfo) -> ShardInfo:
    begun, read = cpu_seconds(), pipeline.usage.positions
    passages = list(shards.load(Path(job.folder), info, Passage))
    made = shards.put(job.folder, "scored", info.index, pipeline.annotate(passages))
    return replace(made, cpu_seconds=round(cpu_seconds() - begun, 3), positions=pipeline.usage.positions - read)


#: The pipeline of a worker process, made when its first shard comes: then what fails is an error like any other.
_of_this_process: list[Pipeline] = []


def _score_shard(job: Job, info: ShardInfo) -> ShardInfo:
    """The work of a worker process, which serves one job."""
    if not _of_this_process:
        _of_this_process.append(_pipeline_of(job))
    return _score_with(_of_this_process[0], job, info)


def make_pipeline(model: LanguageModel, settings: Settings, run_id: str) -> Pipeline:
    """The pipeline over the tools of the settings and the offline policy."""
    return _pipeline(model, lessons(settings, lambda: model), settings, run_id)


def _pipeline(
    model: LanguageModel, taught: Lessons, settings: Settings, run_id: str, runner: Runs | None = None
) -> Pipeline:
    gates = partial(offline_gate, taught.registry, runner=runner)
    return Pipeline(model, taught.registry, gates, settings, run_id=run_id, prompts=taught.prompts)


def default_workers() -> int:
    """One worker a core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tools_of(folder: Path) -> list[str]:
    """The tools that a run tried."""
    return list(Store.load(folder).settings["settings"]["tools"])


def definitions_of(folder: Path) -> list[dict[str, Any]]:
    """Their definitions: name, description, JSON Schema of the arguments, and what else a run is bound to."""
    return list(Store.load(folder).settings["tools"].values())


def load_augmented(folder: Path) -> list[Augmented]:
    """C* of a finished run."""
    return list(Store.load(folder).read("augmented", Augmented))
