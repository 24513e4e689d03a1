"""The journal under every order of appends, torn writes, crashes and flipped bits: what was acknowledged is recovered,
and nothing else ever is."""

import os
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import machines
from toolwise.core.errors import StorageUnavailable
from toolwise.teach.store.journal import Journal, recover

PAYLOADS = st.binary(max_size=24)


class JournalMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="toolwise-journal-")
        self.path = Path(self.folder.name) / "journal"
        self.acknowledged: list[bytes] = []
        self.journal = Journal(self.path)

    @rule(payload=PAYLOADS)
    def append(self, payload: bytes) -> None:
        self.journal.append(payload)
        self.acknowledged.append(payload)

    @rule(payload=PAYLOADS, taken=st.integers(0, 40))
    def die_in_the_middle_of_an_append(self, payload: bytes, taken: int) -> None:
        """The system had taken so many bytes of the record; somebody else comes."""
        whole = self.path.stat().st_size
        self.journal.append(payload)
        self.journal.close()
        if taken < self.path.stat().st_size - whole:
            os.truncate(self.path, whole + taken)
        else:  # all of it was there, only nobody said so
            self.acknowledged.append(payload)
        self.reopen()

    @rule(payload=PAYLOADS, torn=st.booleans())
    def fail(self, payload: bytes, torn: bool) -> None:
        """The disk takes a part of the record, or all of it and cannot sync; nothing is appended behind that."""
        descriptor = self.journal._descriptor
        self.journal._descriptor = os.open("/dev/full", os.O_WRONLY) if torn else os.open("/dev/null", os.O_RDONLY)
        for _ in range(2):
            try:
                self.journal.append(payload)
            except StorageUnavailable:
                continue
            raise AssertionError("it was not stored")
        os.close(self.journal._descriptor)
        self.journal._descriptor = descriptor
        self.journal.close()
        self.reopen()

    @rule(garbage=st.binary(min_size=1, max_size=12))
    def die_with_garbage_behind_the_end(self, garbage: bytes) -> None:
        self.journal.close()
        with self.path.open("ab") as file:
            file.write(garbage)
        found = recover(self.path.read_bytes())
        assert list(found.records[: len(self.acknowledged)]) == self.acknowledged
        if found.torn:  # a whole record is nothing that anybody could tell from one of ours
            self.reopen()
        else:
            os.truncate(self.path, self.path.stat().st_size - len(garbage))
            self.reopen()

    def reopen(self) -> None:
        self.journal = Journal(self.path)
        assert list(self.journal.recovered.records) == self.acknowledged

    @precondition(lambda self: self.acknowledged)
    @rule(data=st.data())
    def flip_a_bit_of_a_copy(self, data: st.DataObject) -> None:
        copy = bytearray(self.path.read_bytes())
        place = data.draw(st.integers(0, 8 * len(copy) - 1))
        copy[place // 8] ^= 1 << place % 8
        found = recover(bytes(copy))
        assert found.torn > 0, "it does not go unseen"
        assert list(found.records) == self.acknowledged[: len(found.records)]

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        found = recover(self.path.read_bytes())
        assert (list(found.records), found.torn) == (self.acknowledged, 0)

    def teardown(self) -> None:
        self.journal.close()
        self.folder.cleanup()


def test_no_order_of_events_loses_an_acknowledged_record() -> None:
    machines.run(JournalMachine)
