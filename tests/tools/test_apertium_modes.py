"""Which pairs are installed, what a mode file may run, and which way leads to English; no engine is needed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwise.core.errors import ModelUnavailable
from toolwise.tools.translators import Apertium
from toolwise.tools.translators.modes import PACKAGES, Unusable, installed, read_mode, routes

GOOD = "lt-proc '{0}/pair/a.bin' | apertium-tagger -g $2 '{0}/pair/b.prob' | lt-proc $1 -b '{0}/pair/a.bin'"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An Apertium with two programs and two data files, and no mode yet."""
    for name in ("bin", "share/modes", "share/pair"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("lt-proc", "apertium-tagger"):
        (tmp_path / "bin" / name).write_text("#!/bin/false")
        (tmp_path / "bin" / name).chmod(0o755)
    for name in ("a.bin", "b.prob"):
        (tmp_path / "share/pair" / name).write_text("data")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "share"


def mode(folder: Path, name: str, text: str = GOOD) -> Path:
    file = folder / "modes" / f"{name}.mode"
    file.write_text(text.format(folder))
    return file


def test_a_mode_file_becomes_programs_with_their_arguments(folder: Path) -> None:
    read = read_mode(mode(folder, "spa-eng"), folder)
    programs, data = folder.parent / "bin", folder / "pair"
    assert read.name == "spa-eng"
    assert read.programs == (
        (f"{programs}/lt-proc", "-z", f"{data}/a.bin"),
        (f"{programs}/apertium-tagger", "-z", "-g", f"{data}/b.prob"),
        (f"{programs}/lt-proc", "-z", "-n", "-b", f"{data}/a.bin"),
    )
    assert set(read.files) == {programs / "lt-proc", programs / "apertium-tagger", data / "a.bin", data / "b.prob"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no pipeline|not a pipeline"),
        ("lt-proc '{0}/pair/a.bin' |", "not a pipeline"),
        ("| lt-proc '{0}/pair/a.bin'", "not a pipeline"),
        ("lt-proc '{0}/pair/a.bin", "not a pipeline"),
        ("sh -c 'touch /tmp/x'", "not known"),
        ("/bin/lt-proc '{0}/pair/a.bin'", "not known"),
        ("lt-proc '{0}/pair/a.bin' | sed s/a/b/", "not known"),
        ("lt-proc '{0}/pair/a.bin'; touch /tmp/x", "not there"),
        ("lt-proc $(id)", "not there"),
        ("lt-proc '{0}/pair/a.bin' > /tmp/x", "not there"),
        ("lt-proc '{0}/pair/a.bin' && id", "not there"),
        ("lt-proc '{0}/pair/none.bin'", "not there"),
        ("lt-proc /etc/passwd", "not there"),
        ("lt-proc '{0}/pair/../../bin/lt-proc'", "not there"),
        ("lt-proc --output=/tmp/x '{0}/pair/a.bin'", "not there"),
        ("lrx-proc '{0}/pair/a.bin'", "lrx-proc, which is not installed"),
    ],
)
def test_a_mode_that_runs_anything_else_is_left_out(folder: Path, text: str, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        read_mode(mode(folder, "spa-eng", text), folder)


def test_pairs_are_found_by_either_code_and_variants_are_not(folder: Path) -> None:
    names = ("spa-eng", "es-en", "fr-es", "spa-eng_US", "eco-es-fr", "en-eo-bytecode", "xyz-eng", "cat-spa")
    files = {name: mode(folder, name) for name in names}
    assert installed(folder) == {
        ("es", "en"): files["spa-eng"],
        ("fr", "es"): files["fr-es"],
        ("ca", "es"): files["cat-spa"],
    }


def test_what_is_installed_becomes_sources_with_their_ways(folder: Path) -> None:
    for name in ("spa-eng", "fr-es", "eng-spa"):
        mode(folder, name)
    mode(folder, "cat-eng", "sed s/a/b/")
    translator = Apertium(folder=folder)
    assert translator.routes == {"es": ("es", "en"), "fr": ("fr", "es", "en")}
    assert translator.sources == {"es", "fr"}


def test_identity_changes_with_data_programs_modes_and_ways(folder: Path) -> None:
    seen = set()

    def identity(**options: object) -> str:
        return Apertium(folder=folder, **options).identity  # type: ignore[arg-type]

    def new(**options: object) -> bool:
        found = identity(**options)
        assert found == identity(**options)
        return found not in seen and not seen.add(found)  # type: ignore[func-returns-value]

    for name in ("spa-eng", "fr-es"):
        mode(folder, name)
    assert new()
    assert new(sources=["es"])
    (folder / "pair/a.bin").write_text("other")
    assert new()
    mode(folder, "spa-eng", GOOD.replace(" -b", " -d"))
    assert new()
    (folder.parent / "bin/lt-proc").write_text("#!/bin/true")
    assert new()


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        (None, r"^Apertium is not installed, or has no pair; run `apt install apertium apertium-eng-spa`\.$"),
        (["es"], r"from Spanish \(es\); run `apt install apertium apertium-eng-spa`\.$"),
        (["pt", "fr"], r"French \(fr\), Portuguese \(pt\); .* apertium-fr-es apertium-eng-spa apertium-es-pt`\.$"),
        (["de"], r"no way from German \(de\) into English; use a model: ct2:FOLDER or hf:NAME as translator\.$"),
        (["en"], "leave English out"),
    ],
)
def test_what_is_missing_is_one_line_with_what_to_install(folder: Path, sources: list[str] | None, told: str) -> None:
    with pytest.raises(ModelUnavailable, match=told) as raised:
        Apertium(sources, folder=folder)
    assert "\n" not in str(raised.value)


