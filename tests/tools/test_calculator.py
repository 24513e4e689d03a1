"""The calculator: exact, as people write, bounded before anything is computed."""

import asyncio
import threading
import time
import tracemalloc
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolwise.core.errors import InvalidArguments, LimitExceeded, ToolFailed, ToolwiseError
from toolwise.core.schema import raw_argument
from toolwise.core.types import Effect
from toolwise.tools import CALCULATOR
from toolwise.tools.calculator import evaluate, rounded


def calculate(expression: str) -> str:
    return CALCULATOR.run(expression=expression)


def refused(expression: str, error: type[ToolwiseError], saying: str) -> None:
    """The best of three takes less than 20 ms of processor time."""

    def once() -> float:
        start = time.process_time()
        with pytest.raises(error, match=saying):
            calculate(expression)
        return time.process_time() - start

    assert min(once() for _ in range(3)) < 0.02


def test_the_tool_is_pure_bounded_and_takes_raw_text():
    assert (CALCULATOR.name, CALCULATOR.effect, CALCULATOR.bounded) == ("Calculator", Effect.PURE, True)
    assert raw_argument(CALCULATOR.parameters) == "expression"


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("18 / 24", "0.75"),
        ("658,893 / 11.4%", "5779763.16"),
        ("400 / 1400", "0.29"),
        ("20*2", "40"),
        ("-7/2", "-3.5"),
        ("24", "24"),
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("7 - 2 - 1", "4"),
        ("16 / 4 / 2", "2"),
        ("2 * -3", "-6"),
        ("--3", "3"),
        ("3 x 4", "12"),
        ("3x4", "12"),
        ("7 × 8 ÷ 2 − 1", "27"),
        ("$5 + $3.50", "8.5"),
        ("-$1,234.50", "-1234.5"),
        ("1,000,000 * 2", "2000000"),
        (".5 + 5.", "5.5"),
        ("50% * 80", "40"),
        ("(20 + 30)%", "0.5"),
        ("1e3 + 2.5E-1", "1000.25"),
        ("2**10", "1024"),
        ("2^-2", "0.25"),
        ("-2**2", "-4"),
        ("2**3**2", "512"),
        ("0**0", "1"),
        ("(-1)**1000000001", "-1"),
        ("1.0041667**360", "4.47"),
        ("\t 1 ", "1"),
    ],
)
def test_arithmetic_is_computed_as_people_write_it(expression, result):
    assert calculate(expression) == result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("0.005", "0.01"),
        ("-0.005", "-0.01"),
        ("0.125 * 3", "0.38"),
        ("1/3 * 3", "1"),
        ("1/3 * 0.375", "0.13"),
        ("-0.001", "0"),
        ("100 - 100.001", "0"),
        ("0.1 + 0.2", "0.3"),
        ("10**20 / 3", "33333333333333333333.33"),
        ("2.675", "2.68"),
    ],
)
def test_results_have_two_decimals_with_halves_away_from_zero(expression, result):
    assert calculate(expression) == result


@pytest.mark.case("B1")
def test_a_tower_of_powers_is_refused_before_it_is_computed():
    tracemalloc.start()
    try:
        refused("9**9**9**9", LimitExceeded, "the result would exceed 9000 bits")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.case("B2")
@pytest.mark.parametrize("expression", ["10**5000", "2**20000", "10**200", "1e308", "0.1**-300", "2**-20000"])
def test_a_result_with_too_many_digits_is_a_limit(expression):
    refused(expression, LimitExceeded, "the result (would exceed|has more than)")


@pytest.mark.case("B3")
@pytest.mark.parametrize(
    "expression",
    [
        "(" * 201 + "1" + ")" * 201,
        "-" * 5000 + "1",
        "-" * 200 + "1",
        "2**" * 200 + "2",
        "+".join("1" * 20_000),
        "1" * 1_000_000,
        "1" * 101,
        "(" * 1000,
    ],
)
def test_an_expression_that_is_too_large_is_a_limit(expression):
    refused(expression, LimitExceeded, "^expression")


def test_an_expression_as_deep_as_allowed_is_computed():
    assert calculate("(" * 50 + "1" + ")" * 50) == "1"
    assert calculate("(1+2*" * 50 + "1" + ")" * 50) == str(2**51 - 1)


