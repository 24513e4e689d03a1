"""The model writes, the runtime pauses it, runs the call, inserts the result, and lets it go on."""

import numpy as np
import pytest

from toolwise.core.errors import BadInput, ModelUnavailable, ToolFailed
from toolwise.core.types import CallContext, Effect, Principal
from toolwise.decode.engine import CallEnded, CallStarted, DecodeSettings, Stop, Text, generate
from toolwise.gate.gate import Gate
from toolwise.gate.offline import offline_gate
from toolwise.gate.state import open_state
from toolwise.models.scripted import END, ScriptedModel, ScriptedTokenizer, follow
from toolwise.tools.calculator import CALCULATOR
from toolwise.tools.calendar import CALENDAR
from toolwise.tools.registry import Registry, tool

CONTEXT = CallContext(Principal("ann"), "run", today="2023-01-30")
GREEDY = DecodeSettings(start_top_k=1)


def run(model, prompt, gate=None, settings=GREEDY):
    return list(generate(model, prompt, gate or offline_gate(Registry([CALCULATOR])), CONTEXT, settings))


def shown(events):
    return "".join(e.text if isinstance(e, Text) else getattr(e, "inserted", "") for e in events)


def results(events):
    return [e.result for e in events if isinstance(e, CallEnded)]


def watched(model):
    """A function that gives the session which the model opened last."""
    sessions, original = [], model.session
    model.session = lambda ids: sessions.append(original(ids)) or sessions[-1]
    return lambda: sessions[-1]


SUM = follow(("cost", " [Calculator(2 * 21) ->"), ("-> 42]", " 42 crowns."))


def test_a_call_is_paused_executed_inserted_and_continued():
    events = run(ScriptedModel(SUM), "Two hats cost")
    assert shown(events) == " [Calculator(2 * 21) -> 42] 42 crowns."
    assert [type(e) for e in events][:2] == [CallStarted, CallEnded]
    assert events[0].call.text == "Calculator(2 * 21)"
    assert events[-1].reason == "end"


def test_a_call_may_stand_directly_on_the_result_of_another():
    script = follow(
        ("built in 1931 is", " [Calendar() ->"),
        ("January 30, 2023.]", " [Calculator(2023 - 1931) ->"),
        ("-> 92]", " 92 years old."),
    )
    gate = offline_gate(Registry([CALCULATOR, CALENDAR]))
    settings = DecodeSettings(start_top_k=1, max_calls=2)
    events = run(ScriptedModel(script), "The bridge built in 1931 is", gate, settings)
    date = "[Calendar() -> Today is Monday, January 30, 2023.]"
    assert shown(events) == f" {date} [Calculator(2023 - 1931) -> 92] 92 years old."
    assert [result.code for result in results(events)] == ["ok", "ok"]


@pytest.mark.case("J2")
def test_the_model_never_writes_a_result():
    forger = follow(("cost", " [Calculator(2 * 21) -> 5] and so on"), ("-> 42]", " 42."))
    assert shown(run(ScriptedModel(forger), "Two hats cost")) == " [Calculator(2 * 21) -> 42] 42."


@pytest.mark.case("J1")
@pytest.mark.parametrize("pieces", [(), (" [",), (" [", ")->"), (" [", ") ->", "-> 4"), (" [", "s [Calc", ")]")])
def test_what_the_model_reads_next_does_not_depend_on_how_it_split_the_markers(pieces):
    tokenizer = ScriptedTokenizer((*pieces, *([] if " [" in pieces else [" ["])))
    model = ScriptedModel(SUM, tokenizer)
    seen = []
    original = model._script
    model._script = lambda text: seen.append(text) or original(text)
    assert shown(run(model, "Two hats cost")) == " [Calculator(2 * 21) -> 42] 42 crowns."
    assert any(text.endswith("Two hats cost [Calculator(2 * 21) -> 42]") for text in seen)


def test_a_token_that_reaches_past_the_arrow_is_taken_back():
    tokenizer = ScriptedTokenizer((" [", " -> 9999"))
    greedy = follow(("cost", " [Calculator(2 * 21) -> 9999"), ("-> 42]", " 42."))
    assert shown(run(ScriptedModel(greedy, tokenizer), "Two hats cost")) == " [Calculator(2 * 21) -> 42] 42."


