"""Jinja as chat templates need it, with texts that are traced and work that is bounded.

Through Jinja's own points of extension: a visitor over the tree that its parser made, filters, the intercepted
operators of its sandbox, and `concat`, with which an environment joins pieces.

    a text in the template             ->  `"..." | _literal`: a filter that asks for the context is never folded
    `a ~ b`                            ->  `[a, b] | _concat`
    `{% for x in y %}`                 ->  `{% for x in y | _counted %}`
    `x | filter`                       ->  `x | _spent | filter`

Missing on purpose: filters and methods whose cost their arguments set (`center`, `batch`, `str.format`), loops
that call themselves, loaders. A template that needs one is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.notation.chat.traced import Traced, Written, data, literal, spend, traced

try:
    from jinja2 import nodes, pass_context
    from jinja2.exceptions import SecurityError, TemplateRuntimeError
    from jinja2.ext import Extension, LoopControlExtension
    from jinja2.filters import FILTERS, do_indent
    from jinja2.meta import find_undeclared_variables
    from jinja2.parser import Parser
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace
    from jinja2.visitor import NodeTransformer
except ImportError as missing:
    raise BadInput("Chat templates need Jinja: pip install 'toolwise[chat]'.") from missing


_STEP = 64  # characters of work that an iteration or a call counts as
_RANGE = 10_000
_INDENT = 16
_WIDTH = re.compile(r"%[^%a-zA-Z]*(?:\d{3}|\*)")
_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last", "length"),
    *("list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr", "sort"),
    *("string", "trim", "unique", "upper"),
)
_TEXT_METHODS = frozenset(
    {
        *("capitalize", "count", "endswith", "find", "index", "isalnum", "isalpha", "isdigit", "islower", "isnumeric"),
        *(
            "isspace",
            "isupper",
            "join",
            "lower",
            "lstrip",
            "removeprefix",
            "removesuffix",
            "replace",
            "rfind",
            "rsplit",
        ),
        *("rstrip", "split", "splitlines", "startswith", "strip", "title", "upper"),
    }
)
_CONTAINER_METHODS = frozenset({"items", "keys", "values", "get", "index", "count"})


class Compiled:
    """A template, ready to be run as often as one likes. Raises what Jinja raises, and BadInput."""

    def __init__(self, template: str) -> None:
        environment = _Environment()
        tree = environment.parse(template)
        self.reads = frozenset(find_undeclared_variables(tree))
        tree = _Traces().visit(tree)
        self._template = environment.from_string(tree.set_environment(environment))

    def pieces(self, variables: Mapping[str, Any]) -> Iterator[str]:
        yield from self._template.root_render_func(self._template.new_context(dict(variables)))


class _Traces(NodeTransformer):
    """Marks the template's own texts, and counts its work."""

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Filter:
        return _filter(node, "_literal")

    def visit_Const(self, node: nodes.Const) -> nodes.Expr:
        return _filter(node, "_literal") if isinstance(node.value, str) else node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        node.expr = self._unless_const(node.expr)
        for operand in node.ops:
            operand.expr = self._unless_const(operand.expr)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:
        node.node, node.arg = self.visit(node.node), self._unless_const(node.arg)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), "_concat")

    def visit_Filter(self, node: nodes.Filter) -> nodes.Filter:
        self.generic_visit(node)
        if node.node is not None:
            node.node = _filter(node.node, "_spent")
        return node

    def visit_For(self, node: nodes.For) -> nodes.For:
        if node.recursive:
            raise BadInput("The chat template has a recursive loop, which has no bound; use another template.")
        self.generic_visit(node)
        node.iter = _filter(node.iter, "_counted")
        return node

    def _unless_const(self, node: Any) -> Any:
        return node if isinstance(node, nodes.Const) else self.visit(node)


