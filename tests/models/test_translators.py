"""Neural translators, on models that were taught three sentences here: with transformers, and with CTranslate2."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tiny_translators import PAIRS, many_languages, one_direction
from toolwise.core.clock import SystemClock
from toolwise.core.errors import BadInput, LimitExceeded, ModelUnavailable, ToolFailed, ToolUnavailable
from toolwise.core.limits import LIMITS
from toolwise.models.translator import load_translator
from toolwise.tools.language import Guess
from toolwise.tools.translate import make_translate
from toolwise.tools.translators import CTranslate2, Translator, problems, translator_named
from toolwise.tools.translators.languages import ENGLISH, LANGUAGES
from toolwise.tools.translators.neural import language_marks, languages_read, sentence_by_sentence

TEXTS = list(PAIRS)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`hf` and `ct2`, each with the models `nllb` and `opus-mt-es-en`."""
    from ctranslate2.converters import TransformersConverter

    root = tmp_path_factory.mktemp("translators")
    many_languages(root / "hf/nllb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Marian's tokenizer recommends another package
        one_direction(root / "hf/opus-mt-es-en")
        for name, files in (("nllb", ["tokenizer.json"]), ("opus-mt-es-en", ["source.spm", "target.spm"])):
            TransformersConverter(str(root / "hf" / name), copy_files=files).convert(str(root / "ct2" / name))
    return root


def made(folders: Path, engine: str, name: str, **options: object) -> Translator:
    folder = folders / engine / name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if engine == "hf":
            return load_translator(str(folder), **options)  # type: ignore[arg-type]
        return CTranslate2(folder, threads=1, **options)  # type: ignore[arg-type]


@pytest.fixture(params=["hf nllb", "hf opus-mt-es-en", "ct2 nllb", "ct2 opus-mt-es-en"])
def make(request: pytest.FixtureRequest, folders: Path) -> Callable[..., Translator]:
    """Makes each kind of translator, with options."""
    engine, name = request.param.split()
    return lambda **options: made(folders, engine, name, **options)


def test_what_was_taught_is_translated(make: Callable[..., Translator]) -> None:
    assert make().translate(TEXTS, "es") == list(PAIRS.values())


def test_each_keeps_the_protocol(make: Callable[..., Translator]) -> None:
    assert problems(make(), "es", TEXTS) == []


def test_the_tool_is_made_with_any_of_them(make: Callable[..., Translator]) -> None:
    class Spanish:
        identity = "spanish"

        def __call__(self, text: str, /) -> Guess:
            return Guess("es", 1.0)

    assert make_translate(make(), detect=Spanish()).run(text="el gato duerme") == "the cat sleeps"


def test_a_model_of_many_languages_reads_those_that_it_has_a_mark_for(folders: Path) -> None:
    for engine in ("hf", "ct2"):
        assert made(folders, engine, "nllb").sources == {"es", "fr"}
        assert made(folders, engine, "nllb", sources=["es"]).sources == {"es", "fr"}
        with pytest.raises(ModelUnavailable, match=r"does not translate from German \(de\)"):
            made(folders, engine, "nllb", sources=["es", "de"])


def test_a_model_of_one_direction_reads_what_its_name_says_or_what_it_is_said_to(folders: Path, tmp_path: Path) -> None:
    for engine in ("hf", "ct2"):
        assert made(folders, engine, "opus-mt-es-en").sources == {"es"}
        with pytest.raises(ModelUnavailable, match=r"from French \(fr\)"):
            made(folders, engine, "opus-mt-es-en", sources=["fr"])
        shutil.copytree(folders / engine / "opus-mt-es-en", tmp_path / engine / "mine")
        with pytest.raises(BadInput, match="does not say what it translates from"):
            made(tmp_path, engine, "mine")
        assert made(tmp_path, engine, "mine", sources=["es"]).translate(TEXTS[:1], "es") == ["hello world"]


def test_a_language_that_the_model_does_not_read_is_refused(make: Callable[..., Translator]) -> None:
    with pytest.raises(ToolFailed, match=r"does not translate from German \(de\)"):
        make().translate(["Hallo Welt"], "de")


def test_sentences_and_paragraphs_are_translated_one_by_one(make: Callable[..., Translator]) -> None:
    text = "hola mundo\n\nel gato duerme\n la casa roja\n"
    assert make().translate([text], "es") == ["hello world\n\nthe cat sleeps\n the red house\n"]


@pytest.mark.parametrize("mark", ["</s>", "eng_Latn", "<pad>", "<s>"])
@pytest.mark.parametrize("engine", ["hf", "ct2"])
def test_a_special_token_that_a_text_spells_out_is_a_word_like_any_other(folders: Path, engine: str, mark: str) -> None:
    """As a token, an end in the middle would hide from the model what stands behind it."""
    translator = made(folders, engine, "nllb")
    unknown = translator.translate(["la <word> roja"], "es")
    assert translator.translate([f"la {mark} roja"], "es") == unknown


@pytest.mark.parametrize("text", ["hola \ud800", "hola\0mundo", "日本", "hola\uffff", "\u202ehola"])
def test_any_text_is_answered_or_refused(make: Callable[..., Translator], text: str) -> None:
    try:
        (answer,) = make().translate([text], "es")
    except ToolFailed:
        return
    assert isinstance(answer, str)


def test_bounds_are_kept(make: Callable[..., Translator]) -> None:
    with pytest.raises(LimitExceeded, match="characters"):
        make().translate(["a" * (LIMITS.translate_chars + 1)], "es")
    with pytest.raises(LimitExceeded, match="sentence"):
        make().translate(["hola " * 200], "es")
    with pytest.raises(LimitExceeded, match="more than 1 tokens"):
        make(limits=replace(LIMITS, translated_tokens=1)).translate(["hola mundo"], "es")


def test_a_translation_that_comes_to_no_end_is_none(make: Callable[..., Translator]) -> None:
    """Three tokens take the text in; the translation has as many and no room for its end."""
    with pytest.raises((ToolFailed, LimitExceeded)):
        make(limits=replace(LIMITS, translated_tokens=2)).translate(["el gato duerme"], "es")


def test_a_translation_that_takes_too_long_is_ended(folders: Path) -> None:
    class Late(SystemClock):
        """An hour passes with every look at it."""

        looks = 0

        def monotonic(self) -> float:
            self.looks += 1
            return 3600.0 * self.looks

    late = CTranslate2(folders / "ct2/nllb", threads=1, clock=Late())
    with pytest.raises(ToolUnavailable, match="too long"):
        late.translate(["hola mundo"], "es")
    slow = load_translator(str(folders / "hf/nllb"), limits=replace(LIMITS, translate_seconds=0.0))
    with pytest.raises((ToolFailed, ToolUnavailable)):
        slow.translate(["hola mundo"], "es")


def test_threads_get_their_own_answers(make: Callable[..., Translator]) -> None:
    translator = make()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda text: translator.translate([text], "es")[0], TEXTS * 10))
    assert answers == list(PAIRS.values()) * 10


