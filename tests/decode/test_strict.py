"""With masks every call names a tool and fits it, whatever the model would have written; text stays free."""

from itertools import count

import numpy as np
import pytest

from toolwise.core.types import CallContext, Effect, Principal
from toolwise.decode.engine import CallEnded, DecodeSettings, Stop, Text, generate
from toolwise.gate.offline import offline_gate
from toolwise.models.masks import Masks
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer, follow
from toolwise.notation.markers import SPECIAL
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.registry import Registry, tool

RUNS = count()


def context():
    """Of a run of its own: a gate keeps what the calls of another one gave."""
    return CallContext(Principal("ann"), f"run-{next(RUNS)}", today="2023-01-30")


PIECES = (" [", "]", ")]", ")->", " ->", "->", " [C", "12", " * ", ")\n")


@tool(name="Weather", effect=Effect.PURE, bounded=True)
def weather(city: str, days: int = 1) -> str:
    """The weather.

    Args:
        city: Where.
        days: How many.
    """
    return f"{days} fine days in {city}"


GATE = offline_gate(Registry([CALCULATOR, CALENDAR, weather]))


def run(model, prompt, gate=GATE, **settings):
    settings = DecodeSettings(**{"start_top_k": 1, **settings})
    return list(generate(model, prompt, gate, context(), settings, masks=Masks(model.tokenizer)))


def shown(events):
    return "".join(e.text if isinstance(e, Text) else getattr(e, "inserted", "") for e in events)


def results(events):
    return [e.result for e in events if isinstance(e, CallEnded)]


def model_of(*lines, pieces=PIECES, **how):
    return ScriptedModel(follow(*lines), ScriptedTokenizer(pieces, **how))


def test_a_good_call_is_as_it_was():
    model = model_of(("cost", " [Calculator(12 * 3) ->"), ("-> 36]", " 36 crowns."))
    events = run(model, "Hats cost")
    assert shown(events) == " [Calculator(12 * 3) -> 36] 36 crowns."
    assert events[-1].reason == "end"


def test_a_name_that_does_not_exist_cannot_be_written():
    model = model_of(("cost", " [Compute(12 * 3) ->"), (" [C", "alculator(12 * 3) ->"), ("-> 36]", " 36."))
    events = run(model, "Hats cost")
    assert results(events)[0].code in ("ok", "tool_failed")
    assert shown(events).startswith(" [C")


def test_arguments_fit_their_schema_whatever_the_model_wants():
    model = model_of(("is", ' [Weather(city=Oslo, days="many")]'), ("[Weather(city=", '"Oslo", days="many")]'))
    (result,) = results(run(model, "It is", temperature=1.0, seed=3, max_tokens=200))
    assert result.code == "ok"


@pytest.mark.parametrize("seed", range(8))
def test_a_model_that_writes_anything_writes_calls_that_run(seed):
    """Its tokens are by lot, and every call that it ends is one that the gate takes."""
    tokenizer = ScriptedTokenizer(PIECES)
    model = ScriptedModel(lambda text: "", tokenizer, certainty=1 / tokenizer.size)
    gate = offline_gate(Registry([CALENDAR, weather]))
    settings = {"temperature": 1.0, "seed": seed, "max_tokens": 400, "start_top_k": 40, "max_calls": 5}
    codes = [result.code for result in results(run(model, "x", gate, **settings))]
    assert set(codes) <= {"ok", "truncated_call"}
    assert codes.count("truncated_call") <= 1  # where the answer ended, or the call became too long


def test_what_can_only_be_one_way_is_not_sampled():
    model = model_of(("cost", " [Calculator(12 * 3) ->"), ("-> 36]", " 36."))
    events = run(model, "Hats cost", offline_gate(Registry([CALCULATOR])))
    free = list(generate(model, "Hats cost", GATE, context(), DecodeSettings(start_top_k=1)))
    assert shown(events) == shown(free)
    stop, other = (e for e in (events[-1], free[-1]) if isinstance(e, Stop))
    assert stop.sampled <= other.sampled - len("Calculator(")
    assert stop.fed == other.fed


def test_forced_tokens_cost_one_forward_pass():
    model = model_of(("cost", " [Calculator(12 * 3) ->"))
    before = model.usage.forwards
    events = run(model, "Hats cost", offline_gate(Registry([CALCULATOR])), max_calls=1, max_tokens=12)
    assert model.usage.forwards - before <= events[-1].sampled + 1


def test_no_token_both_ends_a_marker_and_begins_a_name():
    """` [C` would begin a call behind the back of the mask."""
    model = model_of(("cost", " [Crook(1) ->"), ("-> 36]", " 36."))
    logits = model._logits
    spelled = model.tokenizer.encode(" [C")
    assert len(spelled) == 1

    def eager(ids, rows):
        found = logits(ids, rows)
        found[:, spelled[0]] = 50.0 if model.tokenizer.decode(ids).endswith("cost") else -50.0
        return found

    model._whole = eager
    for event in run(model, "Hats cost", max_tokens=40):
        assert "Crook" not in getattr(event, "text", "")


def test_text_that_is_no_call_is_free():
    model = model_of(("see", " the list[x] of (12 * 3) -> 36]."))
    assert shown(run(model, "We see")) == " the list[x] of (12 * 3) -> 36]."


def test_special_markers_are_strict_too():
    model = model_of(("cost", "<call>Calculator(12 * 3)<result>"), ("36</call>", " 36."), notation=SPECIAL)
    events = run(model, "Hats cost")
    assert shown(events) == "<call>Calculator(12 * 3)<result> 36</call> 36."


@pytest.mark.model
def test_the_real_model_writes_calls_that_the_gate_takes(embedded_model):
    masks = Masks(embedded_model.tokenizer)
    gate = offline_gate(Registry([weather, CALENDAR]))
    for seed in range(3):
        settings = DecodeSettings(start_top_k=60_000, temperature=1.0, seed=seed, max_tokens=40)
        events = list(generate(embedded_model, "The weather in Oslo:", gate, context(), settings, masks=masks))
        assert {result.code for result in results(events)} <= {"ok", "truncated_call"}
        assert np.isfinite(events[-1].sampled)