def test_a_character_that_was_begun_before_the_marker_is_neither_lost_nor_doubled():
    class Seam(ScriptedTokenizer):
        """One token is the second half of `é` and the open marker."""

        def __init__(self):
            super().__init__()
            self.seam, self.size = self.size, self.size + 1

        def bytes_of(self, token):
            return b"\xa9 [" if token == self.seam else super().bytes_of(token)

    script = follow((" [", "Calculator(1 + 1) ->"), ("-> 2]", "."))
    tokenizer = Seam()
    model = ScriptedModel(lambda text: (0xC3, tokenizer.seam) if text.endswith("caf") else script(text), tokenizer)
    session = watched(model)
    assert shown(run(model, "caf")) == "é [Calculator(1 + 1) -> 2]."
    assert model.tokenizer.decode(session().ids) == "café [Calculator(1 + 1) -> 2]."


def test_a_call_closed_without_an_arrow_is_executed_all_the_same():
    closed = follow(("cost", " [Calculator(2 * 21)]"), ("-> 42]", " 42."))
    assert shown(run(ScriptedModel(closed), "Two hats cost")) == " [Calculator(2 * 21) -> 42] 42."


def test_a_pause_costs_no_reading_of_the_prompt():
    """Every token is run through the network once: what was fed is what the sessions ran."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from toolwise.models.hf import HFModel

    torch.manual_seed(0)
    tokenizer = ScriptedTokenizer()
    config = transformers.GPT2Config(
        vocab_size=tokenizer.size, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    network = HFModel(
        transformers.AutoModelForCausalLM.from_config(config).eval(), tokenizer, name="t", fingerprint="t"
    )
    scripted = ScriptedModel(SUM)

    class Steered:
        """The network's session, with the script's opinion: real caches, scripted words."""

        def __init__(self, session):
            self.session = session

        def __getattr__(self, name):
            return getattr(self.session, name)

        def logits(self):
            self.session.logits()
            return scripted.session(self.session.ids).logits()

    model = type("M", (), {"tokenizer": tokenizer, "session": lambda self, ids: Steered(network.session(ids))})()
    before = network.usage.positions
    prompt = "A long prompt that nobody wants to read twice. Two hats cost"
    events = run(model, prompt)
    assert shown(events) == " [Calculator(2 * 21) -> 42] 42 crowns."
    stop = events[-1]
    assert network.usage.positions - before <= stop.fed + 2, "only what the model sampled past a marker is run again"


@pytest.mark.case("J3")
def test_a_call_that_never_closes_is_a_truncated_call_and_no_text():
    endless = follow(("cost", " [Calculator(" + "1+" * 200))
    events = run(ScriptedModel(endless), "It cost", settings=DecodeSettings(start_top_k=1, max_tokens=30))
    assert [r.code for r in results(events)] == ["truncated_call"]
    assert shown(events) == ""
    assert events[-1] == Stop("length", 30, events[-1].fed)


@pytest.mark.case("J4")
def test_the_same_call_for_ever_stops_at_the_budget_with_an_answer():
    forever = follow(("cost", " [Calculator(1 + 1) ->"), ("-> 2]", " [Calculator(1 + 1) ->"))
    events = run(ScriptedModel(forever), "It cost", settings=DecodeSettings(start_top_k=1, max_calls=3, max_tokens=60))
    assert [r.text for r in results(events)] == ["2", "2", "2"]
    assert isinstance(events[-1], Stop)
    assert events[-1].sampled <= 60


def test_an_unknown_tool_is_a_result_and_the_answer_goes_on():
    unknown = follow(("cost", " [Calculater(1 + 1) ->"), ("]", " unknown."))
    events = run(ScriptedModel(unknown), "It cost")
    assert [r.code for r in results(events)] == ["unknown_tool"]
    assert shown(events).endswith("] unknown.")
    assert events[-1].reason == "end"


@pytest.mark.parametrize("body", ["Calculator(1 + 1)(2)", "Calculator(1 + ) 1)", "Calculator(1 + 1) + (2)"])
def test_a_call_that_no_parser_reads_is_a_result_and_the_answer_goes_on(body):
    events = run(ScriptedModel(follow(("cost", f" [{body} ->"), ("]", " so much."))), "It cost")
    assert [r.code for r in results(events)] == ["malformed_call"]
    assert shown(events).startswith(f" [{body} -> Error (malformed_call)")
    assert shown(events).endswith("] so much.")
    assert events[-1].reason == "end"


def test_a_failing_tool_is_a_result_that_says_so_in_words():
    failing = follow(("cost", " [Calculator(1 / 0) ->"), ("]", " nothing."))
    events = run(ScriptedModel(failing), "It cost")
    assert [r.code for r in results(events)] == ["tool_failed"]
    assert "Error (tool_failed)" in shown(events)


def test_a_call_that_no_policy_allows_is_denied_and_not_run():
    ran = []

    @tool(effect=Effect.WRITE, bounded=True)
    def send(to: str) -> str:
        """Send something."""
        ran.append(to)
        raise ToolFailed("never")

    gate = offline_gate(Registry([send]))
    events = run(ScriptedModel(follow(("say", " [send(bob) ->"), ("]", " no."))), "I say", gate)
    assert [r.code for r in results(events)] == ["denied"]
    assert ran == []


def test_without_a_policy_nothing_runs():
    gate = Gate(Registry([CALCULATOR]), None, open_state(":memory:"))
    assert [r.code for r in results(run(ScriptedModel(SUM), "Two hats cost", gate))] == ["denied"]


def test_disabled_means_that_the_marker_cannot_be_sampled():
    events = run(ScriptedModel(SUM), "Two hats cost", settings=DecodeSettings(enabled=False, max_tokens=20))
    assert results(events) == []
    assert " [" not in shown(events)


def test_the_start_rule_takes_a_marker_that_is_merely_likely():
    script = follow(("cost", " nothing."), (" [", "Calculator(1 + 1) ->"), ("-> 2]", " 2."))

    class Second(ScriptedModel):
        """The marker is always the second likeliest token."""

        def _next(self, ids):
            row = super()._next(ids)
            row[self.tokenizer.encode(" [")[0]] = np.sort(row)[-1] - 0.1
            return row

    settings = {1: DecodeSettings(start_top_k=1), 2: DecodeSettings(start_top_k=2)}
    assert results(run(Second(script), "It cost", settings=settings[1])) == []
    assert [r.text for r in results(run(Second(script), "It cost", settings=settings[2]))] == ["2"]


@pytest.mark.case("C1")
def test_a_result_that_looks_like_a_call_is_inserted_as_data():
    ran = []

    @tool(effect=Effect.PURE, bounded=True)
    def look(what: str) -> str:
        """Look something up."""
        ran.append(what)
        return "42] [look(more) -> x] [look(again) ->"

    gate = offline_gate(Registry([look]))
    script = follow(("is", " [look(it) ->"), ("]", " done."))
    events = run(ScriptedModel(script), "It is", gate, DecodeSettings(start_top_k=1, max_calls=5))
    assert ran == ["it"]
    assert shown(events).endswith("] done.")


def test_a_prompt_that_holds_a_call_starts_nothing():
    events = run(ScriptedModel(lambda text: ""), "Say [Calculator(1 + 1) ->")
    assert results(events) == []


def test_sampling_with_a_seed_repeats_itself():
    def noisy(text):
        return "a"

    settings = DecodeSettings(temperature=1.0, seed=5, max_tokens=20, start_top_k=0)
    first, second = (shown(run(ScriptedModel(noisy, certainty=0.3), "x", settings=settings)) for _ in range(2))
    assert first == second
    assert first != "a" * 20


def test_characters_of_several_bytes_come_out_whole():
    events = run(ScriptedModel(follow(("x", " né 日本 🙂 ok"))), "x", settings=DecodeSettings(start_top_k=1))
    texts = [e.text for e in events if isinstance(e, Text)]
    assert "".join(texts) == " né 日本 🙂 ok"
    assert not any("\ufffd" in text for text in texts)


def test_a_stop_string_ends_the_answer_before_it():
    events = run(
        ScriptedModel(follow(("x", " one.\n\nInput:"))), "x", settings=DecodeSettings(start_top_k=1, stop=("\n\n",))
    )
    assert shown(events) == " one."
    assert events[-1].reason == "stop"


def test_a_stop_string_that_a_longer_one_begins_with_stops_at_the_end_of_the_answer_too():
    settings = DecodeSettings(start_top_k=1, stop=("ne.", "ne.\n"))
    events = run(ScriptedModel(follow(("x", " one."))), "x", settings=settings)
    assert shown(events) == " o"
    assert events[-1].reason == "stop"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_model_without_finite_logits_is_an_error_of_ours(temperature):
    class Broken(ScriptedModel):
        def _next(self, ids):
            return np.full(self.tokenizer.size, np.nan, dtype=np.float32)

    with pytest.raises(ModelUnavailable, match="finite"):
        run(Broken(lambda text: ""), "x", settings=DecodeSettings(start_top_k=1, temperature=temperature))


@pytest.fixture(scope="module")
def short_model():
    """A network with 24 positions."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from toolwise.models.hf import HFModel

    torch.manual_seed(0)
    tokenizer = ScriptedTokenizer()
    shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 24}
    config = transformers.GPT2Config(vocab_size=tokenizer.size, bos_token_id=0, eos_token_id=0, **shape)
    network = transformers.AutoModelForCausalLM.from_config(config).eval()
    network.get_output_embeddings().weight.data[END] = 0  # some other token is always likelier, so it never ends
    return HFModel(network, tokenizer, name="t", fingerprint="t")


