"""Where calls are proposed and what they say, and that whoever proposes leaves no sample without a reason."""

import re
import time
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.errors import BadInput
from toolwise.core.types import Effect
from toolwise.models.scripted import ScriptedModel
from toolwise.notation.inline import Notation, read_arguments
from toolwise.teach.config import load_settings
from toolwise.teach.corpus.numbers import numbers
from toolwise.teach.expressions import EnumerateProposer, _running_sums, _written_before, word_start
from toolwise.teach.prepare import prepare
from toolwise.teach.prompts import CALCULATOR as PROMPT
from toolwise.teach.prompts import CALENDAR as CALENDAR_PROMPT
from toolwise.teach.prompts import Prompt
from toolwise.teach.propose import LMProposer
from toolwise.teach.records import Passage
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.registry import tool

TEXT = "Two hats cost 21 each, so both cost 42 crowns."


def caller(body):
    """A model that would call before ` 42`, and writes `body` after the open marker."""

    def script(text):
        if text.endswith("both cost"):
            return f" [{body}"
        _, bracket, written = text.rpartition(" [")
        if bracket and body.startswith(written) and "\n" not in written:
            return body[len(written) :]
        return TEXT[len(text.rpartition("\n")[2]) :]

    return ScriptedModel(script, certainty=0.97)


def settings_with(**changes):
    settings = load_settings("paper", ("Calculator",))
    own = settings.tools["Calculator"].model_copy(update=changes)
    return settings.model_copy(update={"tools": {"Calculator": own}, "temperature": 0.0})


def propose(model, text=TEXT, **changes):
    settings = settings_with(**{"k": 1, "m": 1, "tau_f": 0.001, **changes})
    (prepared,) = prepare([Passage("p", "p", 0, text)], model)
    return LMProposer(model, CALCULATOR, PROMPT, settings).propose(prepared)


def test_a_call_is_proposed_where_its_marker_is_likely():
    (found,) = propose(caller("Calculator(2 * 21)]"))
    assert found.body == "Calculator(2 * 21)"
    assert found.reason is None
    assert found.proposer == "lm"
    assert found.marker_prob == pytest.approx(0.97, abs=0.01)
    assert TEXT[: found.offset] == "Two hats cost 21 each, so both cost"


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("Calculator(2 * 21", "unclosed"),
        ("Calculator(2 * 21\n)]", "unclosed"),
        ("2 * 21]", "unparsable"),
        ("Calendar()]", "unknown_tool"),
        ("Calculator(2 * 21) -> 9]", None),
        ("Calculator(2 * 21)   ]", None),
    ],
)
def test_what_is_no_call_of_this_tool_keeps_its_reason(written, reason):
    (found,) = propose(caller(written))
    assert found.reason == reason
    if reason is None:
        assert found.body == "Calculator(2 * 21)"


def test_every_sample_comes_back():
    rows = propose(caller("Calculator(2 * 21)]"), k=3, m=4, tau_s=0.0)
    assert Counter(row.position for row in rows).most_common() == [(p, 4) for p in sorted({r.position for r in rows})]
    assert len(rows) == 12


def test_positions_below_tau_s_are_not_tried():
    rows = propose(caller("Calculator(2 * 21)]"), k=20, m=1, tau_s=0.5)
    assert [TEXT[: row.offset][-9:] for row in rows] == ["both cost"]


def test_a_position_whose_loss_is_below_the_threshold_is_dropped_before_sampling():
    model = caller("Calculator(2 * 21)]")
    before = model.usage.forwards
    rows = propose(model, k=3, tau_s=0.0, tau_f=100.0)
    assert [row.reason for row in rows] == ["bound"] * 3
    sampled = model.usage.forwards - before
    assert sampled == 2, "one pass for the losses, one for the marker; nothing was sampled"


def test_with_the_name_written_for_it_the_model_samples_the_arguments_only():
    model = caller("Calculator(2 * 21)]")
    (found,) = propose(model, named=True)
    assert (found.body, found.reason) == ("Calculator(2 * 21)", None)
    lost = ScriptedModel(lambda text: "2 * 21)]" if text.endswith("Calculator(") else "", certainty=0.97)
    unnamed, named = (propose(lost, tau_s=0.0, temperature=0.0, named=named) for named in (False, True))
    assert {row.reason for row in unnamed} == {"unclosed"}
    assert {row.body[:11] for row in named} == {"Calculator("}


@pytest.mark.parametrize(
    ("written", "reason"), [("Calculator(2 * 21", "unclosed"), ("Calculator(2)) * 21]", "unparsable")]
)
def test_what_is_no_call_behind_the_name_keeps_its_reason_and_is_shown_whole(written, reason):
    (found,) = propose(caller(written), named=True)
    assert found.reason == reason
    assert found.body.startswith("Calculator(2")


