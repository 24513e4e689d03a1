"""What an operator found out about a call whose outcome is unknown: it was done, or it may begin anew.

The ledger's row and the audit log's line `resolved` are one transaction. Not covered: whether the operator is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from toolwise.core import jsonio
from toolwise.core.clock import Clock
from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Effect
from toolwise.gate.audit import Audit, Line
from toolwise.gate.ledger import Durable, Record
from toolwise.gate.state import Sql

End = Literal["done", "retry"]
_SHORTEST = 8  # digits of a key that people have to give


def resolve(
    ledger: Durable,
    audit: Audit,
    clock: Clock,
    key: str,
    end: End,
    by: str,
    limits: Limits = LIMITS,
) -> Record:
    """Resolve the call of this key; its record as it was before.

    Raises BadInput for a key that is none, a call whose outcome is known, and a name that is none.
    """
    if not 0 < len(by) <= limits.id_chars:
        raise BadInput("Say who found out what became of the call.")
    record = named(ledger.records(), key)
    line = Line(
        run=record.run,
        call=record.call,
        principal=record.principal,
        event="resolved",
        tool=record.tool,
        effect=Effect.WRITE.value,
        fingerprint=record.fingerprint,
        code=end,
        detail=f"{record.state} before; by {jsonio.printable(by, limits.id_chars)}",
        wall=clock.now().isoformat(),
    )

    def also(sql: Sql) -> None:
        ledger.resolve(record.key, end, sql)

    audit.append(line, also, durable=True)
    return record


def named(records: Sequence[Record], key: str) -> Record:
    """The record with this key, or the only one whose key begins so. Raises BadInput."""
    found = [record for record in records if record.key.startswith(key)] if len(key) >= _SHORTEST else []
    if len(found) != 1:
        raise BadInput(f"Give a key of the ledger, or at least its first {_SHORTEST} digits, if only one begins so.")
    return found[0]
