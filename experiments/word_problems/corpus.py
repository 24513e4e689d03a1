"""GSM8K's problems as people tell them, without any that stands in a test set as well.

    python corpus.py GSM8K_TRAIN_PROSE.jsonl.gz told.jsonl.gz --tests DATA/eval

Left out are two things that teach not to call: the sum that is written out before its result (`sold 48/2 = 24 clips`
becomes `sold 24 clips`), behind which a number is easy without a calculator, and the last sentence (`The answer is
72.`), which repeats a number that was said just before. Texts that still have an equation are dropped, and nothing is
added.

Dropped, too, is every text that shares eight words in a row with a question of ASDiv or SVAMP, whatever numbers stand
between them: some of GSM8K's problems were written after some of ASDiv's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

WORDS = 8
TESTS = ("asdiv", "svamp")
_ANSWER = re.compile(r"\s*The answer is \S+\.?\s*\Z")
_TERMS = r"[\d.,%$()+*/x×÷−\s-]*"
_SUM = re.compile(rf"(?:(?<=\s)|^)[$(]*\.?\d{_TERMS}[+*/x×÷−-]{_TERMS}=\s*(?=\$?\.?\d)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prose", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tests", type=Path, required=True, help="the folder with asdiv.jsonl and svamp.jsonl")
    options = parser.parse_args()
    asked = {
        run
        for name in TESTS
        for row in lines(options.tests / f"{name}.jsonl")
        for run in runs(f"{row['body']} {row['question']}")
    }
    counts: Counter[str] = Counter()
    with gzip.open(options.out, "wt", encoding="utf-8") as stream:
        for number, row in enumerate(lines(options.prose)):
            text = _SUM.sub("", _ANSWER.sub("", row["text"]))
            why = "equation" if "=" in text else "kept" if asked.isdisjoint(runs(text)) else "in a test set"
            counts[why] += 1
            if why == "kept":
                stream.write(json.dumps({"id": f"gsm8k-{number:05}", "text": text}, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{dict(counts)}\n")


def lines(file: Path) -> Iterator[dict[str, str]]:
    opened = gzip.open if file.suffix == ".gz" else open
    with opened(file, "rt", encoding="utf-8") as stream:
        yield from map(json.loads, stream)


def runs(text: str) -> Iterator[tuple[str, ...]]:
    """Eight words in a row, numbers left out: what a rewording with other numbers keeps."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return (tuple(words[at : at + WORDS]) for at in range(len(words) - WORDS + 1))


if __name__ == "__main__":
    main()
