"""How a family of chat models lays its calls out, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """How calls are written, as the texts between their parts; a special token stands as its text.

        open  before NAME middle ARGUMENTS after  separator  before NAME middle ARGUMENTS after ...  close

    Hermes: before `<tool_call>\\n{"name": "`, middle `", "arguments": `, after `}\\n</tool_call>`, separator `\\n`.
    ARGUMENTS are a JSON object. `trigger` is what a model writes when it begins to call: the start of open +
    before, long enough not to be met in ordinary text. Where it is ordinary text all the same (Llama 3 writes bare
    JSON), the layout is `bare`: calls begin the turn or there are none, and what turns out to be no call was text.

    `aside`: what stands behind it, up to `middle`, is no part of NAME (Mistral's `[CALL_ID]` with an id of its own).

    White space between the parts is the model's own affair when reading; NAME stands inside a JSON string where
    `before` ends in a quotation mark, and as it is otherwise.
    """

    trigger: str
    before: str
    middle: str
    after: str
    open: str = ""
    separator: str = ""
    close: str = ""
    bare: bool = False
    aside: str = ""

    @property
    def quoted(self) -> bool:
        """Whether a call is one JSON object that holds name and arguments."""
        return self.before.endswith('"')
