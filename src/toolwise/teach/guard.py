"""Calls that would teach a model to know the answer before it asked: they look ahead in the text, or say it again.

A call stands before what it helps to predict, so its arguments may hold only what the text has said before it. An
argument with a number or a rare word that the text names only behind the call was read off the answer. A result that
merely repeats an argument, or what the text has just said, explains nothing, and one that has the following words
verbatim comes from the text itself (its page is in the index): it lowers the loss like nothing else, and no call at run
time will ever give so much.

A word is rare when the tokenizer needs more than one token for it, or when it has a capital letter: names, terms,
foreign words. Common words (`located`, `people`) are what questions are made of, wherever the text has them too.

Not covered: an answer that was put into other words, and a number that was written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

from toolwise.notation.segments import Tokenizer
from toolwise.teach.corpus.numbers import Number, numbers

_WORD = re.compile(r"[^\W\d_]{3,}")
_ANY_WORD = re.compile(r"\w+")
_GROUPING = re.compile(r"(?<=[0-9]),(?=[0-9]{3})")
_PRODUCT = re.compile(r"(?<=[0-9])x(?=[0-9])")  # 3x14 is one word in prose, and a product in a call


def looks_ahead(arguments: Any, text: str, offset: int, tokenizer: Tokenizer, *, known: str = "") -> bool:
    """Whether arguments of a call before character `offset` hold what stands in the text only behind it.

    `known` is what stood before the call beside the text: the results of earlier calls.
    """
    said = " ".join(_texts(arguments))
    before, behind = f"{known} {text[:offset]}", text[offset:]
    return _number_ahead(said, text, offset, known) or _word_ahead(said, before, behind, tokenizer)


def stands_on(arguments: Any, before: str, given: str, tokenizer: Tokenizer) -> bool:
    """Whether the arguments use a number or a rare word that stands in `given` and not in the text before the call."""
    said = " ".join(_texts(arguments))
    new = set(map(_magnitude, numbers(given))) - set(map(_magnitude, numbers(before)))
    if any(_magnitude(number) in new for number in numbers(_PRODUCT.sub(" x ", said))):
        return True
    return _word_ahead(said, before, given, tokenizer)


def repeats(result: str, arguments: Any) -> bool:
    """Whether the result is one of the arguments, but for case, spaces and the mark at its end."""
    return _folded(result) in {_folded(text) for text in _texts(arguments)}


def already_said(result: str, text: str, offset: int) -> bool:
    """Whether the text says the result right before character `offset`, so that a call there comes too late."""
    said, before = _ungrouped(result), _ungrouped(text[max(0, offset - 2 * len(result) - 8) : offset])
    return bool(said) and before.endswith(said) and not before.removesuffix(said)[-1:].isalnum()


def copies(result: str, text: str, offset: int, words: int) -> bool:
    """Whether the result has `words` words in a row of those that stand behind the call, within twice that distance."""
    ahead = _folded_words(text[offset:], 3 * words)
    said = _folded_words(result)
    runs = {tuple(said[i : i + words]) for i in range(len(said) - words + 1)}
    return any(tuple(ahead[i : i + words]) in runs for i in range(len(ahead) - words + 1))


def _folded_words(text: str, most: int | None = None) -> list[str]:
    return [match[0].casefold() for match in islice(_ANY_WORD.finditer(text), most)]


def _number_ahead(said: str, text: str, offset: int, known: str) -> bool:
    """Signs and percent signs do not count: `25` is `25%` read from what follows. One across `offset` is behind."""
    found = numbers(text)
    before = {_magnitude(number) for number in found if number.end <= offset} | set(map(_magnitude, numbers(known)))
    behind = {_magnitude(number) for number in found if number.end > offset}
    return any(_magnitude(number) in behind - before for number in numbers(_PRODUCT.sub(" x ", said)))


def _word_ahead(said: str, before: str, behind: str, tokenizer: Tokenizer) -> bool:
    wanted = {word.casefold() for word in _WORD.findall(said)}
    wanted -= {word.casefold() for word in _WORD.findall(before)}
    return any(word.casefold() in wanted and _is_rare(word, tokenizer) for word in _WORD.findall(behind))


def _is_rare(word: str, tokenizer: Tokenizer) -> bool:
    return not word.islower() or len(tokenizer.encode(f" {word}")) > 1


def _texts(arguments: Any) -> Iterator[str]:
    """Every text and number in the arguments, keys left out."""
    match arguments:
        case dict():
            for value in arguments.values():
                yield from _texts(value)
        case list() | tuple():
            for value in arguments:
                yield from _texts(value)
        case bool() | None:
            pass
        case _:
            yield str(arguments)


def _ungrouped(text: str) -> str:
    return _GROUPING.sub("", _folded(text))


def _folded(text: str) -> str:
    return " ".join(text.split()).rstrip(".!?").casefold()


def _magnitude(number: Number) -> Fraction:
    return abs(number.value) * (100 if number.text.endswith("%") else 1)
