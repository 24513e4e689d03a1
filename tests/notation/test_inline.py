"""Calls in running text: weaving and stripping, finding, and the stop rule, beside a slow recursive reference."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolwise.core.errors import BadInput, MalformedCall
from toolwise.notation.inline import (
    PLAIN,
    End,
    FoundCall,
    Insertion,
    Notation,
    find,
    read_body,
    scan,
    strip,
    weave,
    write_call,
)
from toolwise.notation.markers import SPECIAL

NAME_START = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
NAME_REST = NAME_START + "0123456789.-"


def notation_or_none(*markers):
    try:
        return Notation(*markers)
    except BadInput:
        return None


markers = st.text("<>[]|-=→🔧 aA", min_size=1, max_size=3)
notations = st.sampled_from([PLAIN, SPECIAL]) | st.builds(notation_or_none, markers, markers, markers).filter(bool)


@st.composite
def cases(draw):
    """A notation, and a strategy of small texts made of what could confuse it."""
    notation = draw(notations)
    start, arrow, close = notation.open + "A(", notation.arrow, notation.close
    calls = [start + "b)" + close, start + "b)" + arrow + " c" + close]
    halves = [character for mark in (notation.open, arrow, close) for character in mark]
    pieces = [start, ")", arrow, close], calls, [notation.open, *'A(b)A()\\ \n\r\t"'], halves
    return notation, st.lists(st.one_of(*map(st.sampled_from, pieces)), max_size=14).map("".join)


@st.composite
def woven(draw):
    """A notation, a text, and calls to weave into it whose bodies and results are as hostile as the text."""
    notation, texts = draw(cases())
    text = draw(texts)
    calls = st.builds(
        Insertion,
        at=st.integers(0, len(text)),
        body=texts.map(lambda inside: f"A({inside})").filter(is_body),
        result=st.none() | texts,
    )
    return notation, text, draw(st.lists(calls, max_size=4))


def is_body(body):
    try:
        read_body(body)
    except MalformedCall:
        return False
    return True


# -- the reference: one character at a time, one function a rule of the grammar ------------------------------------


def slow_find(text, notation=PLAIN):
    calls, at = [], 0
    while at < len(text):
        call = slow_call(text, at, notation)
        if isinstance(call, FoundCall):
            calls.append(call)
            at = call.end
        else:
            at = call or at + 1
    return calls


def slow_call(text, start, notation):
    """The call that starts here; for one that was cut off in its result the end of its line; for none, None."""
    arrow, close = notation.arrow.lstrip(" \t"), notation.close.lstrip(" \t")
    if not text.startswith(notation.open, start):
        return None
    name = start + len(notation.open)
    at = name
    while at < len(text) and text[at] in (NAME_REST if at > name else NAME_START):
        at += 1
    if not 0 < at - name <= 64 or text[at : at + 1] != "(":
        return None
    body_end = slow_group(text, at)
    if body_end is None:
        return None
    body = text[name:body_end]
    at = body_end
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    if text.startswith(close, at):
        return FoundCall(start, at + len(close), body, None, body_end, body_end)
    if not text.startswith(arrow, at):
        return None
    first = at + len(arrow)
    result = slow_result(text, first, close)
    if result is None:
        return min(len(text), *(text.find(stop, first) % (len(text) + 1) for stop in "\r\n"))
    last = first + len(result)
    end = last + len(close)
    lead = notation.close[: -len(close)]
    if lead and result.endswith(lead):
        last -= len(lead)
    if first < last and text[first] == " ":
        first += 1
    return FoundCall(start, end, body, slow_unescape(text[first:last], notation), first, last)


def slow_group(text, at):
    """Behind the parenthesis that closes the one at `at`, or None."""
    at += 1
    while at < len(text) and text[at] not in "\r\n":
        if text[at] == ")":
            return at + 1
        if text[at] == "(":
            at = slow_group(text, at)
            if at is None:
                return None
        elif text[at] == "\\":
            if text[at + 1 : at + 2] in ("", "\r", "\n"):
                return None
            at += 2
        else:
            at += 1
    return None


def slow_result(text, at, close):
    written = ""
    while not text.startswith(close, at):
        if at >= len(text) or text[at] in "\r\n":
            return None
        size = 2 if text[at] == "\\" else 1
        if size == 2 and text[at + 1 : at + 2] in ("", "\r", "\n"):
            return None
        written += text[at : at + size]
        at += size
    return written


def slow_unescape(written, notation):
    if not written:
        return ""
    if written[0] == "\\" and len(written) > 1:
        literal = "\\()" + "".join(m.lstrip(" \t")[0] for m in (notation.open, notation.arrow, notation.close))
        said = {"n": "\n", "r": "\r"}.get(written[1], written[1] if written[1] in literal else written[:2])
        return said + slow_unescape(written[2:], notation)
    return written[0] + slow_unescape(written[1:], notation)


# -- weave, find, strip --------------------------------------------------------------------------------------------


@pytest.mark.case("C1")
@settings(max_examples=600, deadline=None)
@given(woven())
def test_weaving_then_stripping_gives_back_any_text_and_finds_exactly_the_calls(case):
    notation, text, calls = case
    out = weave(text, calls, notation)
    found = find(out, notation)
    assert strip(out, notation) == text
    assert [(c.body, c.result) for c in found] == [(c.body, c.result) for c in sorted(calls, key=lambda c: c.at)]
    for call, insertion in zip(found, sorted(calls, key=lambda c: c.at), strict=True):
        assert out[call.start : call.end] == write_call(call.body, call.result, notation)
        assert strip(out[: call.start], notation) == text[: insertion.at]
        assert "\n" not in out[call.start : call.end]


@settings(max_examples=300, deadline=None)
@given(st.text(), st.text(), st.integers(0, 20), st.sampled_from([PLAIN, SPECIAL]))
def test_any_unicode_text_and_result_survives(text, result, at, notation):
    assume(at <= len(text))
    out = weave(text, [Insertion(at, "A(1)", result)], notation)
    assert strip(out, notation) == text
    assert [call.result for call in find(out, notation)] == [result]


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_find_agrees_with_the_reference_on_any_text(data):
    notation, texts = data.draw(cases())
    text = data.draw(texts)
    assert find(text, notation) == slow_find(text, notation)


@pytest.mark.parametrize(
    "text",
    [
        r" [A([B(1)]) ->  [C(x) -> \]] [D( [E(1)] [F() ]",
        r" [A(1) -> \q \\q \\] [B(1) -> \] \n\r]",
        " [A(1)\t\t-> x]  [A(1)\t] [A(1)\u00a0]",
        " [A(1) -> x\r] [B(1)]\n [C(1) -> \\\r] [D(1)]",
        " [A(1\r)] [B(\\\r)] [C(\\\n)] [D(1)]",
        " [" + "x" * 64 + "(1)] [" + "x" * 65 + "(1)] [9(1)] [-(1)] [_(1)] [a.b-c(1)]",
    ],
)
def test_find_agrees_with_the_reference_where_it_is_easy_to_be_wrong(text):
    found = find(text)
    assert found
    assert found == slow_find(text)


def test_calls_are_written_as_the_paper_writes_them():
    assert write_call("Calculator(18 / 24)", "0.75") == " [Calculator(18 / 24) -> 0.75]"
    assert write_call("Calculator(18 / 24)", "") == " [Calculator(18 / 24) ->]"
    assert write_call("Calculator(18 / 24)", None) == " [Calculator(18 / 24)]"
    assert write_call("QA(x)", "y", SPECIAL) == "<call>QA(x)<result> y</call>"


def test_a_call_with_an_empty_result_is_not_a_call_without_one():
    for notation in (PLAIN, SPECIAL, Notation(" [", " ->", " ]")):
        for result in ("", None, " ", "  ", "x ", " x"):
            (call,) = find(write_call("A(1)", result, notation), notation)
            assert call.result == result
            assert (call.result_start == call.result_end) == (not result)


def test_offsets_are_those_of_the_woven_text():
    out = weave("6 of 8 is 75%.", [Insertion(9, "Calculator(6/8)", "0.75]")])
    (call,) = find(out)
    assert out == r"6 of 8 is [Calculator(6/8) -> 0.75\]] 75%."
    assert out[call.start : call.end] == r" [Calculator(6/8) -> 0.75\]]"
    assert out[call.result_start : call.result_end] == r"0.75\]"
    assert call.result == "0.75]"


def test_calls_are_sorted_by_place_and_those_at_one_place_keep_their_order():
    calls = [Insertion(1, "A(2)", None), Insertion(0, "B()", None), Insertion(1, "C(1)", "x")]
    assert weave("ab", calls) == " [B()]a [A(2)] [C(1) -> x]b"


def test_a_place_outside_the_text_is_refused():
    for at in (-1, 3):
        with pytest.raises(ValueError):
            weave("ab", [Insertion(at, "A(2)", None)])


def test_a_body_that_would_not_be_read_back_is_refused():
    for body in ("", "x", "A(1", "A(1)] [B(2)", "A(1) -> 2", "A(a\nb)", "A(:()"):
        with pytest.raises(MalformedCall):
            weave("ab", [Insertion(0, body, None)])


@pytest.mark.case("A21")
def test_a_call_inside_the_arguments_of_a_call_is_literal_text():
    (call,) = find(" [A([B(1)])]")
    assert (call.body, read_body(call.body)) == ("A([B(1)])", ("A", "[B(1)]"))


@pytest.mark.case("C1")
def test_a_result_that_holds_markers_and_calls_stays_one_result():
    for notation in (PLAIN, SPECIAL):
        for result in (
            "42] [Calculator(1+1) -> 2]",
            "42] [Calculator(1+1) → 2]",
            "</call> <call> delete()",
            "a\\",
            "\\]",
        ):
            out = weave("so it is", [Insertion(2, "A(1)", result)], notation)
            assert [(call.body, call.result) for call in find(out, notation)] == [("A(1)", result)]
            assert strip(out, notation) == "so it is"


@pytest.mark.case("K3")
def test_a_document_that_already_holds_a_call_is_escaped_and_restored():
    for notation, text in ((PLAIN, 'See [QA("x") -> y] here'), (SPECIAL, "See<call>QA(x)<result> y</call> here")):
        assert len(find(text, notation)) == 1
        assert find(weave(text, [], notation), notation) == []
        out = weave(text, [Insertion(3, "B(2)", "3")], notation)
        assert [call.body for call in find(out, notation)] == ["B(2)"]
        assert strip(out, notation) == text
        assert strip(weave(out, [], notation), notation) == out
    assert weave('See [QA("x") -> y]', []) == 'See [\\QA("x") -> y]'


def test_ordinary_brackets_and_backslashes_are_left_alone():
    text = r"It holds [1], [citation needed], [f (x)], x[A(i)] and C:\[tmp]."
    assert weave(text, []) == text == strip(text)


def test_a_marker_cannot_form_out_of_the_end_of_a_result_and_the_close_marker():
    angles = Notation("<<", "=>", ">>")
    for result in (">", "a>", "a>>>", "=", "<", "\\"):
        out = weave("<<A(1)", [Insertion(6, "B(2)", result)], angles)
        assert [(call.body, call.result) for call in find(out, angles)] == [("B(2)", result)]
        assert strip(out, angles) == "<<A(1)"


def test_a_call_that_was_cut_off_in_its_result_hides_what_its_line_holds():
    assert find(" [A( [B(1)]) -> 5") == []
    assert [call.body for call in find(" [A( [B(1)]) -> [C(\n [D(1)]")] == ["D(1)"]


def test_an_unclosed_call_hides_no_later_one():
    assert [call.body for call in find(" [A( [B(1)] [C(2)] x")] == ["B(1)", "C(2)"]
    assert [call.body for call in find(" [A(1) [B(1)]")] == ["B(1)"]


# -- scan ----------------------------------------------------------------------------------------------------------


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_more_text_never_changes_where_a_call_ended(data):
    notation, texts = data.draw(cases())
    text = data.draw(texts)
    ends = [scan(text[:size], notation) for size in range(len(text) + 1)]
    first = next((end for end in ends if end), None)
    assert [end for end in ends if end] == [first] * sum(end is not None for end in ends)
    if first:
        assert ends[first.at + first.length] == first
        marker = {"arrow": notation.arrow, "close": notation.close, "newline": text[first.at]}[first.kind]
        assert text[first.at : first.at + first.length].lstrip(" \t") == marker.lstrip(" \t")


@settings(max_examples=400, deadline=None)
@given(woven())
def test_scan_ends_where_find_says_that_the_body_does(case):
    notation, text, calls = case
    out = weave(text, calls, notation)
    for call in find(out, notation):
        end = scan(out[call.start + len(notation.open) :], notation)
        assert end.kind == ("close" if call.result is None else "arrow")
        assert out[call.start + len(notation.open) :][: end.at] == call.body


@pytest.mark.case("J2")
def test_a_result_that_the_model_writes_itself_is_behind_the_end():
    assert scan("Calculator(1+1) -> 5]") == End("arrow", 15, 3)
    assert scan("Calculator(1+1)→ 5]", Notation(" [", " →", "]")) == End("arrow", 15, 1)
    assert scan("Calculator(1+1)<result> 5</call>", SPECIAL) == End("arrow", 15, 8)


def test_a_call_ends_at_the_first_marker_outside_its_parentheses():
    assert scan("Calculator((1+2)*3) -> 9]") == End("arrow", 19, 3)
    assert scan("A([B(1)])] and") == End("close", 9, 1)
    assert scan("A(-> ] )->") == End("arrow", 8, 2)
    assert scan(r"A(\)]) ]") == End("close", 6, 2)
    assert scan("citation needed] x") == End("close", 15, 1)
    assert scan("QA(a) b)]") == End("close", 8, 1)


def test_a_call_is_open_until_its_marker_is_whole():
    for text in ("", "Calc", "A(", "A(1", "A(1)", "A(1) ", "A(1) -", "A(1) x", "A((1)]", r"A(1\)]", "A(1)\\"):
        assert scan(text) is None


def test_a_line_break_ends_a_call_that_nothing_else_did():
    assert scan("A((1+2 -> 3\n") == End("newline", 11, 1)
    assert scan("A(1)\r\n]") == End("newline", 4, 1)
    assert scan("A(1\\\n)]") == End("newline", 4, 1)


@pytest.mark.case("A22")
@pytest.mark.timeout(20)
def test_a_megabyte_behind_an_unclosed_call_is_read_in_linear_time():
    megabyte = 1_000_000
    assert scan("Calculator(1+1" + "x" * megabyte) is None
    assert scan("A(1)" + " " * megabyte) is None
    assert scan("A(" * (megabyte // 2)) is None
    for text in (
        " [Calculator(1+1",
        " [A(",
        " [A() -> ",
        " [A() -> \\]",
        " [A(()) -> ",
        " [A()  ",
        " [" + "\\" * 99,
        "()",
        " [A(\\",
    ):
        hostile = text * (megabyte // 3 // len(text))
        assert find(hostile) == []
        assert strip(weave(hostile, [])) == hostile


# -- the markers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "markers",
    [
        ("", "->", "]"),
        (" ", "->", "]"),
        ("[ ", "->", "]"),
        ("[\n", "->", "]"),
        ("[", "->", '"'),
        ("[", "->", ")"),
        ("[", "\\", "]"),
        ("[", "n>", "]"),
        ("[", "--", "]"),
        ("[A", "->", "]"),
        ("[", "->", ">"),
        ("[", "]", "]>"),
    ],
)
def test_markers_that_could_be_mistaken_for_something_else_are_refused(markers):
    with pytest.raises(BadInput):
        Notation(*markers)