def test_a_call_that_was_sampled_at_one_position_is_tried_at_the_likeliest_others():
    alone = propose(caller("Calculator(2 * 21)]"))
    rows = propose(caller("Calculator(2 * 21)]"), tau_s=0.0, spread=6)
    assert rows[: len(alone)] == alone
    others = rows[len(alone) :]
    assert len(others) == 5, "one of the six is where it was sampled"
    assert {(row.body, row.proposer, row.reason) for row in others} == {("Calculator(2 * 21)", "spread", None)}
    assert alone[0].position not in {row.position for row in others}
    assert [row.position for row in others] == sorted(row.position for row in others)


def test_no_call_is_tried_within_a_number():
    rows = propose(caller("Calculator(2 * 21)]"), tau_s=0.0, spread=1_000)
    tried = {row.offset for row in rows}
    assert len(tried) > 20
    assert not tried & {TEXT.index("21") + 1, TEXT.index("42") + 1}


def test_what_is_no_call_is_tried_nowhere_else():
    (found,) = propose(caller("2 * 21]"), tau_s=0.0, spread=6)
    assert found.reason == "unparsable"


@pytest.mark.parametrize(("written", "tries"), [("Add(a=2, b=21)", 6), ("Add(a=2)", 1), ('Add(a=2, b="x")', 1)])
def test_a_call_whose_arguments_do_not_fit_is_tried_nowhere_else(written, tries):
    @tool(effect=Effect.PURE)
    def Add(a: int, b: int) -> int:
        return a + b

    own = (
        settings_with()
        .tools["Calculator"]
        .model_copy(update={"k": 1, "m": 1, "tau_f": 0.001, "tau_s": 0.0, "spread": 6})
    )
    settings = settings_with().model_copy(update={"tools": {"Add": own}})
    model = caller(f"{written}]")
    (prepared,) = prepare([Passage("p", "p", 0, TEXT)], model)
    prompt = Prompt("Add", "Add.", (), "", "")
    assert len(LMProposer(model, Add, prompt, settings).propose(prepared)) == tries


def test_a_model_that_is_shown_no_prompt_reads_the_text_alone():
    read = []
    script = caller("Calculator(2 * 21)]")._script
    model = ScriptedModel(lambda text: read.append(text) or script(text), certainty=0.97)
    (found,) = propose(model, prompted=False)
    assert (found.body, found.reason) == ("Calculator(2 * 21)", None)
    assert all(TEXT.startswith(text.removeprefix("\n").partition(" [")[0]) for text in read)


def test_for_a_tool_without_arguments_the_model_says_only_where():
    model = caller("nonsense")
    settings = load_settings("paper", ("Calendar",))
    own = settings.tools["Calendar"].model_copy(update={"k": 2, "tau_s": 0.0, "tau_f": 0.001})
    settings = settings.model_copy(update={"tools": {"Calendar": own}})
    (prepared,) = prepare([Passage("p", "p", 0, TEXT)], model)
    rows = LMProposer(model, CALENDAR, CALENDAR_PROMPT, settings, sampled=False).propose(prepared)
    assert [(row.body, row.reason, row.proposer) for row in rows] == [("Calendar()", None, "lm_positions")] * 2
    assert "both cost" in {TEXT[: row.offset][-9:] for row in rows}
    with pytest.raises(BadInput, match="must be sampled"):
        LMProposer(model, CALCULATOR, PROMPT, settings_with(), sampled=False)


def enumerated(text):
    model = ScriptedModel(lambda so_far: "x")
    (prepared,) = prepare([Passage("p", "p", 0, text)], model)
    return [(row.body, text[: row.offset]) for row in EnumerateProposer(CALCULATOR).propose(prepared)]


def test_expressions_over_the_numbers_before_a_number_come_out_at_it():
    found = enumerated(TEXT.replace("Two hats", "Hats"))
    assert found == [("Calculator(21 + 21)", "Hats cost 21 each, so both cost")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, "Calculator(2 * 21)"),
        ("Of 48 clips he sold half, which were 24", "Calculator(48 / 2)"),
        ("She has 15 and he has twice as many, or 30", "Calculator(15 * 2)"),
        ("A dozen eggs and 5 more are 17", "Calculator(12 + 5)"),
    ],
)
def test_small_numbers_in_words_are_operands(text, expected):
    assert expected in [body for body, _ in enumerated(text)]


def test_sums_of_numbers_in_a_row_are_of_those_in_digits():
    assert "Calculator(3 + 4 + 5)" in [body for body, _ in enumerated("3 of one, 4 of two and 5 make 12")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("48 friends in April. She sold 48/2 = 24 in May", "Calculator(48 / 2)"),
        ("12 a day, and 0.2 x 50 = $10 in all", "Calculator(0.2 * 50)"),
        ("It was 100 - 50 - 30 - 15 = 5 then", "Calculator(100 - 50 - 30 - 15)"),
        ("Of 650 letters 91 came back, which is 14% of them", "Calculator(91 / 650 * 100)"),
        ("Bread for 3, milk for 4 and tea for 5 make 12 in all", "Calculator(3 + 4 + 5)"),
        ("Opened in 1931, closed in 1978, so 47 years", "Calculator(1978 - 1931)"),
        ("It took 1,350 grams for 3 loaves, so 450 grams each", "Calculator(1350 / 3)"),
    ],
)
def test_the_ways_in_which_people_calculate_are_found(text, expected):
    assert expected in [body for body, _ in enumerated(text)]


