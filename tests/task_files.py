"""Small data of our own for every task: in the shape of its file, and as the hub has the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]

_PARAGRAPH = "The lighthouse of Skarvik was built in 1871. Its first keeper was Ane Holm."
_BUILT = {"en": "When was the lighthouse built?", "es": "¿Cuándo se construyó el faro?", "ar": "متى بنيت المنارة؟"}
_BUILT |= {"de": "Wann wurde der Leuchtturm gebaut?", "hi": "लाइटहाउस कब बना?", "vi": "Ngọn hải đăng được xây khi nào?"}
_BUILT |= {"zh": "灯塔是什么时候建成的？"}

FILES: dict[str, Rows] = {
    "lama_squad.jsonl": [
        {"masked_sentences": ["The keeper of the lighthouse lives in a [MASK]."], "obj_label": "tower", "id": "s1"},
        {"masked_sentences": ["A [MASK] lights the lamp."], "obj_label": "keeper", "id": "s2"},
    ],
    "lama_google_re.jsonl": [
        {
            **{"uuid": "g1", "relation": "place_of_birth", "pred": "/people/person/place_of_birth"},
            **{"sub_label": "Ane Holm", "obj_label": "Skarvik", "obj_aliases": ["Old Skarvik"]},
            "masked_sentences": ["Ane Holm ([MASK], 1850) kept a lighthouse."],
        },
        {
            **{"uuid": "g2", "relation": "date_of_birth", "pred": "/people/person/date_of_birth"},
            **{"sub_label": "Ane Holm", "obj_label": "1850", "obj_aliases": []},
            "masked_sentences": ["Ane Holm (Skarvik, [MASK]) kept a lighthouse."],
        },
    ],
    "lama_trex.jsonl": [
        {"uuid": "t1", "relation": "P17", "sub_label": "Skarvik", "obj_label": "Norway"},
        {"uuid": "t2", "relation": "P106", "sub_label": "Ane Holm", "obj_label": "keeper"},
        {"uuid": "t3", "relation": "P17", "sub_label": "Skarvik", "obj_label": "Norway"},
        {"uuid": "t4", "relation": "P0", "sub_label": "Skarvik", "obj_label": "nothing"},
    ],
    "lama_relations.jsonl": [
        {"relation": "P17", "template": "[X] is located in [Y] ."},
        {"relation": "P106", "template": "[X] is a [Y] by profession ."},
    ],
    "templama.jsonl": [
        {
            **{"id": "Q1_P39_2014", "query": "Ane Holm holds the position of _X_.", "date": "2014", "relation": "P39"},
            "answer": [{"wikidata_id": "Q2", "name": "keeper", "aliases": ["lighthouse keeper"]}],
        },
        {
            **{"id": "Q1_P39_2015", "query": "_X_ is the keeper of Skarvik.", "date": "2015", "relation": "P39"},
            "answer": [{"wikidata_id": "Q3", "name": "Ole Vik"}],
        },
    ],
    "asdiv.jsonl": [
        {
            **{"id": "a1", "body": "A keeper has 7 lamps and buys 2.", "question": "How many lamps are there?"},
            **{"answer": "9 (lamps)", "formula": "7+2=9", "type": "Addition"},
        },
        {
            **{"id": "a2", "body": "A keeper walks 5 miles in 2 hours.", "question": "How far is that an hour?"},
            **{"answer": "5/2 (miles (an hour))", "formula": "5/2", "type": "Ratio"},
        },
        {
            **{"id": "a3", "body": "Ole has 3 lamps, Ane 4.", "question": "Who has more?"},
            **{"answer": "Ane", "formula": "4>3", "type": "Comparison"},
        },
    ],
    "svamp.jsonl": [
        {
            **{"id": "v1", "body": "A boat brings 1,200 candles", "question": "How many are left when 4 burn?"},
            **{"answer": 1196.0, "equation": "( 1200.0 - 4.0 )", "type": "Subtraction"},
        },
    ],
    "mawps.jsonl": [{"id": "m1", "question": "Ole had 3.5 litres of oil and burned 1. What is left?", "answer": "2.5"}],
    "webquestions.jsonl": [
        {"qId": "w1", "qText": "who kept the lighthouse of skarvik?", "answers": ["Ane Holm", "Ole Vik"]},
        {"qId": "w2", "qText": "who painted it?", "answers": []},
    ],
    "nq_open.jsonl": [
        {"question": "when was the lighthouse of skarvik built", "answer": ["1871"]},
        {"question": "what stands behind it", "answer": ["---"]},
    ],
    "triviaqa.jsonl": [
        {
            "context": "Question: Which town has the oldest lighthouse?\nAnswer:",
            **{"answer": "Skarvik", "aliases": ["Skarvik", "Skarvik (town)", "🗼"]},
        },
    ],
    "date_understanding.jsonl": [
        {
            "input": "The lamp was lit on Jan 31, 2020, which was yesterday. What is the date today in MM/DD/YYYY?",
            "target_scores": {"02/01/2020": 1, "01/30/2020": 0, "02/01/2021": 0},
        },
    ],
} | {
    f"{name}_{language}.jsonl": [{"id": "r1", "context": _PARAGRAPH, "question": question, "answers": ["1871"]}]
    for name in ("mlqa", "xquad")
    for language, question in _BUILT.items()
}


def _nested(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "answers": {"text": row["answers"], "answer_start": [37]}}


def _templated(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the hub's T-REx, which has the relation's template in it."""
    templates = {one["relation"]: one["template"] for one in FILES["lama_relations.jsonl"]}
    return {**row, "relation": None, "predicate_id": row["relation"], "template": templates.get(row["relation"], "")}


