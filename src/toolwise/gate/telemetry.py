"""One span a call, made when it has ended, where OpenTelemetry is there (`pip install 'toolwise[telemetry]'`).

The names are those of the semantic conventions for generative AI, `execute_tool` spans
(https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/), kept here because they are still moving. Arguments
and results are never put into a span: they may be private, and the audit log has them. A span that cannot be made or
sent is lost without a word: the audit log is the evidence.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from toolwise.gate.audit import Line

try:
    from opentelemetry import trace
except ImportError:
    trace = None  # type: ignore[assignment]

OPERATION = "gen_ai.operation.name"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
CONVERSATION_ID = "gen_ai.conversation.id"
ERROR_TYPE = "error.type"
EFFECT = "toolwise.tool.effect"
POLICY = "toolwise.policy"
CODE = "toolwise.result.code"
EVENT = "toolwise.audit.event"


def record(line: Line) -> None:
    """A span for a call that has ended, from its start to now, below whatever span is current."""
    if trace is not None and line.event in ("result", "refused", "replayed"):
        with suppress(Exception):  # the call has ended, whatever becomes of its span
            _record(line)


def _record(line: Line) -> None:
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):  # the program has set up none
        return
    tracer = provider.get_tracer("toolwise.gate")
    ended = datetime.fromisoformat(line.wall).timestamp()
    span = tracer.start_span(f"execute_tool {line.tool}".rstrip(), start_time=_nanoseconds(ended - line.seconds))
    if not span.is_recording():
        return
    span.set_attributes(
        {
            OPERATION: "execute_tool",
            TOOL_NAME: line.tool,
            TOOL_CALL_ID: line.call,
            CONVERSATION_ID: line.run,
            EFFECT: line.effect,
            POLICY: line.policy,
            CODE: line.code,
            EVENT: line.event,
        }
    )
    if line.code != "ok":
        span.set_attribute(ERROR_TYPE, line.code)
        span.set_status(trace.Status(trace.StatusCode.ERROR, line.code))
    span.end(_nanoseconds(ended))


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
