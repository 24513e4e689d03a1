"""A translator with a sequence-to-sequence model of transformers, by name or folder: NLLB, M2M-100, OPUS (Marian).

A sentence at a time and greedily, so that an answer depends on its sentence alone.

Not covered: T5 and other models that are told in words what to do; mBART.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import LimitExceeded, ModelUnavailable, ToolFailed, ToolUnavailable
from toolwise.core.jsonio import fingerprint
from toolwise.core.limits import LIMITS, Limits
from toolwise.models.hub import resolve

try:
    import torch
    import transformers
except ImportError as error:
    raise ModelUnavailable("Models need more packages: pip install 'toolwise[teach]'.") from error

from toolwise.models.load import placed, readable, weights_identity
from toolwise.tools.translators.languages import ENGLISH, listed, named
from toolwise.tools.translators.neural import language_marks, languages_read, sentence_by_sentence


class Seq2SeqTranslator:
    """`sources` are the languages that it translates from. Use `load_translator`."""

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        name: str,
        identity: str,
        sources: Iterable[str] | None = None,
        limits: Limits = LIMITS,
        clock: Clock | None = None,
    ) -> None:
        self.identity = identity
        self._network, self._tokenizer = network, tokenizer
        self._limits, self._clock = limits, clock or SystemClock()
        self._marks = language_marks(tokenizer.get_vocab().__contains__)
        self.sources = languages_read(name, self._marks, sources)
        self._tokens = min(limits.translated_tokens, getattr(network.config, "max_position_embeddings", 512) - 2)
        self._one = threading.Lock()  # a tokenizer is not for several threads

    def translate(self, texts: Sequence[str], source: str) -> list[str]:
        """A translation of each text; see `Translator`. Raises ToolFailed, LimitExceeded, ToolUnavailable."""
        if source not in self.sources:
            raise ToolFailed(f"the model does not translate from {named(source)}, only from {listed(self.sources)}")
        return [self._translated(text, source) for text in texts]

    def _translated(self, text: str, source: str) -> str:
        if len(text) > self._limits.translate_chars:
            raise LimitExceeded(f"give at most {self._limits.translate_chars} characters to translate")
        deadline = self._clock.monotonic() + self._limits.translate_seconds
        if not self._one.acquire(timeout=self._limits.translate_seconds):
            raise ToolUnavailable("the translator is busy with other texts: try again later")
        try:
            return sentence_by_sentence(text, lambda sentence: self._sentence(sentence, source, deadline))
        finally:
            self._one.release()

    @torch.inference_mode()
    def _sentence(self, sentence: str, source: str, deadline: float) -> str:
        clean = sentence.encode("utf-8", "replace").decode()
        words = self._tokenizer(clean, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        if len(words) > self._tokens:
            raise LimitExceeded(f"a sentence has more than {self._tokens} tokens: give shorter ones")
        end = self._tokenizer.eos_token_id
        given = torch.tensor([[*self._mark(source), *words, end]], device=self._network.device)
        first = self._mark(ENGLISH)
        written = self._network.generate(
            input_ids=given,
            attention_mask=torch.ones_like(given),
            forced_bos_token_id=first[0] if first else None,
            max_new_tokens=self._tokens,
            max_time=max(0.0, deadline - self._clock.monotonic()),
            do_sample=False,
            num_beams=1,
        )[0]
        if written[-1] != end:
            raise ToolFailed("the model came to no end with this text: give a shorter part of it")
        return str(self._tokenizer.decode(written, skip_special_tokens=True))

    def _mark(self, language: str) -> list[int]:
        """The token of a language; none for a model of one direction."""
        return [self._tokenizer.convert_tokens_to_ids(self._marks[language])] if self._marks else []


def load_translator(
    name: str,
    sources: Iterable[str] | None = None,
    *,
    device: str = "auto",
    dtype: str = "auto",
    limits: Limits = LIMITS,
) -> Seq2SeqTranslator:
    """The translator in a local folder or under a hub id.

    `sources`: the languages that it must have; for a model that does not say what it reads, those that it has. Raises
    ModelUnavailable, and BadInput where nobody says what it reads and for an unknown dtype.
    """
    source = resolve(name)
    device, dtype = placed(device, dtype)
    try:
        with readable(source) as options:
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **options)
            network = transformers.AutoModelForSeq2SeqLM.from_pretrained(
                str(source), dtype=getattr(torch, dtype), **options
            )
    except ImportError as error:  # SentencePiece, which Marian's tokenizer asks for
        raise ModelUnavailable("This model needs more packages: pip install 'toolwise[translate-models]'.") from error
    return Seq2SeqTranslator(
        network.to(device).eval(),
        tokenizer,
        name=str(source),
        identity=f"seq2seq {fingerprint([weights_identity(source), dtype])[:16]}",
        sources=sources,
        limits=limits,
    )