_TREX = [_templated(row) for row in FILES["lama_trex.jsonl"] if row["relation"] != "P0"]

#: What is not here has the same fields on the hub.
HUB: dict[str, Rows] = FILES | {
    "lama_squad.jsonl": [
        {"id": row["id"], "obj_label": row["obj_label"], "masked_sentence": row["masked_sentences"][0]}
        for row in FILES["lama_squad.jsonl"]
    ],
    "lama_google_re.jsonl": [
        {key: value for key, value in row.items() if key not in ("relation", "obj_aliases", "masked_sentences")}
        for row in FILES["lama_google_re.jsonl"]
    ],
    "lama_trex.jsonl": _TREX,
    "lama_relations.jsonl": _TREX,
    "asdiv.jsonl": [
        {"solution_type": row["type"], **{key: row[key] for key in ("body", "question", "answer", "formula")}}
        for row in FILES["asdiv.jsonl"]
    ],
    "svamp.jsonl": [
        {"id": row["id"], "question": f"{row['body']} {row['question']}", "result": "1196", "result_float": 1196.0}
        for row in FILES["svamp.jsonl"]
    ],
    "mawps.jsonl": [
        {"id": "m1", "question": FILES["mawps.jsonl"][0]["question"], "result": "2.5", "result_float": 2.5}
    ],
    "webquestions.jsonl": [
        {"url": "http://example.org/x", "question": row["qText"], "answers": row["answers"]}
        for row in FILES["webquestions.jsonl"]
    ],
    "triviaqa.jsonl": [
        {
            "question": "Which town has the oldest lighthouse?",
            "answer": {"value": "Skarvik", "aliases": ["Skarvik", "Skarvik (town)", "🗼"]},
        },
    ],
    "date_understanding.jsonl": [
        {
            "inputs": f"Q: {row['input']}\n  choice: 02/01/2020\n  choice: 01/30/2020\nA:",
            "targets": ["02/01/2020"],
            "multiple_choice_targets": list(row["target_scores"]),
            "multiple_choice_scores": list(row["target_scores"].values()),
        }
        for row in FILES["date_understanding.jsonl"]
    ],
    **{name: [_nested(row) for row in rows] for name, rows in FILES.items() if name.startswith(("mlqa", "xquad"))},
}


def write_rows(file: Path, rows: Rows) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_task_files(folder: Path) -> Path:
    """The files of all tasks in a folder."""
    for name, rows in FILES.items():
        write_rows(folder / name, rows)
    return folder
