"""Masks over a vocabulary: exact for every token, and no text ends that does not fit."""

import random

import jsonschema_rs
import numpy as np
import pytest
from random_schemas import random_schema, walk

from tiny_models import tokenizer as tiny_tokenizer
from toolwise.core import jsonio
from toolwise.core.chat import ToolSpec
from toolwise.core.errors import BadInput, LimitExceeded, ToolwiseError
from toolwise.core.limits import Limits
from toolwise.models.masks import Masks
from toolwise.models.scripted import END, ScriptedTokenizer
from toolwise.models.tokenizers import HFTokenizer
from toolwise.notation.chat.layout import Layout
from toolwise.notation.grammar import call_grammar, json_grammar
from toolwise.notation.markers import SPECIAL

HERMES = Layout(
    trigger="<tool_call>",
    before='<tool_call>\n{"name": "',
    middle='", "arguments": ',
    after="}\n</tool_call>",
    separator="\n",
)
WEATHER = ToolSpec(
    "get_weather",
    "",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
        "required": ["city"],
    },
)
TIME = ToolSpec("get_time", "", {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]})
NOTHING = ToolSpec("stop", "", {"type": "object", "properties": {}})
PIECES = (" [", '":"', '"},', '": ', '"}', '{"', "ab", "é日", '",', "<tool", "_call>", ')"')
BYTES = ScriptedTokenizer(PIECES)


def call(name, arguments):
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


