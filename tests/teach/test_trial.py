"""A dry run shows every proposal of a few texts and what became of it, writes nothing, and says what to do next."""

import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from toolwise.core import jsonio
from toolwise.core.clock import FakeClock
from toolwise.core.errors import BadInput
from toolwise.models.scripted import ScriptedModel, follow
from toolwise.teach.annotate import make_pipeline
from toolwise.teach.config import load_settings
from toolwise.teach.records import Passage
from toolwise.teach.trial import render_trial, to_json, try_tools

TOOL = '''
from toolwise import Effect, tool
from toolwise.core.errors import ToolFailed

@tool(
    effect=Effect.PURE,
    bounded=True,
    examples=[
        "He lent 700 at 5% for 2 years and got [Interest(principal=700, rate=5, years=2)] 70.",
        "She lent 250 at 2% for 4 years and got [Interest(principal=250, rate=2, years=4)] 20.",
    ],
)
def Interest(principal: float, rate: float, years: int) -> str:
    """Simple interest."""
    if not rate:
        raise ToolFailed("Nobody lends for nothing.")
    if years > 50:
        raise ValueError(f"{years} years")
    return f"{principal * rate / 100 * years:.10g}"
'''
TEXTS = [
    "They borrowed 900 crowns at 5% for 2 years. Interest came to 90 crowns in all.",
    "They borrowed 800 crowns at 3% for 4 years. Interest came to 96 crowns in all.",
    "Nobody borrowed anything this time. Interest came to nothing.",
    "They borrowed 600 crowns at 2% for 3 years. Interest came to 36 crowns in all.",
]
CALLS = (
    ("900 crowns", "Interest(principal=900, rate=5, years=2)"),
    ("800 crowns", "Interest(principal=800, rate=3, years=4)"),
    ("600 crowns", "Interest(principal=600, rate=2, years=3)"),
)
SETTINGS = """
temperature = 0
call_tokens = 60
[tools.Interest]
k = 1
m = 1
tau_f = 1.0
"""


def world(folder: Path, settings: str = SETTINGS, texts: list[str] = TEXTS):
    """A corpus of the texts, and settings for the tool."""
    (folder / "mine.py").write_text(TOOL, encoding="utf-8")
    (folder / "own.toml").write_text(settings, encoding="utf-8")
    corpus = folder / "texts.jsonl"
    rows = [{"id": f"d{i}", "text": text, "date": "2020-01-02"} for i, text in enumerate(texts)]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return corpus, load_settings("paper", [str(folder / "mine.py")], folder / "own.toml")


def model(calls=CALLS) -> ScriptedModel:
    """Calls behind `Interest came to`; expects the number there only where it has read it as a result."""

    def script(text: str) -> str:
        _, proposing, written = text.rpartition("Output:\n")
        if proposing:
            call = next((body for words, body in calls if words in written), "")
            return follow(("Interest came to", f" [{call}]"))(written) if call else "x"
        read = [result for result in ("90", "96", "36") if f"-> {result}]" in text]
        return follow(*((" came to", f" {result} crowns") for result in read))(text) or "x"

    return ScriptedModel(script)


def tried(folder: Path, settings: str = SETTINGS, calls=CALLS, **options):
    corpus, wanted = world(folder, settings)
    return try_tools(corpus, lambda: model(calls), wanted, **options)


def shown(trial) -> str:
    console = Console(width=140, file=io.StringIO())
    console.print(render_trial(trial))
    return console.file.getvalue()


def test_every_proposal_is_there_with_its_losses_and_its_reason(tmp_path: Path) -> None:
    trial = tried(tmp_path)
    assert [one.passage.document for one in trial.passages] == ["d0", "d1", "d2", "d3"]
    rows = [row for one in trial.passages for row in one.rows]
    kept = [row for row in rows if row.reason is None]
    assert [(row.body, row.result) for row in kept] == [
        (body, r) for (_, body), r in zip(CALLS, ("90", "96", "36"), strict=True)
    ]
    assert all(row.gain and row.loss_none and row.loss_call and row.loss_result is not None for row in kept)
    assert all(row.control_gain is not None for row in kept), "results of other documents are the controls"
    assert trial.tools[0].report.kept == 3


