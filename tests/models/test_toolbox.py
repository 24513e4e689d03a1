"""Tools are named by what makes them, and whatever is wrong with a name, a file or an option is said at once."""

from pathlib import Path

import pytest

from recording_api import recording_api
from toolwise.core.errors import BadInput, ModelUnavailable
from toolwise.models import toolbox as module
from toolwise.models.toolbox import names_of, package_tools, parse_options, toolbox
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.index import build_index

FILE = """
from toolwise import Effect, tool

@tool(effect=Effect.PURE)
def Double(number: float) -> float:
    \"\"\"Twice a number.\"\"\"
    return 2 * number
"""


def file(folder: Path, name: str = "mine.py", content: str = FILE) -> str:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return str(path)


def refused(words: str, *wanted: str, **options: dict) -> None:
    with pytest.raises(BadInput, match=words):
        toolbox(wanted, options)


# Names and files


def test_names_are_told_without_opening_what_a_tool_of_the_package_needs() -> None:
    assert names_of(["Search", "Calendar"], {"Search": {"index": "nowhere"}}) == ("Search", "Calendar")
    with pytest.raises(BadInput, match="no option"):
        names_of(["Search"], {"Search": {"indx": "nowhere"}})
    with pytest.raises(BadInput, match=r"Translate\.sure is a number, such as 0\.5"):
        names_of(["Translate"], {"Translate": {"sure": "very"}})
    with pytest.raises(BadInput, match="not among the tools"):
        names_of(["Calendar"], {"Search": {"index": "nowhere"}})


def test_tools_of_the_package_and_of_a_file_stand_in_the_order_in_which_they_were_named(tmp_path: Path) -> None:
    mine = file(tmp_path)
    box = toolbox(["Calendar", mine, "Calculator"])
    assert box.registry.names == ("Calendar", "Double", "Calculator")
    assert box.registry["Calendar"] is CALENDAR
    assert box.registry["Calculator"] is CALCULATOR
    assert box.registry["Double"].run(number=4) == 8


def test_the_operations_of_a_description_are_tools_and_its_options_are_those_of_the_operator(tmp_path: Path) -> None:
    text = "{openapi: 3.1.0, paths: {/a: {get: {operationId: look}, post: {operationId: add}}}}"
    api = file(tmp_path, "api.yaml", text)
    options = parse_options([f"{api}.base_url=http://127.0.0.1:1", f"{api}.without=add", f"{api}.public=true"])
    box = toolbox([api, "Calculator"], options)
    assert box.registry.names == ("look", "Calculator")
    assert box.registry["look"].public
    assert box.identity["look"].startswith("file ")
    elsewhere = parse_options([f"{api}.base_url=http://127.0.0.1:2", f"{api}.without=add"])
    assert toolbox([api], elsewhere).identity["look"] != box.identity["look"]
    refused("give base_url", api)
    refused('no option "limits"; it takes base_url, operations, without, auth', api, **{api: {"limits": 1}})
    refused("true or false for own_network", api, **{api: {"base_url": "http://a.example", "own_network": "no"}})
    refused("cannot be read", str(tmp_path / "none.json"))


def test_a_name_that_is_given_twice_is_one_tool(tmp_path: Path) -> None:
    mine = file(tmp_path)
    assert toolbox([mine, "Calculator", mine, "Calculator"]).registry.names == ("Double", "Calculator")


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    refused('no tool "Calculater"; did you mean Calculator', "Calculater")


def test_a_name_near_none_is_refused_with_all_of_them() -> None:
    refused("the package brings Calculator, Calendar", "Weather")


def test_two_files_with_a_tool_of_one_name_are_refused(tmp_path: Path) -> None:
    refused('two tools are named "Double"', file(tmp_path), file(tmp_path, "other.py"))


def test_a_file_may_not_take_the_name_of_a_tool_beside_it(tmp_path: Path) -> None:
    refused(
        'two tools are named "Calculator"', "Calculator", file(tmp_path, content=FILE.replace("Double", "Calculator"))
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError"),
        ("def broken(:", "SyntaxError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("answer = 42", "holds no tool"),
        ("from toolwise import tool\n@tool\ndef f(x): ...", "annotate it with a type"),
    ],
)
def test_a_file_whose_tools_cannot_be_had_is_refused(content: str, words: str, tmp_path: Path) -> None:
    refused(words, file(tmp_path, content=content))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    refused("no Python file", str(tmp_path / "nothing.py"))


# What stands behind a tool


def test_what_stands_behind_a_tool_changes_with_its_file(tmp_path: Path) -> None:
    mine = file(tmp_path)
    before = toolbox([mine, "Calculator"]).identity
    assert set(before) == {"Double"}
    assert toolbox([file(tmp_path, "moved.py")]).identity == before
    file(tmp_path, content=FILE.replace("2 * number", "3 * number"))
    assert toolbox([mine]).identity != before


def index_of(folder: Path, text: str) -> str:
    (folder / "texts.txt").write_text(text)
    build_index([folder / "texts.txt"], folder / "index")
    return str(folder / "index")


def test_search_finds_in_the_index_of_its_option(tmp_path: Path) -> None:
    box = toolbox(["Search"], {"Search": {"index": index_of(tmp_path, "Herring in barrels."), "hits": 1}})
    assert box.registry["Search"].run(query="herring") == "Herring in barrels."
    assert box.identity["Search"].startswith("bm25 ")
    more = toolbox(["Search"], {"Search": {"index": str(tmp_path / "index"), "hits": 3}})
    assert more.identity != box.identity


