"""Every call leaves a span with the names that others know, and nothing of what it was about."""

from typing import Any

import pytest
from gate_bench import TEXT, Bench, tool
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from toolwise.core.types import Effect


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    provider, exporter = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


def test_a_call_is_one_span_with_its_names_and_without_its_arguments(spans: InMemorySpanExporter) -> None:
    bench = Bench((tool(lambda to: to, "send", Effect.WRITE, to=TEXT),))
    bench.call({"to": "canary"}, "send")
    (span,) = spans.get_finished_spans()
    assert span.name == "execute_tool send"
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": "run-1",
        "toolwise.tool.effect": "write",
        "toolwise.policy": "test",
        "toolwise.result.code": "ok",
        "toolwise.audit.event": "result",
    }
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.start_time <= span.end_time
    assert "canary" not in span.to_json()


def test_a_refusal_is_an_error_span(spans: InMemorySpanExporter) -> None:
    Bench().call({"to": 1})
    (span,) = spans.get_finished_spans()
    assert (span.attributes or {})["error.type"] == "invalid_arguments"
    assert span.status.status_code is trace.StatusCode.ERROR


def test_a_span_stands_below_the_one_that_is_current(spans: InMemorySpanExporter) -> None:
    with trace.get_tracer("test").start_as_current_span("agent") as agent:
        Bench().call({})
    call, parent = spans.get_finished_spans()
    assert call.parent is not None
    assert call.parent.span_id == agent.get_span_context().span_id
    assert parent.name == "agent"


class Broken(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("the exporter failed")


@pytest.mark.parametrize("arguments", [{"to": "bob"}, {"to": 1}])
def test_an_exporter_that_fails_costs_no_call_its_result(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = TracerProvider()
    provider.add_span_processor(Broken())
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    bench = Bench((tool(lambda to: to, "send", Effect.WRITE, to=TEXT),))
    assert bench.call(arguments, "send").code in ("ok", "invalid_arguments")
