"""What a call through the gate costs on this machine: time by kind of tool, calls in flight, memory, and the steps.

Every call is a whole one: JSON text is read, validated, authorised by Cedar, claimed, counted, executed and recorded in
a file. Beside it stands what no gate could save: the function alone, and one durable commit of SQLite on the same disk.
The kinds take turns, so that a busy machine is busy for all of them. A pure call is measured under a policy that looks
at user, tool and labels, and under one whose rules also read arguments; an isolated one in a row, which shows how fast
children can be made, and behind a pause, which shows what one costs when a child is ready.

Not covered: other machines, tools that do something, state on a server.
"""

from __future__ import annotations

import itertools
import math
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import linear_regression, median, quantiles

from rich.console import Group
from rich.table import Column, Table

from toolwise.core.clock import Clock, SystemClock, cpu_seconds
from toolwise.core.errors import BadInput, ToolFailed
from toolwise.core.limits import LIMITS
from toolwise.core.types import CallContext, Effect, Principal, WrittenCall
from toolwise.evals.call_steps import sampled
from toolwise.gate.gate import Gate
from toolwise.gate.policy import DEFAULT, CedarPolicy
from toolwise.gate.state import SqliteState
from toolwise.tools.registry import Registry, tool

Work = Callable[[], object]
Progress = Callable[[str, int, int], None]

POLICY = """
@id("anybody computes and looks")
permit (principal, action == Action::"call", resource) when { resource.effect != "write" };
@id("ann adds small numbers")
permit (principal == User::"ann", action == Action::"call", resource == Tool::"write")
when { context.arguments.a < 100 };
@id("never below zero")
forbid (principal, action, resource) when { context.arguments.b < 0 };
"""
FUNCTION, COMMIT = "the function alone", "one durable commit"
RULED, READY = "pure, arguments ruled", "isolated, child ready"
OFTEN = (FUNCTION, "pure", RULED, "read")
PAUSE = 0.02  # seconds in which children are made ready
RARE = 10  # calls that take milliseconds are made so many times less often
RUN_CALLS = 32  # calls of one run: fewer than its budget allows
BOUNDS = replace(LIMITS, runs=RUN_CALLS)  # what is kept of runs is at its bound before memory is watched
SAMPLES = 200  # of memory


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: so many calls of what takes microseconds, and fewer or more of the rest."""

    calls: int = 5_000
    rounds: int = 10
    in_flight: tuple[int, ...] = (1, 8, 64)

    @property
    def lasting(self) -> int:
        """Calls over which memory is watched."""
        return 20 * self.calls


@dataclass(frozen=True, slots=True)
class Latency:
    """What one call takes, in microseconds of wall time; `cpu` is the median of this process's processor time.

    On a busy machine `p10` and `cpu` say best what a call costs: a tenth of the calls meets nobody else, and processor
    time does not run while others do. What children compute is not in it.
    """

    calls: int
    p10: float
    median: float
    p90: float
    p99: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory in bytes over so many calls, and by how much it grew a call once it was warm."""

    calls: int
    first: int
    last: int
    slope: float


@dataclass(frozen=True, slots=True)
class GateBench:
    """All that was measured.

    `commits` are transactions that one call writes, durable ones where the kind is `write`. `in_flight` is calls per
    second, by kind and by the number of threads; `steps` and `modules` are shares.
    """

    latencies: dict[str, Latency]
    commits: dict[str, int]
    in_flight: dict[str, dict[int, float]]
    memory: Memory | None
    samples: int
    steps: dict[str, float]
    modules: dict[str, float]

    def as_json(self) -> Mapping[str, object]:
        shown = asdict(self)
        shown["in_flight"] = {kind: {str(n): rate for n, rate in by.items()} for kind, by in self.in_flight.items()}
        return shown


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


TOOLS = (
    tool(name="pure", effect=Effect.PURE, bounded=True)(add),
    tool(name="read", effect=Effect.READ, bounded=True)(add),
    tool(name="isolated", effect=Effect.PURE)(add),
    tool(name="write", effect=Effect.WRITE, bounded=True)(add),
)


