"""One question asked of a model that calls tools while it writes: decoded, judged, and told in one row.

Every figure of an evaluation is made of rows, and nothing outside a row decides anything later. Decoding is the one
that users have (`decode.engine`), and ends as soon as no more text can change the verdict. What follows from that: the
words behind the answer are not in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput
from toolwise.core.types import CallContext, Principal
from toolwise.decode.engine import CallEnded, CallStarted, DecodeSettings, Stop, Text, generate
from toolwise.evals.answers import Row
from toolwise.evals.tasks.base import Example, Task
from toolwise.gate.gate import Gate
from toolwise.models.base import Session, Writer
from toolwise.models.masks import Masks
from toolwise.notation.segments import Ids, Tokenizer

_CLOCK = SystemClock()
_ASKER = Principal("evaluation")
#: How an answer ends that was not begun: its question is longer than the model's context.
TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Together:
    """A model's tokenizer beside sessions of another place: those of a pool, which read together."""

    tokenizer: Tokenizer
    session: Callable[[Ids], Session]


@dataclass(frozen=True, slots=True)
class Asking:
    """How questions are asked. `today` is what the calendar says where a set has no day of its own."""

    decode: DecodeSettings
    today: str
    masks: Masks | None = None
    clock: Clock = _CLOCK


def ask(
    model: Writer,
    example: Example,
    task: Task,
    gate: Gate,
    asking: Asking,
    run_id: str,
    likely: Callable[[float], None] = lambda probability: None,
) -> Row:
    """The row of one example. `run_id` is this answer's own, and `likely` is told what it is in `generate`.

    A question that the model has no positions for is wrong, and says so. Raises as `generate` does otherwise.
    """
    heard = _Heard(task, example)
    settings = replace(asking.decode, max_tokens=task.max_tokens)
    context = CallContext(_ASKER, run_id, today=example.today or asking.today)
    stop, begun = Stop(TOO_LONG, 0, 0), asking.clock.monotonic()
    try:
        for event in generate(
            model,
            example.prompt,
            gate,
            context,
            settings,
            masks=asking.masks,
            enough=lambda: heard.settled,
            likely=likely,
        ):
            heard.hear(event, model.tokenizer.notation.open)
            if isinstance(event, Stop):
                stop = event
    except BadInput:
        if not model.session(model.tokenizer.begin + model.tokenizer.encode(example.prompt)).full:
            raise
    verdict = task.judge(example, heard.text, finished=stop.reason in ("end", "stop", "calls"))
    return {
        "id": example.id,
        "task": task.name,
        "prompt": example.prompt,
        "written": heard.written,
        "text": heard.text,
        "calls": heard.calls,
        "right": verdict.right,
        "read": verdict.read,
        "stop": stop.reason,
        "sampled": stop.sampled,
        "fed": stop.fed,
        "seconds": round(asking.clock.monotonic() - begun, 4),
        "answers": list(example.answers),
        "about": dict(example.about),
    }


class _Heard:
    """What was written so far: with its calls as they stand in the context, and without them."""

    def __init__(self, task: Task, example: Example) -> None:
        self._task, self._example = task, example
        self.written = self.text = ""
        self.calls: list[dict[str, object]] = []
        self.settled = False

    def hear(self, event: object, marker: str) -> None:
        match event:
            case Text(text):
                self.written += text
                self.text += text
                self.settled = self._task.judge(self._example, self.text, finished=False).settled
            case CallStarted(call):
                name = call.text.partition("(")[0].strip()
                self.calls.append({"body": call.text, "name": name, "at": len(self.text)})
            case CallEnded(result, inserted):
                self.written += inserted or marker + str(self.calls[-1]["body"])
                code = None if result.ok else result.code
                self.calls[-1] |= {"result": result.text, "code": code}
            case _:
                pass
