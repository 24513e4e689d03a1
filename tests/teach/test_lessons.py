"""What a run teaches is settled before it begins: tools that may run, and a prompt for each that shows good calls."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.errors import BadInput
from toolwise.core.toml import quoted
from toolwise.core.types import Effect, Tool
from toolwise.notation.inline import write_body
from toolwise.teach.config import Settings, load_settings
from toolwise.teach.draft import TO_EDIT, as_toml, sketch
from toolwise.teach.lessons import lessons, prompt_of
from toolwise.teach.prompts import PROMPTS, Prompt
from toolwise.tools.load import load_tools
from toolwise.tools.registry import tool

FILE = """
from typing import Literal
from toolwise import Effect, tool

@tool(effect=Effect.{effect}, bounded=True, examples={examples})
def Lend(sum: float, years: int, kind: Literal["simple", "compound"]) -> float:
    \"\"\"What a loan costs.

    More about it.
    \"\"\"
    return sum * years / 100
"""
GOOD = [
    'He lent 100 crowns for 2 years and got [Lend(sum=100, years=2, kind="simple")] 2 crowns.',
    'For 3 years she lent 200 crowns, which made [Lend(sum=200, years=3, kind="simple")] 6 crowns.',
]


def tools_file(folder: Path, examples: list[str] = GOOD, effect: str = "PURE") -> Path:
    path = folder / "lending.py"
    path.write_text(FILE.format(effect=effect, examples=repr(examples)), encoding="utf-8")
    return path


def settings_of(folder: Path, examples: list[str] = GOOD, effect: str = "PURE", toml: str = "") -> Settings:
    own = folder / "own.toml"
    own.write_text(toml, encoding="utf-8")
    return load_settings("small", [str(tools_file(folder, examples, effect))], own)


@tool(effect=Effect.PURE)
def weather(city: str, days: int, units: str = "metric") -> str:
    """The weather of the next days."""
    return f"{city} {days} {units}"


def with_prompts(folder: Path, *prompts: Prompt) -> Settings:
    """The settings that a file of these prompts gives to a tool of their name."""
    (folder / "prompts.toml").write_text(as_toml(prompts), encoding="utf-8")
    return load_settings("small", [str(tools_file(folder, []))], folder / "prompts.toml")


# Refused before the run


def test_a_tool_that_writes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Lend may change the world.*Effect\.PURE"):
        lessons(settings_of(tmp_path, effect="WRITE"))


def test_a_check_that_needs_a_tool_which_is_not_there_is_refused(tmp_path: Path) -> None:
    asks = settings_of(tmp_path, toml='[tools.Lend]\nchecks = ["second_source"]\nsecond_source = "Serch"\n')
    with pytest.raises(BadInput, match="another of the run's tools as second_source, not 'Serch'"):
        lessons(asks)


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ("He got 2 crowns.", "holds no call such as .Lend.sum=..., years=..., kind=..."),
        ("He got [Borrow(sum=100)] 2 crowns.", 'calls "Borrow"'),
        ('He got [Lend(sum=100, years="2", kind="simple")] 2 crowns.', 'argument "years"'),
        ('He got [Lend(sum=100, years=2, kind="loud")] 2 crowns.', 'argument "kind"'),
        ("He got [Lend(sum=100, years=2)] 2 crowns.", 'missing argument "kind"'),
        ("He got [Lend(100, 2, simple)] 2 crowns.", "key=JSON value"),
        (f"{GOOD[0]} And [Borrow(sum=100)] more.", 'calls "Borrow"'),
        ('He got [Lend(sum=100, years=2, kind="simple") -> 2] 2 crowns.', "holds a result"),
    ],
)
def test_an_example_that_shows_no_good_call_is_refused(example: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=words) as refused:
        lessons(settings_of(tmp_path, [GOOD[0], example]))
    assert "cannot be used" in str(refused.value)


@pytest.mark.parametrize("examples", [[], GOOD[:1]])
def test_a_tool_without_two_examples_is_refused_with_what_to_do(examples: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Give Lend two examples.*@tool\(examples=.*toolwise tools draft"):
        lessons(settings_of(tmp_path, examples))


def test_a_prompt_with_one_example_is_refused(tmp_path: Path) -> None:
    own = f"[prompts.Lend]\ninstruction = 'Lend.'\nexamples = [{quoted(GOOD[0])}]"
    with pytest.raises(BadInput, match="needs two examples or more; it has 1"):
        lessons(settings_of(tmp_path, toml=own))


@pytest.mark.parametrize("wording", ["{inputs}", "{0}", "{input.x}", "{", "{result}"])
def test_a_wording_that_would_fail_while_scoring_is_refused(wording: str, tmp_path: Path) -> None:
    prompt = replace(prompt_of(lessons(settings_of(tmp_path)).registry["Lend"], ()), call_wording=wording)
    with pytest.raises(BadInput, match="call_wording of Lend"):
        lessons(with_prompts(tmp_path, prompt))


# The prompt


def test_the_package_has_prompts_of_its_own_for_its_tools() -> None:
    taught = lessons(load_settings("small"))
    assert taught.prompts == {name: PROMPTS[name] for name in ("Calculator", "Calendar")}


def test_a_tool_of_a_file_is_no_tool_of_the_package_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(FILE.format(effect="PURE", examples=repr(GOOD)).replace("Lend", "Calculator"), encoding="utf-8")
    path.write_text(path.read_text().replace("[Lend", "[Calculator"), encoding="utf-8")
    assert lessons(load_settings("small", [str(path)])).prompts["Calculator"] != PROMPTS["Calculator"]


def test_a_drafted_prompt_says_what_the_tool_is_and_how_a_call_is_written(tmp_path: Path) -> None:
    prompt = lessons(settings_of(tmp_path)).prompts["Lend"]
    assert "Lend: What a loan costs." in prompt.instruction
    assert "[Lend(sum=..., years=..., kind=...)]" in prompt.instruction
    assert prompt.examples == tuple(GOOD)
    assert "Input:\nHe lent 100 crowns for 2 years and got 2 crowns." in prompt.head()


def test_a_prompt_of_the_settings_is_taken_in_place_of_any_other(tmp_path: Path) -> None:
    own = f"[prompts.Lend]\ninstruction = 'Lend.'\nexamples = [{', '.join(map(quoted, GOOD))}]"
    assert lessons(settings_of(tmp_path, ["no example"], toml=own)).prompts["Lend"].instruction == "Lend."


# Drafted, edited, given back


def test_a_drafted_prompt_is_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    wanted = lessons(settings_of(tmp_path)).prompts["Lend"]
    assert lessons(with_prompts(tmp_path, wanted)).prompts["Lend"] == wanted


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=4, max_size=4))
def test_whatever_a_prompt_says_is_said_again_by_its_table(texts: list[str]) -> None:
    prompt = Prompt("a.tool", texts[0], (texts[1], texts[2]), texts[3], "\n\t\"\\'''\x7f\u202e😀")
    table = tomllib.loads(as_toml([prompt]))["prompts"]["a.tool"]
    assert table == {
        "instruction": prompt.instruction,
        "examples": list(prompt.examples),
        "call_wording": prompt.call_wording,
        "result_wording": prompt.result_wording,
    }


def test_nothing_in_a_written_prompt_steers_a_terminal() -> None:
    written = as_toml([Prompt("t", "a\x1b[31m\u202eb\u200b", ("\x07", "\r"), "{input}", "{result}")])
    assert all(character.isprintable() or character == "\n" for character in written)


def test_what_cannot_be_stored_is_no_string_of_toml() -> None:
    with pytest.raises(BadInput, match="surrogate"):
        quoted("\ud800")


def test_a_tool_without_examples_gets_lines_to_edit_and_is_refused_until_they_are(tmp_path: Path) -> None:
    (bare,) = load_tools(tools_file(tmp_path, []))
    begun = sketch(bare)
    assert all(example.startswith(TO_EDIT) for example in begun.examples)
    assert '[Lend(sum=2.5, years=3, kind="simple")]' in begun.examples[0]
    assert '[Lend(sum=3.5, years=4, kind="compound")]' in begun.examples[1]
    with pytest.raises(BadInput, match="still the drafted line"):
        lessons(with_prompts(tmp_path, begun))
    with pytest.raises(BadInput, match="still the drafted line"):
        lessons(with_prompts(tmp_path, replace(begun, examples=(GOOD[0], begun.examples[1]))))
    edited = replace(begun, examples=tuple(GOOD))
    assert lessons(with_prompts(tmp_path, edited)).prompts["Lend"] == edited


def test_a_tool_of_which_nothing_is_required_is_shown_with_arguments_all_the_same() -> None:
    parameters = {"type": "object", "properties": {"kind": {"enum": ["dog", "cat"]}, "limit": {"type": "integer"}}}
    begun = sketch(Tool("pets", "", parameters, Effect.READ, lambda **_: None))
    assert '"[pets(kind=..., limit=...)]"' in begun.instruction
    assert '[pets(kind="dog", limit=' in begun.examples[0]


def test_one_example_is_kept_and_one_line_is_left_to_write() -> None:
    one = replace(weather, examples=('In Oslo [weather(city="Oslo", days=2)] it rains.',))
    begun = sketch(one)
    assert begun.examples[0] == one.examples[0]
    assert begun.examples[1].startswith(TO_EDIT)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "a x"),
        ({"type": "string", "format": "date"}, "2024-03-17"),
        ({"type": "string", "enum": ["b", "c"]}, "b"),
        ({"const": 7}, 7),
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "number", "maximum": 1}, 1.0),
        ({"type": "boolean"}, True),
        ({"type": "array", "items": {"type": "integer"}}, [3]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3),
        ({"$ref": "#/$defs/Sum"}, {"of": 3}),
        ({}, "a x"),
    ],
)
def test_a_line_to_edit_shows_a_value_of_the_argument(schema: dict, value: object) -> None:
    parts = {"Sum": {"type": "object", "properties": {"of": {"type": "integer"}}, "required": ["of"]}}
    parameters = {
        "type": "object",
        "properties": {"x": schema, "y": {"type": "integer"}},
        "required": ["x", "y"],
        "$defs": parts,
    }
    shown = sketch(Tool("t", "", parameters, Effect.PURE, lambda **_: None)).examples[0]
    assert write_body(Tool("t", "", parameters, Effect.PURE, print), {"x": value, "y": 3}) in shown


# The fingerprint


def test_other_examples_another_definition_or_another_file_is_another_run(tmp_path: Path) -> None:
    first = lessons(settings_of(tmp_path)).described
    assert lessons(settings_of(tmp_path)).described == first
    more = [*GOOD, GOOD[0].replace("100", "300")]
    assert lessons(settings_of(tmp_path, more)).described["prompts"] != first["prompts"]
    assert lessons(settings_of(tmp_path, effect="READ")).described["tools"] != first["tools"]
    path = tools_file(tmp_path)
    path.write_text(path.read_text().replace("/ 100", "/ 1000"), encoding="utf-8")
    changed = lessons(load_settings("small", [str(path)])).described
    assert (changed["tools"], changed["prompts"]) == (first["tools"], first["prompts"])
    assert changed["behind"] != first["behind"]
