"""Calls that would teach a model to know the answer before it asked: they look ahead in the text, or say it again.

A call stands before what it helps to predict, so its arguments may hold only what the text has said before it. An
argument with a number or a rare word that the text names only behind the call was read off the answer. A result that
merely repeats an argument, or what the text has just said, explains nothing, and one that has the following words
verbatim comes from the text itself (its page is in the index): it lowers the loss like nothing else, and no call at run
time will ever give so much.

A word is rare when the tokenizer needs more than one token for it, or when it has a capital letter or a digit: names,
terms, foreign words. Common words (`located`, `people`) are what questions are made of, wherever the text has them too.

Covered: another spelling: `1000`, `1,000`, `1e3` and `a thousand`; `50%`, `50` and `0.5`; `Sao Paulo` and `São Paulo`.
Not covered: an answer that was put into other words; endings (`Beatle`); words of two letters, and scripts without
spaces; dates and times, whose parts are no numbers here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Any

from toolwise.notation.segments import Tokenizer
from toolwise.teach.corpus.numbers import Number, numbers
from toolwise.teach.corpus.spelled import plain, spelled

_WORD = re.compile(r"(?=[^\W\d_]+[0-9]|[0-9]+[^\W\d_])[^\W_]+|[^\W\d_]{3,}")
_ANY_WORD = re.compile(r"\w+")
_GROUPING = re.compile(r"(?<=[0-9]),(?=[0-9]{3})")
_PRODUCT = re.compile(r"(?<=[0-9])x(?=[0-9])")  # 3x14 is one word in prose, and a product in a call


def looks_ahead(arguments: Any, text: str, offset: int, tokenizer: Tokenizer, *, known: str = "") -> bool:
    """Whether arguments of a call before character `offset` hold what stands in the text only behind it.

    `known` is what stood before the call beside the text: the results of earlier calls.
    """
    before, behind, known = plain(text[:offset]), plain(text[offset:]), plain(known)
    found = list(_amounts(before + behind))
    there = [readings for end, readings in found if end <= len(before)]
    there += [readings for _, readings in _amounts(known)]
    ahead = [readings for end, readings in found if end > len(before)]
    said = plain(" ".join(_texts(arguments)))
    return _number_of(said, there, ahead) or _word_ahead(said, f"{known} {before}", behind, tokenizer)


def stands_on(arguments: Any, before: str, given: str, tokenizer: Tokenizer) -> bool:
    """Whether the arguments use a number or a rare word that stands in `given` and not in the text before the call."""
    said, before, given = plain(" ".join(_texts(arguments))), plain(before), plain(given)
    there, new = ([readings for _, readings in _amounts(text)] for text in (before, given))
    return _number_of(said, there, new) or _word_ahead(said, before, given, tokenizer)


def repeats(result: str, arguments: Any) -> bool:
    """Whether the result is one of the arguments, but for case, spaces, the mark at its end, and how a number is
    spelled."""
    said = _folded(result)
    value = _value(said)
    return any(
        said == text or (value is not None and value == _value(text)) for text in map(_folded, _texts(arguments))
    )


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


#: What a number may mean: `50%` is 50 to whoever writes of percent, and 0.5 to whoever computes.
Readings = Collection[Fraction]


def _amounts(text: str) -> Iterator[tuple[int, Readings]]:
    """Where each number of a plain text ends, and what it may mean; signs do not count."""
    for number in numbers(text):
        yield number.end, _readings(number)
    for end, value in spelled(text):
        yield end, (value,)


def _readings(number: Number) -> Readings:
    value = abs(number.value)
    return (value, value * 100) if number.text.endswith("%") else (value,)


def _number_of(said: str, there: Iterable[Readings], new: Iterable[Readings]) -> bool:
    """Whether a number in `said` is one of `new` and none of those that are `there`."""
    old, others = ({value for readings in each for value in readings} for each in (there, new))
    mine = (readings for _, readings in _amounts(_PRODUCT.sub(" x ", said)))
    return any(not old.intersection(readings) and others.intersection(readings) for readings in mine)


def _value(text: str) -> Fraction | None:
    """The number that a text consists of."""
    found = numbers(text)
    return found[0].value if len(found) == 1 and found[0].text == text else None


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
