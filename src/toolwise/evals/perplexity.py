"""Perplexity of a given text, as it is and with calls disabled: what teaching tools costs the language model.

*Disabled* follows the paper (section 4): nothing is decoded here, so no call can run; the open marker's probability is
set to zero and the rest renormalised, so that a token x costs `-log(p(x) / (1 - p(open)))`. Without that, a model that
would rather call would look worse than it is. A marker that the text itself holds keeps its plain cost (`markers` of
them were met).

Windows of `context` tokens do not overlap and every token is scored once, the beginning of a window with little in
front of it: figures compare between models read with the same context and tokenizer, not with sliding-window ones.
Perplexities of different tokenizers compare a word only (`word_perplexity`).

Not covered: the corpus. The caller reads the file; the paper's is the validation part of WikiText.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from rich.text import Text

from toolwise.core.errors import BadInput
from toolwise.models.base import single_marker
from toolwise.models.load import load_network, load_tokenizer
from toolwise.models.network import longest_context
from toolwise.notation.segments import Tokenizer
from toolwise.teach.training.likelihood import Sums, sums, windows


@dataclass(frozen=True, slots=True)
class Perplexity:
    """Losses in nats, summed over `tokens`; `words` are what white space separates in the text that was read.

    `disabled_nats` is None when the open marker is not one token of this tokenizer: it has no probability to ban.
    """

    tokens: int
    words: int
    nats: float
    disabled_nats: float | None
    markers: int

    @property
    def nats_per_token(self) -> float:
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        return math.exp(self.nats_per_token)

    @property
    def disabled(self) -> float | None:
        """Perplexity with calls disabled."""
        return None if self.disabled_nats is None else math.exp(self.disabled_nats / self.tokens)

    @property
    def word_perplexity(self) -> float:
        """Infinite where it is more than a float holds, as in a text without spaces."""
        try:
            return math.exp(self.nats / max(1, self.words))
        except OverflowError:
            return math.inf


def perplexity(
    folder: Path,
    text: str,
    *,
    context: int = 1_024,
    limit_tokens: int | None = None,
    device: str = "auto",
) -> Perplexity:
    """The perplexity of `text` under the model of a folder, in fp32, on the GPU where there is one (`device` auto).

    `limit_tokens` reads only the first so many. Raises BadInput, ModelUnavailable.
    """
    tokenizer, network = load_tokenizer(folder), load_network(folder)
    network.to(("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device)
    return measure(network, tokenizer, text, context=context, limit_tokens=limit_tokens)


def measure(
    network: Any,
    tokenizer: Tokenizer,
    text: str,
    *,
    context: int = 1_024,
    limit_tokens: int | None = None,
    batch_tokens: int = 2_048,
) -> Perplexity:
    """The same for a causal LM of transformers in evaluation mode. `batch_tokens` are read at once. Raises BadInput."""
    begin = tokenizer.begin
    if context < len(begin) + 2 or (limit_tokens is not None and limit_tokens < 1):
        raise BadInput("A context needs at least two tokens behind the beginning, and a limit at least one token.")
    longest = longest_context(network)
    if longest is not None and context > longest:
        raise BadInput(f"This model reads at most {longest} tokens; give a context of at most that.")
    ids = tokenizer.encode(text)[:limit_tokens]
    requests = windows(ids, begin, context)
    if not requests:
        raise BadInput("The text is too short to be scored; give at least two tokens.")
    marker = single_marker(tokenizer, tokenizer.notation)
    found = Sums.of(sums(network, requests, marker, batch_tokens=batch_tokens))
    words = len((text if limit_tokens is None else tokenizer.decode(ids)).split())
    return Perplexity(found.tokens, words, found.plain, None if marker is None else found.disabled, found.markers)


def compare(
    file: Path,
    models: Sequence[str],
    context: int,
    limit_tokens: int | None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[dict[str, object]]:
    """One row a model, for `table` and for JSON. Raises BadInput for a file that is not text."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"Cannot read {str(file)!r}: {error.strerror or error}; give a text file.") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{str(file)!r} is not UTF-8 at byte {error.start}; give a text file.") from error
    rows: list[dict[str, object]] = []
    for number, model in enumerate(models):
        progress("models", number, len(models))
        found = perplexity(Path(model), text, context=context, limit_tokens=limit_tokens)
        rows.append(
            {
                "model": model,
                "tokens": found.tokens,
                "perplexity": found.perplexity,
                "calls_disabled": found.disabled,
                "per_word": found.word_perplexity if math.isfinite(found.word_perplexity) else None,
            }
        )
    progress("models", len(models), len(models))
    return rows


def table(rows: Sequence[Mapping[str, object]]) -> Table:
    shown = Table()
    for column in ("model", "tokens", "perplexity", "calls disabled", "a word"):
        shown.add_column(column, justify="left" if column == "model" else "right", overflow="fold")
    for row in rows:
        numbers = [row[name] for name in ("perplexity", "calls_disabled", "per_word")]
        shown.add_row(
            Text(str(row["model"])),
            str(row["tokens"]),
            *(f"{value:.3f}" if isinstance(value, float) else "-" for value in numbers),
        )
    return shown
