"""A model's chat template -> text that knows where it came from -> token ids.

A template is a Jinja program. It is read by Jinja itself, and every text that stands in it is marked as the template's
own (`traced.literal`) where it is used; the rest of the rendering is data. Control tokens are then looked for in what
the template wrote, and only there; whatever stands between two of them is encoded as data, in one piece. So an ordinary
conversation gives the ids that transformers' `apply_chat_template` gives, and no conversation gives a control token
that the template did not write: there is nothing to escape, and no sentinel to forge.

A template is untrusted too. It runs in Jinja's sandbox, without loaders, with those filters and methods alone whose
cost is bounded by what they are given, and within a budget of work, time and output.

Not covered: what a template says. One that lies about its conversation still writes only its own control tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

from toolwise.core.clock import Clock, SystemClock
from toolwise.core.errors import BadInput
from toolwise.core.jsonio import first_line, printable
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.chat.sandbox import Compiled
from toolwise.notation.chat.traced import BUDGET, Budget, Traced, literal, traced
from toolwise.notation.segments import Ids, Tokenizer

_FORMAT_CHARS = 200
_WIDE = re.compile(r"%[^%a-zA-Z]*\d")  # some systems pad to so many characters


def render(template: str, variables: Mapping[str, Any], clock: Clock | None = None, limits: Limits = LIMITS) -> Traced:
    """The text of a conversation. `variables` are what transformers passes: `messages`, `tools` and so on, as plain
    JSON values; a `Traced` among them keeps what it knows.

    Raises BadInput for a template that is none, that refuses the conversation, or that does not come to an end.
    """
    compiled = _compiled(template, limits.template_chars)
    clock = clock or SystemClock()
    budget = Budget(limits.template_work, limits.template_seconds, clock, limits.template_value)
    token = BUDGET.set(budget)
    try:
        pieces, size = list[str](), 0
        for piece in compiled.pieces({**variables, "strftime_now": partial(_strftime, clock)}):
            pieces.append(piece)
            size += len(piece)
            if size > limits.prompt_chars:
                raise BadInput(f"The conversation is longer than {limits.prompt_chars} characters; shorten it.")
        return traced(pieces)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"The model's chat template refuses this conversation: {_said(error)}.") from error
    finally:
        BUDGET.reset(token)


def uses(template: str, limits: Limits = LIMITS) -> frozenset[str]:
    """The variables that a template reads: one that knows tools reads `tools`. Raises BadInput as `render` does."""
    return _compiled(template, limits.template_chars).reads


def to_ids(text: Traced, tokenizer: Tokenizer) -> Ids:
    """The ids of rendered text: control tokens where the template wrote them, all else as data."""
    ids: list[int] = []
    at = 0
    for start, end, control in _controls(text, tokenizer.control_ids):
        if at < start:
            ids += tokenizer.encode(str.__str__(text[at:start]))
        ids.append(control)
        at = end
    if at < len(text):
        ids += tokenizer.encode(str.__str__(text[at:]))
    return tuple(ids)


def special(tokenizer: Tokenizer) -> dict[str, Traced]:
    """What a template may call by name: `bos_token` and its like, which are the tokenizer's own words."""
    return {name: literal(text) for name, text in tokenizer.special_names.items()}


def _strftime(clock: Clock, format: str) -> str:
    if len(format) > _FORMAT_CHARS or _WIDE.search(format):
        raise BadInput("The chat template asks for the time in a way that is too long; use another template.")
    return clock.now().strftime(format)


def _controls(text: Traced, control_ids: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
    """The control tokens in the trusted spans, the longest first where several begin at one place."""
    plain = "".join((text,))
    trusted = "\0".join(plain[start:end] for start, end in text.spans)
    found = [name for name in control_ids if name in trusted]  # a vocabulary may have thousands
    if not found:
        return
    any_of = re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True))))
    for start, end in text.spans:
        for match in any_of.finditer(plain, start, end):
            yield match.start(), match.end(), control_ids[match[0]]


@lru_cache(maxsize=32)
def _compiled(template: str, longest: int) -> Compiled:
    if len(template) > longest:
        raise BadInput(f"The chat template is longer than {longest} characters; use another one.")
    try:
        return Compiled(template)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"The model's chat template cannot be read: {_said(error)}.") from error


def _said(error: BaseException) -> str:
    return printable(first_line(error) or type(error).__name__, 200)