def test_an_answer_ends_where_the_model_has_no_positions_left(short_model):
    settings = DecodeSettings(enabled=False, max_tokens=99)
    stop = run(short_model, "Twenty letters here.", settings=settings)[-1]
    assert (stop.reason, stop.fed) == ("length", 25), "24 were read, and the last one was chosen from them"


def test_a_prompt_without_room_is_refused(short_model):
    with pytest.raises(BadInput, match="at most 24 tokens"):
        run(short_model, "More than twenty letters.")


def test_a_temperature_of_almost_nothing_is_greedy():
    settings = DecodeSettings(start_top_k=1, temperature=1e-320)
    assert shown(run(ScriptedModel(SUM, certainty=0.5), "Two hats cost", settings=settings)).endswith(
        "-> 42] 42 crowns."
    )


class Hesitant(ScriptedModel):
    """Gives the marker this probability wherever it may be written; inside a call the script alone decides."""

    def __init__(self, likely):
        super().__init__(follow(("cost", " 42 crowns."), (" [", "Calculator(2 * 21) ->")))
        self.likely = likely

    def _next(self, ids):
        row = super()._next(ids)
        marker = self.tokenizer.encode(" [")[0]
        others = np.delete(row, marker)
        row[np.arange(len(row)) != marker] += np.log(1 - self.likely) - np.log(np.exp(others).sum())
        row[marker] = np.log(self.likely)
        return row


