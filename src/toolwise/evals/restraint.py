"""Does a model call where nothing wants a call? Sentences of plain texts are begun, and the model goes on with them.

The first words of a sentence are the prompt; then a fixed number of tokens is written. Sentences that hold a digit are
left out unless they are asked for, since a calculator or a calendar may well be wanted there: which texts want no call
is the choice of whoever names them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

from toolwise.core.types import Document
from toolwise.documents.sentences import sentences
from toolwise.documents.sources import read_sources, source
from toolwise.evals.compare import Arm
from toolwise.evals.intervals import Interval, Ratio, mean_interval, ratio_interval
from toolwise.evals.shown import markdown, share_cells
from toolwise.evals.tasks.base import Example, Loaded, Source, Task, Verdict

NAME = "restraint"
DOCUMENTS = 1_000  # that are read
_PROMPT, _SENTENCE = 6, 12  # words of a prompt, and of a sentence at least


@dataclass(frozen=True, slots=True)
class NothingAsked:
    """No answer is right, and no text settles that: the model writes all its tokens."""

    said: str = "nothing is asked: what counts is whether it calls"

    def judge(self, answers: Sequence[str], text: str, finished: bool) -> Verdict:
        return Verdict(False, None, settled=False)


def restraint_task(texts: str, tokens: int, digits: bool = False) -> Task:
    """The sentences of these texts (a file, a folder, `hub:...`), begun, as a task. Raises BadInput as reading does."""

    def load(_: Source) -> Loaded:
        return _beginnings(list(islice(read_sources([source(texts)]), DOCUMENTS)), digits)

    prompt = f"the first {_PROMPT} words of a sentence{'' if digits else ' without digits'}"
    return Task(NAME, "Texts that want no call", False, prompt, NothingAsked(), load, tokens)


def _beginnings(documents: Sequence[Document], digits: bool) -> Loaded:
    found: dict[str, Example] = {}
    dropped: Counter[str] = Counter()
    for document in documents:
        for start, end in sentences(document.text):
            words = document.text[start:end].split()
            prompt = " ".join(words[:_PROMPT])
            if len(words) < _SENTENCE:
                dropped["short"] += 1
            elif not digits and any(letter.isdigit() for word in words for letter in word):
                dropped["digit"] += 1
            elif prompt in found:
                dropped["repeated"] += 1
            else:
                found[prompt] = Example(f"{document.id}:{start}", prompt, ())
    return Loaded(tuple(found.values()), dict(dropped))


@dataclass(frozen=True, slots=True)
class Restraint:
    """How often an arm called: the share of texts with a call, calls for 1,000 tokens that the model chose, and by
    tool."""

    arm: str
    texts: int
    calling: Interval
    calls: int
    per_thousand: Ratio | None
    tools: dict[str, int]


def restraints(arms: Sequence[Arm]) -> list[Restraint]:
    found = []
    for arm in arms:
        rows = [row for row in arm.rows if row["task"] == NAME]
        calling = mean_interval([bool(row["calls"]) for row in rows])
        if calling is None:
            continue
        made = [len(row["calls"]) for row in rows]
        rate = ratio_interval([1_000 * count for count in made], [row["sampled"] for row in rows])
        names = Counter(str(call["name"]) for row in rows for call in row["calls"])
        found.append(Restraint(arm.label, len(rows), calling, sum(made), rate, dict(names.most_common())))
    return found


def table(found: Sequence[Restraint]) -> str:
    """As Markdown, shares in per cent."""
    head = ["arm", "texts", "texts with a call", "95 %", "calls a thousand tokens", "95 %", "tools called"]
    return markdown(head, [_cells(one) for one in found])


def _cells(one: Restraint) -> list[str]:
    rate = one.per_thousand
    cells = [one.arm, str(one.texts), *share_cells(one.calling)]
    cells += [f"{rate.value:.1f}", f"{rate.low:.1f} to {rate.high or rate.low:.1f}"] if rate else ["–", "–"]
    return [*cells, ", ".join(f"{name} {count}" for name, count in one.tools.items()) or "–"]


def as_json(found: Sequence[Restraint]) -> list[dict[str, Any]]:
    return [asdict(one) for one in found]
