"""A deterministic language model for tests, docs and attacks: it writes what a script says.

The script is a function from the text so far to the text that comes next (`""`: the end). The next token of that
continuation gets most of the probability, every other token shares the rest, so that losses are finite, depend on the
context, and can be worked out by hand. `ScriptedTokenizer` reads bytes; extra pieces make single tokens of longer
strings, such as `" ["` or `")->"`. A marker that a script spells is written as the model writes it: as its own token
where the notation is special. A script that gives ids writes just these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from toolwise.core.jsonio import fingerprint
from toolwise.models.base import Floats, Usage
from toolwise.models.plain import PlainModel
from toolwise.notation.markers import PLAIN, Notation
from toolwise.notation.segments import Ids

END = 256

Script = Callable[[str], "str | tuple[int, ...]"]


def follow(*lines: tuple[str, str]) -> Script:
    """A script of lines (what the text ends with, what comes next), each written to its end; otherwise it stops."""

    def script(text: str) -> str:
        for before, after in lines:
            for written in range(len(after) + 1):
                if text.endswith(before + after[:written]):
                    return after[written:]
        return ""

    return script


class ScriptedTokenizer:
    """Bytes, an end token, then one id for each extra piece and special marker. The longest piece that fits wins."""

    def __init__(
        self, pieces: Sequence[str] = (" [", "]", ")]", ")->", " ->", "->"), notation: Notation = PLAIN
    ) -> None:
        self.pieces = tuple(pieces)
        self.notation = notation
        self._markers = {marker: (END + 1 + len(self.pieces) + i,) for i, marker in enumerate(notation.tokens)}
        self._written = {END: "", **dict(enumerate((*self.pieces, *self._markers), END + 1))}
        self.begin: Ids = ()
        self.control = frozenset({END}).union(*self._markers.values())
        self.control_ids = {marker: id_ for marker, (id_,) in self._markers.items()}
        self.special_names: dict[str, str] = {}
        self.end = frozenset({END})
        self.size = END + len(self._written)
        self._longest_first = sorted(
            ((piece.encode(), END + 1 + i) for i, piece in enumerate(self.pieces)), key=lambda p: -len(p[0])
        )

    def encode(self, text: str) -> Ids:
        data, ids, at = text.encode(), [], 0
        while at < len(data):
            for piece, id_ in self._longest_first:
                if data.startswith(piece, at):
                    ids.append(id_)
                    at += len(piece)
                    break
            else:
                ids.append(data[at])
                at += 1
        return tuple(ids)

    def encode_marker(self, text: str) -> Ids:
        return self._markers.get(text) or self.encode(text)

    def spell(self, text: str) -> Ids:
        """The ids of text that a model writes: its markers are markers."""
        parts = re.split(f"({'|'.join(map(re.escape, self._markers)) or '(?!)'})", text)
        return tuple(id_ for part in parts for id_ in self.encode_marker(part))

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(map(self.bytes_of, ids)).decode(errors="replace")

    def bytes_of(self, token: int) -> bytes:
        """What one token stands for, which may be a part of a character."""
        return bytes([token]) if token < END else self._written[token].encode()


class ScriptedModel(PlainModel):
    """The whole protocol over a script. `certainty` is the probability of the token that the script wants next."""

    def __init__(
        self,
        script: Script,
        tokenizer: ScriptedTokenizer | None = None,
        *,
        certainty: float = 0.9,
        name: str = "scripted",
    ) -> None:
        self.tokenizer = tokenizer or ScriptedTokenizer()
        self.name = name
        pieces = [*self.tokenizer.pieces, *self.tokenizer.notation.tokens]
        self.fingerprint = fingerprint({"name": name, "pieces": pieces, "certainty": certainty})
        self._script = script
        self._certainty = certainty
        super().__init__(self._logits, self.tokenizer, Usage())

    def _logits(self, ids: Ids, rows: int) -> Floats:
        self.usage.add(len(ids), rows)
        return np.stack([self._next(ids[: end + 1]) for end in range(len(ids) - rows, len(ids))])

    def _next(self, ids: Ids) -> Floats:
        size = self.tokenizer.size
        wanted = self._wanted(ids)
        row = np.full(size, np.log((1 - self._certainty) / (size - 1)), dtype=np.float32)
        row[wanted[0] if wanted else END] = np.log(self._certainty)
        return row

    def _wanted(self, ids: Ids) -> Ids:
        """The tokens that the script wants next. Inside a character it is asked what it wanted before it."""
        for inside in range(4):
            known, begun = ids[: len(ids) - inside], ids[len(ids) - inside :]
            text = self.tokenizer.decode(known)
            if not text.endswith("\ufffd"):
                said = self._script(text)
                written = said if isinstance(said, tuple) else self.tokenizer.spell(said)
                return written[inside:] if written[:inside] == begun else ()
        return ()
