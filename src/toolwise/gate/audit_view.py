"""Looking into an audit log: some of its lines, the last ones, and those that come."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import get_args

from toolwise.core.clock import Clock
from toolwise.core.errors import LEAVES, BadInput
from toolwise.gate.audit import Event, Row, last_sequence, read_rows
from toolwise.gate.reconcile import End
from toolwise.gate.state import State

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_WAIT_SECONDS = 0.5  # between two looks at a log that grows


@dataclass(frozen=True, slots=True)
class Filter:
    """Which lines: those whose fields have these values, written at this moment or later by the wall clock."""

    equal: Mapping[str, str] = field(default_factory=dict)
    since: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.equal) or self.since is not None

    def passes(self, row: Row) -> bool:
        """Whether the wall clock's time is right; the database looks for the rest."""
        if self.since is None:
            return True
        try:
            return datetime.fromisoformat(row.line.wall).astimezone() >= self.since
        except ValueError:  # a line without a time is not known to be late enough
            return False


def refuse_unknown(event: str | None, code: str | None) -> None:
    """Raises BadInput for what no line can have: a slip would look as if nothing of the kind had happened."""
    events = get_args(Event)
    if event is not None and event not in events:
        raise BadInput(f"No line is of the kind {event!r}; there are {', '.join(events)}.")
    codes = ["ok", *get_args(End), *(leaf.code for leaf in LEAVES)]
    if code is not None and code not in codes:
        near = get_close_matches(code, codes) or codes
        raise BadInput(f"No line has the code {code!r}; the nearest are {', '.join(near)}.")


def last(state: State, wanted: Filter, most: int) -> list[Row]:
    """The last lines that pass, at most so many, in their order."""
    after = 0 if wanted else max(0, last_sequence(state) - most)  # without a filter nothing before has to be read
    return list(deque(behind(state, wanted, after), maxlen=most))


def behind(state: State, wanted: Filter, after: int = 0) -> Iterator[Row]:
    """Every line behind a sequence number that passes."""
    return filter(wanted.passes, read_rows(state, after, wanted.equal))


def follow(state: State, wanted: Filter, after: int, clock: Clock) -> Iterator[Row]:
    """Every line behind a sequence number that passes, and then those that come, without end."""
    while True:
        for row in behind(state, wanted, after):
            after = row.sequence
            yield row
        clock.sleep(_WAIT_SECONDS)


def moment(text: str, clock: Clock) -> datetime:
    """The moment that a text names: a date with or without a time, or how long ago (`90s`, `15m`, `2h`, `7d`).

    Without a zone it is this machine's. Raises BadInput.
    """
    try:
        if ago := re.fullmatch(r"([0-9]{1,9})([smhd])", text):
            return clock.now() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise BadInput("Give the moment as 2024-05-01, as 2024-05-01T12:30, or as 15m, 2h or 7d ago.") from None
