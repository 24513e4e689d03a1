"""What a model reads behind a call while decoding is what it was trained on, token for token."""

import numpy as np
import pytest

from toolwise.core.types import CallContext, Effect, Principal
from toolwise.decode.engine import DecodeSettings, generate
from toolwise.gate.offline import offline_gate
from toolwise.models.plain import PlainSession
from toolwise.models.scripted import ScriptedTokenizer
from toolwise.notation.inline import Insertion, find, weave
from toolwise.teach.records import Augmented, Span
from toolwise.teach.training.examples import training_example
from toolwise.tools.registry import Registry, tool

PROMPT, REST = "Of 24 hats he sold 18, which makes", " a good day."
RESULTS = ["0.75", "", "a] b", " twice  spaced ", "é 日本 🙂", "[look(x) -> y]", "back\\slash"]
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

    def _next(self, ids):
        row = np.zeros((1, self._size), dtype=np.float32)
        row[0, self._left.pop(0)] = 9.0
        return row


def read_while_decoding(tokenizer, size, body, result):
    """The ids of a session after its model wrote the body up to the arrow, and the runtime the rest."""

    @tool(effect=Effect.PURE, bounded=True)
    def look(what: str) -> str:
        """Look something up."""
        return result

    encode = tokenizer.encode
    model = Dictated(tokenizer, size, [*encode(" ["), *encode(f"{body} -> ")])
    settings = DecodeSettings(start_top_k=1)
    list(generate(model, PROMPT, offline_gate(Registry([look])), CallContext(Principal("ann"), "run"), settings))
    return model.session_opened.ids


def assert_same_tokens(tokenizer, size, result):
    body = "look(18 / 24)"
    example = training_example(augmented(body, result), tokenizer)
    ((_, end),) = example.calls
    assert read_while_decoding(tokenizer, size, body, result)[:end] == example.ids[:end]


@pytest.mark.parametrize("pieces", SPLITS)
@pytest.mark.parametrize("result", RESULTS)
def test_training_and_decoding_read_the_same_tokens_however_a_tokenizer_merges_them(result, pieces):
    tokenizer = ScriptedTokenizer((" [", *pieces))
    assert_same_tokens(tokenizer, tokenizer.size, result)


@pytest.mark.model
@pytest.mark.parametrize("result", RESULTS)
def test_training_and_decoding_read_the_same_tokens_of_the_embedded_model(embedded_model, result):
    tokenizer = embedded_model.tokenizer
    assert_same_tokens(tokenizer, len(tokenizer.wrapped), result)
