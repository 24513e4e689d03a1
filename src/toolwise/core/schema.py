"""Python signature -> JSON Schema; compile; validate. One validator for every tool.

Covered: a schema from elsewhere (an MCP server, a file) cannot make this process read a file or an address, loop, or
spend unbounded time or memory (`schema_safety`); what is said of arguments that do not fit never quotes a value.

Not covered: whether a schema means what its author meant. `format` is an annotation and is not checked. Recursive
schemas are refused: no tool needs them, and every other reader of the schema would have to survive them as well.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any, NoReturn

import griffe
import jsonschema_rs
import pydantic
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, InvalidArguments
from toolwise.core.jsonio import printable, quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.schema_safety import DATA, NAMES, checked_schema, refuse_to_fetch
from toolwise.core.types import ToolContext

Bind = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a typed function says of itself.

    `parameters` is a JSON Schema of an object without titles, in which unknown properties are forbidden. `bind` turns
    arguments that fit it into what the annotations name (enums, nested models, dates); it raises InvalidArguments.
    """

    description: str
    parameters: dict[str, Any]
    context_parameter: str | None
    bind: Bind


def signature(function: Callable[..., Any]) -> Signature:
    """The signature of a typed function or method; descriptions come from its Google-style docstring.

    A parameter annotated `ToolContext` is left out and named instead. Raises BadInput that names the parameter which
    is not annotated, cannot be written as JSON, or is no plain named one.
    """
    context: str | None = None
    fields: dict[str, Any] = {}
    for name, parameter in _signature_of(function).parameters.items():
        annotation = _annotation(function, parameter)
        if annotation is ToolContext:
            if context is not None:
                raise BadInput(f"parameter {quote(name)}: ask for one ToolContext only")
            context = name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        # The model's own attribute names are numbers, so that no parameter's name can clash with pydantic's.
        fields[name] = (f"p{len(fields)}", annotation, pydantic.Field(default, alias=name))
        _model({name: fields[name]}, f"parameter {quote(name)}")
    model, schema = _model(fields, "the parameters")
    parameters = _closed(schema)
    parameters.setdefault("properties", {})
    description, of_parameters = _documentation(function)
    for name in fields.keys() & of_parameters.keys():
        parameters["properties"][name].setdefault("description", of_parameters[name])
    return Signature(description, parameters, context, _binder(model, {n: f[0] for n, f in fields.items()}))


def raw_argument(parameters: Mapping[str, Any]) -> str | None:
    """The name of the required argument when a schema requires exactly one, of type string; otherwise None.

    Such a tool takes raw text in the notation: `Calculator(18 / 24)`.
    """
    properties, required = parameters.get("properties"), parameters.get("required", ())
    if not isinstance(properties, Mapping) or len(required) != 1:
        return None
    schema = properties.get(required[0])
    return required[0] if isinstance(schema, Mapping) and schema.get("type") == "string" else None


