"""Reading across languages: an English paragraph, and a question about it in another language that is to be answered in
English. MLQA is the paper's (Lewis et al. 2020); XQuAD (Artetxe et al. 2020) stands in for it.

XQuAD has a file a language, the same questions in each; paragraph and answers are taken from the English one. With
questions in English as well, the sets are the paper's upper bound ("All En").
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from toolwise.evals.tasks.base import Example, Loaded, Row, Source, Table, Task, gather
from toolwise.evals.tasks.rules import InFirstWords

PROMPT = (
    "Your task is to answer a question based on the following paragraph: {context} "
    "Now answer the following question in English: {question}"
)
_RULE = InFirstWords(10)
_MAX_TOKENS = 80

#: The paper's six, and English.
LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        **{"es": "Spanish", "de": "German", "hi": "Hindi", "vi": "Vietnamese", "zh": "Chinese", "ar": "Arabic"},
        "en": "English",
    }
)


def _example(language: str, english: Row, question: str) -> Example:
    prompt = PROMPT.format(context=english["context"].strip("\ufeff \n"), question=question.strip("\ufeff \n"))
    return Example(english["id"], prompt, tuple(dict.fromkeys(english["answers"])), {"language": language})


def _mlqa(number: str, row: Row, language: str) -> Example | str:
    return _example(language, row, row["question"])


def _xquad(source: Source, language: str, table: Table) -> Loaded:
    english = {row["id"]: row for _, row in source.rows(_ENGLISH)}

    def make(number: str, row: Row) -> Example | str:
        same = english.get(row["id"])
        return _example(language, same, row["question"]) if same else "not_in_english"

    return gather(source, table, make)


def _flat(row: Row) -> Row:
    return {**row, "answers": row["answers"]["text"]}


def _xquad_table(language: str) -> Table:
    return Table(f"xquad_{language}.jsonl", f"hub:google/xquad:xquad.{language}:validation", _flat)


_ENGLISH = _xquad_table("en")


def _mlqa_task(language: str) -> Task:
    # of the set itself there was only a script
    hub = f"hub:facebook/mlqa@refs/convert/parquet:mlqa.en.{language}:test"
    table = Table(f"mlqa_{language}.jsonl", hub, _flat)
    load = partial(gather, table=table, make=partial(_mlqa, language=language))
    said = f"English paragraphs, questions in {LANGUAGES[language]}"
    return Task(f"mlqa-{language}", said, True, PROMPT, _RULE, load, _MAX_TOKENS, (table,))


def _xquad_task(language: str) -> Task:
    table = _xquad_table(language)
    load = partial(_xquad, language=language, table=table)
    tables = (table,) if language == "en" else (table, _ENGLISH)
    said = f"English paragraphs, questions in {LANGUAGES[language]}"
    return Task(f"xquad-{language}", said, False, PROMPT, _RULE, load, _MAX_TOKENS, tables)


TASKS = (*map(_mlqa_task, LANGUAGES), *map(_xquad_task, LANGUAGES))
