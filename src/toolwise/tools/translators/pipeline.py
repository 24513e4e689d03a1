"""One Apertium mode as processes that stay: a text goes in at one end and comes out translated at the other.

Covered: an answer belongs to its question, or is none. Every text carries a number in a blank, which passes all
programs untouched and has to come back; a process that died or is silent until the deadline ends the whole mode, which
starts anew with the next text. What a text contains never becomes the engine's own marks.

An answer depends on its text alone. Two of the programs do not keep that by themselves. `apertium-tagger` overwrites
what it knows about unknown words once it met a word of a kind that it was not trained on, for as long as it lives; so
it is asked to complain (`-d`), and one that has complained is replaced before the next text. `cg-proc` remembers what
its rules found and says nothing, so it is replaced after every text. Without that up to a tenth of the sentences of
some languages come out otherwise (docs/experiments.md has the figures).

Not covered: memory. A mode's processes together hold between 40 and 320 MB, some of it shared with other processes.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import IO

from toolwise.core.clock import Clock
from toolwise.core.errors import ToolUnavailable
from toolwise.core.limits import Limits
from toolwise.tools.translators.modes import Mode, Programs

_TAGGER, _CG = "apertium-tagger", "cg-proc"  # what they read changes how they read on
_ENVIRONMENT = {"LC_ALL": "C.UTF-8", "PATH": os.defpath}  # nothing that our own environment may hold
# Every text ends with a word of ours, as from Apertium's own deformatters: `lrx-proc` waits for ever after an escaped
# mark behind which there is no word, and `lt-proc -b` for the next text where a NUL follows a word.
_STOP = "[]."
_MARKS = re.compile(r"[\[\]{}<>^$@\\/~]")
_WRITTEN = re.compile(r"\\(.)|[\[\]]", re.DOTALL)


class _Broken(Exception):
    """No answer came; says why."""


def escaped(text: str) -> str:
    """`text` in Apertium's stream format. `~` goes into a blank, since the post-generator swallows it even escaped."""
    return _MARKS.sub(lambda match: "[~]" if match[0] == "~" else f"\\{match[0]}", text)


def unescaped(text: str) -> str:
    """What `escaped` made, as it was."""
    return _WRITTEN.sub(lambda match: match[1] or "", text)


class Pipeline:
    """The processes of one mode. One text at a time; threads wait for one another, a forked child starts its own."""

    _chains: list[_Chain]

    def __init__(self, mode: Mode, limits: Limits, clock: Clock) -> None:
        self._mode, self._limits, self._clock = mode, limits, clock
        self._begin()

    def start(self) -> None:
        """Processes that are there already stay. Takes up to `limits.translator_seconds`. Raises ToolUnavailable."""
        deadline = self._clock.monotonic() + self._limits.translator_seconds
        with self._alone(deadline):
            if not self._chains or not all(chain.alive for chain in self._chains):
                self._end()
                for part in _parts(self._mode.programs):
                    self._chains.append(self._chain(part))
                self._translated("", deadline)

    def translate(self, text: str, deadline: float) -> str:
        """`deadline` is on the clock's monotonic time. `text` has no NUL and no U+FFFF, which the engine reads as one.

        What was not started has died. Raises ToolUnavailable.
        """
        with self._alone(deadline):
            answer = self._translated(text, deadline)
            self._renew()
            return answer

    def pids(self) -> list[int]:
        """Of the processes, in the order of the pipeline; empty before the first text."""
        return [pid for chain in self._chains for pid in chain.pids]

    def close(self) -> None:
        """Ends the processes. Another text starts new ones."""
        if self._owner == os.getpid():
            with self._lock:
                self._end()

    def _begin(self) -> None:
        self._owner, self._lock, self._asked = os.getpid(), threading.Lock(), 0
        self._chains = []

    @contextmanager
    def _alone(self, deadline: float) -> Iterator[None]:
        """While no other thread is at it. What goes wrong inside ends the processes."""
        if self._owner != os.getpid():  # the pipes are the parent's, whose answers we would take
            self._begin()
        if not self._lock.acquire(timeout=max(0.0, deadline - self._clock.monotonic())):
            raise ToolUnavailable("the translator is busy with other texts: try again later")
        try:
            yield
        except (_Broken, OSError) as error:
            self._end()
            why = error if isinstance(error, _Broken) else "did not start"
            raise ToolUnavailable(f"the translator {why} and will be started anew: try again") from None
        except BaseException:  # Ctrl-C: an answer that nobody waits for must not become the next text's
            self._end()
            raise
        finally:
            self._lock.release()

    def _translated(self, text: str, deadline: float) -> str:
        if not self._chains:
            raise _Broken("died")
        self._asked += 1
        mark = f"[#{self._asked}]".encode()
        frame = (escaped(text) + _STOP).encode("utf-8", "replace") + mark + b"\0"
        for chain in self._chains:
            frame = chain.ask(frame, deadline)
            if not frame.endswith(mark + b"\0") or frame.count(b"\0") != 1:
                raise _Broken("lost its place")
        return unescaped(frame[: -len(mark) - 1].decode("utf-8", "replace")).removesuffix(".")

    def _renew(self) -> None:
        for at, chain in enumerate(self._chains):
            if chain.changed:
                chain.close()
                self._chains[at] = self._chain(chain.programs)

    def _chain(self, programs: Programs) -> _Chain:
        return _Chain(programs, self._limits, self._clock)

    def _end(self) -> None:
        for chain in self._chains:
            chain.close()
        self._chains = []