def test_the_figures_are_those_of_a_run(tmp_path: Path) -> None:
    corpus, wanted = world(tmp_path)
    passages = [Passage(f"d{i}#0", f"d{i}", 0, text, "2020-01-02") for i, text in enumerate(TEXTS)]
    scored = make_pipeline(model(), wanted, "run").annotate(passages)
    trial = try_tools(corpus, model, wanted)
    assert {row.body: row.gain for row in scored} == {r.body: r.gain for one in trial.passages for r in one.rows}


def test_as_many_documents_and_passages_as_asked_for(tmp_path: Path) -> None:
    trial = tried(tmp_path, documents=2)
    assert [one.passage.document for one in trial.passages] == ["d0", "d1"]
    corpus, wanted = world(tmp_path, f"passage_tokens = 40\n{SETTINGS}")
    assert len(try_tools(corpus, model, wanted, documents=2, each=2).passages) == 4


def test_a_tool_that_fails_is_told_by_its_codes(tmp_path: Path) -> None:
    calls = (
        ("900 crowns", "Interest(principal=900, rate=0, years=2)"),
        ("800 crowns", "Interest(principal=800, rate=0, years=4)"),
        ("600 crowns", "Interest(principal=600, years=3)"),
    )
    tool = tried(tmp_path, calls=calls).tools[0]
    assert [(f.code, f.count) for f in tool.failures] == [("tool_failed", 2), ("invalid_arguments", 1)]
    assert tool.failures[0].text == "Nobody lends for nothing."
    assert "most often tool_failed" in " ".join(tool.hints)


@pytest.mark.parametrize("bounded", [True, False])
def test_whoever_tries_a_tool_is_shown_the_exception_that_a_model_is_not(bounded: bool, tmp_path: Path) -> None:
    corpus, wanted = world(tmp_path)
    if not bounded:
        (tmp_path / "mine.py").write_text(TOOL.replace("    bounded=True,\n", ""), encoding="utf-8")
    calls = [(words, "Interest(principal=9, rate=9, years=99)") for words, _ in CALLS]
    trial = try_tools(corpus, lambda: model(calls), wanted)
    (failure,) = trial.tools[0].failures
    assert (failure.code, failure.count) == ("tool_failed", 3)
    assert "99 years" not in failure.text
    assert re.fullmatch(r"ValueError: 99 years \(mine\.py, line \d+\)", failure.cause)
    assert "ValueError: 99 years" in " ".join(trial.tools[0].hints)
    assert "ValueError: 99 years" in " ".join(shown(trial).split())


def test_thresholds_say_what_they_would_keep(tmp_path: Path) -> None:
    trial = tried(tmp_path)
    rows = [row for one in trial.passages for row in one.rows if row.position >= 0]
    for kept in trial.tools[0].thresholds:
        assert kept.calls == sum(row.gain is not None and row.gain >= kept.tau_f for row in rows)
        assert kept.controls == sum(row.control_gain is not None and row.control_gain >= kept.tau_f for row in rows)
    assert {kept.calls for kept in trial.tools[0].thresholds} >= {3}


def test_time_is_estimated_for_the_whole_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(datetime(2020, 1, 2, tzinfo=UTC))
    corpus, wanted = world(tmp_path, texts=TEXTS * 1 + [f"{TEXTS[0]} {'More of it. ' * 100}"])
    original = ScriptedModel.marker_probs

    def slow(self, *given):
        clock.advance(3)
        return original(self, *given)

    monkeypatch.setattr(ScriptedModel, "marker_probs", slow)
    trial = try_tools(corpus, model, wanted, documents=2, clock=clock)
    assert trial.seconds_per_passage == 3
    assert trial.corpus_passages == 4 + 5, "the long one is several passages"
    assert trial.estimate == 27
    assert "about 27 seconds on one worker" in shown(trial)


