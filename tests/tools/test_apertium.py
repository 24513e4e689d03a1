"""The real engine: any text, any order, many threads, and processes that die or fall silent."""

from __future__ import annotations

import doctest
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.clock import SystemClock
from toolwise.core.errors import LimitExceeded, ModelUnavailable, ToolFailed, ToolUnavailable
from toolwise.core.limits import LIMITS
from toolwise.tools.translate import make_translate
from toolwise.tools.translators import Apertium, problems, translator_named
from toolwise.tools.translators.pipeline import escaped, unescaped

DOCUMENTATION = Path(__file__).parents[2] / "docs" / "translation.md"
SOURCES = ("ca", "es", "fr", "it", "pt")
SENTENCES = {
    "es": ["El perro duerme en el jardín.", "La casa de mi hermano es muy grande.", "No tengo tiempo para leer."],
    "fr": ["Le chien dort dans le jardin.", "La maison de mon frère est très grande."],
    "pt": ["O cão dorme no jardim.", "Os alunos dessa escola não falaram.", "A casa do meu irmão é muito grande."],
    "it": ["Il cane dorme nel giardino.", "La casa di mio fratello è molto grande."],
    "ca": ["El nen dorm al jardí.", "No hi ha més llibres qualssevol.", "La casa del meu germà és molt gran."],
}
MARKS = "[ ] { } < > ^ $ @ \\ / ~ * # & % = | + _ \" ' `"
MARK = re.compile(r"[\0\[\]{}<>^$@\\~#&=|+`]")


def apertium(sources: Sequence[str] = SOURCES, **options: object) -> Apertium:
    try:
        return Apertium(sources, **options)  # type: ignore[arg-type]
    except ModelUnavailable as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def translator() -> Iterator[Apertium]:
    made = apertium()
    yield made
    made.close()


@pytest.fixture
def spanish() -> Iterator[Apertium]:
    """One that a test may break."""
    made = apertium(["es"])
    yield made
    made.close()


def one_process_a_text(text: str, modes: Sequence[str]) -> str:
    """The obvious way: `apertium` itself, for each text and each mode anew."""
    for mode in modes:
        command = ["apertium", "-u", mode]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60).stdout
    return text


def test_a_sentence_of_each_language_comes_out_in_english(translator: Apertium) -> None:
    assert translator.sources == set(SOURCES)
    for source in ("es", "fr", "pt", "it"):
        assert translator.translate(SENTENCES[source][:1], source) == ["The dog sleeps in the garden."]
    assert translator.translate(SENTENCES["ca"][:1], "ca") == ["The boy sleeps at the garden."]


def test_french_portuguese_and_italian_go_over_spanish(translator: Apertium) -> None:
    assert {translator.routes[code] for code in ("es", "ca")} == {("es", "en"), ("ca", "en")}
    assert {translator.routes[code][1:] for code in ("fr", "pt", "it")} == {("es", "en")}


@pytest.mark.parametrize("source", SOURCES)
def test_it_keeps_the_protocol(translator: Apertium, source: str) -> None:
    assert problems(translator, source, SENTENCES[source]) == []


MODES = {"es": ["spa-eng"], "pt": ["pt-es", "spa-eng"], "ca": ["cat-eng"]}


@pytest.mark.parametrize("source", MODES)
def test_answers_are_those_of_a_process_a_text(translator: Apertium, source: str) -> None:
    """Many of these hold words that change what Apertium's tagger does with everything that it reads afterwards."""
    expected = [one_process_a_text(text, MODES[source]) for text in SENTENCES[source]]
    assert translator.translate(SENTENCES[source] * 2, source) == expected * 2


def test_the_tool_translates_what_it_recognises(translator: Apertium) -> None:
    tool = make_translate(translator)
    assert tool.run(text="El perro duerme en el jardín.") == "The dog sleeps in the garden."
    assert tool.run(text="Le chien dort dans le jardin.") == "The dog sleeps in the garden."