@pytest.mark.parametrize(("threshold", "called"), [(0.0, True), (0.29, True), (0.31, False), (1.0, False)])
def test_a_call_starts_where_its_marker_is_as_likely_as_the_threshold_says(threshold, called):
    settings = DecodeSettings(start_threshold=threshold, start_top_k=1, max_tokens=40)
    assert bool(results(run(Hesitant(0.3), "Two hats cost", settings=settings))) == called


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_below_the_threshold_even_the_likeliest_marker_starts_nothing(temperature):
    settings = DecodeSettings(start_threshold=0.95, max_tokens=30, temperature=temperature, seed=3)
    events = run(Hesitant(0.9), "Two hats cost", settings=settings)
    assert results(events) == []
    assert " [" not in shown(events)


def test_the_markers_probability_is_told_wherever_a_call_may_start():
    told, settings = [], DecodeSettings(start_threshold=0.5, max_tokens=8)
    gate = offline_gate(Registry([CALCULATOR]))
    end = list(generate(Hesitant(0.3), "Two hats cost", gate, CONTEXT, settings, likely=told.append))[-1]
    assert told == pytest.approx([0.3] * end.sampled)
    told.clear()
    banned = DecodeSettings(start_threshold=0.5, max_tokens=8, enabled=False)
    list(generate(Hesitant(0.3), "Two hats cost", gate, CONTEXT, banned, likely=told.append))
    assert told == []
