"""A tool of one's own with three typed arguments goes the whole way: annotate, C*, train, called while decoding.

A scripted model proposes and scores; the network that is trained is tiny and learns these texts by heart.
"""

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tiny_models import model_folder  # noqa: E402
from toolwise.core.types import CallContext, Principal  # noqa: E402
from toolwise.decode.engine import CallEnded, CallStarted, DecodeSettings, Text, generate  # noqa: E402
from toolwise.gate.offline import offline_gate  # noqa: E402
from toolwise.models.load import load_model  # noqa: E402
from toolwise.models.scripted import ScriptedModel, follow  # noqa: E402
from toolwise.models.toolbox import toolbox  # noqa: E402
from toolwise.teach import annotate as annotating  # noqa: E402
from toolwise.teach.annotate import definitions_of, load_augmented, tools_of  # noqa: E402
from toolwise.teach.config import load_settings  # noqa: E402
from toolwise.teach.train import TrainSettings, train  # noqa: E402

TOOL = '''
from typing import Literal
from toolwise import Effect, tool

@tool(
    effect=Effect.PURE,
    bounded=True,
    examples=[
        'It is 40 long and 5 wide, which makes [Area(long=40, wide=5, unit="m")] 200 m.',
        'Another is 30 by 2 and measures [Area(long=30, wide=2, unit="km")] 60 km.',
    ],
)
def Area(long: int, wide: float, unit: Literal["m", "km"]) -> str:
    """The area of a field."""
    return f"{long * wide:g} {unit}"
'''
TEXTS = {
    "a": ("One is 12 by 3, so it has", "36 m", 'Area(long=12, wide=3, unit="m")'),
    "b": ("Two is 50 by 4, so it has", "200 km", 'Area(long=50, wide=4, unit="km")'),
    "c": ("Six is 7 by 1.5, so it has", "10.5 m", 'Area(long=7, wide=1.5, unit="m")'),
}
SETTINGS = """
call_tokens = 60
temperature = 0
[tools.Area]
tau_s = 0.5
tau_f = 1.0
look_ahead_guard = true
"""
LEARNING = TrainSettings(
    batch=3, steps=120, learning_rate=1e-2, length=96, held_out_share=0.0, evaluate_every=120, checkpoint_every=120
)


def scripted() -> ScriptedModel:
    """Proposes each text's call in its place; expects the answer only where it has read it as a result."""
    proposing = follow(*((before, f" [{call}]") for before, _, call in TEXTS.values()))
    reading = {f"-> {answer}]\n{before}": answer for before, answer, _ in TEXTS.values()}
    scoring = follow(*((read, f" {answer} in all.") for read, answer in reading.items()))
    return ScriptedModel(lambda text: (proposing if "Output:" in text else scoring)(text) or "x")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.py").write_text(TOOL, encoding="utf-8")
    (folder / "own.toml").write_text(SETTINGS, encoding="utf-8")
    rows = [{"id": name, "text": f"{before} {answer} in all."} for name, (before, answer, _) in TEXTS.items()]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings = load_settings("paper", [str(folder / "mine.py")], folder / "own.toml")
    model = scripted()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annotating, "describe_model", lambda *_, **__: (model.tokenizer, model.fingerprint))
        patch.setattr(annotating, "load_model", lambda *_, **__: model)
        annotating.annotate(folder / "texts.jsonl", folder / "run", "scripted", settings)
    return folder / "run"


def test_its_calls_stand_in_the_augmented_texts_as_pairs(run: Path) -> None:
    assert {row.document: row.text for row in load_augmented(run)} == {
        name: f"{before} [{call} -> {answer}] {answer} in all." for name, (before, answer, call) in TEXTS.items()
    }


def test_the_run_keeps_what_the_tool_was(run: Path) -> None:
    (kept,) = definitions_of(run)
    assert tools_of(run) == ["Area"] == [kept["name"]]
    assert set(kept["parameters"]["properties"]) == {"long", "wide", "unit"}


def test_a_model_that_was_trained_on_them_calls_it_while_it_writes(run: Path, tmp_path: Path) -> None:
    base = model_folder(tmp_path / "base")
    trained = train(load_augmented(run), base, tmp_path / "tuned", LEARNING, tools=tools_of(run))
    assert trained.losses[-1][1] < 0.1, "it knows the texts by heart, or the rest shows nothing"
    box = toolbox([str(run.parent / "mine.py")])
    model = load_model(str(tmp_path / "tuned"), threads=1)
    with offline_gate(box.registry) as gate:
        for name, (before, answer, call) in TEXTS.items():
            context = CallContext(Principal("ann"), f"answer-{name}")
            settings = DecodeSettings(start_top_k=1, max_tokens=80, stop=(" in all",))
            events = list(generate(model, before, gate, context, settings))
            assert [event.call.text for event in events if isinstance(event, CallStarted)] == [call]
            assert [event.result.text for event in events if isinstance(event, CallEnded)] == [answer]
            assert "".join(event.text for event in events if isinstance(event, Text)) == f" {answer}"