class Validator:
    """A schema, compiled once. Raises BadInput where the schema cannot be used safely; never fetches anything.

    Patterns run on an engine that is linear in the text. No value is coerced: `true` and `"5"` are no integers, and
    `5.0` is one, by JSON Schema.
    """

    def __init__(self, parameters: Mapping[str, Any], limits: Limits = LIMITS) -> None:
        self._limits = limits
        schema, self._parts = checked_schema(parameters, limits)
        try:
            self._compiled = jsonschema_rs.validator_for(
                schema,
                validate_formats=False,
                retriever=refuse_to_fetch,
                pattern_options=jsonschema_rs.RegexOptions(),
                mask="the value",
            )
        except jsonschema_rs.ValidationError as error:
            where = ".".join(str(step) for step in error.instance_path)
            raise BadInput(f"schema: {quote(where)}: {printable(error.message, 100)}") from None
        except (ValueError, jsonschema_rs.ReferencingError):
            raise BadInput("schema: it does not compile; check its patterns and references") from None

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A plain copy of the arguments (`jsonio.plain`), which is what was checked.

        Raises InvalidArguments that names the first three problems at most, by argument and never by value.
        """
        limits = self._limits
        _check_properties(arguments, limits)
        checked: dict[str, Any] = jsonio.plain(arguments, InvalidArguments, limits.argument_bytes, limits)
        for item in jsonio.walk(checked):
            if isinstance(item, str):
                jsonio.check_text(item, InvalidArguments, limits.string_bytes)
                if "\0" in item:
                    raise InvalidArguments("NUL character: leave it out")
            elif isinstance(item, dict):
                _check_properties(item, limits)
        if not self._compiled.is_valid(checked):
            problems = (text for error in self._errors(checked) for text in _problems(error))
            raise InvalidArguments("; ".join(islice(problems, 3)))
        return checked

    def refused_texts(self, arguments: Mapping[str, Any]) -> list[tuple[str | int, ...]]:
        """The places of texts that do not fit where they stand, in arguments that `validate` refused."""
        checked = jsonio.plain(arguments, InvalidArguments, self._limits.argument_bytes, self._limits)
        return [tuple(error.instance_path) for error in self._errors(checked) if isinstance(error.instance, str)]

    def _errors(self, arguments: Any) -> Iterator[jsonschema_rs.ValidationError]:
        # The engine decides in microseconds, but describes every failed branch of every value when asked for all.
        values = sum(1 for _ in jsonio.walk(arguments))
        if self._parts * values <= self._limits.problem_steps:
            yield from self._compiled.iter_errors(arguments)
            return
        try:
            self._compiled.validate(arguments)
        except jsonschema_rs.ValidationError as error:
            yield error


# --- signature ---------------------------------------------------------------------------------------------------


class _StrictSchema(GenerateJsonSchema):
    """A default that is not JSON is an error, not a warning."""

    def emit_warning(self, kind: Any, detail: str) -> NoReturn:
        raise PydanticInvalidForJsonSchema(detail)


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    if not inspect.isroutine(function):
        raise BadInput("a tool is made of a function or a method")
    try:
        return inspect.signature(function)
    except ValueError:
        raise BadInput(f"function {quote(function.__name__)} has no signature: wrap it in one that has") from None


def _annotation(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    name = quote(parameter.name)
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise BadInput(f"parameter {name}: use plain named parameters, no *args, **kwargs or positional-only ones")
    if parameter.annotation is parameter.empty:
        raise BadInput(f"parameter {name}: annotate it with a type")
    alone = SimpleNamespace(__annotations__={parameter.name: parameter.annotation})
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return typing.get_type_hints(alone, globalns=names, include_extras=True)[parameter.name]
    except (NameError, AttributeError, SyntaxError, TypeError):
        raise BadInput(f"parameter {name}: its type is not known; define it at the top of the module") from None


def _model(fields: Mapping[str, Any], what: str) -> tuple[type[pydantic.BaseModel], dict[str, Any]]:
    definitions: dict[str, Any] = {attribute: (kind, field) for attribute, kind, field in fields.values()}
    try:
        model = pydantic.create_model("Arguments", __config__=pydantic.ConfigDict(extra="forbid"), **definitions)
        return model, model.model_json_schema(schema_generator=_StrictSchema)
    except (pydantic.PydanticUserError, NameError, TypeError, ValueError):
        raise BadInput(f"{what}: use types and defaults that JSON can write") from None


def _closed(schema: Any, names: bool = False) -> Any:
    """The schema without titles, every object in it with exactly the properties that it names."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if names:
        return {name: _closed(item) for name, item in schema.items()}
    closed = {
        key: item if key in DATA else _closed(item, key in NAMES) for key, item in schema.items() if key != "title"
    }
    if "properties" in closed:
        closed.setdefault("additionalProperties", False)
    return closed


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The first paragraph of the docstring, and what it says of each parameter."""
    summary, parameters = "", {}
    docstring = griffe.Docstring(inspect.getdoc(function) or "")
    for section in griffe.parse_google(docstring, warnings=False):
        if section.kind is griffe.DocstringSectionKind.text and not summary:
            summary = " ".join(section.value.split("\n\n")[0].split())
        elif section.kind is griffe.DocstringSectionKind.parameters:
            parameters = {item.name: " ".join(item.description.split()) for item in section.value}
    return summary, parameters


def _binder(model: type[pydantic.BaseModel], attributes: Mapping[str, str]) -> Bind:
    def bind(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound = model.model_validate(dict(arguments))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where, why = str(first["loc"][0]) if first["loc"] else "arguments", first["type"].replace("_", " ")
            raise InvalidArguments(f"argument {quote(where)} does not fit: {printable(why, 60)}") from None
        given = bound.model_fields_set
        return {name: getattr(bound, field) for name, field in attributes.items() if field in given}

    return bind


# --- what does not fit -------------------------------------------------------------------------------------------


def _check_properties(value: Any, limits: Limits) -> None:
    if isinstance(value, Mapping) and len(value) > limits.properties:
        first = ", ".join(quote(str(name)) for name in islice(value, 3))
        raise InvalidArguments(
            f"{len(value)} properties, first {first}: send at most {limits.properties} in one object"
        )


def _problems(error: jsonschema_rs.ValidationError) -> Iterator[str]:
    kinds = jsonschema_rs.ValidationErrorKind
    path = ".".join(str(step) for step in error.instance_path)
    inside = f" in {quote(path)}" if path else ""
    if isinstance(error.kind, kinds.AdditionalProperties | kinds.UnevaluatedProperties):
        yield from (f"unknown argument {quote(name)}{inside}" for name in error.kind.unexpected)
    elif isinstance(error.kind, kinds.Required):
        yield f"missing argument {quote(error.kind.property)}{inside}"
    else:
        what = f"argument {quote(path)}" if path else "arguments"
        yield f"{what}: {printable(error.message, 100)}"
