"""BFCL's questions asked of a chat model, one line an answer: prompt, tools, reply, whether it is right and why not.

A question that got no answer (a dead server, a refused request) is wrong in every category, also where no call is
right; it is counted apart and asked again when the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from toolwise.core import jsonio
from toolwise.core.chat import ChatModel, ChatReply, ChatRequest, ToolChoice, gathered
from toolwise.core.errors import ToolwiseError
from toolwise.evals.answers import Row, fill
from toolwise.evals.bfcl.data import Example
from toolwise.evals.bfcl.judge import Checker, judged
from toolwise.notation.wire.names import WireNames


@dataclass(frozen=True, slots=True)
class Asking:
    """How a question is asked. `required` makes the model call in every turn, also where no call is right."""

    max_tokens: int = 256
    choice: Literal["auto", "required"] = "auto"
    at_once: int = 1


def run(
    out: Path,
    settings: Mapping[str, Any],
    examples: Sequence[Example],
    model: Callable[[], ChatModel],
    check: Checker,
    asking: Asking,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[Row]:
    """The rows of all examples, in their order. `model` is made only if something is left to ask.

    `settings` are what the answers depend on. Raises SettingsDiffer for a folder begun with others, InProgress where
    another process fills it, StorageUnavailable where the disk refuses.
    """
    return fill(
        out,
        settings,
        {example.id: example for example in examples},
        lambda: partial(answer, model(), check=check, asking=asking),
        lambda row: str(row["id"]),
        at_once=asking.at_once,
        final=lambda row: row["failed"] is None,
        progress=lambda done, total: progress("questions", done, total),
    )


def answer(model: ChatModel, example: Example, check: Checker, asking: Asking) -> Row:
    """One question, asked and judged."""
    names = WireNames([tool.name for tool in example.tools])
    request = ChatRequest(
        example.messages,
        model.name,
        example.tools,
        ToolChoice(asking.choice if example.tools else "auto"),
        max_tokens=asking.max_tokens,
        temperature=0.0,
    )
    reply, failed = None, None
    try:
        reply = names.meant_reply(gathered(model.reply(names.sent(request))))
        verdict = judged(example, reply, check)
        right, why = verdict.right, verdict.why
    except ToolwiseError as error:
        right, why, failed = False, jsonio.one_line(str(error)), error.code
    return {
        "id": example.id,
        "category": example.category,
        "prompt": [{"role": said.role.value, "text": said.text} for said in example.messages],
        "tools": [asdict(tool) for tool in example.tools],
        "reply": None if reply is None else _told(reply),
        "failed": failed,
        "right": right,
        "why": why,
    }


def _told(reply: ChatReply) -> dict[str, Any]:
    return {
        "text": reply.text,
        "calls": [asdict(call) for call in reply.calls],
        "stop": reply.stop.value,
        "usage": asdict(reply.usage),
    }
