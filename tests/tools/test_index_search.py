"""Searching an index: it agrees with BM25 written out in plain Python, pages are the ranking, any query is bounded."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import bm25s
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_texts import SMALL_SHARDS, write_lines

from toolwise.core.errors import BadInput, Corrupt, LimitExceeded, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.tools.index import Index, IndexSettings, build_index
from toolwise.tools.index.words import Words

WORDS = [f"word{n}" for n in range(60)]


def reference(passages: Sequence[Sequence[str]], query: Sequence[str], k1: float, b: float) -> list[tuple[int, float]]:
    """BM25 with Lucene's idf, slowly: (passage, score) of all that share a word with the query, best first."""
    found_in = Counter(term for terms in passages for term in set(terms))
    mean = sum(map(len, passages)) / len(passages)
    wanted = [term for term in dict.fromkeys(query) if found_in[term]]
    wanted = [term for term in wanted if found_in[term] <= len(passages) / 2] or wanted
    scores = []
    for number, terms in enumerate(passages):
        times, score = Counter(terms), 0.0
        for term in wanted:
            idf = math.log(1 + (len(passages) - found_in[term] + 0.5) / (found_in[term] + 0.5))
            score += idf * times[term] / (times[term] + k1 * (1 - b + b * len(terms) / mean))
        if score > 0:
            scores.append((number, score))
    return sorted(scores, key=lambda each: -each[1])


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """300 texts of few words, the first of them very frequent; some are equal, so that scores are too."""
    random_ = random.Random(3)
    weights = [60 / (n + 1) for n in range(60)]
    made = [" ".join(random_.choices(WORDS, weights, k=random_.randint(1, 30))) for _ in range(240)]
    return made + made[:60]


@pytest.fixture(scope="module")
def index(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("index")
    corpus = write_lines(folder / "texts.jsonl", [{"id": str(n), "text": text} for n, text in enumerate(texts)])
    build_index([corpus], folder / "out", limits=replace(LIMITS, shard_passages=64))
    return Index.open(folder / "out", limits=replace(LIMITS, search_depth=1_000))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("small")
    build_index([write_lines(folder / "texts.jsonl")], folder / "out", limits=SMALL_SHARDS)
    return Index.open(folder / "out")


def titles(index: Index, query: str) -> list[str]:
    return [hit.title for hit in index.search(query, 10)]


queries = st.lists(st.sampled_from([*WORDS, "unheard"]), max_size=8).map(" ".join)


@given(queries)
@settings(max_examples=60)
def test_the_index_agrees_with_bm25_in_plain_python(index: Index, texts: list[str], query: str) -> None:
    words = Words("en")
    made = IndexSettings()
    expected = dict(reference([words.terms(text) for text in texts], words.terms(query), made.k1, made.b))
    hits = index.search(query, 1_000)
    assert {int(hit.id[:-2]): hit.score for hit in hits} == pytest.approx(expected, rel=1e-5)
    places = [(-hit.score, int(hit.id[:-2])) for hit in hits]
    assert places == sorted(places)


def test_the_matrix_is_the_one_that_bm25s_makes(index: Index, texts: list[str]) -> None:
    tokens = [Words("en").terms(text) for text in texts]
    theirs = bm25s.BM25(k1=0.9, b=0.4, method="lucene")
    theirs.index(tokens, show_progress=False)
    for term in ("word0", "word7", "word59"):
        ours = index._bm25.get_scores_from_ids([index._vocabulary.number(term)])
        np.testing.assert_allclose(ours, theirs.get_scores([term]), rtol=1e-5)


@given(queries, st.integers(1, 70), st.integers(0, 5))
@settings(max_examples=60)
def test_pages_are_the_ranking_without_gaps_or_repetitions(index: Index, query: str, size: int, skipped: int) -> None:
    whole = index.search(query, 1_000)
    pages, offset = [], skipped
    while page := index.search(query, size, offset=offset):
        assert len(page) == size or offset + len(page) == len(whole)
        pages += page
        offset += size
    assert pages == whole[skipped:]
    assert len({hit.id for hit in whole}) == len(whole)


def test_many_threads_get_the_answers_of_one(index: Index) -> None:
    asked = [f"word{n} word{n * 7 % 60}" for n in range(60)] * 4
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: index.search(query, 20), asked)) == [index.search(q, 20) for q in asked]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("capital of Austria", "Vienna"),
        ("AUSTRIA'S CAPITALS", "Vienna"),
        ("beyonce", "Beyoncé"),
        ("ＢＥＹＯＮＣＥ\u0301", "Beyoncé"),
        ("日本の首都", "東京"),
        ("baking", "Bread"),
        ("the who", "The Who"),
        ("herring\u0000\u0007\u200b\ud800 salt", ""),
        ("?!?! \x1b[31m danube", "Danube"),
    ],
)
def test_case_accents_endings_and_signs_do_not_hide_a_word(small: Index, query: str, first: str) -> None:
    assert titles(small, query)[0] == first