def _filter(node: nodes.Node, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Generation(Extension):
    """`{% generation %}`, which tells training what the assistant said; here its body is just said."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Environment(ImmutableSandboxedEnvironment):
    concat = staticmethod(lambda pieces: traced(pieces))
    intercepted_binops = frozenset({"+", "*", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[LoopControlExtension, _Generation]
        )
        self.filters = {name: FILTERS[name] for name in _FILTERS} | {
            "_literal": _literal,
            "_concat": _concat,
            "_counted": _counted,
            "_spent": _spent,
            "format": _format,
            "indent": _indent,
            "join": _join,
            "replace": _replace,
            "safe": _as_it_is,
            "tojson": _tojson,
        }
        self.globals = {
            "dict": lambda *args, **values: dict(*args, **values),
            "namespace": _namespace,
            "raise_exception": _raise,
            "range": _range,
        }

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, str):
            return self._of_text(obj, attribute)
        if isinstance(obj, dict) and attribute not in _CONTAINER_METHODS:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        if isinstance(obj, int | float | list | tuple | bytes) and attribute not in _CONTAINER_METHODS:
            return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(argument, str) and isinstance(obj, str | int | float | list | tuple | bytes):
            return self.getattr(obj, argument)
        return super().getitem(obj, argument)

    def call(self, context: Context, function: Any, *args: Any, **values: Any) -> Any:
        spend(_STEP)
        return super().call(context, function, *args, **values)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        sizes = [len(value) for value in (left, right) if isinstance(value, Sized)]
        if operator == "+":
            spend(sum(sizes))
        elif operator == "*" and sizes:
            times = next((value for value in (left, right) if isinstance(value, int)), 1)
            spend(sizes[0] * max(0, times))
        elif operator == "%" and isinstance(left, str):
            return _formatted(left, right)
        elif sizes or not all(isinstance(value, int | float) and abs(value) < 2**64 for value in (left, right)):
            raise SecurityError(f"{operator} on a text or on large numbers is not allowed in a chat template")
        elif operator == "**" and abs(right) > 64:
            raise SecurityError("powers above 64 are not allowed in a chat template")
        return super().call_binop(context, operator, left, right)

    def _of_text(self, text: str, attribute: str) -> Any:
        if attribute in _TEXT_METHODS:
            return getattr(data(text), attribute)
        if hasattr(text, attribute):
            return self.undefined(f"the method {attribute} is not allowed in a chat template", exc=SecurityError)
        return self.undefined(obj=text, name=attribute)


@pass_context
def _literal(context: Context, text: str) -> Traced:
    spend(len(text))
    return literal(text)


@pass_context
def _concat(context: Context, values: list[Any]) -> Traced:
    return traced(map(str, values))


@pass_context
def _counted(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        spend(_STEP)
        yield value


@pass_context
def _spent(context: Context, value: Any) -> Any:
    spend(len(value) if isinstance(value, Sized) else _STEP)
    return value


@pass_context
def _join(context: Context, values: Iterable[Any], d: str = "", attribute: str | int | None = None) -> Traced:
    if attribute is not None:
        values = (context.environment.getitem(value, attribute) for value in values)
    return data(str(d)).join(map(str, values))


@pass_context
def _replace(context: Context, text: Any, old: str, new: str, count: int | None = None) -> Traced:
    return data(str(text)).replace(str(old), str(new), -1 if count is None else count)


@pass_context
def _as_it_is(context: Context, text: Any) -> Any:
    return data(str(text))


@pass_context
def _format(context: Context, text: Any, *values: Any, **named: Any) -> str:
    return _formatted(str(text), named or values)


def _formatted(text: str, values: Any) -> str:
    if _WIDTH.search(text):
        raise SecurityError("a width of more than two digits is not allowed in a chat template")
    formatted: str = str.__str__(text) % values
    spend(len(formatted))
    return formatted


@pass_context
def _indent(context: Context, text: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if (len(width) if isinstance(width, str) else width) > _INDENT:
        raise SecurityError(f"indent: by at most {_INDENT}")
    spend(len(text) * (_INDENT + 1))
    indented: str = do_indent(text, width, first, blank)
    return indented


@pass_context
def _tojson(
    context: Context,
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """As transformers writes it; a text in it is data, whoever wrote it.

    Arguments that a model wrote stay as they are, so that it reads the tokens that it sampled, and they are not read
    anew where they are still in its cache.
    """
    if isinstance(value, Written) and (indent, separators, sort_keys) == (None, None, False):
        return value.text
    if (indent or 0) > _INDENT or any(len(separator) > _INDENT for separator in separators or ()):
        raise SecurityError(f"tojson: indent by at most {_INDENT}")
    written = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    spend(len(written))
    return written


def _raise(message: Any) -> None:
    raise TemplateRuntimeError(str(message))


def _range(*args: int) -> range:
    numbers = range(*args)
    if len(numbers) > _RANGE:
        raise SecurityError(f"a range of more than {_RANGE} numbers is not allowed in a chat template")
    spend(len(numbers))
    return numbers


def _namespace(*args: Any, **values: Any) -> Namespace:
    names = dict(*args, **values)
    if any(str(name).startswith("_") for name in names):
        raise SecurityError("names with an underscore in front are not allowed in a chat template")
    return Namespace(names)
