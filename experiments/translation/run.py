"""BLEU, chrF, speed and language detection on NTREX, as Markdown. README.md says what is measured.

python run.py --data DATA
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import sacrebleu
import typer

from toolwise.core.errors import ModelUnavailable
from toolwise.tools.language import FastText
from toolwise.tools.translators import Apertium
from toolwise.tools.translators.languages import named
from toolwise.tools.translators.modes import installed

FOLDER = Path("/usr/share/apertium")
FILES = {"es": "spa", "ca": "cat", "pt": "por", "it": "ita", "fr": "fra", "en": "eng"}
CODES = ("es", "ca", "pt", "it", "fr")
TURN = 10  # sentences one way, then the other
CHUNKS = (10, 5, 3, 1)  # words
SURE = 0.8

Texts = dict[str, list[str]]


def main(
    data: Annotated[Path, typer.Option(help="The folder with eval/.")],
    timed: Annotated[int, typer.Option(help="Sentences of each language whose translation is timed.")] = 100,
) -> None:
    texts = {code: (data / f"eval/ntrex_{name}.txt").read_text("utf-8").splitlines() for code, name in FILES.items()}
    assert {len(lines) for lines in texts.values()} == {500}
    translator = Apertium(CODES)
    detect = FastText()
    typer.echo(f"{translator.identity}; sacrebleu {sacrebleu.__version__}; {detect.identity}")
    table(["from", "way", "BLEU", "chrF"], quality(texts, translator))
    table(["from", "processes that stay", "a process a sentence", "ratio", "differ"], speed(texts, translator, timed))
    table(["from", "differ among 500 if no program is replaced", "the same, backwards"], state(texts, translator))
    head = ["language", "sentences", *(f"{size} words" for size in CHUNKS), f"of {CHUNKS[0]} words: surer than {SURE}"]
    head += ["of these right", "a second"]
    table(head, detection(texts, detect))
    translator.close()


def table(head: Sequence[str], rows: Iterator[list[str]]) -> None:
    typer.echo(f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        typer.echo(f"| {' | '.join(row)} |")


# Quality


def quality(texts: Texts, translator: Apertium) -> Iterator[list[str]]:
    for code in CODES:
        yield scored(code, texts, translator)
    for code in ("pt", "it", "fr"):
        try:
            catalan = Apertium([code], pivots=("ca", "es"))
        except ModelUnavailable:
            continue
        if catalan.routes[code] != translator.routes[code]:
            yield scored(code, texts, catalan)
        catalan.close()


def scored(code: str, texts: Texts, translator: Apertium) -> list[str]:
    answers = translator.translate(texts[code], code)
    bleu = sacrebleu.corpus_bleu(answers, [texts["en"]]).score
    chrf = sacrebleu.corpus_chrf(answers, [texts["en"]]).score
    return [named(code), " > ".join(translator.routes[code]), f"{bleu:.1f}", f"{chrf:.1f}"]


# Speed


def speed(texts: Texts, translator: Apertium, timed: int) -> Iterator[list[str]]:
    modes = {pair: file.stem for pair, file in installed(FOLDER).items()}
    for code in CODES:
        way = [modes[pair] for pair in pairwise(translator.routes[code])]
        lines = texts[code][:timed]
        translator.translate(lines[:1], code)
        stayed = started = 0.0
        answers: list[str] = []
        others: list[str] = []
        for at in range(0, len(lines), TURN):
            begun = time.perf_counter()
            answers += translator.translate(lines[at : at + TURN], code)
            between = time.perf_counter()
            others += [one_process(line, way) for line in lines[at : at + TURN]]
            stayed, started = stayed + between - begun, started + time.perf_counter() - between
        differ = sum(mine.strip() != other.strip() for mine, other in zip(answers, others, strict=True))
        rates = [len(lines) / stayed, len(lines) / started]
        yield [named(code), *(f"{rate:.1f}/s" for rate in rates), f"{rates[0] / rates[1]:.0f} x", f"{differ}"]


def one_process(text: str, way: Sequence[str]) -> str:
    for mode in way:
        command = ["apertium", "-u", mode]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # noqa: S603
        text = done.stdout
    return text


def state(texts: Texts, translator: Apertium) -> Iterator[list[str]]:
    for code in CODES:
        right = translator.translate(texts[code], code)
        counts = []
        for step in (1, -1):
            kept = Apertium([code])
            for pipeline in kept._pipelines.values():
                pipeline._renew = lambda: None  # type: ignore[method-assign]
            answers = kept.translate(texts[code][::step], code)[::step]
            counts.append(sum(mine != other for mine, other in zip(answers, right, strict=True)))
            kept.close()
        yield [named(code), *map(str, counts)]


# Languages


def detection(texts: Texts, detect: FastText) -> Iterator[list[str]]:
    for code, lines in texts.items():
        shares = [sum(detect(line).code == code for line in lines) / len(lines)]
        for size in CHUNKS:
            guesses = list(map(detect, chunks(lines, size)))
            shares.append(sum(guess.code == code for guess in guesses) / len(guesses))
        parts = chunks(lines, CHUNKS[0])
        begun = time.perf_counter()
        guesses = list(map(detect, parts))
        rate = len(parts) / (time.perf_counter() - begun)
        sure = [guess.code == code for guess in guesses if guess.probability > SURE]
        shares += [len(sure) / len(guesses), sum(sure) / len(sure)]
        yield [named(code), *(f"{100 * share:.1f} %" for share in shares), f"{rate:,.0f}"]


def chunks(lines: Sequence[str], size: int) -> list[str]:
    """So many words one behind the other, within a sentence; what is left at its end is not among them."""
    starts = ((words, at) for words in map(str.split, lines) for at in range(0, len(words) - size + 1, size))
    return [" ".join(words[at : at + size]) for words, at in starts]


if __name__ == "__main__":
    typer.run(main)
