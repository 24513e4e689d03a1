"""What each framework does with calls that must not simply run. Every function leaves a byte in a file for each run."""

# No `from __future__ import annotations`: some frameworks read annotations as they stand, or the source itself.

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from paths import ToolPath

GOOD = '{"a": 17, "b": 25}'
SECRET = "hunter2"  # as it stands in `failing`
DEADLINE, SLOW = 0.3, 0.9  # seconds; the second as it stands in `slow`


def adding(marks: Path) -> Callable[..., Any]:
    def add(a: int, b: int) -> int:
        """Add two integers.

        Args:
            a: The first.
            b: The second.
        """
        with open(marks, "a") as file:
            file.write("x")
        return a + b

    return add


def failing(marks: Path) -> Callable[..., Any]:
    def add(a: int, b: int) -> int:
        """Fail with a secret in the exception.

        Args:
            a: The first.
            b: The second.
        """
        raise RuntimeError("the password is hunter2")

    return add


def slow(marks: Path) -> Callable[..., Any]:
    def add(a: int, b: int) -> int:
        """Take longer than the deadline, then have an effect.

        Args:
            a: The first.
            b: The second.
        """
        time.sleep(0.9)
        with open(marks, "a") as file:
            file.write("x")
        return a + b

    return add


def long(marks: Path) -> Callable[..., Any]:
    def add(a: int, b: int) -> str:
        """Answer with ten million characters.

        Args:
            a: The first.
            b: The second.
        """
        return "x" * 10_000_000

    return add


def runs(marks: Path) -> int:
    return marks.stat().st_size if marks.exists() else 0


async def said(path: ToolPath, arguments: str, id: str = "call-1") -> str:
    """What the model would read, or what would end the program."""
    try:
        return await path.call(id, arguments)
    except Exception as error:  # noqa: BLE001
        return f"raises {type(error).__name__}: {error}"


async def probe(maker: type[ToolPath], folder: Path) -> dict[str, str]:
    """Question -> answer, for one framework."""
    found: dict[str, str] = {}
    asked = {
        "the same key twice": '{"a": 1, "a": 17, "b": 25}',
        "text for an integer": '{"a": "17", "b": 25}',
        "an argument too many": '{"a": 17, "b": 25, "to": "eve"}',
    }
    for number, (question, arguments) in enumerate(asked.items()):
        marks = folder / f"marks-{number}"
        path = maker(adding(marks), folder)
        text = await said(path, arguments)
        path.close()
        found[question] = "refused" if not runs(marks) else "runs" if text == "42" else f"runs, and answers {text!r}"
    marks = folder / "twice"
    path = maker(adding(marks), folder)
    for _ in range(2):
        await said(path, GOOD)
    path.close()
    found["the same call id twice"] = f"runs {runs(marks)} x"
    path = maker(failing(folder / "fails"), folder)
    text = await said(path, GOOD)
    path.close()
    found["an exception's text"] = (
        "kept back" if SECRET not in text else "raised" if text.startswith("raises") else "shown"
    )
    path = maker(long(folder / "long"), folder)
    text = await said(path, GOOD)
    path.close()
    found["10,000,000 characters"] = f"{len(text):,}"
    found["past its deadline"] = await past_deadline(maker, folder)
    return found


async def past_deadline(maker: type[ToolPath], folder: Path) -> str:
    if not maker.has_deadline:
        return "none to set"
    marks = folder / "late"
    try:
        path = maker(slow(marks), folder, DEADLINE)
    except ValueError:
        return "refused when made"
    started = time.monotonic()
    await said(path, GOOD)
    answered = time.monotonic() - started
    await asyncio.sleep(max(0.0, 2 * SLOW - answered))
    path.close()
    return f"{'in time' if answered < (DEADLINE + SLOW) / 2 else 'late'}; {'runs on' if runs(marks) else 'ended'}"
