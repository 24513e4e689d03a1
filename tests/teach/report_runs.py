"""Run folders for the tests of reports, made row by row."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolwise.teach.config import Control, Settings, ToolSettings
from toolwise.teach.keep import keep, threshold
from toolwise.teach.records import Candidate, Passage
from toolwise.teach.store import Store

TEXT = "The mill ground 24 sacks in the morning and 18 in the afternoon, so the carter drove 42 sacks to the harbour."
PLACE = TEXT.index(" 42")

Shards = Sequence[tuple[Sequence[Passage], Sequence[Candidate]]]


def settings(tau_f: float | Control = 0.5, tools: Sequence[str] = ("Calculator",)) -> Settings:
    return Settings(tools={name: ToolSettings(tau_f=tau_f) for name in tools})


def passage(number: int, text: str = TEXT) -> Passage:
    return Passage(f"doc{number}#0", f"doc{number}", 0, text)


def scored(number: int, gain: float, control: float | None = -0.1, **changes: Any) -> Candidate:
    """A call that came through the scorer, in passage `number`."""
    row: dict[str, Any] = {
        "passage": f"doc{number}#0",
        "tool": "Calculator",
        "position": 20,
        "offset": PLACE,
        "body": "Calculator(24 + 18)",
        "proposer": "lm",
        "result": "42",
        "loss_none": 3.0,
        "loss_call": 2.8,
        "loss_result": 2.8 - gain,
        "control_result": "17",
        "loss_control": None if control is None else 2.8 - control,
        "gain": gain,
        "control_gain": control,
    }
    return Candidate(**{**row, **changes})


def dropped(number: int, reason: str, **changes: Any) -> Candidate:
    """A call that never reached the scorer."""
    row: dict[str, Any] = {
        "passage": f"doc{number}#0",
        "tool": "Calculator",
        "position": 20,
        "offset": PLACE,
        "body": "Calculator(24 +",
        "proposer": "lm",
        "reason": reason,
    }
    return Candidate(**{**row, **changes})


def not_tried(number: int, reason: str = "no_numbers", tool: str = "Calculator") -> Candidate:
    return Candidate(f"doc{number}#0", tool, -1, -1, "", "rule", reason=reason)


def begun_with(own: Settings) -> dict[str, Any]:
    return {"model": "a" * 64, "corpus": "b" * 64, "limit": None, "settings": own.model_dump(mode="json")}


def write_run(folder: Path, work: Shards, own: Settings, *, scored_shards: int | None = None) -> Path:
    """A run over the shards. With `scored_shards` it is killed after so many of them, otherwise it is finished."""
    with Store.open(folder, begun_with(own)) as store:
        for index, (passages, _) in enumerate(work):
            store.write_shard("passages", index, passages)
        for index, (_, rows) in enumerate(work[:scored_shards]):
            store.write_shard("scored", index, rows)
        if scored_shards is not None:
            return folder
        every = [row for _, rows in work for row in rows]
        found = {name: threshold(one.tau_f, [r for r in every if r.tool == name]) for name, one in own.tools.items()}
        for index, (_, rows) in enumerate(work):
            store.write_shard("candidates", index, keep(list(rows), found))
        store.finish({"thresholds": {name: value if value < float("inf") else None for name, value in found.items()}})
    return folder
