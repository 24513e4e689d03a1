"""Two policies over calls that were made: what would another policy allow, deny or ask about?

A call is taken from the audit log, where it stands as its arguments were, or from a file that describes calls. It is
compared only if it is exactly the call that was made: a recorded line proves that by the digest of its arguments.
Whatever cannot be shown to the policies as it was (arguments that were cut, or hold secrets; a tool whose `public`
would matter and is not known) is counted with the reason, and never guessed.

Not covered: what the gate decides besides the policy (budgets, approvals that were given, definitions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal

from toolwise.core import jsonio
from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.core.types import Effect, Principal
from toolwise.gate.audit import Line
from toolwise.gate.audit_file import row_of
from toolwise.gate.labels import read as read_labels
from toolwise.gate.ledger import fingerprint
from toolwise.gate.policy import CedarPolicy, Decision
from toolwise.gate.redact import SHOWN
from toolwise.gate.review.explain import Asked, declared, read_call
from toolwise.tools.registry import Registry

Verdict = Literal["allow", "ask", "deny"]
_NO_EFFECT = "the tool's effect is not known"
_DECIDED = frozenset({"intent", "refused"})  # one of them stands for every call that was decided about


@dataclass(frozen=True, slots=True)
class Recorded:
    """A call to compare, or why it cannot be. `publics` are the values of the tool's `public` that are possible."""

    name: str
    asked: Asked | None = None
    reason: str = ""
    publics: tuple[bool, ...] = (False, True)


@dataclass(frozen=True, slots=True)
class Change:
    """Calls about which the policies disagree in the same way, for the same reasons; `call` is the first of them."""

    old: Decision
    new: Decision
    principal: str
    tool: str
    call: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """How often which verdict became which, the changes with their numbers, and what was skipped for which reason."""

    verdicts: Counter[tuple[Verdict, Verdict]] = field(default_factory=Counter)
    changes: dict[Change, int] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def newly_allowed(self) -> int:
        """Calls that the new policy allows and the old one did not."""
        return sum(count for (old, new), count in self.verdicts.items() if new == "allow" != old)


def usable(text: str, name: str) -> CedarPolicy:
    """The policy. Raises BadInput for one that denies everything because it cannot be read."""
    policy = CedarPolicy.from_text(text)
    if policy.problem:
        raise BadInput(f"{name}: {policy.problem}; `toolwise policy check` shows where.")
    return policy


def compare(old: CedarPolicy, new: CedarPolicy, calls: Iterable[Recorded]) -> Comparison:
    """What becomes of the calls under one policy and under the other."""
    found = Comparison()
    first: dict[tuple[Decision, Decision, str, str], Change] = {}
    for call in calls:
        if call.asked is None:
            found.skipped[call.reason] += 1
            continue
        was, would = _decide(old, call.asked, call.publics), _decide(new, call.asked, call.publics)
        if was is None or would is None:
            found.skipped["the policy asks whether the tool is public, and no definition of it was given"] += 1
            continue
        found.verdicts[was.verdict, would.verdict] += 1
        if was.verdict != would.verdict:
            who, tool = call.asked.principal.id, call.asked.tool.name
            change = first.setdefault((was, would, who, tool), Change(was, would, who, tool, call.name))
            found.changes[change] = found.changes.get(change, 0) + 1
    return found


def _decide(policy: CedarPolicy, asked: Asked, publics: Iterable[bool]) -> Decision | None:
    """The decision, if its verdict is the same for every possible value of `public`."""
    tools = (replace(asked.tool, public=public) for public in publics)
    decisions = [policy.decide(asked.principal, tool, asked.arguments, asked.labels) for tool in tools]
    return decisions[0] if len({decision.verdict for decision in decisions}) == 1 else None


def logged_calls(lines: Iterable[Line], registry: Registry | None = None) -> Iterator[Recorded]:
    """The calls of an audit log about which a policy was asked, each once."""
    known: set[str] = set()
    for line in lines:
        if line.event in _DECIDED:
            one = jsonio.fingerprint([line.principal, line.run, line.call, line.fingerprint, line.labels])
            if one not in known:
                known.add(one)
                yield _recorded(line, registry)


def described_calls(told: Iterable[tuple[int, Any]], registry: Registry | None = None) -> Iterator[Recorded]:
    """The calls of a file's numbered values: an exported audit log, or objects as `read_call` takes them.

    Raises BadInput for a value that is neither.
    """
    values = iter(told)
    first = next(values, None)
    if first is None:
        return
    if row_of(first[1]) is not None:
        yield from logged_calls((_exported(*each) for each in chain([first], values)), registry)
        return
    for number, value in chain([first], values):
        try:
            yield _described(f"line {number}", value, registry)
        except BadInput as error:
            raise BadInput(f"Line {number} of the calls: {error}") from None


def _exported(number: int, value: Any) -> Line:
    row = row_of(value)
    if row is None:
        raise BadInput(f"Line {number} is no line of an exported audit log, as the first one is.")
    return row.line


def _described(name: str, value: Any, registry: Registry | None) -> Recorded:
    asked = read_call(value, registry)
    if registry is not None and asked.tool.name in registry:
        return Recorded(name, asked, publics=(asked.tool.public,))
    if "effect" not in value:
        return Recorded(name, reason=_NO_EFFECT)
    return Recorded(name, asked, publics=(asked.tool.public,) if "public" in value else (False, True))


def _recorded(line: Line, registry: Registry | None) -> Recorded:
    name = f"{line.run} {line.call}"
    if not line.fingerprint:
        return Recorded(name, reason="refused before a policy was asked")
    arguments = _arguments(line)
    if arguments is None:
        reason = (
            "a secret argument is not in the log"
            if SHOWN in line.arguments
            else "the log does not hold the arguments as they were"
        )
        return Recorded(name, reason=reason)
    if line.effect not in set(Effect):
        return Recorded(name, reason=_NO_EFFECT)
    tool = declared(line.tool, Effect(line.effect))
    asked = Asked(Principal(line.principal), tool, arguments, read_labels(line.labels))
    given = registry.get(line.tool) if registry is not None else None
    return Recorded(name, asked) if given is None else Recorded(name, asked, publics=(given.public,))


def _arguments(line: Line) -> Mapping[str, Any] | None:
    """The arguments of a line, if they are those that the gate saw: their digest says so."""
    try:
        arguments = jsonio.loads(line.arguments)
        digest = fingerprint(line.tool, jsonio.dumps(arguments))
    except ToolwiseError:
        return None
    return arguments if digest == line.fingerprint and isinstance(arguments, dict) else None
