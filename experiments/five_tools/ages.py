"""Texts in which a date feeds a calculation, and prompts that ask for one: seeded, so that a chain can be taught.

    python ages.py RUNS [--texts 120] [--prompts 15] [--seed 0]

Writes RUNS/ages.jsonl, each text with its date, and RUNS/ages-prompts.jsonl: other names and years in the same frames,
and one frame that no text has. Texts and prompts never name this year: only the calendar does.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

#: Beginning, and what follows from today's date; a text is both, a prompt the first.
FRAMES = (
    ("{name} was born in {then}. Today is", "{today}, and {name} is {age} years old."),
    (
        "The bridge at {place} was opened in {then}. Today,",
        "{today}, it is {age} years old, and it still carries carts.",
    ),
    ("The school in {place} had its first pupils in {then}. It is", "{today}, and the school is {age} years old."),
    ("{name} planted the oak in {then}. Now it is", "{today}, and the tree is {age} years old."),
)
UNSEEN = ("{name} bought the boat in {place} in {then}. This is", "{today}, and the boat is {age} years old.")
NAMES = ("Ada", "Bruno", "Clara", "Dmitri", "Edith", "Farid", "Greta", "Hugo", "Irene", "Jonas", "Karin", "Luis")
PLACES = ("Aldbury", "Brekke", "Corvo", "Dunmore", "Elster", "Farsund", "Glen", "Hadley")
OTHERS = (("Mara", "Nils", "Olga", "Pavel"), ("Ibsen", "Jura", "Kells", "Lund"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--texts", type=int, default=120)
    parser.add_argument("--prompts", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    rng = random.Random(given.seed)  # noqa: S311
    texts = list(told(rng, FRAMES, NAMES, PLACES, given.texts))
    prompts = list(told(rng, (*FRAMES, UNSEEN), *OTHERS, given.prompts))
    write(given.runs / "ages.jsonl", [pick(one, text=f"{one['begins']} {one['goes_on']}") for one in texts])
    asked = [pick(one, text=one["begins"], answer=one["answer"], unseen=one["unseen"]) for one in prompts]
    write(given.runs / "ages-prompts.jsonl", asked)


def told(
    rng: random.Random, frames: tuple[tuple[str, str], ...], names: tuple[str, ...], places: tuple[str, ...], count: int
) -> Iterator[dict[str, Any]]:
    for number in range(count):
        begins, goes_on = frames[number % len(frames)]
        today, age = day(rng), rng.randint(11, 79)
        words = {"name": rng.choice(names), "place": rng.choice(places), "then": today.year - age, "age": age}
        yield {
            "id": f"{number:03}", "date": today.isoformat(), "begins": begins.format(**words), "answer": str(age),
            "goes_on": goes_on.format(today=f"{today:%A, %B} {today.day}", **words), "unseen": goes_on == UNSEEN[1],
        }  # fmt: skip


def day(rng: random.Random) -> date:
    return date(1978, 1, 1) + timedelta(days=rng.randrange(45 * 365))


def pick(one: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"id": one["id"], "date": one["date"], **rest}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
