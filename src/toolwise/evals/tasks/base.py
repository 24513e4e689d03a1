"""What a task is: examples that a model is asked, a rule that reads its answer, and where both come from.

A task knows no model. It gives prompts; whoever asks gives it the text that was written, calls left out, and gets a
verdict. The verdict is asked for while the text is still being written, so that decoding can end as soon as nothing
can change it any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from toolwise.core import jsonio
from toolwise.core.errors import BadInput

Row = Mapping[str, Any]

#: Why a row of a set is no example.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        "mask_not_last": "what is missing is not the end of the text, which a model could continue",
        "no_template": "the relation has no sentence to ask with",
        "not_one_number": "the answer is not one number, which is all that the rule reads",
        "no_answer": "no answer that is right holds a letter or digit",
        "not_in_english": "the question has no English counterpart, from which the paragraph and the answers are",
        "repeated": "an earlier row asks the same, or has the same id",
    }
)


@dataclass(frozen=True, slots=True)
class Example:
    """One question as the model is asked, and every answer that is right.

    `today` is what the calendar is to say, an ISO date that may be partial (`CallContext.today`); None where the set
    has no day of its own, and then the run's settings say one. `about` is what a report may group by.
    """

    id: str
    prompt: str
    answers: tuple[str, ...]
    about: Mapping[str, Any] = field(default_factory=dict)
    today: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """`read` is what the rule took for the answer, None where it found none. `settled`: no text behind this one can
    change `right` or `read`; a finished text is."""

    right: bool
    read: str | None
    settled: bool


class Rule(Protocol):
    """How an answer is read. `said` is the rule in words."""

    @property
    def said(self) -> str: ...

    def judge(self, answers: Sequence[str], text: str, finished: bool) -> Verdict:
        """The verdict on `text`. `finished`: it ends here because the model ended it; otherwise it was cut off, or is
        still being written, and a word or number at its very end may be the beginning of another."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one file, and of the data set of the hub with the same rows (`hub:owner/name:config:split`; `""` for
    none). `shape` gives a row of the hub the fields that the file has."""

    file: str
    hub: str = ""
    shape: Callable[[Row], Row] = dict


class Source(Protocol):
    """Where rows come from."""

    def rows(self, table: Table) -> Iterator[tuple[str, Row]]:
        """Every row with its place in words. Raises BadInput where there are none, or not of this table."""

    def digest(self, table: Table) -> str:
        """Which data that is, in some hex digits. Raises BadInput."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A task's examples, and how many rows were left out for which reason."""

    examples: tuple[Example, ...]
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Task:
    """One set of questions. `paper`: one of the paper's. `prompt` is its wording for a reader, with `{names}`.

    `without` are the tools that are off, since they would hold the answers; `max_tokens` is what an answer may take,
    its calls included. A task without tables makes its examples itself.
    """

    name: str
    said: str
    paper: bool
    prompt: str
    rule: Rule
    load: Callable[[Source], Loaded]
    max_tokens: int
    tables: tuple[Table, ...] = ()
    without: tuple[str, ...] = ()

    def judge(self, example: Example, text: str, finished: bool) -> Verdict:
        """The verdict on what was written, without its calls; `finished` as in `Rule.judge`."""
        return self.rule.judge(example.answers, text, finished)

    def digest(self, source: Source) -> str:
        """Which data its examples are made of. Raises BadInput as `load` does."""
        if self.tables:
            return " ".join(map(source.digest, self.tables))
        made = [[example.id, example.prompt, *example.answers] for example in self.load(source).examples]
        return jsonio.fingerprint([jsonio.fingerprint(one) for one in made])[:16]


def gather(source: Source, table: Table, make: Callable[[str, Row], Example | str]) -> Loaded:
    """What `make` gives for each row and its number in the table: an example, or the reason why it is none.

    An id that was there already is `repeated`. Raises BadInput for a row that `make` cannot read.
    """
    examples: dict[str, Example] = {}
    dropped: Counter[str] = Counter()
    for number, (place, row) in enumerate(source.rows(table), 1):
        try:
            made = make(f"{number:05d}", row)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise BadInput(
                f"{place}: not a row as {table.file!r} has them; give the set that the task names."
            ) from error
        if isinstance(made, str):
            dropped[made] += 1
        elif made.id in examples:
            dropped["repeated"] += 1
        else:
            examples[made.id] = made
    return Loaded(tuple(examples.values()), MappingProxyType(dict(dropped)))
