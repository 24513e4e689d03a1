"""Where a call could stand, and what it could say. Whoever proposes, the same filter decides.

`LMProposer` is the paper's (section 2, sampling): positions where the open marker is likely, then samples from there.
Two ways beyond the paper help a small model: `named` writes the tool's name for it, so that it samples arguments only;
`spread` tries each call that it wrote at the likeliest positions of the passage, since one that it finds in one place
often belongs into another. One that was tuned on calls can go without a prompt (`prompted` False): it reads the text up
to the position and nothing else, as when it answers. `expressions.py` has a proposer that needs no language model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from toolwise.core.errors import BadInput, InvalidArguments, MalformedCall, ToolwiseError
from toolwise.core.schema import Validator
from toolwise.core.types import Tool
from toolwise.models.base import Branch, Context, LanguageModel, Sampling, marker_id
from toolwise.models.masks import Matcher, masks_of
from toolwise.notation.grammar.inline import inline_grammar
from toolwise.notation.inline import PLAIN, Notation, read_arguments, read_body, scan, write_body
from toolwise.notation.segments import Ids, Tokenizer
from toolwise.teach.config import Settings, ToolSettings
from toolwise.teach.corpus.numbers import numbers
from toolwise.teach.prepare import Prepared
from toolwise.teach.prompts import Prompt
from toolwise.teach.records import Candidate


class Proposer(Protocol):
    """Proposes candidates for one passage; those that are no calls at all come back with their reason."""

    @property
    def name(self) -> str: ...

    def propose(self, prepared: Prepared) -> list[Candidate]: ...


class LMProposer:
    """The paper's sampling, for one tool. With `sampled` False the model only says where to call.

    That is enough for a tool without arguments: there is one call to write, and a small model would seldom write it.
    """

    def __init__(
        self,
        model: LanguageModel,
        tool: Tool,
        prompt: Prompt,
        settings: Settings,
        notation: Notation = PLAIN,
        *,
        sampled: bool = True,
    ) -> None:
        if not sampled and tool.parameters.get("properties"):
            raise BadInput(f"{tool.name} takes arguments, so its calls must be sampled; use the proposer `lm`.")
        self.name = "lm" if sampled else "lm_positions"
        self._sampled = sampled
        self._model = model
        self._tool = tool
        self._prompt = prompt
        self._settings = settings
        self._own: ToolSettings = settings.tools[tool.name]
        self._notation = notation
        self._marker = marker_id(model.tokenizer, notation)
        self._validator = Validator(tool.parameters)
        self._begun = f"{tool.name}(" if self._own.named else ""  # what is written for the model
        begun = model.tokenizer.encode(self._begun)
        self._sampling = Sampling(
            self._own.m,
            (self._marker, *begun),
            stop=lambda text: scan(self._begun + text, notation) is not None,
            max_tokens=settings.call_tokens,
            temperature=settings.temperature if self._own.temperature is None else self._own.temperature,
            seed=settings.seed,
            held=_held(model.tokenizer, tool, notation, begun) if sampled and settings.strict_calls else None,
        )
        begin = model.tokenizer.begin
        self._head = begin + model.tokenizer.encode(prompt.head()) if self._own.prompted else ()
        self._bare = begin or model.tokenizer.encode("\n")  # something must stand before the first position

    def propose(self, prepared: Prepared) -> list[Candidate]:
        context = Context(self._head, self._shown(prepared), prepared.ids)
        everywhere = self._model.marker_probs([context], self._marker)[0]
        probs = [float(everywhere[place]) for place in prepared.places]
        chosen, candidates = [], []
        for position in self._likeliest(prepared, probs, self._own.k):
            if self._settings.early_bounds and prepared.loss_none[position] < self._own.floor:
                # gain <= loss_none, since losses are never negative: nothing written here could be kept
                candidates.append(self._candidate(prepared, position, "", probs[position], "bound"))
            else:
                chosen.append(position)
        if not self._sampled:
            body = write_body(self._tool, {}, self._notation)
            return candidates + [self._candidate(prepared, i, body, probs[i], None) for i in chosen]
        cuts = [prepared.places[position] for position in chosen]
        for position, row in zip(chosen, self._model.branch(context, cuts, self._sampling), strict=True):
            candidates.extend(self._read(prepared, position, branch, probs[position]) for branch in row)
        return candidates + self._spread(prepared, probs, candidates)

    def _shown(self, prepared: Prepared) -> Ids:
        if not self._own.prompted:
            return self._bare
        return self._model.tokenizer.encode(self._prompt.body(prepared.passage.text))

    def _spread(self, prepared: Prepared, probs: Sequence[float], sampled: Sequence[Candidate]) -> list[Candidate]:
        """The calls that were sampled, at the likeliest positions at which they were not; never within a number."""
        bodies = dict.fromkeys(row.body for row in sampled if row.reason is None and self._fits(row.body))
        known = {(row.position, row.body) for row in sampled}
        within = {at for number in numbers(prepared.passage.text) for at in range(number.start + 1, number.end)}
        return [
            new_candidate(prepared, self._tool.name, position, body, "spread", probs[position], None)
            for position in self._likeliest(prepared, probs, self._own.spread)
            if prepared.offsets[position] not in within
            for body in bodies
            if (position, body) not in known
        ]

    def _fits(self, body: str) -> bool:
        """Whether the tool could take the arguments: what it refuses in one place it refuses in all."""
        try:
            self._validator.validate(read_arguments(read_body(body, self._notation)[1], self._tool, self._notation))
        except ToolwiseError:
            return False
        return True

    def _likeliest(self, prepared: Prepared, probs: Sequence[float], count: int) -> list[int]:
        """At most so many positions whose marker probability is above tau_s, in order; ties to the earlier one."""
        first = 0 if self._model.tokenizer.begin else 1  # without a BOS the first token has no loss to lower
        possible = [
            position
            for position, place in enumerate(prepared.places)
            if place >= first and prepared.offsets[position] is not None and probs[position] > self._own.tau_s
        ]
        return sorted(sorted(possible, key=lambda i: -probs[i])[:count])

    def _read(self, prepared: Prepared, position: int, branch: Branch, prob: float) -> Candidate:
        text = self._begun + branch.text
        end = scan(text, self._notation) if branch.stopped else None
        if end is None or end.kind == "newline":
            return self._candidate(prepared, position, text, prob, "unclosed")
        written = text[: end.at].strip()
        try:
            name, raw = read_body(written, self._notation)
            if name != self._tool.name:
                return self._candidate(prepared, position, written, prob, "unknown_tool")
            body = write_body(self._tool, read_arguments(raw, self._tool, self._notation), self._notation)
        except (MalformedCall, InvalidArguments):
            return self._candidate(prepared, position, written, prob, "unparsable")
        return self._candidate(prepared, position, body, prob, None)

    def _candidate(self, prepared: Prepared, position: int, body: str, prob: float, reason: str | None) -> Candidate:
        return new_candidate(prepared, self._tool.name, position, body, self.name, prob, reason)


def _held(tokenizer: Tokenizer, tool: Tool, notation: Notation, begun: Ids) -> Matcher:
    """The mask of this tool's calls, behind what is written for the model."""
    matcher = masks_of(tokenizer).matcher(inline_grammar([tool], notation))  # type: ignore[arg-type]
    if not matcher.read(begun):
        raise BadInput(f"{tool.name} cannot be sampled strictly; set strict_calls = false.")
    return matcher


def new_candidate(
    prepared: Prepared, tool: str, position: int, body: str, proposer: str, prob: float | None, reason: str | None
) -> Candidate:
    offset = prepared.offsets[position]
    assert offset is not None
    return Candidate(prepared.passage.id, tool, position, offset, body, proposer, prob, reason=reason)
