"""Strict JSON: what is refused, what comes back exactly, and that no other error ever leaves."""

import json
import re
import time
from dataclasses import replace
from enum import Enum, StrEnum
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core import jsonio
from toolwise.core.errors import InvalidArguments, MalformedCall, ResultInvalid, ToolwiseError
from toolwise.core.limits import LIMITS

characters = st.characters(exclude_categories=["Cs"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**290), 10**290)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(characters),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(characters), inner, max_size=4),
    max_leaves=12,
)


def refused(text: str | bytes, error: type[ToolwiseError], saying: str) -> None:
    with pytest.raises(error, match=saying):
        jsonio.loads(text)


def seconds(function, error: type[ToolwiseError]) -> float:
    """Of processor time, the best of three, for a call that must be refused."""

    def once() -> float:
        start = time.process_time()
        with pytest.raises(error):
            function()
        return time.process_time() - start

    return min(once() for _ in range(3))


@pytest.mark.case("A1")
def test_a_duplicate_key_is_refused_and_named():
    refused('{"name":"send","arguments":{"to":"bob","to":"eve"}}', MalformedCall, 'duplicate key "to"')


@pytest.mark.case("A2")
def test_a_second_name_does_not_replace_the_first():
    refused('{"name":"read","arguments":{},"name":"delete"}', MalformedCall, 'duplicate key "name"')


def test_a_key_written_with_an_escape_is_the_same_key():
    refused(r'{"to":1,"\u0074o":2}', MalformedCall, 'duplicate key "to"')


@pytest.mark.case("A3")
@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_does_not_have_is_refused(word):
    refused(f'{{"name":"pay","arguments":{{"amount":{word}}}}}', MalformedCall, "number out of range")


@pytest.mark.case("A4")
@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400 + ".0"])
def test_a_number_beyond_a_double_is_refused(number):
    refused(f'{{"amount":{number}}}', MalformedCall, "number out of range")


@pytest.mark.case("A5")
def test_a_long_integer_is_refused_quickly():
    text = '{"n":' + "1" * 5000 + "}"
    refused(text, MalformedCall, "integer too long")
    assert seconds(lambda: jsonio.loads(text), MalformedCall) < 0.02


def test_an_integer_of_as_many_digits_as_allowed_is_exact():
    digits = "9" * LIMITS.integer_digits
    assert jsonio.loads("-" + digits) == -int(digits)
    assert jsonio.dumps(int(digits)) == digits
    for integer in (int(digits) + 1, -int(digits) - 1):
        with pytest.raises(ResultInvalid, match="integer too long"):
            jsonio.dumps(integer)


@pytest.mark.case("A6")
@pytest.mark.parametrize("text", ['{"x":' + "[" * 100_000, '{"x":' * 100_000, "[" * 33 + "]" * 33])
def test_deep_nesting_is_refused_before_it_is_parsed(text):
    refused(text, MalformedCall, "too deep")
    assert seconds(lambda: jsonio.loads(text), MalformedCall) < 0.02


def test_brackets_inside_strings_nest_nothing():
    text = '["' + "[{" * 200 + r"\"[\\" + '"]'
    assert jsonio.loads(text) == json.loads(text)


def test_as_many_levels_as_allowed_are_read_and_written():
    text = "[" * LIMITS.json_depth + "]" * LIMITS.json_depth
    assert jsonio.dumps(jsonio.loads(text)) == text


@pytest.mark.parametrize("text", ['"' + '\\"' * 30_000, '["\\' * 20_000, '"[' * 30_000])
def test_unclosed_strings_are_scanned_in_linear_time(text):
    assert seconds(lambda: jsonio.loads(text), MalformedCall) < 0.1


def test_a_depth_beyond_the_parsers_own_stack_is_still_our_error():
    deep = replace(LIMITS, json_depth=10**6)
    with pytest.raises(MalformedCall, match="too deep"):
        jsonio.loads("[" * 100_000 + "]" * 100_000, deep)


