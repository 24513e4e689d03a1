"""Tools from functions, and the registry that holds them."""

import asyncio
from dataclasses import fields, replace
from enum import Enum

import pytest

from toolwise.core.errors import BadInput, InvalidArguments, UnknownTool
from toolwise.core.types import Effect, Principal, Tool, ToolContext
from toolwise.tools import Registry, tool
from toolwise.tools.registry import definition_hash


def named(name: str) -> Tool:
    return Tool(name, "", {"type": "object", "properties": {}}, Effect.READ, run=lambda: name)


def suggestion(registry: Registry, name: str) -> str:
    with pytest.raises(UnknownTool) as caught:
        registry.resolve(name)
    return str(caught.value)


def test_a_decorated_function_is_a_tool():
    @tool
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    assert (add.name, add.description, add.bounded) == ("add", "Add two numbers.", False)
    assert add.run(a=2) == 3
    assert add.run(a=2, b=5.0) == 7


def test_a_tool_counts_as_a_writer_unless_it_says_otherwise():
    @tool
    def silent() -> None: ...

    @tool(name="look.up-2", effect=Effect.READ, bounded=True)
    def told() -> None: ...

    assert (silent.effect, silent.bounded) == (Effect.WRITE, False)
    assert (told.name, told.effect, told.bounded) == ("look.up-2", Effect.READ, True)


def test_a_tool_receives_its_context_and_the_types_it_asked_for():
    class Unit(Enum):
        C = "celsius"

    @tool
    def heat(unit: Unit, who: ToolContext) -> tuple[Unit, str]:
        return unit, who.principal.id

    context = ToolContext(Principal("ada"), "2023-01-30", 1.0)
    assert heat.context_parameter == "who"
    assert heat.run(unit="celsius", who=context) == (Unit.C, "ada")
    with pytest.raises(InvalidArguments, match='"unit"'):
        heat.run(unit="kelvin", who=context)


def test_a_coroutine_function_stays_one():
    @tool
    async def twice(n: int) -> int:
        return 2 * n

    assert asyncio.iscoroutinefunction(twice.run)
    assert asyncio.run(twice.run(n=4)) == 8


@pytest.mark.parametrize("name", ["", "1a", "a b", "read\n", "rеad", "ｒｅａｄ", "a" * 65, "-a", "a/b", ".a"])
def test_a_name_that_a_wire_format_could_not_carry_is_refused(name):
    with pytest.raises(BadInput, match="tool name"):
        Registry([named(name)])


def test_a_lambda_needs_a_name():
    with pytest.raises(BadInput, match="tool name"):
        tool(lambda: None)
    assert tool(name="nothing")(lambda: None).name == "nothing"


@pytest.mark.case("H1")
def test_two_tools_with_one_name_are_refused():
    with pytest.raises(BadInput, match='two tools are named "search"'):
        Registry([named("search"), named("other"), named("search")])
    assert Registry([named("a.search"), named("b.search")]).names == ("a.search", "b.search")


@pytest.mark.case("A17")
@pytest.mark.parametrize("name", ["read\n", "READ", " read", "rеad", "ｒｅａｄ", "read\0", "raed"])
def test_only_the_exact_name_resolves_and_the_nearest_is_text(name):
    registry = Registry([named("read"), named("write"), named("delete_everything")])
    text = suggestion(registry, name)
    assert '"read"' in text.partition("nearest")[2]
    assert "delete_everything" not in text
    assert name not in registry
    assert registry.resolve("read").run() == "read"


@pytest.mark.case("A17")
def test_a_long_name_is_neither_quoted_nor_compared_at_length():
    registry = Registry([named(f"tool_{i}") for i in range(500)])
    assert len(suggestion(registry, "x" * 1_000_000)) < 150


def test_at_most_three_near_names_are_given_nearest_first():
    registry = Registry([named(name) for name in ("get_time", "get_date", "get_data", "get_rate", "set_date")])
    assert suggestion(registry, "get_dat").endswith('"get_data", "get_date", "get_rate"')


def test_a_schema_that_cannot_be_used_is_refused_with_the_tools_name():
    unsafe = replace(named("fetch"), parameters={"type": "object", "$ref": "http://169.254.169.254/"})
    with pytest.raises(BadInput, match='tool "fetch": schema'):
        Registry([unsafe])


def test_a_registry_is_a_read_only_mapping():
    tools = [named("b"), named("a")]
    registry = Registry(tools)
    assert dict(registry) == {"b": tools[0], "a": tools[1]}
    assert registry.names == ("b", "a")
    with pytest.raises(TypeError):
        registry["c"] = named("c")


def test_the_validator_of_a_tool_judges_its_arguments():
    @tool
    def add(a: int) -> int:
        return a

    registry = Registry([add])
    registry.validator("add").validate({"a": 1})
    with pytest.raises(InvalidArguments):
        registry.validator("add").validate({"a": "1"})
    with pytest.raises(UnknownTool):
        registry.validator("sub")


def test_the_fingerprint_changes_with_any_definition_and_not_with_the_order():
    a, b = named("a"), named("b")
    assert Registry([a, b]).fingerprint == Registry([b, a]).fingerprint
    changed = [
        replace(b, name="c"),
        replace(b, description="."),
        replace(b, effect=Effect.PURE),
        replace(b, parameters={"type": "object", "properties": {"x": {}}}),
    ]
    assert len({Registry([a, other]).fingerprint for other in [b, *changed]}) == 5
    assert len({definition_hash(other) for other in [b, *changed]}) == 5


def test_what_a_person_approves_is_all_that_is_declared():
    told = {"run": print, "context_parameter": "context", "examples": ()}
    declared = {"bounded": True, "seconds": 1.0, "cost": 1.0, "resource": "disk"}
    declared |= dict.fromkeys(("idempotent", "keyed", "trusted", "private", "public"), True)
    assert {field.name for field in fields(Tool)} == {"name", "description", "parameters", "effect", *told, *declared}
    before = named("a")
    changed = [replace(before, **{name: value}) for name, value in declared.items()]
    assert len({definition_hash(other) for other in [before, *changed]}) == 1 + len(declared)
    assert len({definition_hash(replace(before, **{name: value})) for name, value in told.items()}) == 1
    assert len({Registry([replace(before, **{name: declared[name]})]).fingerprint for name in declared}) == 1


def test_a_definition_that_cannot_be_written_is_refused():
    with pytest.raises(BadInput, match="surrogate"):
        Registry([replace(named("a"), description="\ud800")])
