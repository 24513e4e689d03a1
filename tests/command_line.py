"""Commands in this process, through the entry point, as a user's are."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from toolwise.cli import app, main


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str


Toolwise = Callable[..., Outcome]


def invoke(*args: object) -> str:
    """A command that must succeed; what it printed."""
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def refused(done: Outcome, code: str, words: str = "", exit_code: int = 2) -> None:
    """One line that says why, and nothing else."""
    assert done.code == exit_code, done
    assert done.out == ""
    assert re.fullmatch(rf"toolwise: [^\n]+ \[{code}\]\n", done.err), done.err
    assert re.search(words, done.err), done.err


def runner(patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Toolwise:
    """Runs a command as the entry point does, with `stdin` bytes on standard input; None closes it.

    `person` is what somebody types who sits at a terminal.
    """

    def run(*args: object, stdin: bytes | None = b"", person: str | None = None) -> Outcome:
        capsys.readouterr()
        typed = stdin if person is None else person.encode()
        given = None if typed is None else io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8")
        patch.setattr(sys, "stdin", given)
        for stream in (sys.stdin, sys.stdout) if person is not None else ():
            patch.setattr(stream, "isatty", lambda: True, raising=False)
        patch.setattr(sys, "argv", ["toolwise", *(str(arg) for arg in args)])
        with pytest.raises(SystemExit) as end:
            main()
        written = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Outcome(end.value.code, written.out, written.err)

    return run