@pytest.mark.case("A7")
@pytest.mark.parametrize("text", [r'{"s":"\ud800"}', r'{"\udc00":1}', r'["\udc00\ud800"]', '{"s":"\ud800"}'])
def test_an_unpaired_surrogate_is_refused(text):
    refused(text, InvalidArguments, "unpaired surrogate")


def test_a_surrogate_pair_is_one_character():
    assert jsonio.loads(r'"\ud83d\ude00"') == "😀"


@pytest.mark.case("A9")
@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-16-le"),
        '{"a":1}'.encode("utf-32-be"),
        b'{"a":"\xff"}',
        b'"\xed\xa0\x80"',
    ],
)
def test_bytes_that_are_not_plain_utf8_are_refused(data):
    refused(data, MalformedCall, "encoding")


@pytest.mark.case("A12")
@pytest.mark.parametrize("n", [9007199254740993, 2**64 + 1, -(2**63) - 1, 10**299 + 7])
def test_large_integers_stay_exact(n):
    assert jsonio.loads(f'{{"n":{n}}}') == {"n": n}
    assert jsonio.loads(jsonio.dumps({"n": n})) == {"n": n}


def test_a_long_string_is_refused_unless_the_caller_allows_it():
    text = '"' + "é" * LIMITS.string_bytes + '"'
    refused(text, InvalidArguments, "string too long")
    assert jsonio.loads(text, replace(LIMITS, string_bytes=10**6)) == "é" * LIMITS.string_bytes


@pytest.mark.parametrize("text", ["", " ", "{}{}", "{} x", "{'a':1}", "[1,]", "01", "+1", "1.", '"\t"', "nul", "[٣]"])
def test_what_is_not_json_is_refused(text):
    refused(text, MalformedCall, "not JSON")


@pytest.mark.case("C7")
def test_what_cannot_be_written_as_json_is_an_invalid_result():
    cyclic: list[object] = []
    cyclic.append(cyclic)
    mapping: dict[str, object] = {}
    mapping["self"] = mapping
    endless = (n for n in range(3))
    impossible = [float("nan"), float("-inf"), 10**5000, {1, 2}, object(), cyclic, mapping, endless]
    impossible += [{1: "a"}, {None: 1}, {"a": [b"bytes"]}, "\ud800", {"\udfff": 1}, 1j, print, {"a": {"b": {3}}}]
    for value in impossible:
        for write in (jsonio.dumps, jsonio.pretty, jsonio.fingerprint):
            with pytest.raises(ResultInvalid):
                write(value)
    assert next(endless) == 0  # nothing was consumed on the way


def test_a_part_that_is_shared_many_times_is_refused_before_it_is_written():
    bomb: list[object] = ["x" * 100]
    for _ in range(30):
        bomb = [bomb, bomb]
    with pytest.raises(ResultInvalid, match="too large"):
        jsonio.dumps(bomb, replace(LIMITS, json_size=100_000))


def test_canonical_json_is_sorted_compact_and_unescaped():
    assert jsonio.dumps({"b": [1, 2.5, None, True], "a": "é\n\u2028"}) == '{"a":"é\\n\u2028","b":[1,2.5,null,true]}'


def test_tuples_enums_and_read_only_mappings_are_written_as_what_they_hold():
    class Colour(StrEnum):
        RED = "red"

    class Size(str, Enum):  # noqa: UP042
        BIG = "big"

    value = (Colour.RED, Size.BIG, MappingProxyType({"a": True}))
    assert jsonio.dumps(value) == '["red","big",{"a":true}]'


def test_a_fingerprint_depends_on_the_value_alone():
    assert jsonio.fingerprint({"a": 1, "b": 2}) == jsonio.fingerprint({"b": 2, "a": 1})
    assert jsonio.fingerprint({"a": 1}) != jsonio.fingerprint({"a": 1.0})
    assert len(jsonio.fingerprint(None)) == 64


