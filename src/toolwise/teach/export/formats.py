"""The formats by name, and `export`, which writes one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.teach.export import dataset, messages, text, tokens
from toolwise.teach.export.output import whole
from toolwise.teach.export.run import Run
from toolwise.teach.export.tokens import Encoding
from toolwise.teach.records import Augmented

_MARK = re.compile(
    r"<[|｜][^\s<>|｜]{1,40}[|｜]>|</?s>|\[/?(?:INST|TOOL_CALLS)\]|</?tool_call>|<(?:start|end)_of_turn>"
)

#: Writes a run to a path that is free; returns how many passages were dropped for which reason.
Writer = Callable[[Run, Path], Mapping[str, int]]

#: What each format may be called on disk; `""` is a folder of any name.
FORMATS: Mapping[str, tuple[str, ...]] = {
    "text": (".jsonl", ".txt"),
    "messages": (".jsonl",),
    "tokens": (".parquet",),
    "datasets": ("",),
}


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: `passages` and `calls` of C* were read, and of the passages `dropped` were left out.

    `marked` passages spell what models use as control tokens, `<|im_end|>` or `[INST]`, in a text or in a result. Only
    as tokens is that sure to stay text.
    """

    format: str
    out: Path
    passages: int
    calls: int
    marked: int
    dropped: Mapping[str, int]


def export(run: Run, to: str, out: Path, encoding: Encoding | None = None) -> Exported:
    """Write a run to `out` in the format `to`, whole or not at all. Tokens need an `encoding`.

    An `out` that says the same already is left as it is. Raises BadInput for a format that is not known, an `out` that
    says something else or cannot be used, and a run without anything to export; StorageUnavailable.
    """
    check_format(to, out)
    counts: Counter[str] = Counter()
    with whole(out) as path:
        dropped = _writer(to, out.suffix, encoding)(replace(run, rows=_counted(run, counts)), path)
        if not counts["passages"]:
            raise BadInput("The run kept no call, so there is nothing to export; toolwise report says why.")
        if sum(dropped.values()) == counts["passages"]:
            raise BadInput(f"No passage can be exported ({dict(dropped)}); annotate with this model's tokenizer.")
    return Exported(to, out, counts["passages"], counts["calls"], counts["marked"], dict(dropped))


def check_format(to: str, out: Path) -> None:
    """Raises BadInput unless there is such a format and `out` is named as its files are."""
    if to not in FORMATS:
        near = get_close_matches(to, FORMATS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(FORMATS)}."
        raise BadInput(f"There is no format {quote(to)}; {hint}")
    endings = FORMATS[to]
    if "" not in endings and out.suffix not in endings:
        raise BadInput(f"Give a file name that ends in {' or '.join(endings)} for {to}.")


def _writer(to: str, suffix: str, encoding: Encoding | None) -> Writer:
    if to == "text":
        return text.write_txt if suffix == ".txt" else text.write_jsonl
    if to == "messages":
        return messages.write
    if to == "datasets":
        return dataset.write
    if encoding is None:
        raise BadInput("Tokens are those of a model: name it with --model.")
    return partial(tokens.write, encoding=encoding)


def _counted(run: Run, counts: Counter[str]) -> Iterator[Augmented]:
    for row in run.rows:
        counts["passages"] += 1
        counts["calls"] += len(row.spans)
        counts["marked"] += (
            _MARK.search(row.text.replace("\\", "")) is not None
        )  # escaped in a result, and not in messages
        yield row