def test_numbers_behind_the_position_are_never_used():
    assert enumerated("In all 42, since both cost 21 each") == []


def test_a_number_that_merely_repeats_is_not_computed():
    assert enumerated("There are 24 of them. Once more: 24 of 1") == []


def test_a_call_stands_before_the_currency_sign_and_its_space():
    found = enumerated("2 at $21 are $42 then")
    assert found[0][1] == "2 at $21 are"


# Fast ways beside slow and obvious ones: a page of numbers must not cost the cube of its numbers

_ONE_SEARCH = re.compile(r"(?<![\w.])([$(\d][\d.,%$()+*/x×÷−\s-]*[\d%)])\s*=\s*[$€£]?\Z")


@given(
    st.text(st.sampled_from("12.,=$%()+-x×a €\n²١"), max_size=14),
    st.sampled_from(["", "=", " = ", "= $", "=€ ", " =\n"]),
)
def test_what_was_written_before_an_equals_sign_is_what_one_search_finds(before, end):
    found = _ONE_SEARCH.search(before + end)
    if found is None or found[1].strip("$").isdigit():
        assert _written_before(before + end) == []
    else:
        (written,) = _written_before(before + end)
        assert _bare(written) == _bare(found[1])


def _bare(expression):
    """Without the signs that are written in several ways."""
    return re.sub(r"[x×*$\s-]", "", expression)


@given(st.lists(st.sampled_from(["1", "2", "3.5", "-4", "0", "0.01"]), max_size=9), st.sampled_from(["6", "7.5", "3"]))
def test_running_sums_are_those_that_adding_up_every_run_finds(terms, wanted):
    before = numbers(" and ".join(terms))
    runs = [before[-count:] for count in range(3, len(before) + 1)]
    hits = [run for run in runs if round(sum((abs(n.value) for n in run), Fraction(0)), 2) == Fraction(wanted)]
    assert _running_sums(before, Fraction(wanted)) == [" + ".join(n.text.lstrip("-") for n in run) for run in hits]


def test_a_passage_of_nothing_but_numbers_costs_little():
    started = time.process_time()
    assert _written_before("1 " * 500 + "= ")
    text = "12 3 45 6 7 8 " * 20
    before = numbers(text)
    for index in range(len(before)):
        _running_sums(before[:index], Fraction(50))
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("before", "kept"),
    [("It costs $", "It costs"), ("a change of -", "a change of"), ("pages 10-", "pages 10-"), ("US$", "US"), ("", "")],
)
def test_a_call_stands_before_the_sign_and_the_currency_of_a_number_but_not_before_a_dash(before, kept):
    assert word_start(before + "24", len(before)) == len(kept)


def test_expressions_are_enumerated_for_a_tool_that_takes_one_only():
    with pytest.raises(BadInput, match="Calendar takes no expression"):
        EnumerateProposer(CALENDAR)


def test_expressions_are_written_in_the_notation_of_the_run():
    (prepared,) = prepare([Passage("p", "p", 0, TEXT)], ScriptedModel(lambda so_far: "x"))
    row, _ = EnumerateProposer(CALCULATOR, Notation(arrow=" +")).propose(prepared)
    assert read_arguments(row.body[len("Calculator(") : -1], CALCULATOR, Notation(arrow=" +")) == {
        "expression": "21 + 21"
    }
    assert row.body != "Calculator(21 + 21)"


def test_strict_calls_are_sampled_as_they_can_be_read():
    """The model would write what no reader takes; under the mask it writes an expression."""
    model = caller("Calculator(2 * 21]")
    assert [row.reason for row in propose(model)] == ["unclosed"]
    settings = settings_with(k=1, m=4, tau_f=0.001)
    settings = settings.model_copy(update={"strict_calls": True, "temperature": 1.0, "call_tokens": 200})
    (prepared,) = prepare([Passage("p", "p", 0, TEXT)], model)
    rows = LMProposer(model, CALCULATOR, PROMPT, settings).propose(prepared)
    assert len(rows) == 4
    assert {row.reason for row in rows} <= {None, "unclosed"}  # where it came to no end
    assert any(row.reason is None for row in rows)


def test_a_strict_call_may_begin_with_the_name_that_is_written_for_the_model():
    settings = settings_with(k=1, m=2, tau_f=0.001, named=True)
    settings = settings.model_copy(update={"strict_calls": True, "call_tokens": 60})
    model = caller("Calculator(2 * 21) ->")
    (prepared,) = prepare([Passage("p", "p", 0, TEXT)], model)
    found = LMProposer(model, CALCULATOR, PROMPT, settings).propose(prepared)
    assert {(row.body, row.reason) for row in found} == {("Calculator(2 * 21)", None)}
