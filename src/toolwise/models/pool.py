"""Many decode sessions of one model at once: one cache for all of them, one forward pass for whoever waits.

The idea is that of `models/hf.py`: with explicit positions and an explicit mask of who sees whom, one sequence can hold
a whole tree of texts. Here each session owns columns of one shared key-value cache, and a forward pass takes the
tokens that all waiting sessions have not read yet, whatever their number: a long prompt and seven single tokens go
together, without padding. A session that begins like another shares its columns, so a conversation that goes on (a
result behind a call, the next question) reads only what is new.

Nobody schedules: the thread that asks for logits while no forward pass runs takes all that wait into the next one. It
gives those who were in the last one a moment to come back: otherwise two halves would always miss each other.
Sessions may be used from many threads, each session from one at a time.

Covered: what a session computes does not depend on who else is there (but for rounding); sessions that are dropped or
rewound give their columns back; a bound on columns; a forward pass that fails fails for its sessions alone.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from transformers.cache_utils import Cache

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput, LimitExceeded
from toolwise.core.limits import LIMITS, Limits
from toolwise.models.base import Floats
from toolwise.models.network import Network
from toolwise.models.roomy import RoomyLayer
from toolwise.notation.segments import Ids

Columns = npt.NDArray[np.int64]

_CLOCK = SystemClock()
_PATIENCE = 0.25  # of a pass that others are waited for; without them the next one takes most of its time again
_GARBAGE = 256  # columns that may lie about beyond a quarter: every pass attends to them, for nothing


@dataclass(eq=False, slots=True, weakref_slot=True)
class _Line:
    """What one session has: its tokens, the columns that hold the first of them, the logits behind the last."""

    ids: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    logits: Floats | None = None
    error: Exception | None = None
    whose: str = ""

    @property
    def unread(self) -> int:
        return len(self.ids) - len(self.columns)

    def holds(self, other: _Line) -> bool:
        """Whether whoever begins like the other one begins like this one as well."""
        read = len(other.columns)
        return self.whose == other.whose and read <= len(self.columns) and self.ids[:read] == other.ids[:read]


class Pool:
    """The shared cache of one network that honours masks; `HFModel.pool` makes one."""

    def __init__(self, net: Network, *, limits: Limits = LIMITS, clock: Clock = _CLOCK) -> None:
        self._net = net
        self._limits = limits
        self._cache = _empty_cache()
        self._positions: Columns = np.zeros(0, dtype=np.int64)
        self._lines: weakref.WeakSet[_Line] = weakref.WeakSet()
        self._kept: deque[_Line] = deque(maxlen=limits.kept_contexts)
        self._turn = threading.Condition()
        self._waiting: list[_Line] = []
        self._running = False
        self._clock = clock
        #: Of the last pass: how many were in it or waited behind it, when it ended, how long it took.
        self._last = (0, 0.0, 0.0)

    @property
    def longest(self) -> int | None:
        return self._net.longest

    @property
    def columns(self) -> int:
        """How many columns the cache holds, those of sessions that are gone included."""
        return len(self._positions)

    def session(self, context: Ids, whose: str = "") -> PooledSession:
        """A session that has been fed `context`; what a session of the same person before it has read of it is not
        read again. Of other people's it is: how much was read before tells what they asked."""
        with self._turn:
            line = self._shared(context, whose)
            self._lines.add(line)
        session = PooledSession(self, line)
        session.feed(context[len(line.ids) :])
        return session

    def fork(self, line: _Line) -> PooledSession:
        with self._turn:
            other = _Line(list(line.ids), list(line.columns), line.logits, whose=line.whose)
            self._lines.add(other)
        return PooledSession(self, other)

    def keep(self, line: _Line) -> None:
        """Remember what a session has read for those that begin alike, as long as there is room.

        A line that the garbage collector had taken (it clears weak references before it closes generators) may have
        missed that columns were moved.
        """
        with self._turn:
            if line.columns and line in self._lines:
                longest = next((kept for kept in self._kept if kept.holds(line)), line)
                self._kept = deque((kept for kept in self._kept if not longest.holds(kept)), self._kept.maxlen)
                self._kept.append(longest)
                line.logits = None  # it may be a row of a whole batch

    def cut(self, line: _Line, length: int) -> None:
        """Take a line back to its first `length` tokens."""
        with self._turn:  # another thread may be moving columns
            del line.ids[length:], line.columns[length:]
            line.logits = None

    def read(self, line: _Line) -> Floats:
        """The logits behind all tokens of this line. Called by many threads; one of them runs for all that wait.

        Raises BadInput for a line that is longer than the network reads, LimitExceeded where the cache has no room.
        """
        self._net.bounded(len(line.ids))
        with self._turn:
            if len(line.columns) == len(line.ids):  # after a rewind: the last token's row was not kept
                line.columns.pop()
            self._waiting.append(line)
            try:
                while line.logits is None and line.error is None:
                    if self._running:
                        self._turn.wait()
                    elif (moment := self._moment()) > 0:
                        self._turn.wait(moment)
                    else:
                        self._run()
            finally:
                if line in self._waiting:  # this thread was interrupted, and nobody waits for it any more
                    self._waiting.remove(line)
            error, line.error = line.error, None
            if error is not None:
                raise error
            assert line.logits is not None
            return line.logits

    def _moment(self) -> float:
        """How many seconds it is worth waiting for those of the last pass: a part of what one more pass takes."""
        count, ended, took = self._last
        return 0.0 if len(self._waiting) >= count else ended + _PATIENCE * took - self._clock.monotonic()

    def _run(self) -> None:
        """One pass for all that wait, without the lock meanwhile. Who is not through after it goes on waiting."""
        batch, self._running, begun = list(self._waiting), True, self._clock.monotonic()
        self._turn.release()
        try:
            self._forward(batch)
        finally:
            self._turn.acquire()
            self._running, ended = False, self._clock.monotonic()
            self._last = len({*batch, *self._waiting}), ended, ended - begun
            self._turn.notify_all()

    def _answer(self, line: _Line, answer: Floats | Exception) -> None:
        """Under the lock: from here on the line may be fed, and wait again, before the pass is over."""
        if isinstance(answer, Exception):
            line.error = answer
        else:
            line.logits = answer
        if line in self._waiting:
            self._waiting.remove(line)

    def _shared(self, context: Ids, whose: str) -> _Line:
        """A line with the longest beginning of `context` that is in the cache; at least one token is left to read."""
        ids, best = list(context), list[int]()
        for line in (*self._kept, *self._lines):
            limit = min(len(line.columns), len(ids) - 1) if line.whose == whose else 0
            if limit > len(best) and line.ids[: len(best)] == ids[: len(best)]:
                best = line.columns[: _agreed(line.ids, ids, len(best), limit)]
        return _Line(ids[: len(best)], list(best), whose=whose)

    def _forward(self, batch: list[_Line]) -> None:
        """One pass over what these lines have not read, a bounded piece of each."""
        try:
            batch = self._with_room(batch)
            if batch:
                self._pass(batch, self._pieces(batch))
        except Exception as error:  # noqa: BLE001 - whatever it is, each of these threads has to hear of it
            with self._turn:
                for line in batch:
                    self._answer(line, error)

    def _pieces(self, batch: list[_Line]) -> list[list[int]]:
        """What each reads in this pass: those who need little all of it, the others alike what is left of the bound."""
        left, ends = self._limits.prefill_tokens, dict[int, int]()
        shortest = sorted(range(len(batch)), key=lambda number: batch[number].unread)
        for place, number in enumerate(shortest):
            size = min(batch[number].unread, max(1, left // (len(batch) - place)))
            ends[number] = len(batch[number].columns) + size
            left -= size
        return [line.ids[len(line.columns) : ends[number]] for number, line in enumerate(batch)]

    def _pass(self, batch: list[_Line], pieces: list[list[int]]) -> None:
        """The last token of each line stands at the end of the queries, so that their rows alone are projected."""
        begun, count = len(self._positions), sum(map(len, pieces))
        bodies = count - len(pieces)
        ids = np.zeros(count, dtype=np.int64)
        positions = np.zeros(count, dtype=np.int64)
        sees = np.zeros((count, begun + count), dtype=bool)
        fresh: list[Columns] = []
        at = 0
        for number, (line, piece) in enumerate(zip(batch, pieces, strict=True)):
            queries = np.append(np.arange(at, at + len(piece) - 1), bodies + number)
            at += len(piece) - 1
            ids[queries] = piece
            positions[queries] = np.arange(len(line.columns), len(line.columns) + len(piece))
            sees[np.ix_(queries, np.array(line.columns, dtype=np.int64))] = True
            sees[np.ix_(queries, begun + queries)] = np.tri(len(piece), dtype=bool)
            fresh.append(begun + queries)
        keys = np.concatenate([self._positions, positions])
        logits = self._net.forward(
            torch.from_numpy(ids)[None],
            torch.from_numpy(positions)[None],
            torch.from_numpy(sees)[None],
            torch.from_numpy(keys)[None],
            self._cache,
            len(batch),
        )[0]
        rows = logits.cpu().numpy()
        with self._turn:
            self._positions = keys
            for line, columns, row in zip(batch, fresh, rows, strict=True):
                line.columns.extend(columns.tolist())
                if len(line.columns) == len(line.ids):
                    self._answer(line, row)

    def _with_room(self, batch: list[_Line]) -> list[_Line]:
        """Those whose pieces have room, once what nobody has any more is dropped; the others are given an error."""
        with self._turn:
            used, batch = len(self._positions), list(batch)
            for layer in self._cache.layers:
                layer.cut(used)  # a pass that failed on its way has written into some of them
            wanted = sum(map(len, self._pieces(batch)))
            if used + wanted <= self._limits.pooled_tokens and used <= 5 * self._live(batch).size // 4 + _GARBAGE:
                return batch
            while self._live(batch).size + wanted > self._limits.pooled_tokens and (self._kept or batch):
                if self._kept:
                    self._kept.popleft()
                    continue
                refused = max(batch, key=lambda line: line.unread)
                batch.remove(refused)
                refused.columns = []
                self._answer(refused, self._no_room())
                wanted = sum(map(len, self._pieces(batch)))
            self._compact(batch)
            return batch

    def _no_room(self) -> LimitExceeded:
        return LimitExceeded(
            f"All conversations together would hold more than {self._limits.pooled_tokens} tokens; "
            "ask again later, or with a shorter one."
        )

    def _compact(self, batch: list[_Line]) -> None:
        live = self._live(batch)
        moved = np.full(len(self._positions), -1, dtype=np.int64)
        moved[live] = np.arange(live.size)
        lines = {id(line): line for line in (*self._lines, *self._kept, *batch)}.values()
        try:
            for layer in self._cache.layers:
                layer.select(torch.from_numpy(live))
        except BaseException:  # some layers were moved, others not: all is to be read again
            self._cache, self._positions = _empty_cache(), self._positions[:0]
            for line in lines:
                line.columns = []
            raise
        self._positions = self._positions[live]
        for line in lines:
            line.columns = moved[np.array(line.columns, dtype=np.int64)].tolist()

    def _live(self, batch: list[_Line]) -> Columns:
        held = [line.columns for line in (*self._lines, *self._kept, *batch) if line.columns]
        return np.unique(np.concatenate(held)) if held else np.zeros(0, dtype=np.int64)


class PooledSession:
    """`models.base.Session` over a pool."""

    def __init__(self, pool: Pool, line: _Line) -> None:
        self._pool = pool
        self._line = line
        #: Of the tokens that this session began with, how many had been read before.
        self.shared = len(line.columns)

    @property
    def ids(self) -> Ids:
        return tuple(self._line.ids)

    @property
    def full(self) -> bool:
        return self._pool.longest is not None and len(self._line.ids) > self._pool.longest

    def feed(self, ids: Sequence[int]) -> None:
        if len(ids):
            self._line.ids.extend(ids)
            self._line.logits = None

    def logits(self) -> Floats:
        line = self._line
        if not line.ids:
            raise BadInput("A session needs a token before it can say what comes next.")
        return self._pool.read(line) if line.logits is None else line.logits

    def rewind(self, length: int) -> None:
        if not 0 <= length <= len(self._line.ids):
            raise BadInput(f"Cannot rewind {len(self._line.ids)} tokens to {length}.")
        if length < len(self._line.ids):
            self._pool.cut(self._line, length)

    def fork(self) -> PooledSession:
        return self._pool.fork(self._line)

    def close(self) -> None:
        """The session is over; the next one that begins alike need not read this again."""
        self._pool.keep(self._line)


def _empty_cache() -> Cache:
    return Cache(layer_class_to_replicate=RoomyLayer)


def _agreed(a: Sequence[int], b: Sequence[int], low: int, high: int) -> int:
    """How many of the first `high` tokens are the same; the first `low` are."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low
