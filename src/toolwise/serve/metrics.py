"""What the server counts, as Prometheus reads it from `/metrics`: how much of everything, never what or for whom."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from toolwise.core.chat import ReplyEnded
from toolwise.serve.slots import Places

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The figures of one server."""

    def __init__(self, places: Places) -> None:
        self._registry = all_ = CollectorRegistry()
        requests = "Requests, by door and by HTTP status; 499 where the client went away."
        self._requests = Counter("toolwise_requests", requests, ["door", "status"], registry=all_)
        self._replies = Counter("toolwise_replies", "Turns that came to their end.", ["door", "stop"], registry=all_)
        self._tokens = Counter("toolwise_tokens", "Tokens of replies.", ["kind"], registry=all_)
        self._calls = Counter("toolwise_calls", "Calls, by who runs them and by code.", ["by", "code"], registry=all_)
        seconds, first = "Seconds of a reply, from its place on.", "Seconds until a reply's first piece."
        self._seconds = Histogram("toolwise_reply_seconds", seconds, ["door"], buckets=_SECONDS, registry=all_)
        self._first = Histogram("toolwise_first_piece_seconds", first, ["door"], buckets=_SECONDS, registry=all_)
        self.open_streams = Gauge("toolwise_open_streams", "Streams that are being written.", registry=all_)
        for name, told, value in (
            ("toolwise_places", "Replies that can be made at one time.", lambda: places.most),
            ("toolwise_places_taken", "Replies that are being made.", lambda: places.taken),
            ("toolwise_waiting", "Requests that wait for a place.", lambda: places.waiting),
        ):
            Gauge(name, told, registry=all_).set_function(value)

    def answered(self, door: str, status: int) -> None:
        self._requests.labels(door, str(status)).inc()

    def first(self, door: str, seconds: float) -> None:
        self._first.labels(door).observe(seconds)

    def replied(self, door: str, ended: ReplyEnded, calls: int, seconds: float) -> None:
        """A turn came to its end, with so many calls for the client."""
        self._replies.labels(door, ended.stop.value).inc()
        self._seconds.labels(door).observe(seconds)
        usage = ended.usage
        for kind, count in (("prompt", usage.prompt), ("completion", usage.completion), ("cached", usage.cached)):
            self._tokens.labels(kind).inc(count)
        if calls:
            self._calls.labels("client", "").inc(calls)

    def called(self, code: str) -> None:
        """A tool of the server's was called."""
        self._calls.labels("server", code).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)
