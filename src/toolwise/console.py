"""What every command shares: how it ends, what it shows meanwhile, and the text on its standard input.

Not covered: an error that nobody foresaw. Its traceback is shown, since a report of it needs one.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from typer.main import get_command

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput, StorageUnavailable, ToolwiseError
from toolwise.core.jsonio import printable
from toolwise.core.limits import LIMITS

#: Exit codes by who can act on an error; 1 for everybody else.
EXIT = {"user": 2, "operator": 3}

_CLOCK = SystemClock()
_NOTE_SECONDS = 60.0  # between two lines about long work, where there is no bar
# They keep what they finished, so that the same command goes on.
_GO_ON = ("annotate", "keep", "train", "demo", "pull", "index", "eval")
_BEGIN_AGAIN = ("filter", "perplexity")  # of eval
# Of the system's refusals, those that say something about the machine and not about this program.
_MACHINE = ("EACCES", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOMEM", "ENOSPC", "EPERM", "EROFS")


def run(app: typer.Typer) -> NoReturn:
    """Run a command line and exit: whatever stops it is one line on standard error and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character gets its escape
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_status(app))


def _status(app: typer.Typer) -> int:
    try:
        status = _reflowed(get_command(app))(standalone_mode=False) or 0
        if sys.stdout:  # there is none where it was closed before we began
            sys.stdout.flush()
    except ToolwiseError as error:
        return complain(str(error), error.code, EXIT.get(error.actor, 1))
    except typer.TyperException as error:  # the command line itself; without arguments the help has been shown
        text, context = " ".join(error.format_message().split()), getattr(error, "ctx", None)
        help_ = f"{context.command_path if context else 'toolwise'} --help"
        return complain(f"{text.rstrip('.')} (see {help_}).", BadInput.code, 2) if text else 2
    except BrokenPipeError:  # the reader of our output has gone; nobody is left to tell
        _stop_writing()
        return 1
    except MemoryError:
        return complain("There is not enough memory; use a smaller model or fewer workers.", "out_of_memory", 3)
    except OSError as error:
        if errno.errorcode.get(error.errno or 0) not in _MACHINE:
            raise
        _stop_writing()
        where = f" {str(error.filename)!r}" if error.filename is not None else " the output"
        return complain(f"Cannot use{where}: {error.strerror}.", StorageUnavailable.code, 3)
    if status == 130:
        goes_on = bool(sys.argv[1:2]) and sys.argv[1] in _GO_ON and not set(_BEGIN_AGAIN) & set(sys.argv[2:3])
        kept = " What was finished is kept; the same command goes on from there." if goes_on else ""
        return complain(f"Interrupted.{kept}", "interrupted", 130)
    return int(status)


def _reflowed(command: Any) -> Any:
    """The command, each paragraph of its help one line: typer would keep the line ends of the source."""
    command.help = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    for one in getattr(command, "commands", {}).values():
        _reflowed(one)
    return command


def complain(text: str, code: str, status: int) -> int:
    """Say in one line on standard error what is wrong, whatever names it quotes; the exit code that was given."""
    print(f"toolwise: {printable(text, len(text))} [{code}]", file=sys.stderr)
    return status


def _stop_writing() -> None:
    """Give standard output up, so that Python does not try it again and complain when it ends."""
    with suppress(io.UnsupportedOperation):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def screen() -> Console:
    """Standard output. Text of models and documents comes to it as `rich.text.Text`, never as markup."""
    return Console(highlight=False)


def progress_bar() -> Progress:
    """On standard error where that is a terminal; it goes when it is done, or when an error comes."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def stages(bar: Progress) -> Callable[[str, int, int | None], None]:
    """Progress as the pipeline reports it, (stage, done, total), a line a stage; None for a total nobody knows yet."""
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int | None) -> None:
        if stage not in tasks:
            tasks[stage] = bar.add_task(stage, total=total)
        bar.update(tasks[stage], completed=done, total=total)

    return show


def paced(bar: Progress, clock: Clock = _CLOCK) -> Callable[[str, int, int], None]:
    """The same for long work that may go on behind what was done before: with how many a second, and when it will be
    done. Where no bar can be shown (a file of a run by night) it is a line a minute."""
    begun: dict[str, tuple[float, int]] = {}
    said: dict[str, float] = {}
    tasks: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        now = clock.monotonic()
        start, before = begun.setdefault(stage, (now, done))
        rate = (done - before) / max(now - start, 1e-9)
        text = f"{printable(stage)}: {rate:.2f} a second" if done > before else printable(stage)
        if done > before and done < total:
            text += f", done at {clock.now() + timedelta(seconds=(total - done) / rate):%H:%M}"
        if not bar.disable:
            if stage not in tasks:
                tasks[stage] = bar.add_task(text, total=total)
            bar.update(tasks[stage], completed=done, total=total, description=text)
        elif now - said.setdefault(stage, now) >= _NOTE_SECONDS:
            said[stage] = now
            print(f"{text} ({done} of {total})", file=sys.stderr, flush=True)

    return show


def text_or_standard_input(given: str | None, what: str = "text to continue") -> str:
    """The text to continue, or whatever it is: what was given, or all of standard input; UTF-8 whatever the locale
    says."""
    if given is not None and given != "-":
        data = given.encode(errors="surrogateescape")  # bytes that are no text come in as surrogates
    else:
        data = sys.stdin.buffer.read(LIMITS.document_bytes + 1) if sys.stdin else b""
    if not data:
        raise BadInput(f"There is no {what}: give one, or write it to standard input.")
    if len(data) > LIMITS.document_bytes:
        raise BadInput(f"The {what} has more than {LIMITS.document_bytes} bytes; give a shorter one.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"The {what} is not UTF-8 at byte {error.start}; convert it.") from error
