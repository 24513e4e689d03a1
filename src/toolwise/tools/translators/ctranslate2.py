"""CTranslate2: NLLB, M2M-100 and OPUS models, converted once, several times faster than transformers and without torch.

A folder as `ct2-transformers-converter` writes it, with the tokenizer's files beside the model: `tokenizer.json`, or
the SentencePiece models `source.spm` and `target.spm`, or one `*.model`.

Not covered: conversion; beams (greedy search can be ended at a deadline).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import LimitExceeded, ModelUnavailable, ToolFailed, ToolUnavailable
from toolwise.core.jsonio import first_line, loads, quote
from toolwise.core.limits import LIMITS, Limits
from toolwise.tools.translators.languages import ENGLISH, listed, named
from toolwise.tools.translators.neural import language_marks, languages_read, sentence_by_sentence

_NEEDS = "CTranslate2 needs packages: pip install 'toolwise[translate-models]'."
_END = "</s>"


class CTranslate2:
    """A translator with a converted model.

    `threads` of the processor for one text, 0 for CTranslate2's own choice. Raises ModelUnavailable where the package,
    the folder or a language is missing, BadInput for a model of which nobody says what it translates from.
    """

    def __init__(
        self,
        folder: Path,
        sources: Iterable[str] | None = None,
        *,
        device: str = "cpu",
        threads: int = 0,
        limits: Limits = LIMITS,
        clock: Clock | None = None,
    ) -> None:
        try:
            import ctranslate2
        except ImportError as error:
            raise ModelUnavailable(_NEEDS) from error
        if not (folder / "model.bin").is_file():
            raise ModelUnavailable(
                f"The folder {quote(str(folder))} holds no model of CTranslate2: it has no model.bin."
            )
        self._limits, self._clock = limits, clock or SystemClock()
        self._folder, self._version = folder, ctranslate2.__version__
        self._tokens = _tokens(folder)
        self._marks = language_marks(self._tokens.known)
        self.sources = languages_read(folder.resolve().name, self._marks, sources)
        try:
            self._model: Any = ctranslate2.Translator(str(folder), device=device, intra_threads=threads)
        except (RuntimeError, ValueError) as error:
            raise ModelUnavailable(f"Cannot load the model {quote(str(folder))}: {first_line(error)}.") from error

    @cached_property
    def identity(self) -> str:
        """A digest of the folder's files, and the version of the engine."""
        digest = hashlib.sha256()
        for file in sorted(file for file in self._folder.iterdir() if file.is_file()):
            with file.open("rb") as stream:
                digest.update(f"{file.name} {hashlib.file_digest(stream, 'sha256').hexdigest()} ".encode())
        return f"ct2 {self._version} {self._model.compute_type} {digest.hexdigest()[:16]}"

    def translate(self, texts: Sequence[str], source: str) -> list[str]:
        """A translation of each text; see `Translator`. Raises ToolFailed, LimitExceeded, ToolUnavailable."""
        if source not in self.sources:
            raise ToolFailed(f"the model does not translate from {named(source)}, only from {listed(self.sources)}")
        return [self._translated(text, source) for text in texts]

    def _translated(self, text: str, source: str) -> str:
        if len(text) > self._limits.translate_chars:
            raise LimitExceeded(f"give at most {self._limits.translate_chars} characters to translate")
        deadline = self._clock.monotonic() + self._limits.translate_seconds
        return sentence_by_sentence(text, lambda sentence: self._sentence(sentence, source, deadline))

    def _sentence(self, sentence: str, source: str, deadline: float) -> str:
        pieces = self._tokens.cut(sentence.encode("utf-8", "replace").decode())
        most = self._limits.translated_tokens
        if len(pieces) > most:
            raise LimitExceeded(f"a sentence has more than {most} tokens: give shorter ones")
        late = _Late(self._clock, deadline)
        try:
            (result,) = self._model.translate_batch(
                [[*([self._marks[source]] if self._marks else []), *pieces, _END]],
                target_prefix=[[self._marks[ENGLISH]]] if self._marks else None,
                beam_size=1,
                max_input_length=0,  # ours is the bound; theirs would cut in silence
                max_decoding_length=most,
                return_end_token=True,
                callback=late,
            )
        except RuntimeError:  # the model has no more positions, and does not say beforehand how many
            raise LimitExceeded("a sentence or its translation is too long for the model: give shorter ones") from None
        written = result.hypotheses[0]
        if late.found:
            raise ToolUnavailable("the translation took too long: give a shorter text")
        if not written or written[-1] != _END:
            raise ToolFailed("the model came to no end with this text: give another part of it")
        return self._tokens.join([piece for piece in written[:-1] if piece != self._marks.get(ENGLISH)])


@dataclass
class _Late:
    """Asked after every token whether to stop.

    Knows nothing of the translator: the engine's thread may be the last to let this go, and an engine that is taken
    down from a thread of its own ends the whole process.
    """

    clock: Clock
    deadline: float
    found: bool = False

    def __call__(self, step: object) -> bool:
        self.found = self.clock.monotonic() > self.deadline
        return self.found


class _Tokens(Protocol):
    def known(self, piece: str) -> bool: ...

    def cut(self, text: str) -> list[str]: ...

    def join(self, pieces: list[str]) -> str: ...


def _tokens(folder: Path) -> _Tokens:
    """The tokenizer of a folder. Raises ModelUnavailable."""
    pair = [folder / "source.spm", folder / "target.spm"]
    models = sorted(folder.glob("*.model"))
    try:
        if (folder / "tokenizer.json").is_file():
            return _Json(folder / "tokenizer.json")
        if all(file.is_file() for file in pair):
            return _SentencePieces(folder, *pair)
        if models:
            return _SentencePieces(folder, models[0], models[0])
    except ImportError as error:
        raise ModelUnavailable(_NEEDS) from error
    except Exception as error:  # both packages raise the bare class
        said = f"{type(error).__name__}: {first_line(error)}"
        raise ModelUnavailable(f"Cannot read the tokenizer in {quote(str(folder))}: {said}.") from error
    raise ModelUnavailable(
        f"The folder {quote(str(folder))} has no tokenizer: copy tokenizer.json, or source.spm and target.spm, into it."
    )


class _Json:
    def __init__(self, file: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.encode_special_tokens = True  # a text that spells one out is still a text

    def known(self, piece: str) -> bool:
        return self._tokenizer.token_to_id(piece) is not None

    def cut(self, text: str) -> list[str]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).tokens)

    def join(self, pieces: list[str]) -> str:
        ids = [self._tokenizer.token_to_id(piece) for piece in pieces]
        return str(self._tokenizer.decode([id for id in ids if id is not None]))


class _SentencePieces:
    """NLLB's language marks are no pieces of its SentencePiece model, but words of the converted model's vocabulary."""

    def __init__(self, folder: Path, source: Path, target: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        self._source = SentencePieceProcessor(model_file=str(source))
        self._target = SentencePieceProcessor(model_file=str(target))
        words = folder / "shared_vocabulary.json"
        self._words = frozenset(loads(words.read_bytes())) if words.is_file() else frozenset()

    def known(self, piece: str) -> bool:
        return piece in self._words

    def cut(self, text: str) -> list[str]:
        return list(self._source.encode(text, out_type=str))

    def join(self, pieces: list[str]) -> str:
        return str(self._target.decode(pieces))