def bench_gate(
    folder: Path,
    plan: Plan,
    progress: Progress = lambda stage, done, total: None,
    clock: Clock = SystemClock(),  # noqa: B008  it has no state
) -> GateBench:
    """Measure everything. What it writes lies in a new folder inside `folder` and is removed again.

    Raises BadInput where there is no such folder, ToolFailed when a call does not end as it must.
    """
    if not folder.is_dir():
        raise BadInput(f"There is no folder {str(folder)!r}; give one on the disk that the state would lie on.")
    with tempfile.TemporaryDirectory(prefix="toolwise-bench-", dir=folder) as made, _work(Path(made)) as (work, state):
        commits = {each.name: _commits(work[each.name], state) for each in TOOLS}
        memory, steps, modules = _lasting(work["pure"], plan, progress)
        latencies = _latencies(work, plan, progress, clock)
        in_flight = _in_flight(work, plan, progress, clock)
    samples = sum(steps.values())
    return GateBench(latencies, commits, in_flight, memory, samples, _shares(steps), _shares(modules))


@contextmanager
def _work(folder: Path) -> Iterator[tuple[dict[str, Work], SqliteState]]:
    """One piece of work of every kind, by name, and the gate's state; every one is a call of its own."""
    state = SqliteState(folder / "state.db")
    ruled = Gate(Registry(TOOLS), CedarPolicy.from_text(POLICY), state, limits=BOUNDS)
    plain = Gate(Registry(TOOLS[:1]), CedarPolicy.from_text(DEFAULT), state, limits=BOUNDS)
    ann, numbers = Principal("ann"), itertools.count()

    def call(kind: str, gate: Gate = ruled) -> Work:
        text = f'{{"name": "{kind}", "arguments": {{"a": 17, "b": 25}}}}'

        def one() -> None:
            number = next(numbers)
            context = CallContext(ann, f"run-{number // RUN_CALLS}")
            result = gate.execute(WrittenCall(f"call-{number}", text, "json"), context)
            if result.text != "42":
                raise ToolFailed(f"A call of the benchmark did not end as it must: {result.text}")

        return one

    with closing(state), ruled, plain, closing(_database(folder / "bare.db")) as bare:
        calls = {"pure": call("pure", plain), RULED: call("pure")}
        calls |= {"read": call("read"), "isolated": call("isolated"), READY: call("isolated"), "write": call("write")}
        commit = partial(bare.execute, "INSERT INTO t VALUES ('x')")
        yield {FUNCTION: partial(add, 17, 25), **calls, COMMIT: commit}, state


def _database(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "CREATE TABLE t (x)"):
        connection.execute(statement)
    return connection


def _commits(work: Work, state: SqliteState) -> int:
    statements: list[str] = []
    work()  # the first call makes what the others find
    state.connection.set_trace_callback(statements.append)
    work()
    state.connection.set_trace_callback(None)
    return statements.count("COMMIT")


