"""A model that writes a question, and then reads the passages for it itself, within one answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolwise.core.types import CallContext, Principal
from toolwise.decode.engine import CallEnded, DecodeSettings, generate
from toolwise.decode.show import event_text
from toolwise.gate.offline import offline_gate
from toolwise.models.base import LanguageModel
from toolwise.models.scripted import ScriptedModel
from toolwise.models.toolbox import toolbox
from toolwise.tools.index import build_index

PROMPT = "The mill was built"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "mill.txt").write_text("The mill by the river was built in 1881. Its rent was forty crowns a year.")
    (notes / "ferry.txt").write_text("The ferry crosses the river at noon.")
    build_index([notes], tmp_path / "index")
    return tmp_path / "index"


def writer(question: str) -> ScriptedModel:
    """Asks while it writes, and reads `1881` where a passage holds it."""

    def script(text: str) -> str:
        passage = text.rpartition("Passage:")[2]
        if text.startswith("Answer each question") and "\nAnswer:" in passage:
            said = passage.rpartition("Answer:")[2]
            return " 1881\n"[len(said) :] if "1881" in passage and " 1881\n".startswith(said) else "\n"
        for written in (f" [QA({question}) ->", " in 1881."):
            before = PROMPT if written.startswith(" [") else "]"
            for at in range(len(written) + 1):
                if text.endswith(before + written[:at]):
                    return written[at:]
        return ""

    return ScriptedModel(script)


def answer(index: Path, question: str) -> tuple[str, list[CallEnded]]:
    loaded: list[LanguageModel] = []
    box = toolbox(["QA"], {"QA": {"index": str(index)}}, lambda: loaded[0])
    with offline_gate(box.registry) as gate:
        loaded.append(writer(question))
        settings = DecodeSettings(start_top_k=1)
        events = list(generate(loaded[0], PROMPT, gate, CallContext(Principal("ann"), "answer"), settings))
    shown = "".join(event_text(event).plain for event in events)
    return shown, [event for event in events if isinstance(event, CallEnded)]


def test_the_model_that_writes_is_the_one_that_reads(index: Path) -> None:
    shown, _ = answer(index, "When was the mill built?")
    assert shown == " [QA(When was the mill built?) -> 1881] in 1881."


def test_a_model_that_finds_no_answer_is_told_so_and_goes_on(index: Path) -> None:
    shown, [ended] = answer(index, "When does the ferry cross?")
    assert ended.result.code == "tool_failed"
    assert "-> Error (tool_failed): the texts give no answer to this question" in shown
    assert shown.endswith("] in 1881.")
