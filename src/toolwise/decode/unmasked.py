"""What the masks of a chat model leave open of a request, whichever wrappers stand in front of it."""

from __future__ import annotations

from typing import Protocol, cast

from toolwise.core.chat import ChatModel, ChatRequest
from toolwise.notation.grammar.grammar import Downgrade


class Masking(Protocol):
    """A chat model that holds what it writes to the schemas of a request."""

    def downgrades(self, request: ChatRequest) -> tuple[Downgrade, ...] | None:
        """What of these schemas it does not hold it to; None where it knows of no masks. Raises BadInput for a
        request that cannot be masked at all."""


def downgrades(model: ChatModel, request: ChatRequest) -> tuple[Downgrade, ...] | None:
    """The same of any chat model: None for one that nothing is known of, as another server's."""
    return cast(Masking, model).downgrades(request) if hasattr(model, "downgrades") else None
