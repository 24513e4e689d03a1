"""`toolwise tools` as somebody meets it who brings a tool: what there is, a prompt to begin with, a dry run."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import Toolwise, invoke, refused
from tiny_models import model_folder
from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.toml import read_toml
from toolwise.models import toolbox as makers

INTEREST = '''
from toolwise import Effect, tool

@tool(
    effect=Effect.PURE,
    bounded=True,
    examples=[
        "He lent 700 crowns at 5% for 2 years and got [Interest(principal=700, rate=5, years=2)] 70 crowns.",
        "For 4 years she left 250 dollars in the bank at 2%, which made [Interest(principal=250, rate=2, years=4)] 20.",
    ],
)
def Interest(principal: float, rate: float, years: float = 1) -> str:
    """Simple interest on a loan."""
    return f"{principal * rate / 100 * years:.10g}"
'''
BARE = """
from toolwise import Effect, tool

@tool(effect=Effect.PURE)
def Rent(square_metres: float, months: int) -> float:
    ...
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(INTEREST, encoding="utf-8")
    (tmp_path / "bare.py").write_text(BARE, encoding="utf-8")
    return tmp_path / "mine.py"


# list


def test_the_tools_of_the_package_are_listed_with_what_they_take() -> None:
    shown = invoke("tools", "list")
    assert "expression: string" in shown
    assert "Tell today's date." in shown


def test_own_tools_are_listed_with_their_arguments_and_defaults(mine: Path) -> None:
    shown = invoke("tools", "list", f"{mine},Calendar")
    assert "principal: number, rate: number, years: number = 1" in shown
    assert "Simple interest on a loan." in shown
    assert "file " in shown
    assert "Calculator" not in shown


def test_arguments_that_take_anything_or_nothing_are_listed_as_well(tmp_path: Path) -> None:
    body = {"type": "object", "properties": {"any": True, "name": {"type": ["string", "null"]}}}
    operation = {
        "operationId": "put",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
    }
    servers = [{"url": "https://api.example.org"}]
    description = {"openapi": "3.1.0", "servers": servers, "paths": {"/things": {"post": operation}}}
    (tmp_path / "api.json").write_text(jsonio.dumps(description), encoding="utf-8")
    shown = invoke("tools", "list", tmp_path / "api.json")
    assert "any: anything (optional)" in shown
    assert "name: string or null (optional)" in shown


def test_the_list_for_scripts_holds_whole_definitions(mine: Path) -> None:
    (row,) = jsonio.loads(invoke("tools", "list", mine, "--json"))
    assert (row["name"], row["effect"], len(row["examples"])) == ("Interest", "pure", 2)
    assert set(row["parameters"]["properties"]) == {"principal", "rate", "years"}


def test_a_tool_that_cannot_be_made_here_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, toolwise: Toolwise
) -> None:
    def search(model: object, *, index: str = "wiki") -> object:
        raise BadInput(f"There is no index {index!r}; make one with: toolwise index build.")

    monkeypatch.setattr(makers, "_MAKERS", {**makers._MAKERS, "Search": search})
    shown = invoke("tools", "list", "--option", "Search.index=mine")
    assert "Search cannot be made here: There is no index 'mine'; make one with: toolwise index build." in shown
    assert "Options of Search: index=wiki" in shown
    assert "Calculator" in shown
    rows = jsonio.loads(invoke("tools", "list", "--json"))
    assert "toolwise index build" in {row["name"]: row.get("missing", "") for row in rows}["Search"]
    refused(toolwise("tools", "list", "Search"), "bad_input", "toolwise index build")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["Calculater"], "did you mean Calculator"),
        (["nothing.py"], "no Python file"),
        ([","], "at least one tool"),
        (["Calculator", "--option", "digits"], r"Tool\.name=value"),
        (["Calculator", "--option", "Calculator.digits=2"], "no option"),
        (["Calculator", "--option", "Search.index=2"], "not among the tools"),
        (["--option", "Weather.city=Oslo"], "no tool of the package"),
    ],
)
def test_what_cannot_be_listed_is_refused(args: list[str], words: str, toolwise: Toolwise) -> None:
    refused(toolwise("tools", "list", *args), "bad_input", words)


# draft


