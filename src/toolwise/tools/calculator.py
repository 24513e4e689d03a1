"""The calculator of the paper: `Calculator(18 / 24)` is `0.75`. Exact until the last step, bounded at every step.

    expression = operand { ("+" | "-" | "*" | "/") operand }        the usual precedence, from left to right
    operand    = { "+" | "-" } value [ ("**" | "^") operand ]       a power binds tighter than the sign before it
    value      = ( [ "$" ] number | "(" expression ")" ) { "%" }    11.4% is 0.114
    number     = 658,893 | 0.5 | .5 | 1e3                           commas in strict groups of three, or none

`x`, `×`, `÷` and `−` are written by people and read as `*`, `*`, `/` and `-`. Values are fractions; the result is
rounded to two decimals, halves away from zero as people round, trailing zeros dropped: 40, 0.75, -3.5, never -0.

Covered: what is computed is bounded before it is computed, whatever the input; nothing is ever evaluated as Python.

Not covered: roots and other powers that are not whole, names, units, comparisons, `%` as a remainder.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from fractions import Fraction

from toolwise.core.errors import InvalidArguments, LimitExceeded, ToolFailed
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect
from toolwise.tools.registry import tool

_TOKEN = re.compile(r"[ \t]*+(?:([0-9.][0-9.,]*+(?:[eE][+-]?[0-9]++)?)|(\*\*|[-+*/^%()$x×÷−]))")
_NUMBER = re.compile(r"([1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)?(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_HEXADECIMAL = re.compile(r"(?<![0-9.,])0x[0-9a-fA-F]")  # 0x10 means sixteen to some, and nobody means 0 * 10
_AS_WRITTEN = {"x": "*", "×": "*", "÷": "/", "−": "-", "^": "**"}
_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2, "**": 4}
_SIGN_STRENGTH = 3
_LARGEST = Fraction(sys.float_info.max)

Token = Fraction | str


def evaluate(expression: str, limits: Limits = LIMITS) -> Fraction:
    """The exact value of an expression.

    Raises InvalidArguments where it is not arithmetic, LimitExceeded where it or its value is too large to handle,
    ToolFailed where it has no value: division by zero, beyond a double's range, not real.
    """
    if len(expression) > limits.expression_chars:
        raise LimitExceeded(f"expression too long: write at most {limits.expression_chars} characters")
    reading = _Reading(_tokens(expression, limits), limits)
    try:
        value = reading.expression(weakest=1)
    except RecursionError:  # the caller's own stack was nearly full
        raise LimitExceeded("expression: nest fewer parentheses") from None
    if reading.next is not None:
        raise InvalidArguments(f"not arithmetic: an operator is missing before {_shown(reading.next)}")
    return value


def rounded(value: Fraction, limits: Limits = LIMITS) -> str:
    """`value` with two decimals at most, halves away from zero. Raises LimitExceeded for too many digits."""
    cents = (200 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    if cents >= 100 * 10**limits.number_digits:
        raise LimitExceeded(f"the result has more than {limits.number_digits} digits")
    whole, rest = divmod(cents, 100)
    decimals = f".{rest:02d}".rstrip("0") if rest else ""
    return f"{'-' if value < 0 and cents else ''}{whole}{decimals}"


def calculate(expression: str) -> str:
    """Compute an arithmetic expression with + - * /, percent and parentheses, rounded to two decimals.

    Args:
        expression: What to compute, such as 18 / 24 or 658,893 / 11.4%.
    """
    return rounded(evaluate(expression))


CALCULATOR = tool(name="Calculator", effect=Effect.PURE, bounded=True)(calculate)


def _tokens(expression: str, limits: Limits) -> list[Token]:
    if _HEXADECIMAL.search(expression):
        raise InvalidArguments("not arithmetic: write numbers in decimal")
    tokens: list[Token] = []
    text = expression.rstrip(" \t")
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise InvalidArguments(f"not arithmetic: only numbers, + - * / % and parentheses (character {at})")
        number, symbol = match.groups()
        tokens.append(_number(number, limits) if number else _AS_WRITTEN.get(symbol, symbol))
        at = match.end()
    return tokens


def _number(text: str, limits: Limits) -> Fraction:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InvalidArguments("not arithmetic: write numbers as 1,234,567.89 or 1234567.89")
    whole, decimals, exponent = (match[1] or "").replace(",", ""), match[2] or "", match[3] or "0"
    digits = whole + decimals
    if not digits:
        raise InvalidArguments("not arithmetic: a point is not a number")
    if len(digits) > limits.number_digits:
        raise LimitExceeded(f"expression: write numbers of at most {limits.number_digits} digits")
    # The sign of an exponent this long says all: the digits before it cannot make up for it.
    if len(exponent.lstrip("+-0")) > 4:
        exponent = "-9999" if exponent.startswith("-") else "9999"
    return _within(Fraction(int(digits)) * Fraction(10) ** (int(exponent) - len(decimals)), limits)


@dataclass
class _Reading:
    """Reads tokens from left to right and computes on the way: precedence climbing, at most five frames a level."""

    tokens: list[Token]
    limits: Limits
    at: int = 0
    depth: int = 0

    @property
    def next(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self) -> Token | None:
        token = self.next
        self.at += 1
        return token

    def expression(self, weakest: int) -> Fraction:
        value = self.value()
        while isinstance(sign := self.next, str) and _STRENGTH.get(sign, 0) >= weakest:
            self.at += 1
            # Only powers go on from the right: 2**3**2 is 2**9.
            strength = _STRENGTH[sign]
            right = self.nested(strength) if sign == "**" else self.expression(strength + 1)
            value = _apply(sign, value, right, self.limits)
        return value

    def nested(self, weakest: int) -> Fraction:
        self.depth += 1
        if self.depth > self.limits.expression_depth:
            raise LimitExceeded(f"expression: nest at most {self.limits.expression_depth} parentheses and signs")
        value = self.expression(weakest)
        self.depth -= 1
        return value

    def value(self) -> Fraction:
        first = self.take()
        if first in ("+", "-"):
            value = self.nested(_SIGN_STRENGTH)
            return -value if first == "-" else value
        if first == "(":
            value = self.nested(weakest=1)
            if self.take() != ")":
                raise InvalidArguments("not arithmetic: a parenthesis is not closed")
        else:
            number = self.take() if first == "$" else first
            if not isinstance(number, Fraction):
                raise InvalidArguments(f"not arithmetic: a number is missing before {_shown(number)}")
            value = number
        while self.next == "%":
            self.at += 1
            value = _within(value / 100, self.limits)
        return value


def _apply(sign: str, left: Fraction, right: Fraction, limits: Limits) -> Fraction:
    match sign:
        case "+":
            return _within(left + right, limits)
        case "-":
            return _within(left - right, limits)
        case "*":
            return _within(left * right, limits)
        case "/":
            if right == 0:
                raise ToolFailed("division by zero")
            return _within(left / right, limits)
        case _:
            return _power(left, right, limits)


def _power(base: Fraction, exponent: Fraction, limits: Limits) -> Fraction:
    if exponent.denominator != 1:
        raise ToolFailed("not real" if base < 0 else "a power that is not whole has no exact value")
    times = exponent.numerator
    if base == 0 and times < 0:
        raise ToolFailed("division by zero")
    if times == 0:
        return Fraction(1)
    if base in (0, 1, -1):
        return base if times % 2 else abs(base)
    if _bits(base) * abs(times) > limits.fraction_bits:
        raise LimitExceeded(f"the result would exceed {limits.fraction_bits} bits")
    return base**times


def _bits(value: Fraction) -> int:
    return max(value.numerator.bit_length(), value.denominator.bit_length())


def _within(value: Fraction, limits: Limits) -> Fraction:
    if abs(value) > _LARGEST:
        raise ToolFailed("not finite: the value is beyond the range of numbers")
    if _bits(value) > limits.fraction_bits:
        raise LimitExceeded(f"the result would exceed {limits.fraction_bits} bits")
    return value


def _shown(token: Token | None) -> str:
    return "the end" if token is None else "a number" if isinstance(token, Fraction) else f'"{token}"'
