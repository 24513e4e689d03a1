"""Tokenizers of transformers behind the package's own protocol: text in, data ids out, and back without loss."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from toolwise.core.errors import ModelUnavailable
from toolwise.notation.markers import PLAIN, Notation
from toolwise.notation.segments import Ids, encode_data

# Where the configured end is an end of turn (SmolLM2: `<|im_end|>`), an end of text has one of the first names.
_ENDS_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>", "<eos>", "</s>")
_ENDS_OF_TURN = ("<|im_end|>", "<|eot_id|>")
_PROBES = ("a", " a", "a  b\n\n c", "é 日本 🙂", " [Calculator(18 / 24) -> 0.75]", "\t<|x|>\r\n")


class HFTokenizer:
    """Wraps a tokenizer of transformers, which stays reachable as `wrapped`; `end_ids` end a text beside its own.

    Raises ModelUnavailable when it cannot give back the text it was given, or lacks the tokens of `notation`.
    """

    def __init__(self, tokenizer: Any, end_ids: Iterable[int] = (), notation: Notation = PLAIN) -> None:
        self.wrapped = tokenizer
        self.notation = notation
        self.control = frozenset(tokenizer.added_tokens_decoder) | frozenset(tokenizer.all_special_ids)
        self.control_ids = {
            str(token): int(i)
            for token, i in zip(
                tokenizer.convert_ids_to_tokens(sorted(self.control)), sorted(self.control), strict=True
            )
        }
        self.special_names = {k: str(v) for k, v in tokenizer.special_tokens_map.items() if isinstance(v, str)}
        plain = tokenizer.encode("a", add_special_tokens=False)
        full = tokenizer.encode("a", add_special_tokens=True)
        self.begin: Ids = tuple(full[: len(full) - len(plain)]) if full[-len(plain) :] == plain else ()
        added = tokenizer.get_added_vocab()
        missing = [marker for marker in notation.tokens if marker not in added]
        if missing:
            raise ModelUnavailable(f"The tokenizer has no token for the marker {missing[0]!r}; restore its files.")
        self._markers = {marker: (added[marker],) for marker in notation.tokens}
        self._silent = self.control.difference(*self._markers.values())
        known = [added[name] for name in (*_ENDS_OF_TEXT, *_ENDS_OF_TURN) if name in added]
        self.end = frozenset(i for i in (tokenizer.eos_token_id, *end_ids, *known) if i is not None)
        for probe in _PROBES:
            if self.decode(self.encode(probe)) != probe:
                raise ModelUnavailable(
                    f"The tokenizer does not give back {probe!r} unchanged; toolwise needs a byte-exact one "
                    "(byte-level BPE, as in SmolLM2, GPT-2, Llama 3 or Qwen)."
                )

    @property
    def end_of_text(self) -> int | None:
        """The id that ends a text: an added token named like one, otherwise the configured end unless chats use it."""
        added = self.wrapped.get_added_vocab()
        named = next((added[name] for name in _ENDS_OF_TEXT if name in added), None)
        if named is not None:
            return int(named)
        end = self.wrapped.eos_token
        return None if end is None or end in (self.wrapped.chat_template or "") else int(self.wrapped.eos_token_id)

    @property
    def chat_template(self) -> str | None:
        """The model's own, the one for tools where it has several."""
        found = self.wrapped.chat_template
        return found.get("tool_use", found.get("default")) if isinstance(found, dict) else found

    @property
    def fingerprint(self) -> str:
        """Changes when the same text could become other ids."""
        fast = getattr(self.wrapped, "backend_tokenizer", None)
        described = fast.to_str() if fast is not None else repr(sorted(self.wrapped.get_vocab().items()))
        return hashlib.sha256(described.encode()).hexdigest()

    def encode(self, text: str) -> Ids:
        return encode_data(text, self._encode_raw, self.control, self._decode_raw)

    def encode_marker(self, text: str) -> Ids:
        return self._markers.get(text) or self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self._decode_raw([i for i in ids if i not in self._silent])

    def _encode_raw(self, text: str) -> Ids:
        return tuple(self.wrapped.encode(text, add_special_tokens=False, verbose=False))

    def _decode_raw(self, ids: Sequence[int]) -> str:
        text: str = self.wrapped.decode(ids, clean_up_tokenization_spaces=False)
        return text