def test_identity_is_that_of_the_files(folders: Path, tmp_path: Path) -> None:
    for engine, weights in (("hf", "model.safetensors"), ("ct2", "model.bin")):
        shutil.copytree(folders / engine / "nllb", tmp_path / engine / "other-name")
        same = made(tmp_path, engine, "other-name").identity
        assert same == made(folders, engine, "nllb").identity
        data = bytearray((tmp_path / engine / "other-name" / weights).read_bytes())
        data[-1] ^= 1
        (tmp_path / engine / "other-name" / weights).write_bytes(data)
        assert made(tmp_path, engine, "other-name").identity != same


# What is missing


def test_a_folder_without_a_model_is_refused_when_the_translator_is_made(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"no model of CTranslate2: it has no model\.bin"):
        translator_named(f"ct2:{tmp_path}")
    with pytest.raises(ModelUnavailable, match=r"no config\.json"):
        load_translator(str(tmp_path))


def test_a_folder_without_a_tokenizer_says_what_to_copy(folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "ct2/nllb", tmp_path / "nllb")
    (tmp_path / "nllb/tokenizer.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="Cannot read the tokenizer"):
        CTranslate2(tmp_path / "nllb")
    (tmp_path / "nllb/tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match=r"has no tokenizer: copy tokenizer\.json"):
        CTranslate2(tmp_path / "nllb")


def test_broken_weights_are_one_line(folders: Path, tmp_path: Path) -> None:
    shutil.copytree(folders / "ct2/nllb", tmp_path / "nllb")
    (tmp_path / "nllb/model.bin").write_bytes(b"nothing")
    with pytest.raises(ModelUnavailable, match="Cannot load the model") as raised:
        CTranslate2(tmp_path / "nllb")
    assert "\n" not in str(raised.value)


def test_a_package_that_is_missing_is_named_by_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'toolwise\[translate-models\]'"):
        CTranslate2(tmp_path)


# Parts


def test_marks_are_those_of_nllb_or_of_m2m() -> None:
    assert language_marks({"eng_Latn", "spa_Latn", "xxx"}.__contains__) == {"en": "eng_Latn", "es": "spa_Latn"}
    assert language_marks({"__en__", "__fr__", "spa_Latn"}.__contains__) == {"en": "__en__", "fr": "__fr__"}
    assert language_marks({"en", "es"}.__contains__) == {}
    assert len(language_marks(lambda mark: True)) == len(LANGUAGES)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Helsinki-NLP/opus-mt-es-en", "es"),
        ("/models/opus-mt-fr-en", "fr"),
        ("opus-mt-tc-big-cat-eng", "ca"),
        ("opus-mt-de-en-ct2", "de"),
    ],
)
def test_the_name_of_an_opus_model_says_what_it_reads(name: str, code: str) -> None:
    assert languages_read(name, {}, None) == {code}


@pytest.mark.parametrize("name", ["opus-mt-en-es", "opus-mt-ROMANCE-en", "t5-small", "opus-mt-es-ent", "es-en"])
def test_other_names_say_nothing(name: str) -> None:
    with pytest.raises(BadInput):
        languages_read(name, {}, None)
    assert languages_read(name, {}, ["es"]) == {"es"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("uno", "<uno>"),
        ("Primera frase. Segunda frase! ¿Tercera?", "<Primera frase.> <Segunda frase!> <¿Tercera?>"),
        ("El Sr. López vive en EE. UU. desde 1.5 años", "<El Sr. López vive en EE. UU. desde 1.5 años>"),
        ("uno\n\n  dos\t\n", "<uno>\n\n  <dos>\t\n"),
        ("... 42\n", "... 42\n"),
        ("", ""),
    ],
)
def test_a_text_is_cut_into_sentences_and_put_together_again(text: str, expected: str) -> None:
    assert sentence_by_sentence(text, lambda sentence: f"<{sentence}>") == expected
    assert sentence_by_sentence(text, str) == text
    assert ENGLISH in LANGUAGES
