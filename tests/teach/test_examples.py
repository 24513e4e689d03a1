"""A row of C* becomes ids and a mask, and the calls never change the document around them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.errors import BadInput
from toolwise.models.scripted import ScriptedTokenizer
from toolwise.notation.inline import Insertion, find, weave
from toolwise.notation.markers import SPECIAL
from toolwise.notation.segments import Ids
from toolwise.teach.records import Augmented, Span
from toolwise.teach.training.examples import Example, row_examples, split, training_example

PIECES = (" [", "]", " ->", "pen", " pen", "cost", "co", " [QA")
TOKENIZER = ScriptedTokenizer(PIECES)
WITH_MARKERS = ScriptedTokenizer(PIECES, SPECIAL)


class WithBegin(ScriptedTokenizer):
    def __init__(self) -> None:
        super().__init__(TOKENIZER.pieces)
        self.begin: Ids = (256,)


class LookAhead(ScriptedTokenizer):
    """One token for "pp", but two in front of an "e": a text's prefix can be tokenised otherwise than the text."""

    def encode(self, text: str) -> Ids:
        return tuple(260 if m == "pp" else ord(m) for m in re.findall("pp(?!e)|.", text))

    def decode(self, ids) -> str:
        return "".join("pp" if i == 260 else chr(i) for i in ids)


def row(plain: str, *calls: Insertion, document: str = "d") -> Augmented:
    text = weave(plain, calls)
    bodies = {call.body for call in calls}
    spans = tuple(Span(c.start, c.end, c.result_start, c.result_end, "T") for c in find(text) if c.body in bodies)
    return Augmented("p", document, text, plain, spans)


def without_calls(example: Example) -> Ids:
    inside = {i for start, end in example.calls for i in range(start, end)}
    return tuple(id_ for i, id_ in enumerate(example.ids) if i not in inside)


def masked_text(example: Example, keep: bool) -> str:
    return TOKENIZER.decode([i for i, counts in zip(example.ids, example.mask, strict=True) if counts is keep])


words = st.lists(st.sampled_from(["pen", " pen", "cost", " [", "]", "é", "🙂", " ->", "7", " [QA(1)]", "\\", " "])).map(
    "".join
)


@settings(max_examples=150)
@given(words, st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["", "3", "a]b", "é", " [QA(2)]"])), max_size=3))
def test_the_calls_taken_out_leave_the_tokens_of_the_plain_text(plain, wanted):
    ids = TOKENIZER.encode(plain)
    prefixes = [TOKENIZER.decode(ids[:k]) for k in range(len(ids) + 1)]
    offsets = sorted({len(p) for p in prefixes if plain.startswith(p)})
    calls = [Insertion(offsets[int(share * (len(offsets) - 1))], f"T({n})", r) for n, (share, r) in enumerate(wanted)]
    example = training_example(row(plain, *calls), TOKENIZER)
    assert without_calls(example) == ids
    assert len(example.calls) == len(calls)
    assert all(example.mask)
    for (start, end), call in zip(example.calls, sorted(calls, key=lambda call: call.at), strict=True):
        assert find(TOKENIZER.decode(example.ids[start:end]))[0].body == call.body


@settings(max_examples=150)
@given(st.lists(st.sampled_from([*SPECIAL.markers, "pen", " [T(1)", "<", "call>", "\\"])).map("".join), st.data())
def test_special_markers_are_tokens_in_calls_only_whatever_document_and_result_spell(plain, data):
    result = data.draw(st.sampled_from(["", "3", "</call>", "<call>T(1)<result>", "a]b"]))
    example = training_example(row(plain, Insertion(len(plain), "T(1)", result)), WITH_MARKERS)
    assert without_calls(example) == WITH_MARKERS.encode(plain)
    control = [i for i in example.ids if i in WITH_MARKERS.control]
    assert control == [i for marker in SPECIAL.markers for i in WITH_MARKERS.encode_marker(marker)]
    ((start, end),) = example.calls
    written = WITH_MARKERS.decode(example.ids[start:end])
    assert [(call.body, call.result) for call in find(written, SPECIAL)] == [("T(1)", result)]


def test_each_call_stands_where_the_row_says():
    plain = "é pen cost 7"
    example = training_example(row(plain, Insertion(1, "T(1)", "3"), Insertion(5, "T(2)", None)), TOKENIZER)
    assert TOKENIZER.decode(example.ids) == "é [T(1) -> 3] pen [T(2)] cost 7"


def test_a_call_is_encoded_piece_by_piece():
    example = training_example(row("pen", Insertion(3, "T(1)", "")), TOKENIZER)
    arrow, close = TOKENIZER.encode(" ->"), TOKENIZER.encode("]")
    assert example.ids == TOKENIZER.encode("pen") + TOKENIZER.encode(" [T(1)") + arrow + close


