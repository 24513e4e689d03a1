"""A question-answering network of transformers, by name or folder: the best span of the passages.

Such a network scores every token as an answer's first and last. "No answer" is scored at its first token, as in SQuAD
2.0, and a span counts only where it is better; a network that never learned to say no rates that low.

Not covered: networks whose tokenizer cannot say which characters a token stands for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolwise.core.errors import ModelUnavailable
from toolwise.core.jsonio import fingerprint
from toolwise.core.limits import LIMITS, Limits
from toolwise.models.base import Floats
from toolwise.models.hub import resolve
from toolwise.tools.index import Hit
from toolwise.tools.qa import Answer

try:
    import torch
    import transformers
except ImportError as error:
    raise ModelUnavailable("Models need more packages: pip install 'toolwise[teach]'.") from error

from toolwise.models.load import placed, readable, weights_identity

_TOKENS = 384  # of question and passage together, as such networks were trained
_QUESTION = 64  # of the question, likewise


class ExtractiveReader:
    """Use `load_reader`. A score is how much better the span is than no answer, in logits."""

    def __init__(self, network: Any, tokenizer: Any, identity: str, *, limits: Limits = LIMITS) -> None:
        """Raises ModelUnavailable for a tokenizer that does not know where its tokens stand."""
        if not tokenizer.is_fast:
            raise ModelUnavailable("The model's tokenizer cannot say where a token stands; choose one with a fast one.")
        self.identity = identity
        self._network, self._tokenizer, self._limits = network, tokenizer, limits
        self._tokens = min(_TOKENS, getattr(network.config, "max_position_embeddings", _TOKENS))
        self._one = threading.Lock()  # a tokenizer is not for several threads

    @torch.inference_mode()
    def read(self, question: str, passages: Sequence[Hit]) -> Answer | None:
        """The best span of all passages, None where no answer is better in every one of them."""
        if not passages:
            return None
        with self._one:
            given = self._tokenizer(
                [self._short(question)] * len(passages),
                [_joined(hit) for hit in passages],
                truncation="only_second",
                max_length=self._tokens,
                padding=True,
                return_tensors="pt",
            )
        scored = self._network(**given.to(self._network.device))
        starts, ends = (logits.float().cpu().numpy() for logits in (scored.start_logits, scored.end_logits))
        answers = [
            answer
            for row, hit in enumerate(passages)
            if (answer := self._best(given.encodings[row], starts[row], ends[row], hit)) is not None
        ]
        return max(answers, key=lambda answer: answer.score, default=None)

    def _short(self, question: str) -> str:
        """As much of a question as leaves room for a passage."""
        room = min(_QUESTION, self._tokens // 2)
        where = self._tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return question if len(where) <= room else question[: where[room - 1][1]]

    def _best(self, encoding: Any, starts: Floats, ends: Floats, hit: Hit) -> Answer | None:
        """The best span of one passage that is better than none."""
        inside = np.array([part == 1 for part in encoding.sequence_ids])
        first = np.where(inside, starts, -np.inf)[:, None]
        last = np.where(inside, ends, -np.inf)[None, :]
        length = np.arange(len(starts))[None, :] - np.arange(len(starts))[:, None]
        spans = np.where((length >= 0) & (length < self._limits.answer_tokens), first + last, -np.inf)
        start, end = np.unravel_index(int(spans.argmax()), spans.shape)
        nothing = _nothing(encoding.ids, self._tokenizer.cls_token_id)
        margin = float(spans[start, end] - starts[nothing] - ends[nothing])
        text = _joined(hit)[encoding.offsets[start][0] : encoding.offsets[end][1]].strip()
        return Answer(text, hit, margin) if margin > 0 and text else None


def load_reader(name: str, *, device: str = "auto", dtype: str = "auto", limits: Limits = LIMITS) -> ExtractiveReader:
    """The reader in a local folder or under a hub id. Raises ModelUnavailable, and BadInput for an unknown dtype."""
    source = resolve(name)
    device, dtype = placed(device, dtype)
    with readable(source) as options:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(source), **options)
        network, report = transformers.AutoModelForQuestionAnswering.from_pretrained(
            str(source), dtype=getattr(torch, dtype), output_loading_info=True, **options
        )
    if report["missing_keys"]:  # transformers fills them with random numbers
        raise ModelUnavailable(f"The model {str(source)!r} was not trained to answer questions; choose one that was.")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token  # masked, so any will do
    tokenizer.padding_side = "right"
    identity = fingerprint([weights_identity(source), dtype])[:16]
    return ExtractiveReader(network.to(device).eval(), tokenizer, f"extractive {identity}", limits=limits)


def _joined(hit: Hit) -> str:
    return f"{hit.title}. {hit.text}" if hit.title else hit.text


def _nothing(ids: Sequence[int], marker: int | None) -> int:
    """Where "no answer" is scored: at the token that stands for the whole, or else at the first one."""
    return ids.index(marker) if marker in ids else 0
