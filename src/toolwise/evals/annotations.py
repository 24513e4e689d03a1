"""GSM8K's calculator annotations: where people called, and with what, in the problems as plain text.

A solution carries `<<48/2=24>>` before the number that was computed. Prose without these marks may have its white space
otherwise, so a place is told by the characters before it that are no white space.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS
from toolwise.documents.read import read_objects

_ANNOTATION = re.compile(r"<<([^<>=]+)=([^<>]*)>>")
_SPACES = re.compile(r"\s+")
_DROPPED = re.compile(r"[\s$€£,]")
_SIGNS = str.maketrans({"x": "*", "×": "*", "÷": "/", "−": "-"})
_PERCENT = re.compile(r"(\d+\.?\d*|\.\d+)%")
_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")
_ARITHMETIC = re.compile(r"[\d.+*/()-]+")


@dataclass(frozen=True, slots=True)
class Human:
    """A person's call: `offset` in the problem's text, `solid` characters before it that are no white space.

    `written`: the text in front has written the expression out, and ends with an equals sign.
    """

    offset: int
    solid: int
    expression: str
    written: bool


def problems(data: Path) -> Iterator[tuple[str, list[Human]]]:
    """The problems of a GSM8K file (`.jsonl`, `.jsonl.gz`): plain text, and its calls. Raises BadInput."""
    for place, row in read_objects(data):
        question, answer = row.get("question"), row.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str):
            raise BadInput(f"{place}: a line of GSM8K has the texts `question` and `answer`; give such a file.")
        yield _without_annotations(question, answer)


def solid(text: str) -> str:
    """The text without white space."""
    return _SPACES.sub("", text)


def is_written(before: str) -> bool:
    """Whether a text ends with an equals sign, a currency sign behind it or not: an expression has been written out."""
    return before.rstrip().rstrip("$€£").rstrip().endswith("=")


def _without_annotations(question: str, answer: str) -> tuple[str, list[Human]]:
    prose = answer.replace("\n#### ", "\nThe answer is ").replace("\n", " ") + "."
    text, calls, at = question + " ", list[Human](), 0
    for match in _ANNOTATION.finditer(prose):
        text += prose[at : match.start()]
        calls.append(Human(len(text), len(solid(text)), match[1], is_written(text)))
        at = match.end()
    return text + prose[at:], calls


def normal(expression: str) -> Any:
    """A form that expressions share which differ only in spaces, signs for the same operator, grouping, currency, `20%`
    for `20/100`, needless parentheses, and the order of a sum's or a product's operands."""
    text = _DROPPED.sub("", expression[: LIMITS.expression_chars]).translate(_SIGNS)
    text = _ZEROS.sub("", _PERCENT.sub(r"(\1/100)", text))
    if not _ARITHMETIC.fullmatch(text):
        return text
    try:
        return _form(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def _form(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as value):
            return str(Fraction(str(value)))
        case ast.UnaryOp(op=op, operand=operand):
            inner = _form(operand)
            return inner if isinstance(op, ast.UAdd) else ("-", inner)
        case ast.BinOp(op=ast.Add() | ast.Mult() as op):
            kind = type(op)
            return (kind.__name__, *sorted(map(_form, _operands(node, kind)), key=str))
        case ast.BinOp(left=left, op=op, right=right):
            return (type(op).__name__, _form(left), _form(right))
        case _:
            raise ValueError("not arithmetic")


def _operands(node: ast.expr, kind: type[ast.operator]) -> Iterator[ast.expr]:
    """Those of a chain of sums, or of products."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, kind):
        yield from _operands(node.left, kind)
        yield from _operands(node.right, kind)
    else:
        yield node
