"""Whether a tuned model finds a chain while it writes: the date first, then what is computed with it. Prints Markdown.

    python ages_ask.py RUNS MODEL

Asks each of RUNS/ages-prompts.jsonl with both tools, with the calendar alone, and with calls disabled. An answer is
right where the number before "years old" is the age.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from toolwise.core.types import CallContext, Principal
from toolwise.decode.engine import CallEnded, CallStarted, DecodeSettings, Stop, Text, generate
from toolwise.gate.offline import offline_gate
from toolwise.models.base import LanguageModel
from toolwise.models.load import load_model
from toolwise.tools.builtin import builtin_registry

SIDES = {"both tools": ("Calculator", "Calendar"), "calendar alone": ("Calendar",), "disabled": ()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("model")
    given = parser.parse_args()
    prompts = [json.loads(line) for line in (given.runs / "ages-prompts.jsonl").read_text("utf-8").splitlines()]
    model = load_model(given.model)
    say("| | right | - in the unseen frame | calls that ran | chains | tokens run through | tokens of all texts |")
    say("|---|---|---|---|---|---|---|")
    told: list[str] = []
    for side, names in SIDES.items():
        answers = [answered(model, prompt, names) for prompt in prompts]
        unseen = [one for one, prompt in zip(answers, prompts, strict=True) if prompt["unseen"]]
        right, seen = (sum(one["right"] for one in some) for some in (answers, unseen))
        ran, chains, read, fed = (sum(one[part] for one in answers) for part in ("ran", "chain", "read", "fed"))
        say(f"| {side} | {right} of {len(answers)} | {seen} of {len(unseen)} | {ran} | {chains} | {read} | {fed} |")
        told += ["", f"{side}:", "", *(f"- {one['shown']}" for one in answers)]
    say("\n".join(told))


def answered(model: LanguageModel, prompt: dict[str, str], names: tuple[str, ...]) -> dict[str, Any]:
    gate = offline_gate(builtin_registry(names or ("Calculator",)))
    context = CallContext(Principal("ages"), "ages", today=prompt["date"])
    settings = DecodeSettings(enabled=bool(names), start_top_k=3, max_calls=2, max_tokens=64, stop=("\n", "old"))
    before = model.usage.positions
    events = list(generate(model, prompt["text"], gate, context, settings))
    said = "".join(event.text for event in events if isinstance(event, Text))
    shown = "".join(e.text if isinstance(e, Text) else getattr(e, "inserted", "") for e in events)
    started = [event.call.text for event in events if isinstance(event, CallStarted)]
    ended = [event.result for event in events if isinstance(event, CallEnded) and event.result.ok]
    year = prompt["date"][:4]
    age = re.search(r"(\d+) years ?\Z", said)
    (stop,) = (event for event in events if isinstance(event, Stop))
    return {
        "right": age is not None and age[1] == prompt["answer"],
        "ran": len(ended),
        "chain": len(started) == 2
        and started[0].startswith("Calendar")
        and started[1].startswith(f"Calculator({year}"),
        "read": model.usage.positions - before,
        "fed": stop.fed,
        "shown": f"{prompt['text']}**{shown}**",
    }


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
