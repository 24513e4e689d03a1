"""Texts in two languages: which are tried, and which translations are proposed in them."""

from __future__ import annotations

import pytest

from toolwise.core.errors import BadInput
from toolwise.core.types import Effect
from toolwise.models.scripted import ScriptedModel, follow
from toolwise.teach.corpus.languages import CHUNK, foreign_runs, mixes_languages
from toolwise.teach.corpus.rules import foreign, rule_named
from toolwise.teach.foreign import ForeignProposer
from toolwise.teach.prepare import prepare
from toolwise.teach.records import Passage
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.language import Guess
from toolwise.tools.registry import tool

ENGLISH = "The garden was made by a king, long ago, for his old mother."
SPANISH = ["El jardín fue hecho por un rey, hace mucho tiempo.", "Hoy está abierto para todos los niños."]
FRENCH = "Le jardin a été fait par un roi, il y a longtemps."
MIXED = f"{ENGLISH} {SPANISH[0]} {SPANISH[1]} It is open. {FRENCH}"
WORDS = {"es": {"El", "fue", "por", "un", "Hoy", "está", "los"}, "fr": {"Le", "été", "fait", "par", "il", "y"}}


def told(text: str) -> Guess:
    """A detector that counts words of our three sentences."""
    counts = {code: len(words & set(text.split())) for code, words in WORDS.items()}
    code = max(counts, key=lambda one: counts[one])
    return Guess(code, 0.9) if counts[code] else Guess("en", 0.9)


@tool(effect=Effect.READ, bounded=True)
def Translate(text: str) -> str:
    """Translate."""
    return text


def test_a_text_is_tried_when_another_language_stands_beside_english():
    assert mixes_languages(MIXED, told)
    assert not mixes_languages(ENGLISH, told)
    assert not mixes_languages(" ".join(SPANISH), told)
    assert not mixes_languages("", told)
    assert foreign(told)(Passage("d#0", "d", 0, ENGLISH), None) == "no_foreign"
    assert foreign(told)(Passage("d#0", "d", 0, MIXED), None) is None


def test_a_piece_inside_a_sentence_counts_when_it_is_long_enough():
    inside = f"Over the door of the house in the old town stood {SPANISH[0][:-1]} in golden letters, for all to see it."
    assert len(SPANISH[0].split()) >= CHUNK
    assert mixes_languages(inside, told)


def test_what_is_not_sure_counts_for_nothing():
    assert not mixes_languages(MIXED, lambda text: told(text)._replace(probability=0.8))


def test_sentences_of_one_language_in_a_row_are_one_run():
    assert [MIXED[a:b] for a, b in foreign_runs(MIXED, told)] == [" ".join(SPANISH), FRENCH]


def test_the_run_and_its_last_sentence_are_proposed_behind_it():
    prepared = prepare([Passage("d#0", "d", 0, MIXED)], ScriptedModel(follow()))[0]
    found = ForeignProposer(Translate, told).propose(prepared)
    behind = MIXED.index(" It is open")
    assert [(c.body, c.offset) for c in found] == [
        (f"Translate({' '.join(SPANISH)})", behind),
        (f"Translate({SPANISH[1]})", behind),
        (f"Translate({FRENCH})", len(MIXED)),
    ]
    assert {c.proposer for c in found} == {"foreign"}


def test_only_a_tool_that_takes_one_text_translates():
    with pytest.raises(BadInput, match="takes no text"):
        ForeignProposer(CALENDAR, told)


def test_the_rule_asks_the_detector_of_the_package():
    assert rule_named("foreign")(Passage("d#0", "d", 0, MIXED), None) is None
    assert rule_named("foreign")(Passage("d#0", "d", 0, ENGLISH), None) == "no_foreign"
