"""Strict JSON in, canonical JSON out, fingerprints. The only module that calls the standard parser.

Covered: texts that two parsers would read differently (duplicate keys, NaN, numbers that overflow to infinity, guessed
encodings), texts that make the standard parser raise something else than its own error (5,000 digits, 100,000
brackets), text that cannot be stored as UTF-8 (unpaired surrogates), and values that cannot be written at all.

Not covered: how long a text may be (the reader of the stream bounds that), NUL characters (they are valid JSON;
`core.schema.Validator` refuses them in arguments), underflow (`1e-400` is 0.0, as everywhere).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from toolwise.core.errors import InvalidArguments, MalformedCall, ResultInvalid, ToolwiseError
from toolwise.core.limits import LIMITS, Limits

# A string, closed or not, or a bracket. Possessive, so that no input makes it backtrack.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
# Blank letters and variation selectors: they count as printable, and whole messages have been hidden in them.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_JOINERS = "\u200c\u200d"  # they join or part letters of Persian, Indic scripts and emoji, and can do nothing else
_NUMBER, _LIST, _OBJECT = (int, float), (list, tuple), (dict, Mapping)  # a union would be made anew at every question
_CANONICAL = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def loads(text: str | bytes, limits: Limits = LIMITS) -> Any:
    """The value that `text` says (RFC 8259), integers exact at any size.

    Raises MalformedCall where the text is no JSON, or JSON that parsers read in more than one way; InvalidArguments
    where a string in it is too long or cannot be encoded. Nothing else.
    """
    text = _decoded(text)
    if _deeper_than(limits.json_depth, text):
        raise MalformedCall(f"too deep: nest at most {limits.json_depth} objects and lists")
    try:
        value = _decoder(limits.integer_digits).decode(text)
    except json.JSONDecodeError as error:
        raise MalformedCall(f"not JSON: {error.msg.lower()} at character {error.pos}") from None
    except RecursionError:  # a caller may have raised the depth beyond what the parser's own stack holds
        raise MalformedCall("too deep: nest fewer objects and lists") from None
    # Only a surrogate, an escape that may write one, or a long text can make a string in it wrong.
    if "\\u" in text or len(text) * 4 > limits.string_bytes or _has_surrogate(text):
        for item in walk(value):
            if isinstance(item, str):
                check_text(item, InvalidArguments, limits.string_bytes)
    return value


def dumps(value: Any, limits: Limits = LIMITS) -> str:
    """Canonical JSON: sorted keys, no spaces, no escapes that need not be. Tuples are lists; 1 and 1.0 differ.

    Raises ResultInvalid for whatever is not finite, bounded JSON: NaN, sets, objects, keys that are no strings,
    unpaired surrogates, integers over `limits.integer_digits`, cycles, nesting over `limits.json_depth`.
    """
    return canonical(plain(value, ResultInvalid, limits.json_size, limits))


def canonical(value: Any) -> str:
    """The same for a value that `plain` made: it is written as it is, and nothing is checked once more."""
    return _CANONICAL.encode(value)


def compact(value: Any, limits: Limits = LIMITS) -> str:
    """The same with the keys in their own order: as a model or a client wrote them. Raises ResultInvalid as `dumps`."""
    return json.dumps(plain(value, ResultInvalid, limits.json_size, limits), ensure_ascii=False, separators=(",", ":"))


def pretty(value: Any, limits: Limits = LIMITS) -> str:
    """The same for people: indented, keys in their own order. Raises ResultInvalid as `dumps` does."""
    return json.dumps(plain(value, ResultInvalid, limits.json_size, limits), ensure_ascii=False, indent=2)


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical JSON, 64 hex digits. Raises ResultInvalid as `dumps` does."""
    return hashlib.sha256(dumps(value).encode()).hexdigest()


def printable(text: str, chars: int | None = None) -> str:
    """`text` as one line may show it: cut to so many characters, if that is said, and what nobody could see written as
    JSON's escape.

    Canonical JSON that was not cut is still JSON, and of the same value.
    """
    shown = text if chars is None or len(text) <= chars else text[: chars - 1] + "…"
    if shown.isprintable() and (shown.isascii() or not _INVISIBLE.search(shown)):
        return shown
    return "".join(c if c.isprintable() and not _INVISIBLE.match(c) else json.dumps(c)[1:-1] for c in shown)


def one_line(text: str) -> str:
    """The text on one line, as a model reads it: what cannot be printed, and every run of spaces, is one space."""
    return " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())


def printable_lines(text: str) -> str:
    """`text` of several lines, whole, each of them `printable`."""
    return "\n".join(map(printable, text.split("\n")))