def spelled(text, tokenizer, lot):
    """Token ids of a text, cut at any places: a way to write it that the tokenizer itself would not choose."""
    cuts = sorted(lot.sample(range(len(text) + 1), min(len(text), 8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [i for piece in pieces for i in tokenizer.encode(piece)]


def fits(grammar, text, masks=None):
    masks = masks or Masks(BYTES)
    matcher = masks.matcher(grammar)
    return matcher.read(masks._tokenizer.encode(text)) and matcher.complete


@pytest.fixture(scope="module")
def masks():
    return Masks(BYTES)


@pytest.fixture(scope="module")
def smol(smollm2):
    from toolwise.models.load import describe_model

    return describe_model(str(smollm2))[0]


def assert_exact(masks, tokenizer, grammar, text, lot, tokens):
    """On the way through `text`, in canonical and in other tokens, each bit says what accepting says.

    Where only one text can follow, the mask has the token that the tokenizer itself would write it with, and no other.
    """
    for ids in (tokenizer.encode(text), spelled(text, tokenizer, lot)):
        matcher = masks.matcher(grammar)
        for i in ids:
            mask, forced = matcher.mask(), matcher.fork().forced()
            for token in tokens(masks.size):
                assert mask[token] == (token == forced[0] if forced else matcher.accepts(token)), (text, token)
            matcher.accept(i)
        assert matcher.complete


def test_a_bit_is_set_for_exactly_the_tokens_that_are_accepted():
    text = call("get_weather", '{"city": "é [日", "days": -12, "unit": "F"}') + "\n" + call("stop", "{}")
    grammar = call_grammar(HERMES, [WEATHER, TIME, NOTHING])
    for tokenizer in (BYTES, HFTokenizer(tiny_tokenizer()), ScriptedTokenizer(PIECES, SPECIAL)):
        assert_exact(Masks(tokenizer), tokenizer, grammar, text, random.Random(7), range)


@pytest.mark.model
def test_so_it_is_for_a_real_vocabulary(smol):
    text = call("get_weather", '{"city": "São Paulo 日本", "days": 120}')
    lot = random.Random(3)
    assert_exact(
        Masks(smol),
        smol,
        call_grammar(HERMES, [WEATHER, TIME]),
        text,
        lot,
        lambda size: [*range(20), *lot.sample(range(size), 400)],
    )


@pytest.mark.case("R31")
@pytest.mark.parametrize("seed", range(6))
def test_every_text_that_may_end_is_valid_unless_a_downgrade_says_so(masks, seed):
    lot, ended = random.Random(seed), 0
    for _ in range(25):
        schema = random_schema(lot)
        validator = jsonschema_rs.validator_for(schema)
        matcher = masks.matcher(json_grammar(schema))
        excused = {downgrade.keyword for downgrade in matcher.downgrades}
        for _ in range(4):
            try:
                text = walk(matcher.fork(), BYTES, lot)
            except LimitExceeded:
                continue
            if text is None:
                continue
            ended += 1
            try:
                assert validator.is_valid(jsonio.loads(text)) or excused - {"additionalProperties"}, (text, schema)
            except ToolwiseError as refused:
                twice = "duplicate key" in str(refused)
                assert excused & {"additionalProperties"} if twice else excused - {"additionalProperties"}, text
    assert ended > 50


def test_a_call_names_a_tool_that_exists_and_has_arguments_that_fit(masks):
    grammar = call_grammar(HERMES, [WEATHER, TIME, NOTHING])
    assert fits(grammar, call("get_weather", '{"city": "Oslo", "days": 2}'))
    assert fits(grammar, call("stop", "{}"))
    assert fits(grammar, call("get_time", '{"zone": "CET"}') + "\n" + call("get_weather", '{"city": "a", "unit": "C"}'))
    assert not fits(grammar, call("get_wether", '{"city": "Oslo"}'))
    assert not fits(grammar, call("get_time", '{"city": "Oslo"}'))
    assert not fits(grammar, call("get_weather", '{"city": 5}'))
    assert not fits(grammar, call("get_weather", '{"city": "Oslo", "town": "x"}'))
    assert not fits(grammar, call("get_weather", '{"city":"Oslo","days":2}'))
    assert not fits(grammar, call("get_weather", '{"city": "Oslo"'))


def test_one_call_a_turn_is_one(masks):
    two = call("stop", "{}") + "\n" + call("stop", "{}")
    assert fits(call_grammar(HERMES, [NOTHING], True), two)
    assert not fits(call_grammar(HERMES, [NOTHING], False), two)
    matcher = masks.matcher(call_grammar(HERMES, [NOTHING], False))
    matcher.forced()
    assert matcher.ended
    assert [*matcher.mask().nonzero()[0]] == [END]


@pytest.mark.parametrize("seed", range(5))
def test_calls_of_a_walk_name_tools_and_fit(masks, seed):
    lot, found = random.Random(seed), 0
    tools = {tool.name: jsonschema_rs.validator_for(tool.parameters) for tool in (WEATHER, TIME, NOTHING)}
    grammar = call_grammar(HERMES, [WEATHER, TIME, NOTHING])
    for _ in range(20):
        text = walk(masks.matcher(grammar), BYTES, lot)
        for part in (text or "").split("\n</tool_call>")[:-1]:
            written = jsonio.loads(part.strip().removeprefix("<tool_call>\n"))
            assert tools[written["name"]].is_valid(written["arguments"])
            found += 1
    assert found > 10


def test_a_control_token_stands_where_the_layout_has_it_and_nowhere_else():
    tokenizer = ScriptedTokenizer(PIECES, SPECIAL)
    (opened,), (closed,) = tokenizer.encode_marker("<call>"), tokenizer.encode_marker("</call>")
    layout = Layout(trigger="<call>", before="<call>", middle=":", after="</call>")
    matcher = Masks(tokenizer).matcher(call_grammar(layout, [TIME], False))
    assert matcher.mask()[opened]
    assert matcher.mask().sum() == 1
    assert matcher.read((opened, *tokenizer.encode('get_time:{"zone": "')))
    assert not matcher.accepts(closed)
    data = tokenizer.encode("</call>")  # the same text in other tokens
    assert closed not in data
    for i in data:
        assert not matcher.mask()[[opened, closed, END]].any()
        matcher.accept(i)
    assert matcher.read(tokenizer.encode('"}'))
    assert matcher.forced() == (closed,)
    assert matcher.ended


def test_forced_tokens_are_taken_without_being_sampled(masks):
    matcher = masks.matcher(call_grammar(HERMES, [WEATHER, TIME], False))
    assert BYTES.decode(matcher.forced()) == '<tool_call>\n{"name": "get_'
    assert matcher.forced() == ()
    matcher.accept(ord("t"))
    assert BYTES.decode(matcher.forced()).startswith('ime", "arguments": {"zone')


def test_a_fork_goes_its_own_way(masks):
    matcher = masks.matcher(call_grammar(HERMES, [WEATHER, TIME], False))
    matcher.forced()
    other = matcher.fork()
    other.accept(ord("w"))
    assert matcher.accepts(ord("t"))
    assert not other.accepts(ord("t"))


def test_a_token_that_does_not_fit_is_refused_and_changes_nothing(masks):
    matcher = masks.matcher(json_grammar(None))
    with pytest.raises(BadInput):
        matcher.accept(ord("x"))
    assert not matcher.read(BYTES.encode('{"a" 5'))
    assert matcher.read(BYTES.encode('{"a": 5'))


def test_logits_of_padded_rows_have_no_chance(masks):
    matcher = masks.matcher(json_grammar(None))
    held = matcher.masked(np.zeros(masks.size + 7, dtype=np.float32))
    assert [*np.isfinite(held).nonzero()[0]] == [*matcher.mask().nonzero()[0]]


def test_any_json_object_is_the_answer_where_no_schema_is_said():
    assert fits(json_grammar(None), '{"a": [1, {"b": null}], "c": "d"}')
    assert not fits(json_grammar(None), "[1]")
    assert not fits(json_grammar(None), '"a"')
    assert fits(json_grammar({"type": "array", "items": {"type": "integer"}}), "[1, 2]")


@pytest.mark.case("R31")
def test_what_the_engine_refuses_with_a_vocabulary_is_any_object_and_named():
    tight = Masks(BYTES, Limits(grammar_symbols=200))
    large = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(200)}}
    matcher = tight.matcher(call_grammar(HERMES, [TIME, ToolSpec("large", "", large)], False))
    assert [str(downgrade) for downgrade in matcher.downgrades] == ["large: schema at / is not masked"]
    assert matcher.fork().read(BYTES.encode(call("large", '{"z": []}')))
    assert not matcher.read(BYTES.encode(call("get_time", '{"z": []}')))


@pytest.mark.case("R35")
def test_of_many_schemas_that_are_refused_together_few_are_compiled_alone():
    large = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(200)}}
    tools = [TIME, *(ToolSpec(f"large_{i}", "", large) for i in range(3))]
    matcher = Masks(BYTES, Limits(grammar_symbols=300, alone_grammars=2)).matcher(call_grammar(HERMES, tools, False))
    assert [lost.tool for lost in matcher.downgrades if lost.keyword == "schema"][-1] == "large_2"
    assert matcher.read(BYTES.encode(call("large_2", '{"z": []}')))


