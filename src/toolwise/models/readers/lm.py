"""A language model answers: the words of the passages that it finds likeliest behind `Answer:`, whatever else it knows.

A few worked examples, then a passage and the question, passage by passage: small models lose themselves in several at
once. Written freely, a small model's answer is often in no passage; chosen among their spans (`spans`) it cannot be.

Words that the question has already are no answer to it; small models like them best of all.

Not covered: an answer in other words than the passage's, such as a sum of two numbers in it; a question that offers two
answers to choose from.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

from toolwise.core.errors import ToolFailed
from toolwise.core.jsonio import fingerprint, one_line
from toolwise.core.limits import LIMITS, Limits
from toolwise.models.base import LanguageModel, Session
from toolwise.models.readers.spans import Start, likeliest, spans_of
from toolwise.tools.index import Hit
from toolwise.tools.qa import Answer, repeats

_EXAMPLES = (
    (
        "Danube: The Danube is the second-longest river in Europe. It rises in the Black Forest of Germany and "
        "flows for 2,850 kilometres through ten countries before it reaches the Black Sea.",
        "where does the danube begin?",
        "Black Forest",
    ),
    (
        "Aspirin: Aspirin is a medicine that lowers fever and eases pain. It was first made in 1897 by Felix "
        "Hoffmann, a chemist who worked for the company Bayer, and sold under this name from 1899 on.",
        "Who was the first to make aspirin?",
        "Felix Hoffmann",
    ),
    (
        "Bergen: Bergen is a city on the west coast of Norway with some 290,000 inhabitants. Founded by King Olav "
        "Kyrre in 1070, it was for centuries the busiest port of Norway, above all for dried fish.",
        "When was Bergen founded?",
        "1070",
    ),
    (
        "Kenya: Kenya is a country in East Africa. Nairobi is its capital and largest city; Mombasa, on the "
        "coast, is its oldest. English and Swahili are the official languages.",
        "what is the capital of kenya called?",
        "Nairobi",
    ),
    (
        "Steam engine: A steam engine does work with hot steam. Thomas Newcomen built the first one of practical "
        "use in 1712, to pump water out of mines; James Watt made it far better from 1764 on.",
        "What was Newcomen's engine used for?",
        "pump water out of mines",
    ),
)


def _passage(text: str) -> str:
    return f"Passage: {text}\n"


def _question(text: str) -> str:
    return f"Question: {text}\nAnswer:"


_HEAD = "Answer each question with a few words of the passage.\n\n" + "".join(
    f"{_passage(passage)}{_question(question)} {answer}\n\n" for passage, question, answer in _EXAMPLES
)


#: The log-probability, in nats, below which an answer counts as none: 8 %. Of SmolLM2-135M's answers to 600 open
#: questions, hardly a tenth of which their passages answered, 11 of 152 are then right, without a threshold 19 of 600
#: (docs/experiments.md, section 14). Higher is surer and says less: at -1.5 it is 8 of 47.
LEAST = -2.5


class LMReader:
    """`model` gives the model when a question first needs it, so that a tool can be made before its model is loaded.

    The examples are read once, and what was read of the passages of one question is kept for the next: questions about
    one text often find the same ones. So it holds a cache for each passage, and answers one question at a time.

    `identity` says which model that is; left out, it is the run's own, which is part of a run's fingerprint anyway.
    `least` takes the place of `LEAST`; `rank` is the weight of what the search thinks of a passage: the log of its
    score beside the best one's.
    """

    def __init__(
        self,
        model: Callable[[], LanguageModel],
        *,
        identity: str = "the run's model",
        least: float = LEAST,
        rank: float = 2.0,
        limits: Limits = LIMITS,
    ) -> None:
        self.identity = (
            f"{identity}, {fingerprint([_HEAD, least, rank, limits.answer_tokens, limits.answer_steps])[:16]}"
        )
        self._model, self._limits = model, limits
        self._least, self._rank = least, rank
        self._head: tuple[LanguageModel, Session] | None = None
        self._kept: dict[str, tuple[Session, int]] = {}
        self._one = threading.Lock()

    def read(self, question: str, passages: Sequence[Hit]) -> Answer | None:
        """The likeliest span of all passages. Raises ToolFailed for a model whose context is too short for one."""
        if not passages:
            return None
        with self._one:
            model, texts = self._loaded(), [_text(hit) for hit in passages]
            self._kept = {text: self._kept.get(text) or self._begun(text) for text in texts}
            best = max(hit.score for hit in passages)
            starts = [
                self._start(text, question, hit.score / best if best > 0 else 1.0)
                for text, hit in zip(texts, passages, strict=True)
            ]
            ranked = likeliest(starts, _line_ends(model), self._limits.answer_steps)
            found = next((each for each in ranked if not repeats(each.span, question)), None)
        if found is None or found.score < self._least:
            return None
        return Answer(found.span, passages[found.start], found.score)

    def _loaded(self) -> LanguageModel:
        if self._head is None:
            model = self._model()
            session = model.session(model.tokenizer.begin + model.tokenizer.encode(_HEAD))
            _check_room(session)
            session.logits()  # what is fed is read only when something is asked
            self._head = model, session
        return self._head[0]

    def _begun(self, text: str) -> tuple[Session, int]:
        """A session that has been fed a passage behind the examples, and where it ends."""
        assert self._head is not None
        model, head = self._head
        session = head.fork()
        session.feed(model.tokenizer.encode(_passage(text)))
        return session, len(session.ids)

    def _start(self, text: str, question: str, rank: float) -> Start:
        """`rank` is the passage's score beside the best one's."""
        model, (session, length) = self._loaded(), self._kept[text]
        session.rewind(length)
        session.feed(model.tokenizer.encode(_question(question)))
        _check_room(session)
        bonus = self._rank * math.log(rank) if rank > 0 else 0.0
        return Start(session, spans_of(text, model.tokenizer, self._limits.answer_tokens), bonus)


def _text(hit: Hit) -> str:
    return one_line(f"{hit.title}: {hit.text}" if hit.title else hit.text)


def _check_room(session: Session) -> None:
    if session.full:
        raise ToolFailed("the model that reads has no room for a question and a passage; ask a shorter one")


def _line_ends(model: LanguageModel) -> frozenset[int]:
    """The tokens with which an answer may end."""
    tokenizer = model.tokenizer
    return frozenset({*(tokenizer.encode(text)[0] for text in ("\n", "\n\n")), *tokenizer.end})