def test_an_index_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWISE_CACHE", str(tmp_path))
    with pytest.raises(ModelUnavailable, match="run `toolwise pull wiki-vital` first"):
        toolbox(["Search"])
    refused("holds no index; make one with", "Search", Search={"index": str(tmp_path)})
    made = index_of(tmp_path, "Herring.")
    refused('Search.hits is a number, such as 2, and not "many"', "Search", Search={"index": made, "hits": "many"})
    refused('Search.hits is a number, such as 2, and not "True"', "Search", Search={"index": made, "hits": True})
    with pytest.raises(ModelUnavailable, match="no model or folder"):
        toolbox(["Search"], {"Search": {"index": made, "encoder": "nothing of this name"}})


# Options


def test_options_are_read_from_a_command_line() -> None:
    written = ["Search.index=wiki-vital", "Search.hits=2", "Search.boost=1.5", "Search.paging=false", "QA.query=a=b"]
    assert parse_options(written) == {
        "Search": {"index": "wiki-vital", "hits": 2, "boost": 1.5, "paging": False},
        "QA": {"query": "a=b"},
    }
    assert parse_options(["mine.py.key=", "dir/api.v2.yaml.server=http://localhost"]) == {
        "mine.py": {"key": ""},
        "dir/api.v2.yaml": {"server": "http://localhost"},
    }


@pytest.mark.parametrize("name", ["007", "1.10", "2024_01", "1e3", "nan", "true"])
def test_a_name_that_looks_like_a_number_stays_a_name(name: str) -> None:
    assert parse_options([f"Search.index={name}", f"shop.yaml.prefix={name}"]) == {
        "Search": {"index": name},
        "shop.yaml": {"prefix": name},
    }


def test_the_last_word_on_an_option_counts() -> None:
    assert parse_options(["Search.hits=2", "Search.hits=3"]) == {"Search": {"hits": 3}}


@pytest.mark.parametrize("written", ["Search", "Search.index", "index=wiki", ".index=wiki", "Search.=wiki", "=", ""])
def test_an_option_of_no_tool_or_without_a_name_is_refused(written: str) -> None:
    with pytest.raises(BadInput, match=r"Tool\.name=value"):
        parse_options([written])


def test_options_for_a_tool_that_is_not_taken_are_refused() -> None:
    refused('options for "Search", which is not among the tools: Calculator', "Calculator", Search={"index": "x"})


def test_options_that_nobody_takes_are_refused(tmp_path: Path) -> None:
    refused('Calculator has no option "digits"; it takes none', "Calculator", Calculator={"digits": 3})
    mine = file(tmp_path)
    with pytest.raises(BadInput, match='has no option "key"; it takes none'):
        toolbox([mine], {mine: {"key": 1}})


def test_a_maker_gets_its_options_and_the_model_when_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []

    def maker(model, *, index: str = "wiki", hits: int = 2):
        given.append((model(), index, hits))
        return CALCULATOR, f"index {index}"

    monkeypatch.setattr(module, "_MAKERS", {"Search": maker})
    box = toolbox(["Search"], {"Search": {"hits": 5}}, model=lambda: "a model")  # type: ignore[arg-type,return-value]
    assert given == [("a model", "wiki", 5)]
    assert box.identity == {"Calculator": "index wiki"}
    assert package_tools() == {"Search": {"index": "wiki", "hits": 2}}
    refused('Search has no option "page"; it takes index, hits', "Search", Search={"page": 1})
    refused("asks a language model, and none was given", "Search")


# Question answering


@pytest.fixture
def notes(tmp_path: Path) -> str:
    return index_of(tmp_path, "The mill was built in 1881.")


def test_a_tool_that_asks_the_runs_model_is_made_before_there_is_one(notes: str) -> None:
    box = toolbox(["QA"], {"QA": {"index": notes, "passages": 2}})
    assert list(box.registry) == ["QA"]
    assert "2 passages, the run's model" in box.identity["QA"]
    assert box.identity != toolbox(["QA"], {"QA": {"index": notes}}).identity


def test_a_reader_is_a_network_or_a_server_by_its_name(notes: str, tmp_path: Path) -> None:
    with recording_api() as api:
        server = {"index": notes, "reader": f"{api.url}/v1", "reader_model": "large"}
        box = toolbox(["QA"], {"QA": server})
        assert "upstream" in box.identity["QA"]
        assert box.identity != toolbox(["QA"], {"QA": {**server, "reader_model": "small"}}).identity
    refused("Nothing answers at", "QA", QA=server)
    with pytest.raises(ModelUnavailable, match="no model or folder"):
        toolbox(["QA"], {"QA": {"index": notes, "reader": f"extractive:{tmp_path / 'none'}"}})


def test_what_a_question_needs_and_is_not_there_is_one_line_at_the_start(
    notes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWISE_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ModelUnavailable, match="run `toolwise pull wiki-vital` first"):
        toolbox(["QA"])
    refused('There is no reader "modle"', "QA", QA={"index": notes, "reader": "modle"})
    refused('There is no reader "extractive:"', "QA", QA={"index": notes, "reader": "extractive:"})
    refused("belong to a reader with an address", "QA", QA={"index": notes, "reader_model": "large"})
    refused("QA reads 1 to 10 passages", "QA", QA={"index": notes, "passages": 0})
    refused('QA.passages is a number, such as 3, and not "three"', "QA", QA={"index": notes, "passages": "three"})
