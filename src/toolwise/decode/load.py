"""From a model's name to a chat model: its weights, how it writes calls, its masks, and a cache for all who ask it."""

from __future__ import annotations

from typing import Literal

from toolwise.core.errors import BadInput
from toolwise.decode.local import ChatSettings, LocalChat
from toolwise.models.chosen import chosen_threshold
from toolwise.models.load import is_taught, load_model
from toolwise.models.masks import Masks
from toolwise.notation.chat.base import Dialect
from toolwise.notation.chat.detect import DIALECTS, detect, named
from toolwise.notation.chat.inline import InlineDialect
from toolwise.notation.segments import Tokenizer

#: How readily a model that was taught here calls: a small one seldom gives the marker the most probability.
_TAUGHT_TOP_K = 3


def load_chat(
    name: str,
    *,
    dialect: str = "",
    start_threshold: float | None = None,
    strict: Literal["always", "asked", "never"] = "always",
    threads: int | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> LocalChat:
    """A chat model by its pulled name, a local folder, or a hub id.

    `dialect` is told from what the model was taught and from its chat template, where it is not named. A model that was
    taught here calls from `start_threshold` on: this one, or else the one that its folder carries; without any, where
    the marker is among the likeliest tokens. Raises ModelUnavailable, and BadInput for a model whose dialect nobody
    knows, that cannot be masked, or that takes no threshold.
    """
    spoken = named(dialect) if dialect else None
    model = load_model(name, threads=threads, device=device, dtype=dtype)
    template: str | None = getattr(model.tokenizer, "chat_template", None)
    pool = model.pool()
    spoken = spoken or _told(name, template, model.tokenizer)
    inline = isinstance(spoken, InlineDialect)
    if start_threshold is not None and not inline:
        raise BadInput("A start threshold is for models that write calls in running text, as those taught here do.")
    if start_threshold is None and inline:
        start_threshold = chosen_threshold(name)
    return LocalChat(
        model,
        spoken,
        template=template,
        masks=None if strict == "never" else Masks(model.tokenizer),
        open_session=None if pool is None else pool.session,
        settings=ChatSettings(
            strict=strict, start_top_k=_TAUGHT_TOP_K if inline else 0, start_threshold=start_threshold
        ),
    )


def _told(name: str, template: str | None, tokenizer: Tokenizer) -> Dialect:
    if is_taught(name):
        return InlineDialect(tokenizer.notation)
    found = detect(template, tokenizer.control_ids)
    if found is None:
        names = ", ".join(known.name for known in DIALECTS)
        raise BadInput(f"How {name!r} writes calls cannot be told from its chat template; name its dialect: {names}.")
    return found
