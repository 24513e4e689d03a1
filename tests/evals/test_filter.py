"""The filter, measured on calls that people wrote, with a model that knows what it should."""

import json

import numpy as np
import pytest

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import dumps
from toolwise.evals.filter import as_json, filter_quality
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer

PROBLEMS = [
    ("Ann sold 48 clips. Bo sold half.", "Bo sold 48/2 = <<48/2=24>>24 clips.\n#### 24"),
    ("A hat costs $7. What do 6 cost?", "They cost 7*6 = $<<7*6=42>>42.\n#### 42"),
    ("What is nothing over nothing?", "It is <<0/0=0>>0.\n#### 0"),
]


class Believer(ScriptedModel):
    """Expects a number where the call in front of the text says it, and is surprised by everything else."""

    def __init__(self):
        super().__init__(lambda text: "", ScriptedTokenizer())

    def score(self, requests):
        return [np.full(len(r.ids) - r.start, 0.1 if self._told(r) else 2.0, dtype=np.float32) for r in requests]

    def _told(self, request):
        front = self.tokenizer.decode(request.ids).partition("\n")[0]
        said = front.rpartition("-> ")[2].removesuffix("]")
        coming = self.tokenizer.decode(request.ids[request.start :]).strip(" $")
        return "-> " in front and coming.startswith(said)


def written(tmp_path, problems=PROBLEMS):
    file = tmp_path / "gsm8k.jsonl"
    file.write_text("".join(json.dumps({"question": q, "answer": a}) + "\n" for q, a in problems))
    return file


def test_right_results_pass_and_those_of_other_problems_do_not(tmp_path):
    found = filter_quality(Believer(), written(tmp_path), problems=3, thresholds=(0.5, 1.0))
    assert (found.calls, found.skipped) == (2, 1)
    assert (found.human, found.wrong) == ((1.0, 1.0), (0.0, 0.0))
    assert found.gains == pytest.approx((1.9, 1.9))
    assert dumps(as_json(found))


def test_only_so_many_problems_are_read(tmp_path):
    assert filter_quality(Believer(), written(tmp_path), problems=1).calls == 1


def test_what_cannot_be_measured_is_refused(tmp_path):
    for problems in ([], PROBLEMS[2:], [("No call here?", "None.\n#### 0")]):
        with pytest.raises(BadInput):
            filter_quality(Believer(), written(tmp_path, problems), problems=3)
    with pytest.raises(BadInput, match="wording"):
        filter_quality(Believer(), written(tmp_path), problems=3, wording="prose")
