"""Calls in running text under a mask: what ends can be read and fits, and what is written fits."""

import random

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_schemas import random_schema, walk

from toolwise.core.chat import ToolSpec
from toolwise.core.errors import BadInput, LimitExceeded, MalformedCall
from toolwise.models.masks import Masks
from toolwise.models.scripted import ScriptedTokenizer
from toolwise.notation.grammar.inline import inline_grammar
from toolwise.notation.inline import PLAIN, Notation, read_arguments, read_body, scan, write_body
from toolwise.notation.markers import SPECIAL

PIECES = (" [", ")->", " ->", "->", '="', '", ', "(1", "))", "ab", "é日", "\\(")
BYTES = ScriptedTokenizer(PIECES)
ODD = (Notation("<<", "=>", ">>"), Notation("|", "-->", "|"), Notation("🔧[", "🔧>", "🔧]"), Notation("{", ":=", "}"))


def spec(properties, required=(), name="Weather"):
    return ToolSpec(name, "", {"type": "object", "properties": properties, "required": list(required)})


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
CALCULATOR = spec({"expression": TEXT}, ["expression"], "Calculator")
SEARCH = spec({"query": TEXT, "page": NUMBER}, ["query"], "Search")
CALENDAR = spec({}, name="Calendar")
WEATHER = spec(
    {"city": TEXT, "days": NUMBER, "unit": {"enum": ["C", "F (old)"]}, "tags": {"type": "array", "items": TEXT}}
)
UNIT = spec({"unit": {"type": "string", "enum": ["m", "a(b", "[x]"]}}, ["unit"], "Unit")
TOOLS = {tool.name: tool for tool in (CALCULATOR, SEARCH, CALENDAR, WEATHER, UNIT)}
MASKS = Masks(BYTES)


def fits(text, tools=None, notation=PLAIN):
    matcher = MASKS.matcher(inline_grammar(tools or tuple(TOOLS.values()), notation))
    return matcher.read(BYTES.encode(text)) and matcher.ended


def read(written, notation=PLAIN, tools=TOOLS):
    """Tool and arguments of a call up to its arrow, as the decode loop reads them."""
    end = scan(written, notation)
    assert end is not None and end.kind == "arrow" and end.at + end.length == len(written)  # noqa: PT018
    name, raw = read_body(written[: end.at], notation)
    return tools[name], read_arguments(raw, tools[name], notation)


@pytest.mark.parametrize(
    "text",
    [
        "Calculator((1 + 2) * 3) ->",
        "Calculator(\\) - \\() ->",
        "Search(towns (by the sea) on a fjord) ->",
        'Search(query="a=b", page=2) ->',
        "Search(2 = 2) ->",
        "Search((a)b = 2) ->",
        "Calendar() ->",
        "Weather() ->",
        'Weather(city="O(s)lo", days=-3, unit="F (old)", tags=["[a]","b"]) ->',
        'Weather(unit="C") ->',
        'Weather(city="a\\u005bb") ->',
        "Unit(a\\(b) ->",
        "Unit(\\[x\\]) ->",
    ],
)
def test_calls_that_can_be_read_fit(text):
    assert fits(text)
    read(text)


@pytest.mark.parametrize(
    "text",
    [
        "Wether() ->",
        "Calendar(now) ->",
        "Calculator(1 + 2]) ->",
        "Calculator(1 -> 2) ->",
        "Calculator((1 + 2) ->",
        "Calculator(1\n2) ->",
        "Calculator(\\x) ->",
        "Search(page=2) ->",
        "Search() ->",
        'Search(query = "a") ->',
        "Search(abc) = 2) ->",
        'Weather(days="3") ->',
        'Weather(city="a(b") ->',
        'Weather(tags=["(a)"]) ->',
        'Weather(town="x") ->',
        'Weather(city="\\ud800") ->',
        'Weather(city="\\u0000") ->',
        "Unit(a(b) ->",
        "Unit(km) ->",
        "Calendar()]",
    ],
)
def test_calls_that_cannot_be_read_or_run_do_not(text):
    assert not fits(text)


