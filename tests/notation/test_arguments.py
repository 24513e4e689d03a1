"""Bodies and their arguments: what is written is read back, and what has two readings is refused."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolwise.core.errors import BadInput, InvalidArguments, MalformedCall, ToolwiseError
from toolwise.core.types import Effect, Tool
from toolwise.notation.inline import PLAIN, Notation, read_arguments, read_body, scan, write_body
from toolwise.notation.markers import NAME, SPECIAL

ODD = [
    Notation("<<", "=>", ">>"),
    Notation("|", "-->", "|"),
    Notation("\t [", " →", " ]"),
    Notation("🔧[", "🔧>", "🔧]"),
    Notation("{", ":=", "}"),
]

notations = st.sampled_from([PLAIN, SPECIAL, *ODD])
names = st.from_regex(NAME, fullmatch=True)
unicode = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
hostile = st.text('[]()\\"\n\r\t ->=<|/:{},A1n🔧é', max_size=30)
texts = unicode | hostile
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


def raw_tool(name="QA", parameter="q"):
    return tool({parameter: {"type": "string"}}, name, required=[parameter])


def search_tool():
    return tool({"query": {"type": "string"}, "page": {"type": "integer"}}, "Search", required=["query"])


def tool(properties, name="Weather", required=()):
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return Tool(name, "", parameters, Effect.PURE, run=lambda **_: None)


def read(body, of, notation=PLAIN):
    name, raw = read_body(body, notation)
    assert name == of.name
    return read_arguments(raw, of, notation)


def refused(raw, of=None, fault=MalformedCall):
    with pytest.raises(fault):
        read_arguments(raw, of or tool({}))


def same(a, b):
    """Equal, and of the same JSON types all the way down: `1`, `1.0` and `True` differ."""
    return repr(a) == repr(b) or (
        type(a) is type(b)
        and (
            (isinstance(a, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a))
            or (isinstance(a, list) and len(a) == len(b) and all(map(same, a, b)))
        )
    )


@pytest.mark.case("A20")
@settings(max_examples=300, deadline=None)
@given(names, texts, notations)
def test_any_raw_text_is_read_back_exactly(name, text, notation):
    of = raw_tool(name)
    body = write_body(of, {"q": text}, notation)
    assert not set("\r\n") & set(body)
    assert read(body, of, notation) == {"q": text}


@pytest.mark.case("A20")
@settings(max_examples=300, deadline=None)
@given(
    texts
    | st.sampled_from(["", " ", "a=1", ' "a" = 1', "page=2", "é =", '"'])
    | st.dictionaries(texts | st.sampled_from(["query", "page"]), values, max_size=3),
    notations,
)
def test_raw_text_beside_optional_arguments_is_read_back_exactly(given, notation):
    of = search_tool()
    arguments = {"query": given} if isinstance(given, str) else given
    body = write_body(of, arguments, notation)
    assert not set("\r\n") & set(body)
    assert same(read(body, of, notation), arguments)


@pytest.mark.case("A20")
@settings(max_examples=300, deadline=None)
@given(names, st.dictionaries(texts, values, max_size=4), notations)
def test_any_json_arguments_are_read_back_with_their_types(name, arguments, notation):
    of = tool({"a": {}, "b": {}}, name)
    body = write_body(of, arguments, notation)
    assert not set("\r\n") & set(body)
    assert same(read(body, of, notation), arguments)


@settings(max_examples=300, deadline=None)
@given(hostile)
def test_any_text_is_read_or_refused_and_what_is_read_is_written_and_read_again(raw):
    for of in (raw_tool(), search_tool(), tool({"a": {}})):
        try:
            arguments = read_arguments(raw, of)
        except ToolwiseError:
            continue
        assert same(read(write_body(of, arguments), of), arguments)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(texts, values, min_size=1, max_size=3), st.integers(0, 200))
def test_a_truncated_pair_is_never_read_as_the_whole(arguments, cut):
    of = tool({"a": {}, "b": {}})
    _, raw = read_body(write_body(of, arguments))
    assume(cut < len(raw))
    try:
        shorter = read_arguments(raw[:cut], of)
    except ToolwiseError:
        return
    assert not same(shorter, arguments)


def test_calls_are_written_as_the_paper_writes_them():
    assert write_body(raw_tool("Calculator"), {"q": "18 / 24"}) == "Calculator(18 / 24)"
    assert write_body(raw_tool("Calculator"), {"q": "(1+2)*3"}) == "Calculator((1+2)*3)"
    assert write_body(tool({}, "Calendar"), {}) == "Calendar()"
    assert write_body(tool({}), {"city": "Oslo", "days": 2}) == 'Weather(city="Oslo", days=2)'


def test_text_alone_is_written_raw_and_with_options_as_pairs():
    assert write_body(search_tool(), {"query": "a town"}) == "Search(a town)"
    assert write_body(search_tool(), {"query": "a town", "page": 2}) == 'Search(query="a town", page=2)'
    assert write_body(search_tool(), {"query": "n = 5"}) == 'Search(query="n = 5")'
    assert read_arguments("page=2", search_tool()) == {"page": 2}
    assert read_arguments("", search_tool()) == {}


def test_a_json_value_stays_plain_json_and_only_its_strings_are_guarded():
    assert write_body(tool({}), {"days": [1, [2]]}) == "Weather(days=[1,[2]])"
    assert write_body(tool({}), {"s": 'a "b" \\ '}) == r'Weather(s="a \"b\" \\ ")'
    assert write_body(tool({}), {"s": " [A(1)] :("}) == r'Weather(s=" \u005bA(1)\u005d :\u0028")'


def test_raw_text_is_escaped_only_where_it_could_mislead():
    assert write_body(raw_tool(), {"q": "f(x) = 10 - 3, 2023-01-30"}) == "QA(f(x) = 10 - 3, 2023-01-30)"
    assert write_body(raw_tool(), {"q": ":( a->b \\ [1]\n"}) == r"QA(:\( a\->b \\ \[1\]\n)"


def test_spaces_around_raw_text_are_part_of_it():
    assert read("QA(  x )", raw_tool()) == {"q": "  x "}
    assert read("QA()", raw_tool()) == {"q": ""}


@pytest.mark.case("A12")
def test_an_integer_beyond_a_double_stays_exact():
    of = tool({"n": {"type": "integer"}})
    assert write_body(of, {"n": 9007199254740993}) == "Weather(n=9007199254740993)"
    assert read("Weather(n=9007199254740993)", of) == {"n": 9007199254740993}


def test_spaces_around_keys_and_values_do_not_matter():
    assert read('Weather( city = "Oslo" ,days=2 )', tool({})) == {"city": "Oslo", "days": 2}
    assert read("Weather( )", tool({})) == {}


def test_a_key_that_is_no_identifier_is_a_json_string():
    arguments = {"a b": 1, "größe": 2, "x=1, y": [3], "": 4}
    body = write_body(tool({}), arguments)
    assert body == 'Weather("a b"=1, größe=2, "x=1, y"=[3], ""=4)'
    assert read(body, tool({})) == arguments


def test_json_that_a_model_writes_needs_no_second_escape():
    assert read(r'Weather(s="say \"hi\", [ok] -> (x)", t={"a":[1,2]})', tool({})) == {
        "s": 'say "hi", [ok] -> (x)',
        "t": {"a": [1, 2]},
    }


@pytest.mark.case("A21")
def test_brackets_inside_the_parentheses_are_literal_text():
    assert read("A([B(1)])", raw_tool("A")) == {"q": "[B(1)]"}


@pytest.mark.case("A1")
def test_a_duplicate_key_is_refused():
    refused('to="bob", to="eve"')
    refused('to="bob", "to"="eve"')
    refused('a={"to":"bob","to":"eve"}')


@pytest.mark.case("A16")
def test_no_value_can_make_another_argument():
    of = tool({})
    for value in ("1, n=7", '"', '", n=7, x="', "], n=[7", "}, n={", "1) -> [X(n=7", '\\", n=7'):
        assert read(write_body(of, {"a": value}), of) == {"a": value}


@pytest.mark.case("A3")
@pytest.mark.case("A4")
@pytest.mark.case("A5")
@pytest.mark.case("A6")
def test_values_that_are_not_strict_json_are_refused():
    for value in ("NaN", "Infinity", "1e400", "1" * 5000, "[" * 100_000, "'x'", "True", "None", "01", "", "x"):
        refused(f"a={value}")


@pytest.mark.case("A7")
def test_an_unpaired_surrogate_in_a_json_value_is_refused():
    refused(r'a="\ud800"', fault=InvalidArguments)


@pytest.mark.case("A11")
def test_an_open_string_or_bracket_is_never_closed_by_guessing():
    for raw in ('a="b', 'a="b\\', "a=[1", 'a={"b":1', "a=[1, b=2", 'a="x, b=2'):
        refused(raw)


def test_a_bare_parenthesis_in_a_string_that_ends_the_call_early_leaves_nothing_that_can_be_read():
    body = 'Note(text="a) -> b", n=1)'
    body = body[: scan(body).at]
    assert body == 'Note(text="a)'
    with pytest.raises(MalformedCall):
        read(body, tool({}, "Note"))


def test_junk_between_pairs_is_refused():
    for raw in (
        "a=1,",
        ",a=1",
        "a=1 2",
        "a=1 b=2",
        "a=1]",
        "a=1}, b={",
        "a",
        "=1",
        "1",
        '"a"',
        "a==1",
        "a b=1",
        "1a=1",
    ):
        refused(raw)


def test_an_unknown_escape_in_raw_text_is_refused():
    for raw in (r"\d", r"\frac{1}{2}", "\\", "x\\"):
        refused(raw, raw_tool())


def test_a_body_without_one_outer_pair_of_parentheses_is_refused():
    for body in (
        "",
        "QA",
        "QA(",
        "QA)",
        "QA(x",
        "QA(x) ",
        "QA(x) y",
        "QA(x)(y)",
        "QA(a) b)",
        "(x)",
        "QA((x)",
        "QA(x\\)",
    ):
        with pytest.raises(MalformedCall):
            read_body(body)
    for body in ("QA(a\nb)", "QA(a\rb)", "QA(a\\\nb)"):
        with pytest.raises(MalformedCall):
            read_body(body)


@pytest.mark.case("A17")
def test_a_name_is_ascii_and_exact():
    for name in ("read\n", " read", "rеad", "ｒｅａｄ", "1a", "a b", "é", "x" * 65, "-a", ".a"):
        with pytest.raises(MalformedCall):
            read_body(f"{name}(x)")
        with pytest.raises(BadInput):
            write_body(raw_tool(name), {"q": "x"})
    assert read_body("a.B-c_9(x)") == ("a.B-c_9", "x")


def test_arguments_that_cannot_be_written_are_refused():
    for arguments in ({}, {"q": 1}, {"x": "y"}, {"q": "x", "y": 1}):
        with pytest.raises(InvalidArguments):
            write_body(raw_tool(), arguments)
    for value in (float("nan"), {1}, "\ud800", {1: 2}):
        with pytest.raises(InvalidArguments):
            write_body(tool({}), {"a": value})


@pytest.mark.timeout(5)
@pytest.mark.parametrize("raw", ['"\\' * 40_000, 'a="' + '\\"' * 100_000, "a=" + "[" * 80_000, ",=" * 40_000])
def test_hostile_arguments_are_refused_in_linear_time(raw):
    refused(raw, fault=ToolwiseError)
