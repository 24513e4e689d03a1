"""Jinja as chat templates need it, with texts that are traced and work that is bounded.

Through Jinja's own points of extension: a visitor over the tree that its parser made, filters, the intercepted
operators of its sandbox, and `concat`, with which an environment joins pieces.

    a text in the template             ->  `"..." | _literal`: a filter that asks for the context is never folded
    `a ~ b`                            ->  `[a, b] | _concat`
    `{% for x in y %}`                 ->  `{% for x in y | _counted %}`
    `x | filter`                       ->  `x | _spent | filter | _made`
    `[a, b]`, `{a: b}`, `x[1:]`        ->  `[a, b] | _made`, `{a: b} | _made`, `x[1:] | _spent`

Missing on purpose: filters and methods whose cost their arguments set (`center`, `batch`, `str.format`), or chance
(`unique`), loops that call themselves, `varargs` and `kwargs`, loaders. A template that needs one is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.jsonio import quote
from toolwise.notation.chat.traced import PIECE, Traced, Written, data, literal, spend, traced, weight_of, written

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


_REFERENCE = 16  # characters of work that a place in a list counts as
_LARGE = 2**64  # numbers from here on are computed with nowhere, since division takes the square of their digits
_RANGE = 10_000
_INDENT = 16
# What may stand behind `%`: no names and no stars, and widths of two digits.
_CONVERSION = re.compile(r"%(?:%|[-+ #0]{0,5}[0-9]{0,2}(?:\.[0-9]{0,2})?[sdifFeEgGxXoc])")
_WIDEST = 100
_FILTERS = (
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last", "length"),
    *("list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select", "selectattr", "sort"),
    *("string", "trim", "upper"),
)
_EACH = frozenset({"list", "sort"})  # make a list of whatever they are given, texts and generators too
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

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:
        node.node, node.arg = self.visit(node.node), self._unless_const(node.arg)
        return _filter(node, "_spent") if isinstance(node.arg, nodes.Slice) else node

    def visit_List(self, node: nodes.List) -> nodes.Filter:
        self.generic_visit(node)
        return _filter(node, "_made")

    def visit_Dict(self, node: nodes.Dict) -> nodes.Filter:
        self.generic_visit(node)
        return _filter(node, "_made")

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        return _filter(node, "_made") if node.ctx == "load" else node

    def visit_Name(self, node: nodes.Name) -> nodes.Name:
        if node.name in ("varargs", "kwargs"):
            raise BadInput(f"The chat template takes {node.name}, which has no bound; use another template.")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), "_concat")

    def visit_Filter(self, node: nodes.Filter) -> nodes.Filter:
        if node.name not in _NAMES:
            raise BadInput(f"The chat template needs the filter {quote(node.name)}, which there is not here.")
        self.generic_visit(node)
        if node.node is None:
            return node
        node.node = _filter(node.node, "_counted" if node.name in _EACH else "_spent")
        return _filter(node, "_made")

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
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            finalize=_paid,
            extensions=[LoopControlExtension, _Generation],
        )
        self.filters = {name: FILTERS[name] for name in _FILTERS} | _OUR_FILTERS | _INSERTED
        self.globals = {"dict": _dict, "namespace": _namespace, "raise_exception": _raise, "range": _range}

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
        spend(PIECE)
        return super().call(context, function, *args, **values)

    def call_filter(self, name: str, value: Any, *args: Any, **more: Any) -> Any:
        """Of one that is named by a text, as in `map("upper")`."""
        if name not in _NAMES:
            raise SecurityError(f"there is no filter {quote(name)} in a chat template")
        spend(PIECE + _size(value))
        return _weighed(super().call_filter(name, value, *args, **more))

    def call_test(self, name: str, value: Any, *args: Any, **more: Any) -> Any:
        spend(PIECE)
        return super().call_test(name, value, *args, **more)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            return _formatted(left, right)
        if isinstance(left, int | float) and isinstance(right, int | float):
            if not (abs(left) < _LARGE and abs(right) < _LARGE) or (operator == "**" and abs(right) > 64):
                raise SecurityError(f"{operator} on large numbers is not allowed in a chat template")
        elif operator == "*":
            times = next((value for value in (left, right) if isinstance(value, int)), 1)
            spend(max(_size(left), _size(right)) * max(0, times))
        elif operator == "+":
            spend(_size(left) + _size(right))
        elif isinstance(left, Sized) or isinstance(right, Sized):
            raise SecurityError(f"{operator} on a text or a list is not allowed in a chat template")
        return _weighed(super().call_binop(context, operator, left, right))

    def _of_text(self, text: str, attribute: str) -> Any:
        if attribute in _TEXT_METHODS:
            spend(len(text))
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
    return traced(map(written, values))


@pass_context
def _counted(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        spend(PIECE)
        yield value


@pass_context
def _spent(context: Context, value: Any) -> Any:
    spend(_size(value) or PIECE)
    return value


@pass_context
def _made(context: Context, value: Any) -> Any:
    return _weighed(value)


def _weighed(value: Any) -> Any:
    weight_of(value)
    return value


def _paid(value: Any) -> Any:
    """What is about to be written."""
    return written(value)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    return len(value) * _REFERENCE if isinstance(value, Sized) else 0


@pass_context
def _join(context: Context, values: Iterable[Any], d: str = "", attribute: str | int | None = None) -> Traced:
    if attribute is not None:
        values = (context.environment.getitem(value, attribute) for value in values)
    return data(written(d)).join(map(written, values))


@pass_context
def _replace(context: Context, text: Any, old: str, new: str, count: int | None = None) -> Traced:
    return data(written(text)).replace(written(old), written(new), -1 if count is None else count)


@pass_context
def _as_it_is(context: Context, text: Any) -> Any:
    return data(written(text))


@pass_context
def _format(context: Context, text: Any, *values: Any) -> str:
    return _formatted(written(text), values)


def _formatted(text: str, values: Any) -> str:
    if "%" in _CONVERSION.sub("", text):
        raise SecurityError("names, stars and widths of three digits are not allowed after % in a chat template")
    spend(len(text) + text.count("%") * _WIDEST + weight_of(values)[0])
    formatted: str = str.__str__(text) % values
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
    weight, depth = weight_of(value)
    spend(weight * (1 + (indent or 0) * depth))
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    spend(len(text))
    return text


def _raise(message: Any) -> None:
    raise TemplateRuntimeError(str(message))


def _range(*args: int) -> range:
    numbers = range(*args)
    if len(numbers) > _RANGE:
        raise SecurityError(f"a range of more than {_RANGE} numbers is not allowed in a chat template")
    spend(len(numbers))
    return numbers


class _Names(Namespace):
    """A namespace that is written as one word, whatever it holds."""

    def __repr__(self) -> str:
        return "namespace"


def _namespace(*args: Any, **values: Any) -> Namespace:
    names = _dict(*args, **values)
    if any(name.startswith("_") for name in names):
        raise SecurityError("names with an underscore in front are not allowed in a chat template")
    return _Names(names)


def _dict(pairs: Any = (), **values: Any) -> dict[str, Any]:
    """The dict of texts: numbers can be chosen so that all of them collide."""
    made: dict[str, Any] = {}
    for key, value in (*(pairs.items() if isinstance(pairs, dict) else pairs), *values.items()):
        spend(PIECE)
        if not isinstance(key, str):
            raise SecurityError("keys that are no texts are not allowed in a dict of a chat template")
        made[key] = value
    weight_of(made)
    return made


_OUR_FILTERS = {
    "format": _format,
    "indent": _indent,
    "join": _join,
    "replace": _replace,
    "safe": _as_it_is,
    "tojson": _tojson,
}
_INSERTED = {"_literal": _literal, "_concat": _concat, "_counted": _counted, "_spent": _spent, "_made": _made}
#: What a template may name.
_NAMES = frozenset({*_FILTERS, *_OUR_FILTERS})