unicode = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
hostile = st.text('[]()\\"\n\r\t ->=<|/:{},A1n🔧é', max_size=12)
texts = (unicode | hostile).filter(lambda text: "\0" not in text)
notations = st.sampled_from([PLAIN, *ODD])


@settings(max_examples=150, deadline=None)
@given(texts, notations)
def test_raw_text_that_is_written_fits(text, notation):
    body = write_body(CALCULATOR, {"expression": text}, notation)
    assert fits(body + notation.arrow, (CALCULATOR,), notation)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "city": texts.filter(lambda text: text.count("(") == text.count(")") == 0 and "\x7f" not in text),
            "days": st.integers(-(10**17), 10**17),
            "unit": st.sampled_from(["C", "F (old)"]),
            "tags": st.lists(st.text("ab cé,=-<", max_size=5), max_size=3),
        },
    ),
    notations,
)
def test_pairs_that_are_written_fit(arguments, notation):
    in_order = {name: arguments[name] for name in WEATHER.parameters["properties"] if name in arguments}
    body = write_body(WEATHER, in_order, notation)
    if "\\u" not in body.partition("tags=")[2]:  # deeper down, a mask leaves the start of a marker as it is
        assert fits(body + notation.arrow, (WEATHER,), notation)


@pytest.mark.parametrize("notation", [PLAIN, SPECIAL, *ODD])
def test_what_ends_is_read_and_fits(notation):
    tokenizer = ScriptedTokenizer(PIECES, notation)
    masks, lot, found = Masks(tokenizer), random.Random(5), set()
    validators = {name: jsonschema_rs.validator_for(dict(tool.parameters)) for name, tool in TOOLS.items()}
    for _ in range(60):
        text = walk(masks.matcher(inline_grammar(tuple(TOOLS.values()), notation)), tokenizer, lot, 200)
        if text is not None:
            tool, arguments = read(text, notation)
            assert validators[tool.name].is_valid(arguments), text
            found.add(tool.name)
    assert len(found) > 3


@pytest.mark.parametrize("seed", range(4))
def test_tools_of_any_schema_end_in_calls_that_fit_unless_a_downgrade_says_so(seed):
    lot, ended = random.Random(seed), 0
    for _ in range(20):
        schema = random_schema(lot)
        tool = ToolSpec("Any", "", schema)
        validator, matcher = jsonschema_rs.validator_for(schema), MASKS.matcher(inline_grammar([tool], PLAIN))
        excused = {downgrade.keyword for downgrade in matcher.downgrades}
        for _ in range(3):
            try:
                text = walk(matcher.fork(), BYTES, lot, 300)
            except LimitExceeded:
                continue
            if text is None:
                continue
            ended += 1
            try:
                fine = validator.is_valid(read(text, tools={"Any": tool})[1])
            except MalformedCall:  # a name that stands twice
                fine = False
            assert fine or excused, (text, schema)
    assert ended > 30


def test_text_whose_schema_says_more_is_a_downgrade():
    code = spec({"code": {"type": "string", "pattern": "^[A-Z]+$"}}, ["code"], "Code")
    assert [str(lost) for lost in inline_grammar([code], PLAIN).downgrades] == [
        "Code: pattern at /properties/code is not masked"
    ]


def test_the_arrow_of_special_markers_is_a_token():
    tokenizer = ScriptedTokenizer(PIECES, SPECIAL)
    matcher = Masks(tokenizer).matcher(inline_grammar([CALENDAR], SPECIAL))
    assert matcher.forced() == (*tokenizer.encode("Calendar()"), *tokenizer.encode_marker(SPECIAL.arrow))


def test_a_tool_that_cannot_be_written_inline_is_refused():
    for tools in ([], [ToolSpec("größe", "", {"type": "object"})]):
        with pytest.raises(BadInput):
            inline_grammar(tools, PLAIN)
