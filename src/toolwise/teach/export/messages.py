"""C* as conversations, for trainers of chat models (TRL, axolotl, and others that read OpenAI's form).

    system      what is asked for, the same in every row
    user        the passage as far as the sentence in which the first call stands
    assistant   the text from there to the call, and the call in `tool_calls`
    tool        its result
    assistant   the text that follows, as far as the next call; and so on; the last one calls nothing

What user and assistant say, joined, is the plain text, character by character. Where the first call stands in the first
sentence, the user's part ends at the call. Every call has a round of its own, since a later one may build on an earlier
result. `tools` are the run's, in every row, in the form that chat templates take; arguments are objects.

Not covered: what a chat template makes of it. Some trim contents, some know no tools and leave calls out, and most
turn text that spells `<|im_end|>` into that token.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from toolwise.core.errors import BadInput
from toolwise.core.types import Tool
from toolwise.documents.sentences import SENTENCE_END
from toolwise.teach.export.output import write_lines
from toolwise.teach.export.run import Run, WovenCall, callable_by_name, calls_of
from toolwise.teach.records import Augmented

SYSTEM = (
    "The user gives the beginning of a text. Continue it from where it stops, "
    "and call a tool wherever its result helps you to go on."
)


def write(run: Run, path: Path) -> Mapping[str, int]:
    """A passage a line: `messages` and `tools`, with `id` and `document` beside them."""
    write_lines(path, conversations(run))
    return {}


def conversations(run: Run) -> Iterator[dict[str, Any]]:
    """The rows. Raises BadInput for a call without a result, which no conversation can hold."""
    tools, declared = callable_by_name(run.tools), [function(each) for each in run.tools]
    for row in run.rows:
        yield {
            "id": row.passage,
            "document": row.document,
            "messages": messages(row, tools),
            "tools": declared,
        }


def function(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's definition as a function of OpenAI's form."""
    return {"type": "function", "function": {name: tool[name] for name in ("name", "description", "parameters")}}


def messages(row: Augmented, tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """The conversation of one row."""
    calls = calls_of(row, tools)
    at = _opening(row.plain, calls)
    said: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": row.plain[:at]},
    ]
    for number, call in enumerate(calls):
        if call.result is None:
            raise BadInput(f"A call of passage {row.passage!r} has no result; export to text or tokens instead.")
        id_ = f"call{number:05d}"  # nine letters and digits, which Mistral's templates insist on
        called = {"name": call.tool, "arguments": call.arguments}
        said += [
            {
                "role": "assistant",
                "content": row.plain[at : call.at],
                "tool_calls": [{"id": id_, "type": "function", "function": called}],
            },
            {"role": "tool", "tool_call_id": id_, "name": call.tool, "content": call.result},
        ]
        at = call.at
    return [*said, {"role": "assistant", "content": row.plain[at:]}]


def _opening(plain: str, calls: Sequence[WovenCall]) -> int:
    """Where the user's part ends."""
    first = calls[0].at if calls else len(plain)
    ends = [end.end() for end in SENTENCE_END.finditer(plain, 0, first)]
    return ends[-1] if ends else first