def test_a_query_of_common_words_alone_is_answered(small: Index) -> None:
    """`the` and `is` stand in most passages: they count only where nothing else does."""
    assert set(small.weights("the is")) == {"the", "is"}
    assert set(small.weights("the Danube is")) == {"danub"}
    assert len(titles(small, "the is")) > 5


@pytest.mark.parametrize("query", ["", " \n", "\x00\x01", "…!?", "\U000e0041\u200d", "unheardof", "x" * 500])
def test_a_query_without_a_known_word_finds_nothing(small: Index, query: str) -> None:
    assert small.search(query, 5) == []
    assert small.weights(query) == {}


@pytest.mark.parametrize("query", ["a" * 1_000_000, "sea " * 10_000, "\u0301" * 1_001])
def test_a_query_beyond_bounds_is_refused(small: Index, query: str) -> None:
    with pytest.raises(LimitExceeded, match="at most 1000 characters"):
        small.search(query, 5)


@pytest.mark.parametrize(("top_k", "offset"), [(10**9, 0), (5, 10**9), (10_001, 0), (5_001, 5_000), (10**300, 10**300)])
def test_more_than_can_be_seen_is_refused(small: Index, top_k: int, offset: int) -> None:
    with pytest.raises(LimitExceeded, match="first 10000 passages"):
        small.search("sea", top_k, offset=offset)


def test_less_than_nothing_is_refused_and_nothing_is_nothing(small: Index) -> None:
    for top_k, offset in ((-1, 0), (1, -1)):
        with pytest.raises(BadInput):
            small.search("sea", top_k, offset=offset)
    assert small.search("sea", 0) == small.search("sea", 5, offset=9_000) == []


@given(st.text(max_size=200))
@settings(max_examples=100)
def test_any_text_is_a_query(small: Index, query: str) -> None:
    try:
        hits = small.search(query, 5)
    except ToolwiseError:
        return
    assert len(hits) <= 5


def test_the_identity_changes_with_the_texts_and_with_the_settings(tmp_path: Path) -> None:
    seen = set()
    for number, (text, b) in enumerate([("one", 0.4), ("two", 0.4), ("one", 0.5)]):
        corpus = write_lines(tmp_path / "texts.jsonl", [{"id": "1", "text": text}])
        build_index([corpus], tmp_path / str(number), IndexSettings(b=b))
        seen.add(Index.open(tmp_path / str(number)).identity)
    assert len(seen) == 3
    write_lines(tmp_path / "texts.jsonl", [{"id": "1", "text": "one"}])
    build_index([tmp_path / "texts.jsonl"], tmp_path / "again")
    assert Index.open(tmp_path / "again").identity in seen


@pytest.mark.parametrize(
    ("language", "text", "query"),
    [
        ("es", "Las canciones del niño", "cancion ninos"),
        ("fr", "Les chevaux étaient blancs", "cheval blanche"),
        ("de", "Die Häuser der Stadt", "haus städte"),
        ("none", "Nordlichter über Tromsø", "tromsø"),
    ],
)
def test_another_language_has_its_own_endings(language: str, text: str, query: str, tmp_path: Path) -> None:
    build_index(
        [write_lines(tmp_path / "t.jsonl", [{"id": "1", "text": text}])], tmp_path / "o", IndexSettings(language)
    )
    assert Index.open(tmp_path / "o").search(query, 1)


def test_a_word_too_long_to_be_searched_for_fills_no_vocabulary(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "t.jsonl", [{"id": "1", "text": "short " + "x" * 65 + " " + "y" * 64}])
    assert build_index([corpus], tmp_path / "o").vocabulary == 2


def test_an_index_of_many_shards_holds_no_file_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "texts.jsonl", [{"id": str(n), "text": f"herring number {n}"} for n in range(60)])
    build_index([tmp_path / "texts.jsonl"], tmp_path / "out", limits=replace(LIMITS, shard_passages=1))
    monkeypatch.chdir(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    index = Index.open("out")
    assert len(index.manifest.shards) == 60
    monkeypatch.chdir("/")
    assert [hit.text for hit in index.search("herring 42", 1)] == ["herring number 42"]
    assert len(index.search("herring", 60)) == 60
    assert len(os.listdir("/proc/self/fd")) - before < 20
    (tmp_path / "out" / "passages" / "00042.jsonl").unlink()
    with pytest.raises(Corrupt, match="Passage 42"):
        index.passage(42)