def test_a_drafted_prompt_is_settings_that_can_be_edited_and_given_back(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "prompts.toml"
    assert "ready for --settings" in invoke("tools", "draft", mine, "--out", out)
    assert out.read_text() == invoke("tools", "draft", mine)
    assert read_toml(out)["prompts"]["Interest"]["examples"][0].startswith("He lent 700")


def test_a_tool_without_examples_gets_lines_to_be_written(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "prompts.toml"
    shown = invoke("tools", "draft", f"{tmp_path / 'bare.py'},{mine}", "--out", out)
    assert "write your own examples for Rent first" in shown
    prompts = read_toml(out)["prompts"]
    assert set(prompts) == {"Rent", "Interest"}
    assert "EDIT THIS" in prompts["Rent"]["examples"][0]


def test_a_prompt_that_may_have_been_edited_is_not_written_over(mine: Path, tmp_path: Path, toolwise: Toolwise) -> None:
    out = tmp_path / "prompts.toml"
    out.write_text("# mine")
    refused(toolwise("tools", "draft", mine, "--out", out), "bad_input", "exists already")
    assert out.read_text() == "# mine"


def test_a_tool_with_bad_examples_is_refused_by_name(mine: Path, tmp_path: Path, toolwise: Toolwise) -> None:
    (tmp_path / "bad.py").write_text(INTEREST.replace("rate=5", "rate=five"), encoding="utf-8")
    refused(toolwise("tools", "draft", tmp_path / "bad.py"), "bad_input", "of Interest cannot be used")


# try

SETTINGS = """
call_tokens = 6
[tools.Interest]
k = 2
m = 1
tau_s = 0
tau_f = 1e-6
[tools.Calendar]
k = 1
tau_s = 0
proposers = ["lm_positions"]
"""
TEXTS = ["They borrowed 900 crowns at 5% for 2 years. Interest came to 90 crowns.", "Nothing was borrowed."]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture
def trying(mine: Path, tmp_path: Path, tiny: Path) -> list[object]:
    """A dry run over two texts."""
    corpus, settings = tmp_path / "texts.jsonl", tmp_path / "own.toml"
    rows = [{"id": f"d{i}", "text": text, "date": "2020-01-02"} for i, text in enumerate(TEXTS)]
    corpus.write_text("".join(jsonio.dumps(row) + "\n" for row in rows), encoding="utf-8")
    settings.write_text(SETTINGS)
    tools = f"{mine},Calendar"
    return ["tools", "try", corpus, "--tools", tools, "--settings", settings, "--model", tiny, "--preset", "paper"]


def test_a_dry_run_shows_texts_proposals_and_time_and_writes_nothing(trying: list[object], tmp_path: Path) -> None:
    before = {file for file in tmp_path.rglob("*") if "__pycache__" not in file.parts}
    shown = " ".join(invoke(*trying).split())
    assert "d0, 2020-01-02" in shown
    assert "[Calendar() ->" in shown
    assert "The corpus has about 2" in shown
    assert {file for file in tmp_path.rglob("*") if "__pycache__" not in file.parts} == before


def test_a_dry_run_for_scripts_is_strict_json(trying: list[object]) -> None:
    found = jsonio.loads(invoke(*trying, "--documents", 1, "--json").strip())
    assert [one["passage"]["document"] for one in found["passages"]] == ["d0"]
    assert [tool["report"]["name"] for tool in found["tools"]] == ["Interest", "Calendar"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--tools", "Interst"], "bad_input", "no tool"),
        (["--documents", 0], "bad_input", "--documents"),
        (["--passages", 0], "bad_input", "--passages"),
        (["--model", "smolm2-135m"], "model_unavailable", "did you mean smollm2-135m"),
        (["--preset", "large"], "bad_input", "use one of paper, small"),
        (["--option", "Calendar.zone=Oslo"], "bad_input", "takes none"),
    ],
)
def test_a_dry_run_that_cannot_be_meant_is_refused(
    options: list[object], code: str, words: str, trying: list[object], toolwise: Toolwise
) -> None:
    refused(toolwise(*trying, *options), code, words)


def test_a_dry_run_with_an_unedited_prompt_is_refused(trying: list[object], tmp_path: Path, toolwise: Toolwise) -> None:
    out = tmp_path / "prompts.toml"
    invoke("tools", "draft", tmp_path / "bare.py", "--out", out)
    options = ("--tools", tmp_path / "bare.py", "--settings", out)
    refused(toolwise(*trying, *options), "bad_input", "still the drafted line")