@pytest.mark.case("R35")
def test_a_grammar_that_is_too_large_even_then_is_refused_by_name():
    with pytest.raises(BadInput, match="show fewer"):
        Masks(BYTES, Limits(grammar_symbols=10)).matcher(call_grammar(HERMES, [WEATHER, TIME]))
    with pytest.raises(BadInput, match="show fewer"):
        Masks(BYTES, Limits(grammar_bytes=100)).matcher(call_grammar(HERMES, [WEATHER, TIME]))


@pytest.mark.case("R35")
def test_a_pattern_that_explodes_while_decoding_ends_in_an_error_and_not_in_an_open_mask(masks):
    pattern = {"type": "string", "pattern": "^((a{1,1000}){1,1000}){1,1000}$"}
    matcher = masks.matcher(json_grammar({"type": "object", "properties": {"x": pattern}, "required": ["x"]}))
    with pytest.raises(LimitExceeded, match="bound"):
        for _ in range(200):
            matcher.forced()
            matcher.mask()
            matcher.accept(ord("a"))


def test_sixty_large_tools_are_one_grammar(masks):
    properties = {f"property_{i}": {"type": "string", "description": "d" * 200} for i in range(20)}
    tools = [ToolSpec(f"tool_{i}", "", {"type": "object", "properties": properties}) for i in range(60)]
    grammar = call_grammar(HERMES, tools)
    assert not masks.matcher(grammar).downgrades
    assert fits(grammar, call("tool_59", '{"property_3": "x", "property_19": "y"}'), masks)


def test_compiled_grammars_are_kept_and_bounded():
    masks = Masks(BYTES, Limits(grammars=2))
    for i in range(4):
        masks.matcher(json_grammar({"const": i}))
    assert len(masks._compiled) == 2


def test_a_call_needs_a_tool_and_a_name_that_can_be_written():
    with pytest.raises(BadInput, match="needs a tool"):
        call_grammar(HERMES, [])
    for name in ("", 'a"b', "a\nb", "a\\b", "<tool_call>"):
        with pytest.raises(BadInput):
            call_grammar(HERMES, [ToolSpec(name, "", {"type": "object"})])


@pytest.mark.case("R32")
def test_sixty_large_tools_are_masked_and_a_pattern_that_cannot_be_is_recorded_and_never_open(masks):
    fields = {f"field_{number}": {"type": "string", "description": "x" * 100} for number in range(12)}
    odd = {"type": "string", "pattern": "(?=a)b"}
    tools = [ToolSpec(f"tool_{number}", "", {"type": "object", "properties": fields}) for number in range(59)]
    tools.append(ToolSpec("odd", "", {"type": "object", "properties": {"x": odd}, "additionalProperties": False}))
    matcher = masks.matcher(call_grammar(HERMES, tools))
    assert [(lost.tool, lost.keyword) for lost in matcher.downgrades] == [("odd", "pattern")]
    assert not matcher.fork().read(BYTES.encode('<tool_call>\n{"name": "rob'))
    assert matcher.read(BYTES.encode('<tool_call>\n{"name": "odd", "arguments": {"x": "'))
