"""What is dropped before it is sampled or scored could not have been kept, whatever the kind of threshold."""

import hashlib
from functools import partial

import numpy as np
import pytest

from toolwise.gate.offline import offline_gate
from toolwise.models.scripted import ScriptedModel
from toolwise.teach.config import Control, Settings, ToolSettings
from toolwise.teach.keep import keep, thresholds
from toolwise.teach.pipeline import Pipeline
from toolwise.teach.prompts import Prompt
from toolwise.teach.records import Passage
from toolwise.tools.builtin import builtin_registry

TEXTS = [
    "Three hats cost 24 crowns, so one costs 24 / 3 = 8 crowns.",
    "She read 12 pages on 5 days, a total of 60 pages. Then she rested for 2 days.",
    "Rows of 18 and columns of 24 make 432 places; 18 times 24 = 432.",
]
PROMPT = Prompt("Calculator", "Call.", (), "{input}.", "{input} = {result}.")


def number_of(text):
    """A number from 0 to 99 that belongs to a text."""
    return hashlib.sha256(text.encode()).digest()[0] % 100


class Varied(ScriptedModel):
    """Calls everywhere, with other numbers at every place, and expects every token with another probability."""

    def __init__(self):
        super().__init__(self._write, certainty=0.98)

    def score(self, requests):
        return [
            np.array([8 * (number_of(repr(r.ids[: j + 1])) / 100) ** 3 for j in range(r.start, len(r.ids))], np.float32)
            for r in requests
        ]

    @staticmethod
    def _write(text):
        before, opened, written = text.rpartition(" [")
        body = f"Calculator({number_of(before)} + 1)]"
        return body[len(written) :] if opened and body.startswith(written) else " ["


def annotated(tau_f, *, early_bounds):
    """The rows of a run over the texts, the thresholds that came out, and the calls that were kept."""
    own = ToolSettings(tau_s=0.0, k=8, m=1, tau_f=tau_f, proposers=("lm", "enumerate"))
    settings = Settings(tools={"Calculator": own}, early_bounds=early_bounds)
    registry = builtin_registry(["Calculator"])
    gates = partial(offline_gate, registry)
    pipeline = Pipeline(Varied(), registry, gates, settings, run_id="run", prompts={"Calculator": PROMPT})
    rows = pipeline.annotate([Passage(f"p{i}", f"d{i}", 0, text) for i, text in enumerate(TEXTS)])
    found = thresholds({"Calculator": tau_f}, rows)
    return rows, found, [(c.passage, c.position, c.body) for c in keep(rows, found) if c.reason is None]


def controls(rows):
    return [(c.passage, c.position, c.body, c.control_result) for c in rows if c.control_gain is not None]


@pytest.mark.parametrize("tau_f", [1.0, Control(alpha=0.2, floor=1.0)], ids=["given", "measured"])
def test_early_bounds_change_nothing_that_is_kept(tau_f):
    fast, tau, kept = annotated(tau_f, early_bounds=True)
    slow, tau_of_slow, kept_of_slow = annotated(tau_f, early_bounds=False)
    assert any(c.reason == "bound" for c in fast), "something is dropped early, or this test shows nothing"
    assert not any(c.reason == "bound" for c in slow)
    assert controls(fast) == controls(slow)
    assert tau == tau_of_slow
    assert kept == kept_of_slow != []