def test_a_mode_that_cannot_run_is_told_with_the_reason(folder: Path) -> None:
    mode(folder, "spa-eng", "lrx-proc '{0}/pair/a.bin'")
    with pytest.raises(ModelUnavailable, match=r"spa-eng\.mode needs lrx-proc, which is not installed"):
        Apertium(["es"], folder=folder)


# Ways


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ("es-en", {"es": "es en"}),
        ("es-en fr-es fr-ca ca-en", {"es": "es en", "ca": "ca en", "fr": "fr es en"}),
        ("ca-en fr-ca", {"ca": "ca en", "fr": "fr ca en"}),
        ("ca-en it-ca it-fr fr-ca eo-en it-eo", {"it": "it ca en", "fr": "fr ca en", "ca": "ca en", "eo": "eo en"}),
        ("es-en ca-es fr-ca br-fr", {"es": "es en", "ca": "ca es en", "fr": "fr ca es en", "br": "br fr ca es en"}),
        ("es-en en-es es-fr en-fr", {"es": "es en"}),
        ("es-fr fr-es", {}),
        ("", {}),
    ],
)
def test_the_shortest_way_is_taken_and_of_equals_the_one_over_spanish(pairs: str, expected: dict[str, str]) -> None:
    given_ = [tuple(pair.split("-")) for pair in pairs.split()]
    found = routes(given_, ("es", "ca"))  # type: ignore[arg-type]
    assert {code: " ".join(way) for code, way in found.items()} == expected
    assert routes(reversed(given_), ("es", "ca")) == found  # type: ignore[arg-type]


CODES = st.sampled_from(["en", "es", "ca", "fr", "it", "pt", "eo"])


@given(st.sets(st.tuples(CODES, CODES)))
def test_no_way_is_longer_than_it_must_be(pairs: set[tuple[str, str]]) -> None:
    found = routes(pairs, ("es", "ca"))
    reached, steps = {"en"}, {"en": 0}
    while more := {a for a, b in pairs if b in reached} - reached:
        steps |= {code: max(steps.values()) + 1 for code in more}
        reached |= more
    assert {code: len(way) - 1 for code, way in found.items()} == {c: n for c, n in steps.items() if c != "en"}
    assert all(set(pairwise(way)) <= pairs for way in found.values())


def test_every_package_that_is_named_leads_to_english() -> None:
    assert {source for source, _ in PACKAGES} == set(routes(PACKAGES, ("es", "ca")))
