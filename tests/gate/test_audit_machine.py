"""The audit log under every order of lines, crashes and forgeries: what was acknowledged is recovered, in order, and no
change goes unseen."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import machines
from toolwise.core.errors import Corrupt
from toolwise.core.limits import LIMITS
from toolwise.gate.audit import START, Audit, Line, chained
from toolwise.gate.state import open_state

SMALL = replace(LIMITS, audit_batch=3)
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
FIELDS = ("run", "call", "principal", "event", "tool", "effect", "arguments", "code", "digest", "detail", "wall")


class AuditMachine(RuleBasedStateMachine):
    """Two processes write one log; `written` is what the state must hold, `waits` what each has in memory."""

    where: str
    places = st.integers(0, 1)

    @initialize()
    def start(self) -> None:
        self.states = [open_state(self.where) for _ in range(2)]
        self.logs = [Audit(state, limits=SMALL) for state in self.states]
        with self.states[0].transaction(durable=False) as sql:
            sql("DELETE FROM audit")
        self.written: list[Line] = []
        self.waits: list[list[Line]] = [[], []]
        self.heads: list[str] = []
        self.numbers = itertools.count()

    def line(self, effect: str, text: str) -> Line:
        return Line(f"run {next(self.numbers)}", text, "ann", "intent", "pay", effect, text, seconds=0.1)

    @rule(place=places, effect=st.sampled_from(["", "pure", "read", "write"]), text=TEXTS, also=st.booleans())
    def append(self, place: int, effect: str, text: str, also: bool) -> None:
        line, waits = self.line(effect, text), self.waits[place]
        ran: list[bool] = []
        self.logs[place].append(line, (lambda sql: ran.append(True)) if also else None)
        assert len(ran) == also
        waits.append(line)
        if also or effect in ("read", "write") or len(waits) > SMALL.audit_batch:
            self.write(place)

    def write(self, place: int) -> None:
        self.written += self.waits[place]
        self.waits[place] = []

    @rule(place=places)
    def flush(self, place: int) -> None:
        self.logs[place].flush()
        self.write(place)

    @rule(place=places)
    def die(self, place: int) -> None:
        """What waited is lost; another process comes."""
        self.states[place].close()
        self.states[place] = open_state(self.where)
        self.logs[place] = Audit(self.states[place], limits=SMALL)
        self.waits[place] = []

    @rule()
    def note_the_head(self) -> None:
        last = self.logs[0].verify()
        self.write(0)
        self.heads += [] if last is None else [last.hash]

    @precondition(lambda self: self.written)
    @rule(
        data=st.data(),
        how=st.sampled_from(
            ["change", "swap fields", "hash", "take out", "renumber", "put in", "cut off", "rewrite the end"]
        ),
    )
    def forge(self, data: st.DataObject, how: str) -> None:
        log, state = self.logs[0], self.states[0]
        last = log.verify()
        self.write(0)
        assert last is not None
        saved = state.read("SELECT * FROM audit ORDER BY sequence")
        number = data.draw(st.integers(1, len(saved)))
        if not self.forgery(data, how, number, saved):
            return
        with pytest.raises(Corrupt):
            log.verify(last.hash)
        with state.transaction(durable=False) as sql:
            sql("DELETE FROM audit")
            for row in saved:
                sql(f"INSERT INTO audit VALUES ({', '.join('?' * len(row))})", row)

    def forgery(self, data: st.DataObject, how: str, number: int, saved: list[Any]) -> bool:
        """Whether anything is another than before."""
        old = self.written[number - 1]
        with self.states[0].transaction(durable=False) as sql:
            match how:
                case "change":
                    name = data.draw(st.sampled_from(FIELDS))
                    sql(f"UPDATE audit SET {name} = ? WHERE sequence = ?", (getattr(old, name) + "x", number))
                case "swap fields":
                    sql("UPDATE audit SET call = run, run = call WHERE sequence = ?", (number,))
                    return old.call != old.run
                case "hash":
                    sql("UPDATE audit SET hash = ? WHERE sequence = ?", (START, number))
                case "take out":
                    sql("DELETE FROM audit WHERE sequence = ?", (number,))
                    sql("UPDATE audit SET sequence = 1 - sequence WHERE sequence > ?", (number,))
                    sql("UPDATE audit SET sequence = -sequence WHERE sequence < 0")
                case "renumber":
                    sql("UPDATE audit SET sequence = sequence + 1000 WHERE sequence = ?", (number,))
                case "put in":
                    row = saved[number - 1]
                    sql(f"INSERT INTO audit VALUES ({', '.join('?' * len(row))})", (len(saved) + 1, *row[1:]))
                case "cut off":
                    sql("DELETE FROM audit WHERE sequence >= ?", (number,))
                case "rewrite the end":  # with hashes that hold together: only the head that was noted shows it
                    hash = saved[number - 2][1] if number > 1 else START
                    for place, line in enumerate(self.written[number - 1 :], number):
                        line = line._replace(code="forged")
                        hash = chained(hash, line)
                        sql("UPDATE audit SET code = 'forged', hash = ? WHERE sequence = ?", (hash, place))
        return True

    @invariant()
    def what_was_acknowledged_is_there_in_order_and_nothing_else(self) -> None:
        rows = self.states[1].read("SELECT sequence, run, call FROM audit ORDER BY sequence")
        assert rows == [(number, line.run, line.call) for number, line in enumerate(self.written, 1)]

    def teardown(self) -> None:
        log = self.logs[0]
        assert [row.line for row in log.rows()] == self.written + self.waits[0]
        for head in ["", *self.heads]:
            log.verify(head)
        for state in self.states:
            state.close()


def test_no_order_of_events_loses_a_line_or_hides_a_change(where: str) -> None:
    machines.run(AuditMachine, where=where)
