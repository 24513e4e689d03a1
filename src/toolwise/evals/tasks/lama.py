"""Texts whose last words are missing: LAMA (Petroni et al. 2019) and TempLAMA (Dhingra et al. 2022).

T-REx and Google-RE are asked as LAMA asks them: with one sentence a relation, into which the subject is written. (The
sentences of Wikipedia that come along, in which something is masked, are not asked.) As in the paper, only a text whose
mask is its end is taken; punctuation may stand behind it.

TempLAMA's facts hold in some years. The paper does not say how the year is told; here the calendar says it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from toolwise.evals.tasks.base import Example, Loaded, Row, Source, Table, Task, gather
from toolwise.evals.tasks.rules import InFirstWords

PROMPT = "Please complete the following text so that it is factually correct: {text}"
_RULE = InFirstWords(5)
_MAX_TOKENS = 64
_EXPORT = "hub:facebook/lama@refs/convert/parquet"  # of the set itself there is only a script

#: LAMA's own for Google-RE (its `scripts/run_experiments.py`); for T-REx they come with the data.
_GOOGLE_RE = {
    "place_of_birth": "[X] was born in [Y] .",
    "place_of_death": "[X] died in [Y] .",
    "date_of_birth": "[X] (born [Y]).",
}


def _before(mask: str, text: str) -> str | None:
    """What stands before a mask that ends the text; None where more than punctuation stands behind it."""
    before, found, behind = text.partition(mask)
    return before.rstrip() if found and before.strip() and not re.search(r"\w", behind) else None


def _example(id_: str, text: str | None, answers: tuple[str, ...], about: Mapping[str, Any]) -> Example | str:
    return "mask_not_last" if text is None else Example(id_, PROMPT.format(text=text), answers, about)


def _squad(number: str, row: Row) -> Example | str:
    (text,) = row["masked_sentences"]
    return _example(row["id"], _before("[MASK]", text), (row["obj_label"],), {})


def _fact(templates: Mapping[str, str], row: Row, *others: str) -> Example | str:
    relation, subject = row["relation"], row["sub_label"]
    if relation not in templates:
        return "no_template"
    text = _before("[Y]", templates[relation].replace("[X]", subject))
    return _example(row["uuid"], text, (row["obj_label"], *others), {"relation": relation})


def _google_re(number: str, row: Row) -> Example | str:
    return _fact(_GOOGLE_RE, row, *row["obj_aliases"])


def _load_trex(source: Source) -> Loaded:
    templates = {row["relation"]: row["template"] for _, row in source.rows(_RELATIONS)}
    seen: set[tuple[str, str, str]] = set()

    def fact(number: str, row: Row) -> Example | str:
        said = (row["relation"], row["sub_label"], row["obj_label"])
        if said in seen:  # the whole set has a row for each sentence that says it
            return "repeated"
        seen.add(said)
        return _fact(templates, row)

    return gather(source, _TREX, fact)


def _templama(number: str, row: Row) -> Example | str:
    text = _before("_X_", row["query"])
    if text is None:
        return "mask_not_last"
    answers = [name for answer in row["answer"] for name in (answer["name"], *(answer.get("aliases") or ()))]
    about = {"relation": row["relation"], "year": row["date"]}
    return Example(row["id"], PROMPT.format(text=text), tuple(answers), about, today=row["date"])


def _hub_squad(row: Row) -> Row:
    return {**row, "masked_sentences": [row["masked_sentence"]]}


def _hub_google_re(row: Row) -> Row:
    return {**row, "relation": row["pred"].rpartition("/")[2], "obj_aliases": []}


def _hub_trex(row: Row) -> Row:
    return {**row, "relation": row["predicate_id"]}


def _hub_relation(row: Row) -> Row:
    return {"relation": row["predicate_id"], "template": row["template"]}


_SQUAD = Table("lama_squad.jsonl", f"{_EXPORT}:squad:train", _hub_squad)
_GOOGLE = Table("lama_google_re.jsonl", f"{_EXPORT}:google_re:train", _hub_google_re)
_TREX = Table("lama_trex.jsonl", f"{_EXPORT}:trex:train", _hub_trex)
_RELATIONS = Table("lama_relations.jsonl", f"{_EXPORT}:trex:train", _hub_relation)
_TEMPLAMA = Table("templama.jsonl", "hub:Yova/templama:default:test")


def _lama(name: str, said: str, load: Callable[[Source], Loaded], *tables: Table) -> Task:
    return Task(name, said, True, PROMPT, _RULE, load, _MAX_TOKENS, tables, without=("Search",))


TASKS = (
    _lama(
        "lama-squad", "LAMA: statements made of SQuAD's questions", partial(gather, table=_SQUAD, make=_squad), _SQUAD
    ),
    _lama(
        "lama-google-re",
        "LAMA: births and deaths of Google-RE",
        partial(gather, table=_GOOGLE, make=_google_re),
        _GOOGLE,
    ),
    _lama("lama-trex", "LAMA: facts of T-REx", _load_trex, _TREX, _RELATIONS),
    Task(
        "templama",
        "Facts that change with the year",
        True,
        PROMPT,
        _RULE,
        partial(gather, table=_TEMPLAMA, make=_templama),
        _MAX_TOKENS,
        (_TEMPLAMA,),
    ),
)