def _parts(programs: Programs) -> list[Programs]:
    """The programs in runs: those that change one by one, the others as long as they stand together."""
    return [tuple(group) for _, group in groupby(programs, key=lambda one: _name(one) if _changes(one) else "")]


def _name(program: Sequence[str]) -> str:
    return Path(program[0]).name


def _changes(program: Sequence[str]) -> bool:
    return _name(program) in (_TAGGER, _CG)


class _Chain:
    """Programs of which each reads what the one before it writes, until they are closed."""

    def __init__(self, programs: Programs, limits: Limits, clock: Clock) -> None:
        self.programs, self._limits, self._clock = programs, limits, clock
        self._processes: list[subprocess.Popen[bytes]] = []
        self._changes = any(map(_changes, programs))
        watched = _name(programs[0]) == _TAGGER
        # A file, since nobody reads a pipe meanwhile, and one that is full would stop its writer.
        self._complaints = tempfile.TemporaryFile() if watched else None  # noqa: SIM115
        try:
            for program, *arguments in programs:
                self._start([program, *(["-d"] if watched else []), *arguments])
        except OSError:
            self.close()
            raise
        self._in, self._out = self._pipe(self._processes[0].stdin), self._pipe(self._processes[-1].stdout)

    def _start(self, command: list[str]) -> None:
        before = self._processes[-1].stdout if self._processes else None
        process = subprocess.Popen(  # noqa: S603 - programs of a fixed list, and no shell
            command,
            stdin=before or subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints or subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd="/",
            bufsize=0,
            process_group=0,  # Ctrl-C is for us alone; they end when our end of their pipes does
        )
        self._processes.append(process)
        if before:
            before.close()  # so that its writer learns when its reader dies

    def _pipe(self, stream: IO[bytes] | None) -> int:
        assert stream is not None
        os.set_blocking(stream.fileno(), False)
        return stream.fileno()

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    @property
    def alive(self) -> bool:
        return all(process.poll() is None for process in self._processes)

    @property
    def changed(self) -> bool:
        """Whether the next text may be read otherwise than by a new process."""
        if self._complaints is not None:
            return os.fstat(self._complaints.fileno()).st_size > 0
        return self._changes

    def ask(self, frame: bytes, deadline: float) -> bytes:
        """What the programs make of a frame, up to the NUL at its end. Raises _Broken."""
        unsent, answer = memoryview(frame), bytearray()
        poll = select.poll()
        poll.register(self._in, select.POLLOUT)
        poll.register(self._out, select.POLLIN)
        while not answer.endswith(b"\0"):
            left = deadline - self._clock.monotonic()
            if left <= 0:
                raise _Broken("did not answer in time")
            for pipe, _ in poll.poll(left * 1000):
                if pipe == self._in:
                    unsent = unsent[self._write(unsent) :]
                    if not unsent:
                        poll.unregister(self._in)
                else:
                    answer += self._read()
            if len(answer) > self._limits.translated_bytes:
                raise _Broken("did not stop")
        return bytes(answer)

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._in, data)
        except BrokenPipeError:
            raise _Broken("died") from None

    def _read(self) -> bytes:
        data = os.read(self._out, 64 * 1024)
        if not data:
            raise _Broken("died")
        return data

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()
        for process in self._processes:
            with suppress(subprocess.TimeoutExpired):
                process.wait(self._limits.grace_seconds)
        if self._complaints is not None:
            self._complaints.close()
