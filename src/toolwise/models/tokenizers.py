"""Tokenizers of transformers behind the package's own protocol: text in, data ids out, and back without loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolwise.core.errors import ModelUnavailable
from toolwise.notation.segments import Ids, encode_data

_PROBES = ("a", " a", "a  b\n\n c", "é 日本 🙂", " [Calculator(18 / 24) -> 0.75]", "\t<|x|>\r\n")


class HFTokenizer:
    """Wraps a tokenizer of transformers. Raises ModelUnavailable when it cannot give back the text it was given."""

    def __init__(self, tokenizer: Any, end_ids: Sequence[int] = ()) -> None:
        self.wrapped = tokenizer
        self.control = frozenset(tokenizer.added_tokens_decoder) | frozenset(tokenizer.all_special_ids)
        plain = tokenizer.encode("a", add_special_tokens=False)
        full = tokenizer.encode("a", add_special_tokens=True)
        self.begin: Ids = tuple(full[: len(full) - len(plain)]) if full[-len(plain) :] == plain else ()
        ends = {tokenizer.eos_token_id, *end_ids, *self._known_ends()}
        self.end = frozenset(i for i in ends if i is not None)
        for probe in _PROBES:
            if self.decode(self.encode(probe)) != probe:
                raise ModelUnavailable(
                    f"The tokenizer does not give back {probe!r} unchanged; toolwise needs a byte-exact one "
                    "(byte-level BPE, as in SmolLM2, GPT-2, Llama 3 or Qwen)."
                )

    def encode(self, text: str) -> Ids:
        return encode_data(text, self._encode_raw, self.control, self._decode_raw)

    def decode(self, ids: Sequence[int]) -> str:
        return self._decode_raw([i for i in ids if i not in self.control])

    def _encode_raw(self, text: str) -> Ids:
        return tuple(self.wrapped.encode(text, add_special_tokens=False))

    def _decode_raw(self, ids: Sequence[int]) -> str:
        text: str = self.wrapped.decode(ids, clean_up_tokenization_spaces=False)
        return text

    def _known_ends(self) -> list[int]:
        vocabulary = self.wrapped.get_vocab()
        return [vocabulary[t] for t in ("<|endoftext|>", "<|im_end|>", "<|eot_id|>") if t in vocabulary]
