"""How far the text of a result may be believed.

Minimal on purpose: a result is trusted only if a bounded, pure tool computed it, since such a tool brings nothing in
from outside. Not covered: a pure tool repeats what it is given, so its result is no better than its arguments; until
arguments carry labels of their own, nobody may let a label of this module alone unlock a side effect.
"""

from __future__ import annotations

from toolwise.core.types import Effect, Integrity, Tool


def integrity(tool: Tool) -> Integrity:
    """The label of every result of this tool."""
    trusted = tool.effect is Effect.PURE and tool.bounded
    return Integrity.TRUSTED if trusted else Integrity.UNTRUSTED