def _times(name: str, plan: Plan) -> int:
    return max(1, plan.calls // (1 if name in OFTEN else RARE))


# --- one call at a time ------------------------------------------------------------------------------------------


def _latencies(work: Mapping[str, Work], plan: Plan, progress: Progress, clock: Clock) -> dict[str, Latency]:
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for each in work.values():
        each()  # what is made at the first call is not part of a call
    for done in range(plan.rounds):
        progress("one at a time", done, plan.rounds)
        for name, each in work.items():
            for _ in range(math.ceil(_times(name, plan) / plan.rounds)):
                clock.sleep(PAUSE if name == READY else 0)
                taken[name].append(_seconds(each, clock))
    progress("one at a time", plan.rounds, plan.rounds)
    return {name: _latency(pairs) for name, pairs in taken.items()}


def _seconds(work: Work, clock: Clock) -> tuple[float, float]:
    """Of wall time, and of processor time."""
    computed, started = cpu_seconds(), clock.monotonic()
    work()
    return clock.monotonic() - started, cpu_seconds() - computed


def _latency(taken: list[tuple[float, float]]) -> Latency:
    seconds, computed = zip(*taken, strict=True)
    parts = quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else seconds * 99
    micro = [1e6 * value for value in (parts[9], median(seconds), parts[89], parts[98], median(computed))]
    return Latency(len(seconds), *micro)


# --- several at a time -------------------------------------------------------------------------------------------


def _in_flight(work: Mapping[str, Work], plan: Plan, progress: Progress, clock: Clock) -> dict[str, dict[int, float]]:
    kinds = [each.name for each in TOOLS]
    rates: dict[str, dict[int, float]] = {kind: {} for kind in kinds}
    planned = [(threads, kind) for threads in plan.in_flight for kind in kinds]
    for done, (threads, kind) in enumerate(planned):
        progress("in flight", done, len(planned))
        rates[kind][threads] = _rate(work[kind], threads, _times(kind, plan), clock)
    progress("in flight", len(planned), len(planned))
    return rates


def _rate(work: Work, threads: int, calls: int, clock: Clock) -> float:
    """Calls per second while so many threads call, one call after the other each."""
    each = math.ceil(calls / threads)

    def share() -> None:
        for _ in range(each):
            work()

    with ThreadPoolExecutor(threads) as pool:
        started = clock.monotonic()
        for future in [pool.submit(share) for _ in range(threads)]:
            future.result()
        return threads * each / (clock.monotonic() - started)


# --- very many ---------------------------------------------------------------------------------------------------


def _lasting(work: Work, plan: Plan, progress: Progress) -> tuple[Memory | None, Mapping[str, int], Mapping[str, int]]:
    """Memory over very many calls, and where their time goes."""
    each = max(1, plan.lasting // SAMPLES)
    points: list[tuple[int, int]] = []
    with sampled() as found:
        for done in range(0, plan.lasting, each):
            progress("memory", done, plan.lasting)
            points.append((done, resident_bytes()))
            for _ in range(min(each, plan.lasting - done)):
                work()
    points.append((plan.lasting, resident_bytes()))
    progress("memory", plan.lasting, plan.lasting)
    warm = points[len(points) // 5 :]  # before, caches fill up to their bounds
    known = len(warm) > 1 and all(size for _, size in points)
    slope = linear_regression(*zip(*warm, strict=True)).slope if known else math.nan
    memory = Memory(plan.lasting, points[0][1], points[-1][1], slope) if known else None
    return memory, found.steps, found.modules


def resident_bytes() -> int:
    """Memory that this process holds now; 0 where the system does not say it in /proc."""
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    return 0


def _shares(counts: Mapping[str, int]) -> dict[str, float]:
    total = sum(counts.values())
    return {name: count / total for name, count in sorted(counts.items(), key=lambda item: -item[1])}


# --- the page ----------------------------------------------------------------------------------------------------


def table(bench: GateBench) -> Group:
    """Everything that was measured."""
    calls = Table(
        Column("one call", no_wrap=True), title="Microseconds a call, one at a time", box=None, pad_edge=False
    )
    for column in ("calls", "commits", "p10", "median", "p90", "p99", "cpu"):
        calls.add_column(column, justify="right", no_wrap=True)
    for name, took in bench.latencies.items():
        commits = bench.commits.get(name, int(name == COMMIT))
        micro = (f"{value:,.{int(value < 10)}f}" for value in (took.p10, took.median, took.p90, took.p99, took.cpu))
        calls.add_row(name, f"{took.calls:,}", str(commits), *micro)
    rates = Table("calls per second", title="In flight")
    for threads in next(iter(bench.in_flight.values()), {}):
        rates.add_column(str(threads), justify="right")
    for kind, by_threads in bench.in_flight.items():
        rates.add_row(kind, *(f"{rate:,.0f}" for rate in by_threads.values()))
    parts = Table("step", "share", "module", "share", title=f"Where a pure call's time goes ({bench.samples} samples)")
    largest = [
        [(name, f"{share:.0%}") for name, share in shares.items() if share >= 0.01]
        for shares in (bench.steps, bench.modules)
    ]
    for step, module in itertools.zip_longest(*largest, fillvalue=("", "")):
        parts.add_row(*step, *module)
    return Group(calls, rates, parts, _said(bench.memory))


def _said(memory: Memory | None) -> str:
    if memory is None:
        return "Memory: this system does not say how much a process holds."
    first, last = (size / 2**20 for size in (memory.first, memory.last))
    grew = f"{first:.1f} MiB before, {last:.1f} after, {memory.slope:+.1f} bytes a call once it was warm"
    return f"Memory over {memory.calls:,} pure calls: {grew}."
