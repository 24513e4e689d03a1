"""`toolwise index`: build, search, info, as a person and as a script use them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from command_line import Toolwise, refused

sys.path.append(str(Path(__file__).parent / "tools"))
from small_texts import TEXTS, write_lines


@pytest.fixture
def built(tmp_path: Path, toolwise: Toolwise) -> Path:
    write_lines(tmp_path / "texts.jsonl")
    done = toolwise("index", "build", tmp_path / "texts.jsonl", "--out", tmp_path / "out")
    assert done.code == 0, done
    assert done.out.startswith(f"9 passages of {len(TEXTS)} documents")
    assert f"toolwise index search {tmp_path / 'out'}" in done.out
    return tmp_path / "out"


def test_a_search_shows_titles_scores_addresses_and_snippets(built: Path, toolwise: Toolwise) -> None:
    done = toolwise("index", "search", built, "fjord", "--top-k", 1)
    score, rest = done.out.split("  ", 1)
    assert float(score) > 0
    assert rest.splitlines() == [
        "Oslo  2023-05-17  https://example.org/oslo",
        "      Oslo is the capital of Norway. It lies at the head of a fjord, between wooded hills.",
    ]


def test_pages_follow_each_other_and_json_is_for_scripts(built: Path, toolwise: Toolwise) -> None:
    pages = [
        json.loads(toolwise("index", "search", built, "capital", "--top-k", 2, "--page", page, "--json").out)
        for page in (1, 2)
    ]
    assert [len(page) for page in pages] == [2, 1]
    assert {hit["id"] for page in pages for hit in page} == {"oslo#0", "bergen#0", "vienna#0"}
    assert set(pages[0][0]) == {"id", "title", "text", "score", "date", "url"}


def test_nothing_found_is_said_and_is_an_exit_code(built: Path, toolwise: Toolwise) -> None:
    done = toolwise("index", "search", built, "unheardof")
    assert (done.code, done.out) == (1, "Nothing was found.\n")
    done = toolwise("index", "search", built, "sea", "--page", 9)
    assert (done.code, done.out) == (1, "There is no page 9.\n")
    done = toolwise("index", "search", built, "unheardof", "--json")
    assert (done.code, done.out) == (1, "[]\n")


def test_info_says_what_it_holds_and_what_it_was_made_of(built: Path, toolwise: Toolwise) -> None:
    told = json.loads(toolwise("index", "info", built, "--json").out)
    assert (told["documents"], told["passages"], told["settings"]["language"]) == (9, 9, "en")
    assert told["sources"][0]["name"] == "texts.jsonl"
    shown = toolwise("index", "info", built).out
    assert told["identity"] in shown
    assert "texts.jsonl" in shown


def test_what_stands_in_a_text_cannot_command_the_terminal(tmp_path: Path, toolwise: Toolwise) -> None:
    write_lines(tmp_path / "t.jsonl", [{"id": "1", "title": "\x1b]0;owned\x07", "text": "a\x1b[2J sly text"}])
    assert toolwise("index", "build", tmp_path / "t.jsonl", "--out", tmp_path / "out").code == 0
    for done in (
        toolwise("index", "search", tmp_path / "out", "sly"),
        toolwise("index", "search", tmp_path / "out", "sly", "--json"),
    ):
        assert "sly" in done.out
        assert "\x1b" not in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "words", "exit_code"),
    [
        (("search", "{}/nowhere", "sea"), "bad_input", "holds no index; make one with", 2),
        (("search", "wiki-vital", "sea"), "model_unavailable", "toolwise pull wiki-vital", 2),
        (("search", "{}/out", "x" * 5_000), "limit", "at most 1000 characters", 1),
        (("search", "{}/out", "sea", "--top-k", 10**9), "limit", "first 10000 passages", 1),
        (("search", "{}/out", "sea", "--page", 10**9), "limit", "first 10000 passages", 1),
        (("search", "{}/out", "?!"), "bad_input", "no word in the query", 2),
        (("search", "{}/out", "sea", "--page", 0), "bad_input", "page", 2),
        (("build", "{}/nowhere", "--out", "{}/new"), "bad_input", "no file or folder", 2),
        (("build", "{}/texts.jsonl", "--out", "{}/out", "--words", 9), "settings_differ", "settings.words", 2),
        (("build", "{}/texts.jsonl", "--out", "{}/new", "--language", "xx"), "bad_input", "no stemmer", 2),
        (("build", "hub:", "--out", "{}/new"), "bad_input", "names no data set", 2),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: tuple[object, ...],
    code: str,
    words: str,
    exit_code: int,
    built: Path,
    toolwise: Toolwise,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOLWISE_CACHE", str(built.parent / "cache"))
    given = (one.format(built.parent) if isinstance(one, str) else one for one in arguments)
    refused(toolwise("index", *given), code, words, exit_code)


def test_a_damaged_index_is_refused_and_the_same_build_mends_it(built: Path, toolwise: Toolwise) -> None:
    (built / "matrix" / "terms.bin").write_bytes(b"damaged")
    refused(toolwise("index", "search", built, "sea"), "corrupt", "terms.bin.*index build again", 3)
    assert toolwise("index", "build", built.parent / "texts.jsonl", "--out", built).code == 0
    assert toolwise("index", "search", built, "sea").code == 0
