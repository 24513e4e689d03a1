"""The benchmark measures whole calls: every kind of them, and leaves nothing behind."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from toolwise.cli import app
from toolwise.core import jsonio
from toolwise.core.errors import BadInput, ToolFailed
from toolwise.core.types import Call, CallContext, Effect, Principal
from toolwise.evals import bench_gate as bench
from toolwise.evals.call_steps import StepSamples, sampled
from toolwise.gate.offline import offline_gate
from toolwise.tools.registry import Registry, tool

SMALL = bench.Plan(calls=20, rounds=2, in_flight=(1, 2))
KINDS = {"pure", "read", "isolated", "write"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> bench.GateBench:
    folder = tmp_path_factory.mktemp("bench")
    found = bench.bench_gate(folder, SMALL)
    assert list(folder.iterdir()) == []
    return found


def test_every_kind_of_call_is_measured_beside_the_bare_parts(found: bench.GateBench) -> None:
    assert set(found.latencies) == KINDS | {bench.FUNCTION, bench.COMMIT, bench.RULED, bench.READY}
    for took in found.latencies.values():
        assert 0 <= took.p10 <= took.median <= took.p90 <= took.p99
    median = {name: took.median for name, took in found.latencies.items()}
    assert median[bench.FUNCTION] < median["pure"] < median["isolated"]


def test_only_a_call_with_an_effect_waits_for_the_disk_and_twice(found: bench.GateBench) -> None:
    """Its intent before it, its result behind it; a look is written down as well, but the disk is not waited for."""
    assert found.commits == {"pure": 0, "isolated": 0, "read": 2, "write": 2}


def test_every_kind_is_measured_with_several_in_flight(found: bench.GateBench) -> None:
    assert {kind: set(rates) for kind, rates in found.in_flight.items()} == {kind: {1, 2} for kind in KINDS}
    assert all(rate > 0 for rates in found.in_flight.values() for rate in rates.values())


def test_what_was_measured_can_be_printed_and_written(found: bench.GateBench) -> None:
    slow = dict.fromkeys(found.latencies, replace(found.latencies["write"], p90=99_999.0, p99=99_999.0))
    console = Console(width=80, record=True)
    console.print(bench.table(replace(found, latencies=slow)))
    shown = console.export_text()
    assert all(name in shown for name in found.latencies)
    assert shown.count(" 99,999 ") == 2 * len(slow)
    assert "\u2026" not in shown
    told = jsonio.loads(jsonio.dumps(found.as_json()))
    assert told["latencies"]["pure"]["calls"] == SMALL.calls
    assert set(told["in_flight"]["write"]) == {"1", "2"}


def test_a_system_that_does_not_say_how_much_a_process_holds_gives_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "resident_bytes", lambda: 0)
    found = bench.bench_gate(tmp_path, replace(SMALL, calls=1, rounds=1, in_flight=(1,)))
    assert found.memory is None
    assert "does not say" in bench._said(found.memory)


def test_memory_that_grows_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter(range(10**6, 10**9, 1_000))
    monkeypatch.setattr(bench, "resident_bytes", lambda: next(sizes))
    memory, _, _ = bench._lasting(lambda: None, SMALL, lambda *_: None)
    assert memory is not None
    assert memory.slope == pytest.approx(1_000 * bench.SAMPLES / SMALL.lasting)


def test_a_call_that_does_not_run_is_no_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "POLICY", "forbid (principal, action, resource);")
    with pytest.raises(ToolFailed, match="denied"):
        bench.bench_gate(tmp_path, SMALL)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no folder"):
        bench.bench_gate(tmp_path / "missing", SMALL)


def test_the_command_prints_what_was_measured(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "gate", "--quick", "--calls", "20", "--json", "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    told = jsonio.loads(done.stdout)
    assert told["latencies"]["pure"]["calls"] >= 2
    assert told["memory"] is None or told["memory"]["calls"] == 40


def test_a_sample_inside_a_call_names_the_step_and_one_outside_counts_nothing() -> None:
    samples = StepSamples()

    @tool(effect=Effect.PURE, bounded=True)
    def probe() -> str:
        """Sample the stack."""
        samples.take(sys._getframe())
        return ""

    samples.take(sys._getframe())
    assert not samples.steps
    gate = offline_gate(Registry([probe]))
    assert gate.execute(Call("1", "probe", {}), CallContext(Principal("ann"), "run")).ok
    assert sum(samples.steps.values()) == 1
    assert dict(samples.modules) == {"tools.registry": 1}


def test_sampling_leaves_the_signal_as_it_was() -> None:
    signal = pytest.importorskip("signal")
    if not hasattr(signal, "SIGPROF"):
        pytest.skip("no interval timers here")
    before = signal.getsignal(signal.SIGPROF)
    with sampled():
        assert signal.getsignal(signal.SIGPROF) is not before
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
