"""How many calls a run may make.

A call is reserved before it starts, atomically, and never given back: an attempt counts even if it fails. Runs that
were not used for longest are forgotten when there are more than `limits.runs`; forgetting gives a run its whole
budget again, so a run id must not be reused for other work. Not covered: a crash forgets every count.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from toolwise.core.errors import BudgetExceeded
from toolwise.core.limits import LIMITS, Limits


class Budget:
    """A number of calls for every run; `calls_per_run=None` means any number (teaching, where the corpus decides)."""

    def __init__(self, calls_per_run: int | None = LIMITS.calls_per_run, *, limits: Limits = LIMITS) -> None:
        self._cap = calls_per_run
        self._runs = limits.runs
        self._used: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def reserve(self, run_id: str) -> None:
        """Take one call from the run. Raises BudgetExceeded, and then takes nothing."""
        if self._cap is None:
            return
        with self._lock:
            used = self._used.get(run_id, 0)
            if used >= self._cap:
                raise BudgetExceeded(f"This run has used its {self._cap} calls; answer without another one.")
            self._used[run_id] = used + 1
            self._used.move_to_end(run_id)
            if len(self._used) > self._runs:
                self._used.popitem(last=False)
