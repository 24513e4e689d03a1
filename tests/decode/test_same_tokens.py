"""What a model reads of a call while it is scored and while it decodes is what it was trained on, token for token."""

import numpy as np
import pytest

from toolwise.core.types import CallContext, Effect, Principal
from toolwise.decode.engine import DecodeSettings, generate
from toolwise.gate.offline import offline_gate
from toolwise.models.plain import PlainSession
from toolwise.models.scripted import ScriptedModel, ScriptedTokenizer
from toolwise.notation.inline import Insertion, find, weave
from toolwise.notation.markers import PLAIN, SPECIAL
from toolwise.notation.pieces import call_segments
from toolwise.notation.segments import Segment, encode
from toolwise.teach.config import ToolSettings
from toolwise.teach.prepare import prepare
from toolwise.teach.records import Augmented, Candidate, Passage, Span
from toolwise.teach.score import Scorer, notation_wording
from toolwise.teach.training.examples import training_example
from toolwise.tools.registry import Registry, tool

PROMPT, REST = "Of 24 hats he sold 18, which makes", " a good day."
RESULTS = ["0.75", "", "a] b", " twice  spaced ", "é 日本 🙂", "[look(x) -> y]", "back\\slash", "</call> <call>look(x)"]
SPLITS = [(), (")]", ")->", "->"), (" [look", "look(", " -> 0", "5]"), ("s [", ") -> ", "> ", "]"), (" -> ", "75]")]


def augmented(body, result):
    plain = PROMPT + REST
    text = weave(plain, [Insertion(len(PROMPT), body, result)])
    (call,) = find(text)
    return Augmented("p", "d", text, plain, (Span(call.start, call.end, call.result_start, call.result_end, "look"),))


class Dictated:
    """A model that writes the ids it was given, whatever it reads, and then ends."""

    def __init__(self, tokenizer, size, ids):
        self.tokenizer, self.session_opened = tokenizer, None
        self._size, self._left = size, [*ids, min(tokenizer.end)]

    def session(self, context):
        self.session_opened = PlainSession(self._next, context)
        return self.session_opened

    def _next(self, ids, rows):
        row = np.zeros((1, self._size), dtype=np.float32)
        row[0, self._left.pop(0)] = 9.0
        return row


def read_while_decoding(tokenizer, size, body, result):
    """The ids of a session after its model wrote the body up to the arrow, and the runtime the rest."""

    @tool(effect=Effect.PURE, bounded=True)
    def look(what: str) -> str:
        """Look something up."""
        return result

    notation = tokenizer.notation
    arrow = [Segment(notation.arrow, marker=True), Segment(" ")] if notation.special else []
    spelled = Segment(body if notation.special else f"{body} -> ")
    written, _ = encode([Segment(notation.open, marker=True), spelled, *arrow], tokenizer)
    model = Dictated(tokenizer, size, written)
    settings = DecodeSettings(start_top_k=1)
    list(generate(model, PROMPT, offline_gate(Registry([look])), CallContext(Principal("ann"), "run"), settings))
    return model.session_opened.ids


def assert_same_tokens(tokenizer, size, result):
    body = "look(18 / 24)"
    example = training_example(augmented(body, result), tokenizer)
    ((_, end),) = example.calls
    assert read_while_decoding(tokenizer, size, body, result)[:end] == example.ids[:end]


@pytest.mark.parametrize("notation", [PLAIN, SPECIAL])
@pytest.mark.parametrize("pieces", SPLITS)
@pytest.mark.parametrize("result", RESULTS)
def test_training_and_decoding_read_the_same_tokens_however_a_tokenizer_merges_them(result, pieces, notation):
    tokenizer = ScriptedTokenizer((" [", *pieces), notation)
    assert_same_tokens(tokenizer, tokenizer.size, result)


@pytest.mark.parametrize("result", RESULTS)
def test_training_and_decoding_read_the_same_tokens_of_a_tokenizer_to_which_markers_were_added(result):
    pytest.importorskip("transformers")
    import tiny_models as tiny
    from toolwise.models.growth import with_notation
    from toolwise.models.tokenizers import HFTokenizer

    tokenizer, _ = with_notation(HFTokenizer(tiny.tokenizer()), SPECIAL)
    assert_same_tokens(tokenizer, len(tokenizer.wrapped), result)


@pytest.mark.model
@pytest.mark.parametrize("notation", [PLAIN, SPECIAL])
@pytest.mark.parametrize("result", RESULTS)
def test_training_and_decoding_read_the_same_tokens_of_the_embedded_model(embedded_model, result, notation):
    from toolwise.models.growth import with_notation

    tokenizer, _ = with_notation(embedded_model.tokenizer, notation)
    assert_same_tokens(tokenizer, len(tokenizer.wrapped), result)


@pytest.mark.parametrize("pieces", SPLITS)
def test_the_filter_reads_the_same_tokens_of_a_call_as_training(pieces):
    tokenizer, body, heard = ScriptedTokenizer((" [", *pieces)), "look(18 / 24)", []

    class Listening(ScriptedModel):
        def score(self, requests):
            heard.extend(request.ids for request in requests)
            return super().score(requests)

    model = Listening(lambda text: "x", tokenizer)
    prepared = {p.passage.id: p for p in prepare([Passage("p", "d", 0, PROMPT + REST)], model)}
    candidate = Candidate("p", "look", len(prepared["p"].ids) - 6, len(PROMPT), body, "lm", result="0.75")
    scorer = Scorer(
        model, notation_wording(), ToolSettings(), separator="\n", early_bounds=False, seed=0, controls=False
    )
    scorer.score([candidate], prepared)
    for result in ("", "0.75"):
        call = encode(call_segments(body, result), tokenizer)[0]
        assert any(ids[: len(call)] == call for ids in heard)
