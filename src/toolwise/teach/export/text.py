"""Augmented texts for trainers that read plain text: the calls stand in them as the paper writes them.

JSON Lines hold any text. A `.txt` file is one long text, as nanoGPT and many scripts read it: behind each passage comes
a line with GPT-2's mark of a text's end. A passage that spells that mark is refused there, since readers could not tell
the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from toolwise.core.errors import BadInput
from toolwise.teach.export.output import write_lines
from toolwise.teach.export.run import Run

END = "<|endoftext|>"
SEPARATOR = f"\n{END}\n"


def write_jsonl(run: Run, path: Path) -> Mapping[str, int]:
    """A passage a line: `id`, `document`, `text` with its calls, `plain` without them."""
    rows = ({"id": r.passage, "document": r.document, "text": r.text, "plain": r.plain} for r in run.rows)
    write_lines(path, rows)
    return {}


def write_txt(run: Run, path: Path) -> Mapping[str, int]:
    """Texts with their calls, `SEPARATOR` behind each. Raises BadInput for a text that holds `END`."""
    with path.open("wb") as stream:
        for row in run.rows:
            if END in row.text:
                raise BadInput(f"Passage {row.passage!r} spells {END}, which ends a text in a .txt; export to .jsonl.")
            stream.write((row.text + SEPARATOR).encode())
    return {}