def test_progress_is_told_for_every_passage(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    tried(tmp_path, progress=lambda done, total: told.append((done, total)))
    assert told == [(n, 4) for n in range(1, 5)]


def test_nothing_is_written(tmp_path: Path) -> None:
    corpus, wanted = world(tmp_path)
    before = sorted(tmp_path.rglob("*.*"))
    try_tools(corpus, model, wanted)
    assert [file for file in sorted(tmp_path.rglob("*.*")) if "__pycache__" not in str(file)] == before


def test_the_screen_shows_each_text_with_marks_and_each_call_with_its_numbers(tmp_path: Path) -> None:
    said = shown(tried(tmp_path))
    assert "d0, 2020-01-02" in said
    assert "Interest came to (1) 90 crowns in all." in said
    assert "[Interest(principal=900, rate=5, years=2) -> 90]" in said
    assert "kept" in said
    assert "What other thresholds (tau_f) would keep" in said


def test_calls_that_were_merely_tried_elsewhere_and_dropped_are_counted_and_not_listed(tmp_path: Path) -> None:
    trial = tried(tmp_path, SETTINGS + "spread = 9\ntau_s = 0")
    spread = [row for row in trial.passages[0].rows if row.proposer == "spread"]
    assert len(spread) > 6
    said = " ".join(shown(trial).split())
    assert re.search(r"These calls were tried \d times in other places as well: (bound|below_threshold) \d", said)
    assert 1 <= said.partition("d1, 2020")[0].count("-> 90]") <= 4


def test_a_text_that_would_steer_the_terminal_does_not(tmp_path: Path) -> None:
    corpus, wanted = world(tmp_path, texts=["\x1b[31mred\u202e They borrowed 900 crowns. Interest came to 90 crowns."])
    said = shown(try_tools(corpus, model, wanted))
    assert "\x1b[31m" not in said
    assert "\u202e" not in said


def test_the_trial_for_scripts_is_strict_json(tmp_path: Path) -> None:
    found = jsonio.loads(jsonio.dumps(to_json(tried(tmp_path))))
    assert found["passages"][0]["rows"][0]["body"].startswith("Interest(")
    assert found["tools"][0]["report"]["kept"] == 3
    assert {"seconds_per_passage", "estimate", "corpus_passages"} <= set(found)


# What to do next


@pytest.mark.parametrize(
    ("calls", "settings", "words"),
    [
        ((), SETTINGS.replace("k = 1", "tau_s = 0.99\nk = 1"), "No place was likely enough.*tau_s below 0.99"),
        ([(words, "interest of 5%") for words, _ in CALLS], SETTINGS, "wrote no call that reads.*named = true"),
        (
            [(w, "Interest(principal=1, rate=1, years=1)") for w, _ in CALLS],
            SETTINGS,
            "No result helped|none could help",
        ),
        (
            [
                (w, b.replace("years=2", "years=90").replace("years=4", "years=96").replace("years=3", "years=36"))
                for w, b in CALLS
            ],
            SETTINGS + "look_ahead_guard = true",
            "use what the text names only later",
        ),
        (
            CALLS,
            SETTINGS.replace("60", "9"),
            "takes 4. tokens, and a sampled one is given up after 9: set call_tokens",
        ),
    ],
)
def test_a_hint_says_what_to_change(calls, settings: str, words: str, tmp_path: Path) -> None:
    assert re.search(words, " ".join(tried(tmp_path, settings, calls).tools[0].hints))


def test_a_rule_that_leaves_everything_out_is_named(tmp_path: Path) -> None:
    corpus, wanted = world(tmp_path, SETTINGS + 'rule = "calculator"', texts=["No number.", "And none here."])
    (tool,) = try_tools(corpus, model, wanted).tools
    assert "The rule 'calculator' left out every passage" in " ".join(tool.hints)


def test_where_calls_are_kept_there_is_nothing_to_hint_at(tmp_path: Path) -> None:
    assert tried(tmp_path).tools[0].hints == ()


# Refused before the model is loaded


def test_a_mistake_in_a_tool_or_in_the_corpus_is_told_first(tmp_path: Path) -> None:
    corpus, wanted = world(tmp_path)

    def never() -> ScriptedModel:
        raise AssertionError("the model was loaded")

    (tmp_path / "mine.py").write_text(TOOL.replace("rate=5", "rate=five"), encoding="utf-8")
    with pytest.raises(BadInput, match="cannot be used"):
        try_tools(corpus, never, wanted)


def test_a_corpus_without_text_is_refused(tmp_path: Path) -> None:
    corpus, wanted = world(tmp_path, texts=["", ""])
    with pytest.raises(BadInput, match="hold no text to try"):
        try_tools(corpus, model, wanted)
