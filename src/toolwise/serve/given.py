"""What the conversations at a server have read, for the runs that go on with them.

Every request is a run of its own, and its client brings the conversation so far. What the server's tools told in an
earlier run stands there too, in the words of the model that had read it; so a run that goes on with an answer begins
with the labels under which that answer was written. Of an answer that nobody here remembers (another process wrote it,
or it was changed) the worst is taken: whatever the server's tools may tell. Results of a client's own tools are
untrusted, as the gate has it of every tool whose author said nothing.

Not covered: what a client puts into a user's message; it counts as the user's own words.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from toolwise.core.chat import Message, Role
from toolwise.core.types import Integrity, Labels, Tool
from toolwise.gate.labels import labels_of


class Given:
    """The labels of the answers to the latest `most` conversations, each under its name (`serve.paused`)."""

    def __init__(self, tools: Iterable[Tool], most: int) -> None:
        self.worst = Labels()  # of all that these tools may tell
        for tool in tools:
            self.worst |= labels_of(tool)
        self._most = most
        self._known: OrderedDict[str, Labels] = OrderedDict()
        self._lock = threading.Lock()

    def before(self, names: Sequence[tuple[str, int]], messages: Sequence[Message]) -> Labels:
        """What a conversation has read before its next answer."""
        told = any(message.role is Role.TOOL for message in messages)
        labels = Labels(Integrity.UNTRUSTED) if told else Labels()
        answers = [place for place, message in enumerate(messages) if message.role is Role.ASSISTANT]
        if not answers:
            return labels
        *_, earlier, last = -1, *answers
        with self._lock:
            for name, count in names:  # of which the last answer, and no other, came after
                if earlier < count <= last and name in self._known:
                    return labels | self._known[name]
        return labels | self.worst

    def add(self, name: str, labels: Labels) -> None:
        """An answer to this conversation was written under these labels. Of several answers nobody knows which one the
        client goes on with."""
        with self._lock:
            self._known[name] = labels | self._known.pop(name, Labels())
            if len(self._known) > self._most:
                self._known.popitem(last=False)