def test_begin_stands_in_front_without_loss_and_the_end_behind_with_loss():
    example = training_example(row("pen"), WithBegin(), end=256)
    assert example.ids == (256, *TOKENIZER.encode("pen"), 256)
    assert example.mask == (False, True, True)


def test_what_the_runtime_writes_gets_no_loss_when_results_are_masked():
    example = training_example(row("pen cost", Insertion(3, "T(1)", "3]")), TOKENIZER, mask_results=True)
    assert masked_text(example, keep=False) == " 3\\]]"
    assert masked_text(example, keep=True) == "pen [T(1) -> cost"


def test_spaces_before_the_close_belong_to_the_result():
    text = "pen [T(1) -> 3 ] cost"
    example = training_example(Augmented("p", "d", text, "pen cost", (Span(3, 16, 13, 15, "T"),)), TOKENIZER)
    assert TOKENIZER.decode(example.ids) == text


def test_the_close_of_a_call_without_an_arrow_is_the_models_and_keeps_its_loss():
    example = training_example(row("pen", Insertion(3, "T(1)", None)), TOKENIZER, mask_results=True)
    assert all(example.mask)


def test_text_that_looked_like_a_call_is_trained_on_as_it_was():
    plain = "pen [QA(1) -> 2] cost"
    example = training_example(row(plain, Insertion(len(plain), "T(1)", "3")), TOKENIZER)
    assert TOKENIZER.decode(example.ids) == plain + " [T(1) -> 3]"


def test_the_plain_example_holds_no_call():
    example = training_example(row("pen cost", Insertion(3, "T(1)", "3")), TOKENIZER, plain=True)
    assert (example.ids, example.calls) == (TOKENIZER.encode("pen cost"), ())


def test_a_call_inside_a_token_drops_its_row_in_both_runs_and_is_counted():
    rows = [row("cost", Insertion(1, "T(1)", "3")), row("pen pen")]
    for plain in (False, True):
        prepared, dropped = row_examples(rows, TOKENIZER, 64, plain=plain)
        assert [p.row for p in prepared] == [1]
        assert dropped == {"off_boundary": 1}


def test_a_prefix_that_is_tokenised_otherwise_than_its_text_still_finds_its_place():
    tokenizer = LookAhead()
    example = training_example(row("ppen", Insertion(2, "T(1)", "3")), tokenizer)
    assert tokenizer.decode(example.ids) == "pp [T(1) -> 3]en"
    assert without_calls(example) == tokenizer.encode("ppen")


def test_a_call_too_long_for_a_row_drops_it_in_both_runs_and_is_counted():
    rows = [row("pen" * 20, Insertion(3, f"T({'1' * 20})", "3")), row("pen pen")]
    for plain in (False, True):
        prepared, dropped = row_examples(rows, TOKENIZER, 16, plain=plain)
        assert [p.row for p in prepared] == [1]
        assert dropped == {"call_too_long": 1}


def test_a_row_without_anything_to_predict_is_dropped_and_counted():
    assert row_examples([row("")], TOKENIZER, 16) == ([], {"empty": 1})


@settings(max_examples=60)
@given(st.integers(0, 60), st.sets(st.integers(0, 60), max_size=3), st.booleans())
def test_a_long_example_is_cut_outside_its_calls_only(count, at, begin):
    tokenizer = WithBegin() if begin else TOKENIZER
    plain = "pen" * count
    calls = [Insertion(3 * min(i, count), f"T({n})", "3") for n, i in enumerate(sorted(at))]
    example = training_example(row(plain, *calls), tokenizer)
    pieces = split(example, 24, len(tokenizer.begin))
    assert sum((piece.ids[len(tokenizer.begin) :] for piece in pieces), ()) == example.ids[len(tokenizer.begin) :]
    assert all(len(piece) <= 24 and piece.ids[: len(tokenizer.begin)] == tokenizer.begin for piece in pieces)
    whole = [TOKENIZER.decode(piece.ids[start:end]) for piece in pieces for start, end in piece.calls]
    assert whole == [TOKENIZER.decode(example.ids[start:end]) for start, end in example.calls]


@pytest.mark.parametrize(
    ("text", "plain", "span"),
    [
        ("pen [T(1) -> 3]", "pens", Span(3, 15, 13, 14, "T")),
        ("pen [T(1) -> 3]", "pen", Span(3, 99, 13, 14, "T")),
        ("pen [T(1) -> 3]", "pen", Span(3, 15, 14, 13, "T")),
        ("pen [T(1) -> 3] ", "pen", Span(3, 16, 13, 14, "T")),
        ("pen{T(1) -> 3]", "pen", Span(3, 14, 12, 13, "T")),
    ],
)
def test_spans_that_do_not_fit_their_text_are_refused(text, plain, span):
    with pytest.raises(BadInput):
        training_example(Augmented("p", "d", text, plain, (span,)), TOKENIZER)