def test_the_documentation_shows_what_happens() -> None:
    apertium()
    (shown,) = re.findall(r"^```pycon\n(.*?)^```$", DOCUMENTATION.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    runner = doctest.DocTestRunner()
    failures: list[str] = []
    runner.run(doctest.DocTestParser().get_doctest(shown, {}, "translation.md", None, 0), out=failures.append)
    assert not failures, "".join(failures)


def test_it_is_there_by_its_name() -> None:
    apertium(["es"])
    assert isinstance(translator_named("apertium", sources=["es"]), Apertium)


def test_a_language_without_a_way_is_refused(translator: Apertium) -> None:
    with pytest.raises(ToolFailed, match=r"German \(de\)"):
        translator.translate(["Der Hund"], "de")


def test_a_text_beyond_the_bound_is_refused(translator: Apertium) -> None:
    longest = "perro " * (LIMITS.translate_chars // 6)
    assert translator.translate([longest], "es")[0].lower().count("dog") == LIMITS.translate_chars // 6
    with pytest.raises(LimitExceeded, match=str(LIMITS.translate_chars)):
        translator.translate([longest + "perros"], "es")


# Any text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("El perro <b>negro</b>.", "The dog <b>black</b>."),
        ("perro [1] ^gato^ $5 {x}", "dog [1] ^cat^ $5 {x}"),
        ("perro[#1]\\n[[t:b:1]]gato[[/]]", "dog[#1]\\n[[t:b:1]]cat[[/]]"),
        ("perro ~gato~ ~", "dog ~cat~ ~"),
        ("perro\0gato\0", "dog\0cat\0"),
        ("perro\uffffgato", "dog\uffffcat"),
        ("perro\n\ngato \n \n pez\n", "dog\n\ncat \n \n fish\n"),
        ("floripondiar", "floripondiar"),
        ("^perro<n><m><sg>$", "^dog<n><m><sg>$"),
        ("perro \ud800", "dog ?"),
        ("", ""),
        ("42 [~] \n", "42 [~] \n"),
    ],
)
def test_what_the_engine_has_a_meaning_for_stays_text(translator: Apertium, text: str, expected: str) -> None:
    assert translator.translate([text], "es")[0].lower() == expected.lower()


@given(st.text())
def test_escaping_can_be_taken_back(text: str) -> None:
    assert unescaped(escaped(text)) == text


WORDS = st.sampled_from(["el", "perro", "la", "casa", "de", "no", "tengo", "del", "al", "que", "a", "l'", "d'"])
PIECES = st.one_of(WORDS, WORDS, st.text(max_size=5), st.sampled_from(MARKS.split()), st.just("\0"), st.just("\n\n"))
TEXTS = st.lists(PIECES, max_size=12).map(" ".join)


@given(st.lists(TEXTS, max_size=4), st.sampled_from(SOURCES))
@settings(max_examples=60, deadline=None)
def test_any_texts_have_as_many_answers_in_their_order(translator: Apertium, texts: list[str], source: str) -> None:
    answers = translator.translate(texts, source)
    assert answers == [translator.translate([text], source)[0] for text in texts]
    for text, answer in zip(texts, answers, strict=True):
        lost = Counter(MARK.findall(text)) - Counter(MARK.findall(answer))  # the engine may write some of its own
        assert not lost, answer


@given(st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_any_text_is_answered(translator: Apertium, text: str) -> None:
    assert len(translator.translate([text], "es")) == 1


# Threads and processes


def test_answers_are_never_mixed_up_between_threads(translator: Apertium) -> None:
    asked = [(source, f"{number} {text}") for number in range(10) for source in SOURCES for text in SENTENCES[source]]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda one: translator.translate([one[1]], one[0])[0], asked))
    assert answers == [translator.translate([text], source)[0] for source, text in asked]


def test_a_forked_child_takes_no_answer_of_its_parents(spanish: Apertium) -> None:
    expected = spanish.translate(["el perro"], "es")
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()

    def child() -> None:
        theirs.send([spanish.translate([f"{n} gatos"], "es") for n in range(2, 32)])
        spanish.close()

    process = context.Process(target=child)
    process.start()
    assert all(spanish.translate(["el perro"], "es") == expected for _ in range(30))
    assert mine.poll(30)
    assert mine.recv() == [[f"{n} cats"] for n in range(2, 32)]
    process.join(30)
    assert process.exitcode == 0
    assert spanish.translate(["el perro"], "es") == expected


def test_processes_that_were_killed_in_between_are_started_anew(spanish: Apertium) -> None:
    expected = spanish.translate(SENTENCES["es"], "es")
    for at in (0, 1, 5, 9):
        before = pids(spanish)
        os.kill(before[at], signal.SIGKILL)
        gone(before[at])
        assert spanish.translate(SENTENCES["es"], "es") == expected
        assert not set(before) & set(pids(spanish))


