"""Calls under a mask: from behind its open marker on, a call names a tool that exists and has arguments that fit.

Free text stays free, and whether to call is the model's to decide: the start rule of `engine` is untouched. Only the
tokens in which a marker ends and a name begins at once are not sampled, so that a call begins where its mask does.

Not covered: that a call means what was asked; and bounds (of the answer, of a call), which may still cut one off.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from toolwise.core.limits import LIMITS, Limits
from toolwise.models.masks import Masks, Matcher
from toolwise.notation.arguments import Signature
from toolwise.notation.grammar.inline import inline_grammar
from toolwise.notation.markers import Notation


class StrictCalls:
    """The calls of these tools. `downgrades` says what of their schemas is left to the gate.

    Raises BadInput where there is no tool, a name cannot be written inline, or a schema cannot be used safely.
    """

    def __init__(self, masks: Masks, tools: Sequence[Signature], notation: Notation, limits: Limits = LIMITS) -> None:
        self._begun = masks.matcher(inline_grammar(tools, notation, limits))
        self.downgrades = self._begun.downgrades
        seam = re.compile(re.escape(notation.open[-1]).encode() + b"[A-Za-z_]")
        #: Tokens that must not be sampled outside a call.
        self.seams: npt.NDArray[np.int64] = np.array(
            [i for i, piece in enumerate(masks.pieces) if seam.search(piece)], dtype=np.int64
        )

    def begin(self) -> Matcher:
        """A call of which nothing but the open marker was written."""
        return self._begun.fork()
