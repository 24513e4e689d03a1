"""Questions to a person as a list: those about one tool together, so that a flood is seen as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolwise.gate.approval import Approval


def by_tool(approvals: Iterable[Approval]) -> dict[str, list[Approval]]:
    """The questions about each tool, in their order; the tool with the most first."""
    groups: dict[str, list[Approval]] = {}
    for asked in approvals:
        groups.setdefault(asked.tool, []).append(asked)
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def as_json(asked: Approval, *, whole: bool) -> dict[str, Any]:
    """One question; `whole` with the text that a decision is about, which may be long."""
    told = {
        "id": asked.id,
        "state": asked.state,
        "tool": asked.tool,
        "principal": asked.principal,
        "run": asked.run,
        "call": asked.call,
        "reason": asked.reason,
        "characters": len(asked.shown),
        "digest": asked.digest,
        "asked": asked.asked,
        "expires": asked.expires,
        "decided_by": asked.decided_by,
    }
    return told | {"shown": asked.shown} if whole else told
