"""What the tests of wire formats share: hostile conversations and turns, streams cut anywhere, and a door on the
loopback that speaks one format to an official client and answers as a test says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hypothesis import strategies as st
from starlette.responses import JSONResponse, Response, StreamingResponse

from recording_api import Received
from toolwise.core import jsonio
from toolwise.core.chat import (
    CallDelta,
    ChatCall,
    ChatDelta,
    ChatReply,
    ChatRequest,
    StopReason,
    TextDelta,
    TokenUsage,
    pieces,
)
from toolwise.core.errors import ToolwiseError
from toolwise.notation.wire.base import Event, Ident, StreamReader, StreamWriter
from toolwise.notation.wire.sse import decode, encode

IDENT = Ident("0123", "a-model", 1_700_000_000)
HOSTILE = ["", "日本語", "😀", "\0", "\u2028", '"}', "</tool_call>", "data: x\n\n", "\\", "event: error\r\n", "{[", "é"]
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=20) | st.lists(st.sampled_from(HOSTILE)).map("".join)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,20}", fullmatch=True)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)
ARGUMENTS = OBJECTS.map(jsonio.compact)
COUNTS = st.integers(0, 10**6)
USAGES = st.builds(lambda a, b, c: TokenUsage(a + c, b, c), COUNTS, COUNTS, COUNTS)


@st.composite
def calls(draw: st.DrawFn, least: int = 0) -> tuple[ChatCall, ...]:
    """Of one turn: ids differ."""
    found = draw(st.lists(st.tuples(NAMES, ARGUMENTS), min_size=least, max_size=3))
    first = draw(st.integers(0, 10**6))
    return tuple(ChatCall(f"id_{first + number}", *call) for number, call in enumerate(found))


@st.composite
def replies(draw: st.DrawFn) -> ChatReply:
    """Turns that any format can carry: every call is one, and came to its end."""
    text, made, usage = draw(TEXTS), draw(calls()), draw(USAGES)
    stops = [StopReason.CALLS] if made else [StopReason.END, StopReason.LENGTH, StopReason.REFUSED]
    return ChatReply(text, made, draw(st.sampled_from(stops)), usage)


@st.composite
def cut_pieces(draw: st.DrawFn, reply: ChatReply) -> list[ChatDelta]:
    """The turn's pieces, each cut further wherever it may be."""
    found: list[ChatDelta] = []
    for piece in pieces(reply):
        match piece:
            case TextDelta(text):
                found += [TextDelta(part) for part in draw(cuts(text))]
            case CallDelta(index, arguments, id_, name):
                first, *rest = draw(cuts(arguments)) or [""]
                found += [CallDelta(index, first, id_, name), *(CallDelta(index, part) for part in rest)]
            case _:
                found.append(piece)
    return found


@st.composite
def cuts(draw: st.DrawFn, whole: Any) -> list[Any]:
    """A text or bytes in a few parts."""
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    return [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]


def written(writer: StreamWriter, deltas: Iterable[ChatDelta]) -> list[Event]:
    return [event for delta in deltas for event in writer.push(delta)]


def read(reader: StreamReader, chunks: Iterable[bytes]) -> list[ChatDelta]:
    return [*(delta for event in decode(chunks) for delta in reader.push(event)), *reader.flush()]


def told(events: Iterable[Any]) -> list[Event]:
    """Events as a server tells them: objects, or texts as they stand."""
    return [Event(event, "") if isinstance(event, str) else Event(jsonio.compact(event), "") for event in events]


class Door:
    """One format at one address. `turns` are what is answered, one after another; `asked` is what was read."""

    def __init__(self, wire: Any, read_request: Callable[[Received], ChatRequest], *turns: Any) -> None:
        self.wire = wire
        self.asked: list[ChatRequest] = []
        self._read = read_request
        self._turns = list(turns)

    def __call__(self, received: Received) -> Response:
        try:
            request = self._read(received)
            self.asked.append(request)
            turn = self._turns.pop(0)
            if isinstance(turn, ToolwiseError):
                raise turn
        except ToolwiseError as error:
            status, body = self.wire.write_error(error)
            return JSONResponse(body, status)
        if not request.stream:
            return _json(self.wire.write_reply(turn, request, IDENT))
        return StreamingResponse(self._streamed(turn, request), media_type="text/event-stream")

    def _streamed(self, turn: ChatReply | Sequence[ChatDelta | ToolwiseError], request: ChatRequest) -> Any:
        writer = self.wire.writer(request, IDENT)
        for delta in pieces(turn) if isinstance(turn, ChatReply) else turn:
            failed = isinstance(delta, ToolwiseError)
            yield b"".join(encode(event) for event in (writer.fail(delta) if failed else writer.push(delta)))


def _json(body: Any) -> Response:
    """Integers of any size, which Starlette's own response writes as well; no NaN."""
    return Response(jsonio.compact(body), media_type="application/json")


@st.composite
def spoilt(draw: st.DrawFn, sample: Any) -> Any:
    """The JSON with one to three of its values replaced, or one field more."""
    found = jsonio.loads(jsonio.compact(sample))
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from(list(_places(found)) or [([found], 0)]))
        if isinstance(holder, dict) and draw(st.booleans()):
            key = draw(st.sampled_from([*holder, "type", "id", "new"]))
        holder[key] = draw(VALUES)
    return found


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else []
    return [place for key in keys for place in [(value, key), *_places(value[key])]]