def test_whoever_meets_a_dying_process_is_told_and_the_next_one_is_answered(spanish: Apertium) -> None:
    spanish.translate(["el perro"], "es")
    first, *_, last = pids(spanish)
    before = read(first)
    os.kill(last, signal.SIGSTOP)  # so that the answer cannot come before the end
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(spanish.translate, ["el perro"], "es")
        assert any(read(first) > before or Event().wait(0.001) for _ in range(30_000))
        os.kill(last, signal.SIGKILL)
        with pytest.raises(ToolUnavailable, match=r"the translator died and will be started anew"):
            asked.result(30)
    assert spanish.translate(["el perro"], "es") == ["The dog"]


class Stretched(SystemClock):
    """Time passes a hundred times slower than it does, until `hurry`: engines start late on a busy machine."""

    def __init__(self) -> None:
        self.hurry = False
        self._told, self._read = 0.0, super().monotonic()

    def monotonic(self) -> float:
        read = super().monotonic()
        self._told += (read - self._read) * (1 if self.hurry else 0.01)
        self._read = read
        return self._told


@pytest.mark.parametrize("at", [0, 1, 5, 9])
def test_a_process_that_hangs_is_given_up_at_the_deadline(at: int) -> None:
    clock = Stretched()
    made = apertium(["es"], limits=replace(LIMITS, translate_seconds=0.3), clock=clock)
    made.translate(["el perro"], "es")
    before = pids(made)
    os.kill(before[at], signal.SIGSTOP)
    clock.hurry = True
    with pytest.raises(ToolUnavailable, match="did not answer in time"):
        made.translate(["el perro"], "es")
    clock.hurry = False
    assert not any(map(running, before))
    assert made.translate(["el perro"], "es") == ["The dog"]
    made.close()


def test_threads_behind_one_that_hangs_wait_no_longer_than_their_own_deadline() -> None:
    clock = Stretched()
    made = apertium(["es"], limits=replace(LIMITS, translate_seconds=0.3), clock=clock)
    made.translate(["el perro"], "es")
    os.kill(pids(made)[0], signal.SIGSTOP)
    clock.hurry = True
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(made.translate, ["el perro"], "es") for _ in range(4)]
        errors = [one.exception(30) for one in asked]
    clock.hurry = False
    assert any(isinstance(error, ToolUnavailable) for error in errors)
    assert all(error is None or isinstance(error, ToolUnavailable) for error in errors)
    assert made.translate(["el perro"], "es") == ["The dog"]
    made.close()


def test_an_answer_that_nobody_waits_for_is_not_given_to_the_next_text() -> None:
    class Interrupted(SystemClock):
        """Ctrl-C comes while an answer is waited for."""

        at = -1

        def monotonic(self) -> float:
            self.at -= 1
            if self.at == 0:
                raise KeyboardInterrupt
            return super().monotonic()

    clock = Interrupted()
    made = apertium(["es"], clock=clock)
    for at in range(1, 9):
        made.translate(["el gato"], "es")
        clock.at = at
        with pytest.raises(KeyboardInterrupt):
            made.translate(["el gato", "el gato"], "es")
        assert made.translate(["el perro"], "es") == ["The dog"]
    made.close()


def test_an_answer_that_does_not_stop_is_cut_off() -> None:
    made = apertium(["es"], limits=replace(LIMITS, translated_bytes=100))
    assert made.translate(["el perro"], "es") == ["The dog"]
    with pytest.raises(ToolUnavailable, match="did not stop"):
        made.translate(["el perro " * 50], "es")
    made.close()


def test_closing_ends_every_process_and_another_text_starts_new_ones(spanish: Apertium) -> None:
    assert pids(spanish) == []
    spanish.translate(["el perro"], "es")
    before = pids(spanish)
    assert all(map(running, before))
    spanish.close()
    assert not any(map(running, before))
    assert spanish.translate(["el perro"], "es") == ["The dog"]


def test_no_process_outlives_its_owner() -> None:
    apertium(["es"])
    code = """
import os, signal
from toolwise.tools.translators import Apertium
made = Apertium(["es"])
made.translate(["el perro"], "es")
print(*made.pids()["es", "en"], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    started = list(map(int, done.stdout.split()))
    assert len(started) > 5
    for pid in started:
        gone(pid)


def pids(translator: Apertium) -> list[int]:
    return [pid for pids in translator.pids().values() for pid in pids]


def read(pid: int) -> int:
    """How many bytes a process has read so far."""
    return int(Path(f"/proc/{pid}/io").read_text().split()[1])


def running(pid: int) -> bool:
    """Whether a process is there and has not ended; a dead child that nobody has asked about counts as ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def gone(pid: int) -> None:
    """Waits until it has ended."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with open(watched, "rb", buffering=0) as ended:
        assert select.select([ended], [], [], 30)[0], "it goes on running"