def quote(text: str, chars: int = 40) -> str:
    """A name that a model or a file wrote, as a message may show it."""
    return f'"{printable(text, chars)}"'


def first_line(error: BaseException) -> str:
    """What another package's error says first, without a full stop, as a sentence of ours may end; `""` for nothing."""
    return printable((str(error).strip().splitlines() or [""])[0].rstrip(" .:"), LIMITS.message_chars)


def walk(value: Any) -> Iterator[Any]:
    """`value`, everything inside it, and every key; in no particular order. `value` must hold no cycle."""
    stack = [value]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def plain(value: Any, refuse: type[ToolwiseError], size: int, limits: Limits = LIMITS) -> Any:
    """A copy of `value` made of dict, list, str, int, float, bool and None alone, safe to write as JSON.

    `size` bounds the number of values plus the number of characters, counted before anything is copied: a small
    object that refers to itself, or to one part many times, is refused early. Raises `refuse`.
    """
    left = size
    too_large = f"too large: keep it under {size} characters"

    def text_of(text: Any) -> str:
        nonlocal left
        if not isinstance(text, str):
            raise refuse("a key is not a string: use strings as keys")
        left -= len(text)
        if left < 0:
            raise refuse(too_large)
        if not text.isascii():
            check_text(text, refuse)
        return str.__str__(text)  # the characters of a `str` enum, not its name

    def copy(item: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise refuse(too_large)
        if isinstance(item, str):
            return text_of(item)
        if item is None or isinstance(item, bool):
            return item
        if isinstance(item, _NUMBER):
            return _number(item, refuse, limits)
        if depth >= limits.json_depth:
            raise refuse(f"too deep: nest at most {limits.json_depth} objects and lists, without cycles")
        if isinstance(item, _LIST):
            return [copy(part, depth + 1) for part in item]
        if isinstance(item, _OBJECT):
            return {text_of(key): copy(part, depth + 1) for key, part in item.items()}
        raise refuse(f"not JSON: a value has the type {quote(type(item).__name__)}")

    try:
        return copy(value, 0)
    except RecursionError:  # the caller's own stack was nearly full
        raise refuse("too deep: nest fewer objects and lists") from None


def check_text(text: str, refuse: type[ToolwiseError], most_bytes: int | None = None) -> None:
    """Raises `refuse` unless `text` can be encoded as UTF-8, and in at most so many bytes."""
    if _has_surrogate(text):
        raise refuse("unpaired surrogate: send whole characters")
    if most_bytes is not None and len(text) * 4 > most_bytes and len(text.encode()) > most_bytes:
        raise refuse(f"string too long: send at most {most_bytes} bytes")


def _has_surrogate(text: str) -> bool:
    return not text.isascii() and _SURROGATE.search(text) is not None


@lru_cache(maxsize=16)
def _decoder(integer_digits: int) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_object,
        parse_constant=_constant,
        parse_float=_float,
        parse_int=_integer_within(integer_digits),
    )


def _decoded(text: str | bytes) -> str:
    if isinstance(text, bytes):
        try:
            # A NUL byte is never JSON, so it can only come from UTF-16 or UTF-32.
            text = "\ufeff" if b"\0" in text else text.decode("utf-8")
        except UnicodeDecodeError:
            raise MalformedCall("encoding: send UTF-8") from None
    if text.startswith("\ufeff"):
        raise MalformedCall("encoding: send UTF-8 without a byte order mark")
    return text


def _deeper_than(depth: int, text: str) -> bool:
    if text.count("[") + text.count("{") <= depth:  # those inside strings too: only then must they be told apart
        return False
    level = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        first = text[match.start()]
        if first in "[{":
            level += 1
            if level > depth:
                return True
        elif first in "]}":
            level -= 1
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise MalformedCall(f"duplicate key {quote(key)}")
        value[key] = item
    return value


def _constant(name: str) -> NoReturn:
    raise MalformedCall(f"number out of range: {name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise MalformedCall("number out of range: stay within a double's range")
    return value


def _integer_within(digits: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if len(text.lstrip("-")) > digits:
            raise MalformedCall(f"integer too long: write at most {digits} digits")
        return int(text)

    return integer


def _number(value: int | float, refuse: type[ToolwiseError], limits: Limits) -> int | float:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refuse("number out of range: NaN and infinity are not JSON")
        return float(value)
    digits = limits.integer_digits
    if value.bit_length() > 3 * digits and abs(value) >= 10**digits:  # a digit is more than three bits
        raise refuse(f"integer too long: at most {limits.integer_digits} digits")
    return int(value)
