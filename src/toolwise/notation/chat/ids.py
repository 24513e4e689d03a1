"""Ids for the calls of one turn: unique in their conversation, and the same for the same conversation.

Models write no ids, or write `call_0` in every turn, so that results would be matched with older calls. An id follows
from the conversation, since some templates write it into the prompt, and the same seed is to give the same tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from itertools import count

from toolwise.core.chat import ChatRequest

#: The number of a call in its turn -> its id.
Mint = Callable[[int], str]


def minted(request: ChatRequest, prefix: str = "call_", length: int = 24) -> Mint:
    """Ids that no call and no result of the conversation has: `prefix` and so many hexadecimal digits."""
    taken = {call.id for message in request.messages for call in message.calls}
    taken |= {message.call_id for message in request.messages}
    said = repr([(m.role.value, m.text, [(c.id, c.name, c.arguments) for c in m.calls]) for m in request.messages])
    seed = sha256(said.encode(errors="surrogatepass")).digest()
    given: dict[int, str] = {}

    def mint(index: int) -> str:
        if index not in given:
            tries = (sha256(seed + f"{index}.{attempt}".encode()).hexdigest()[:length] for attempt in count())
            given[index] = next(id_ for digits in tries if (id_ := prefix + digits) not in taken)
            taken.add(given[index])
        return given[index]

    return mint
