"""Calls that translate what a passage says in another language, where its English goes on.

A model of some hundred million parameters seldom copies a sentence out right; this writes each foreign one for it. The
filter decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.core.schema import raw_argument
from toolwise.core.types import Tool
from toolwise.notation.inline import PLAIN, Notation, write_body
from toolwise.teach.corpus.languages import Tell, bare_sentences, foreign_runs
from toolwise.teach.prepare import Prepared
from toolwise.teach.propose import new_candidate
from toolwise.teach.records import Candidate


@dataclass(frozen=True, slots=True)
class ForeignProposer:
    """Translations of the foreign sentences of a passage, each behind them."""

    tool: Tool
    detect: Tell
    notation: Notation = PLAIN

    name = "foreign"

    def __post_init__(self) -> None:
        if raw_argument(self.tool.parameters) is None:
            raise BadInput(f"{self.tool.name} takes no text; use the proposer `foreign` for a translator only.")

    def propose(self, prepared: Prepared) -> list[Candidate]:
        text, argument = prepared.passage.text, raw_argument(self.tool.parameters)
        position_at = {offset: i for i, offset in enumerate(prepared.offsets) if offset is not None}
        assert argument is not None
        candidates = []
        for start, end in foreign_runs(text, self.detect):
            position = position_at.get(end)
            if position is None:
                continue
            whole = text[start:end]
            last = [whole[a:b] for a, b in bare_sentences(whole)][-1]
            for said in dict.fromkeys([whole, last]):
                if len(said) <= LIMITS.translate_chars and len(self._body(argument, said)) <= LIMITS.call_chars:
                    body = self._body(argument, said)
                    candidates.append(new_candidate(prepared, self.tool.name, position, body, self.name, None, None))
        return candidates

    def _body(self, argument: str, text: str) -> str:
        return write_body(self.tool, {argument: " ".join(text.split())}, self.notation)