@pytest.mark.parametrize("part", ["1.0041667**360+", "1e-99*", "3**5000*", "7/9999999967+"])
def test_exact_fractions_that_grow_stay_cheap(part):
    expression = part * (990 // len(part)) + "1"

    def once() -> float:
        start = time.process_time()
        with suppress(LimitExceeded, ToolFailed):
            calculate(expression)
        return time.process_time() - start

    assert min(once() for _ in range(3)) < 0.05


@pytest.mark.case("B4")
@pytest.mark.parametrize(
    ("expression", "saying"),
    [
        ("1/0", "division by zero"),
        ("1/(2-2)", "division by zero"),
        ("0**-1", "division by zero"),
        ("0*(1e308*10)", "not finite"),
        ("1e308*10", "not finite"),
        ("-1e400", "not finite"),
        ("1e999999999999", "not finite"),
        ("(-1)**0.5", "not real"),
        ("2**0.5", "not whole"),
    ],
)
def test_what_has_no_value_fails(expression, saying):
    refused(expression, ToolFailed, saying)


@pytest.mark.case("B5")
@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('id')",
        "().__class__.__mro__",
        "(lambda:1)()",
        "[x for x in (1,)]",
        "f'{1}'",
        "1<<10**7",
        "a:=1",
        "ｅｖａｌ(1)",
        "",
        " ",
        "1 2",
        "1+",
        "*2",
        "(1",
        "1)",
        "()",
        "2(3)",
        "17 % 5",
        "17 // 5",
        "1,23",
        "1234,567",
        "1,2345",
        "0,123",
        "1.5.2",
        ".",
        "1e",
        "0x10",
        "٣ + 1",
        "$",
        "5 $",
        "1\n+1",
        "1;1",
        "nan",
        "inf",
        "1_000",
        "18 / 24 =",
    ],
)
def test_what_is_not_arithmetic_is_refused(expression):
    refused(expression, InvalidArguments, "not arithmetic")


@pytest.mark.case("B7")
def test_the_result_is_the_same_from_a_thread_a_task_and_the_main_thread():
    async def in_a_task() -> str:
        return calculate("18 / 24")

    results: list[str] = []
    thread = threading.Thread(target=lambda: results.append(calculate("18 / 24")))
    thread.start()
    thread.join(10)
    results += [asyncio.run(in_a_task()), calculate("18 / 24")]
    assert results == ["0.75"] * 3


numbers = st.decimals(0, 10**6, places=3).map(lambda n: (f"{n:f}", Fraction(n)))


def combined(parts: tuple[tuple[str, Fraction | None], str, tuple[str, Fraction | None]]):
    """The obvious reference: both sides in parentheses, the value by `fractions` alone."""
    (left, a), sign, (right, b) = parts
    text = f"({left}) {sign} ({right})"
    if a is None or b is None or (sign == "/" and b == 0):
        return text, None
    return text, {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": a.__truediv__}[sign](b)


trees = st.recursive(
    numbers, lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(combined), max_leaves=8
)


@given(trees)
@settings(max_examples=200, deadline=None)
def test_the_value_is_that_of_fractions(tree):
    text, expected = tree
    if expected is None:
        with pytest.raises(ToolFailed, match="division by zero"):
            evaluate(text)
    else:
        assert evaluate(text) == expected


@given(st.lists(st.tuples(st.integers(1, 999), st.sampled_from(["+", "-", "*", "/"])), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_precedence_and_order_are_those_of_fractions(terms):
    text = " ".join(f"{n} {sign}" for n, sign in terms) + " 7"
    # Reference: fold products first, then sums.
    sums, sign = [Fraction(terms[0][0])], "+"
    for (_, sign), number in zip(terms, [*(n for n, _ in terms[1:]), 7], strict=True):
        if sign == "*":
            sums[-1] *= number
        elif sign == "/":
            sums[-1] /= number
        else:
            sums.append(Fraction(number if sign == "+" else -number))
    assert evaluate(text) == sum(sums)


@given(st.decimals(-(10**9), 10**9, places=5))
@settings(max_examples=200, deadline=None)
def test_rounding_is_that_of_decimal_half_up(number):
    expected = number.quantize(Decimal("0.01"), ROUND_HALF_UP)
    text = rounded(Fraction(number))
    assert Decimal(text) == expected
    assert "e" not in text
    assert not text.startswith("-0") or expected != 0
    assert not ("." in text and text.endswith("0"))


@given(st.text(st.sampled_from("0123456789.,+-*/()%^x$e "), max_size=25))
@settings(max_examples=300, deadline=None)
def test_any_text_gives_a_number_or_one_of_our_errors(text):
    try:
        result = calculate(text)
    except (InvalidArguments, LimitExceeded, ToolFailed):
        return
    assume(result)
    assert calculate(result) == result