def test_a_message_shows_names_cut_and_without_control_characters():
    assert jsonio.quote("a\n\u202e\ud800b") == '"a\\n\\u202e\\ud800b"'
    assert jsonio.quote("x" * 1000) == '"' + "x" * 39 + '…"'


@given(values)
@settings(max_examples=150, deadline=None)
def test_what_is_written_reads_back_equal(value):
    assert jsonio.loads(jsonio.dumps(value)) == value
    assert jsonio.loads(jsonio.pretty(value).encode()) == value


@given(
    st.text(st.sampled_from('{}[],:"\\/ \t\nu0123456789.eE+-abtruefalsn\ud800é'), max_size=30)
    | st.binary(max_size=20)
    | values.map(lambda value: json.dumps(value, indent=1))
)
@settings(max_examples=400, deadline=None)
def test_what_is_accepted_the_standard_parser_reads_equally(text):
    try:
        value = jsonio.loads(text)
    except (MalformedCall, InvalidArguments):
        return
    assert json.loads(text) == value


def test_the_first_line_of_a_foreign_error_fits_into_a_sentence() -> None:
    assert jsonio.first_line(OSError("no such\x1b[31m model.\nlong story")) == "no such\\u001b[31m model"
    assert jsonio.first_line(ValueError()) == ""
    assert len(jsonio.first_line(ValueError("x" * 10_000))) == LIMITS.message_chars


@pytest.mark.parametrize(
    "hidden", ["\u200b", "\u00a0", "\u3164", "\ufe0f", "\u2800", "\U000e0141", "\U000e01ef", "\u202e", "\x1b"]
)
def test_what_nobody_could_see_is_shown_as_an_escape(hidden: str) -> None:
    shown = jsonio.printable(f"a{hidden}b", 100)
    assert re.fullmatch(r"a(\\u[0-9a-f]{4})+b", shown)


def test_one_line_has_no_signs_that_cannot_be_printed_and_single_spaces() -> None:
    assert jsonio.one_line(" a\n\x00b\u2028c\u00a0\td ") == "a b c d"
    assert jsonio.one_line("\x00\n") == ""


@given(st.text(characters))
def test_printable_json_is_still_the_same_json(text: str) -> None:
    assert jsonio.loads(jsonio.printable(jsonio.dumps([text]), 10_000)) == [text]


def sound(value: object, depth: int = 2) -> bool:
    """The slow, obvious reference of what `loads` asks of a value, for the small bounds of the test below."""
    match value:
        case str():
            return len(value.encode("utf-8", "surrogatepass")) <= 8 and not any(
                "\ud800" <= c <= "\udfff" for c in value
            )
        case list():
            return depth > 0 and all(sound(item, depth - 1) for item in value)
        case dict():
            return depth > 0 and all(sound(item, depth - 1) for pair in value.items() for item in pair)
    return True


@given(
    st.recursive(
        st.integers(0, 9) | st.text(st.sampled_from('[{é\\u"😀\ud83d\ude00'), max_size=9),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("a[\\é", max_size=9), inner, max_size=2),
        max_leaves=4,
    ),
    st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_what_is_checked_at_a_glance_is_what_a_walk_over_everything_finds(value, escaped):
    text = json.dumps(value, ensure_ascii=escaped)
    value = json.loads(text)  # what an escaped pair of surrogates says is one character
    try:
        assert jsonio.loads(text, replace(LIMITS, json_depth=2, string_bytes=8)) == value
        accepted = True
    except (MalformedCall, InvalidArguments):
        accepted = False
    assert accepted == sound(value)


@pytest.mark.case("R8")
@pytest.mark.parametrize(
    "text",
    ['{"path": "/etc/passwd', '{"path": "x"', '{"a": 1} so', '{"a": 1,}', "{'a': 1}", '{"a": NaN}', "// a\n{}"],
)
def test_nothing_is_repaired(text: str) -> None:
    with pytest.raises(MalformedCall):
        jsonio.loads(text)
