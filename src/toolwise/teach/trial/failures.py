"""Why calls failed: the codes that a model would read, and the exceptions behind them, which it would not.

Whoever tries a tool of their own is its operator, so what the audit log keeps for operators is shown to them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from toolwise.gate.gate import Gate
from toolwise.gate.offline import offline_gate
from toolwise.teach.records import Candidate
from toolwise.teach.trial.values import Failure
from toolwise.tools.registry import Registry

_ERROR = re.compile(r"Error \((\w+)\): (.*)", re.DOTALL)
_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+)', re.MULTILINE)


class WatchedGate:
    """Makes the gate of a shard, and looks at its log while it is there.

    `causes` has, by tool and code, the exception behind the first call that failed so: what it says, and where it was
    raised.
    """

    def __init__(self, registry: Registry) -> None:
        self.causes: dict[tuple[str, str], str] = {}
        self._registry = registry

    def __call__(self) -> Gate:
        self._gate = offline_gate(self._registry)
        return self._gate

    def watching(self, progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
        """A progress that reads the log once all calls were made, and passes on what it hears."""

        def heard(done: int, total: int) -> None:
            if done == total:
                self._look()
            progress(done, total)

        return heard

    def _look(self) -> None:
        for row in self._gate.audit.rows():
            if row.line.detail:
                self.causes.setdefault((row.line.tool, row.line.code), _cause(row.line.detail))


def failures(rows: Iterable[Candidate], causes: Mapping[tuple[str, str], str]) -> tuple[Failure, ...]:
    """The errors of the calls of one tool, the most frequent first."""
    said: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        error = _ERROR.match(row.result or "") if row.reason == "tool_error" else None
        if error:
            said.setdefault((row.tool, error[1]), []).append(error[2])
    counted = (
        Failure(key[1], len(texts), Counter(texts).most_common(1)[0][0], causes.get(key, ""))
        for key, texts in said.items()
    )
    return tuple(sorted(counted, key=lambda failure: -failure.count))


def _cause(traceback: str) -> str:
    """`ZeroDivisionError: division by zero (mine.py, line 14)`"""
    said = traceback.strip().rpartition("\n")[2]
    frames = _FRAME.findall(traceback)
    return f"{said} ({Path(frames[-1][0]).name}, line {frames[-1][1]})" if frames else said
