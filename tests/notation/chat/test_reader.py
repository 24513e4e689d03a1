"""What a model writes is told apart into text and calls: strictly, and the same however the stream is cut."""

import json
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolwise.core.chat import (
    ChatCall,
    ChatReply,
    ChatRequest,
    Message,
    ReplyEnded,
    Role,
    StopReason,
    ToolSpec,
    gathered,
)
from toolwise.core.errors import MalformedCall
from toolwise.core.jsonio import loads
from toolwise.core.limits import LIMITS, Limits
from toolwise.notation.chat.detect import DIALECTS, named
from toolwise.notation.chat.history import written
from toolwise.notation.chat.reader import Reader

TOOLS = (ToolSpec("get", "", {}), ToolSpec("put", "", {}))
LAYOUTS = {dialect.name: dialect.layout for dialect in DIALECTS if dialect.name != "inline"}
HERMES, LLAMA3, SMOLLM2 = LAYOUTS["hermes"], LAYOUTS["llama3"], LAYOUTS["smollm2"]
few = settings(max_examples=20)  # of each of ten layouts
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)

strings = st.text(st.characters(codec="utf-8"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(strings, values, max_size=3).map(lambda value: json.dumps(value, ensure_ascii=False))
calls = st.lists(st.tuples(st.sampled_from(["get", "put"]), arguments), min_size=1, max_size=4)
pieces_of_calls = st.sampled_from(
    [
        *("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
        *("<｜tool▁sep｜>", '"name"', '"arguments"', '"parameters"', '"get"', "{}", "null"),
        *("\n", "[", "]", "{", "}", ": ", ", ", "\\"),
    ]
)
hostile = st.lists(pieces_of_calls | st.text(max_size=2)).map("".join)


def request(**fields):
    return ChatRequest((Message(Role.USER, "x"),), tools=TOOLS, **fields)


def read(layout, text, sizes=(), asked=None, limits=LIMITS):
    """The turn that `text` makes, in pieces of these sizes and one last piece."""
    reader = Reader(layout, asked or request(), limits=limits)
    deltas, at = [], 0
    for size in sizes:
        deltas += reader.push(text[at : at + size])
        at += size
    deltas += [*reader.push(text[at:]), *reader.flush()]
    return gathered([*deltas, ReplyEnded(StopReason.END, broken=reader.broken)])


def told(reply: ChatReply):
    return [(call.name, call.arguments) for call in reply.calls]


def laid_out(layout, made):
    return "".join([written([ChatCall("", name, text) for name, text in made], layout)])


@pytest.mark.case("A12")
@pytest.mark.case("A20")
@pytest.mark.case("R51")
@every_layout
@few
@given(calls)
@example([("get", '{"n":9007199254740993}')])
@example([("get", '{"日本語": "🙂 \\u00e9 \\" }{ </tool_call> ] ```"}')])
def test_calls_that_were_written_are_read_as_they_were(layout, made):
    assert told(read(layout, laid_out(layout, made))) == made


@pytest.mark.case("R1")
@pytest.mark.case("R2")
@every_layout
@few
@given(calls, st.lists(st.integers(0, 5)))
@example([("get", '{"command": "mkdir -p test/{test1,test2"}')], [])
@example([("get", '{"numbers":[{"x":1}]}')], [1] * 200)
def test_a_stream_makes_the_same_calls_however_it_is_cut(layout, made, sizes):
    text = laid_out(layout, made)
    assert read(layout, text, sizes) == read(layout, text)
    assert told(read(layout, text, sizes)) == made


@every_layout
@few
@given(hostile, st.lists(st.integers(0, 5)))
def test_whatever_is_written_makes_the_same_turn_however_it_is_cut(layout, text, sizes):
    assert read(layout, text, sizes) == read(layout, text)


def test_the_keys_may_stand_in_any_order_and_blanks_between_them():
    text = '<tool_call> {"arguments" : {"a": [1, "}"]},\n "id": "x", "name" : "get" }</tool_call>'
    assert told(read(HERMES, text)) == [("get", '{"a": [1, "}"]}')]


def test_arguments_are_passed_on_as_soon_as_the_name_is_known():
    reader = Reader(HERMES, request())
    assert reader.push('<tool_call>\n{"name": "get", "arguments"') == []
    name, begun = reader.push(': {"a": "b')
    assert (name.name, name.arguments + begun.arguments) == ("get", '{"a": "b')
    assert [delta.arguments for delta in reader.push("c")] == ["c"]


def test_text_around_calls_is_passed_on_and_blanks_next_to_them_are_not():
    text = 'Let me see.\n<tool_call>\n{"name": "get", "arguments": {}}\n</tool_call>\nDone.\n'
    reply = read(HERMES, text)
    assert (reply.text, told(reply)) == ("Let me see.\nDone.", [("get", "{}")])
    assert read(HERMES, "  no call \n ").text == "  no call \n "


def test_several_calls_stand_in_one_block_or_one_behind_the_other():
    one = '{"name": "get", "arguments": {}}'
    assert len(read(SMOLLM2, f"<tool_call>[{one}, {one}]</tool_call>").calls) == 2
    assert len(read(HERMES, f"<tool_call>{one}</tool_call> <tool_call>{one}</tool_call>").calls) == 2
    assert len(read(LLAMA3, '{"name": "get", "parameters": {}}; {"name": "put", "parameters": {}}').calls) == 2
    assert read(SMOLLM2, "<tool_call>[]</tool_call>") == ChatReply()


@pytest.mark.case("R21")
def test_where_one_call_is_allowed_the_first_is_taken_and_the_others_are_counted():
    reader = Reader(HERMES, request(parallel=False))
    call = '<tool_call>{"name": "get", "arguments": {}}</tool_call>'
    assert not reader.done
    first = reader.push(call)
    assert reader.done
    assert reader.push(call * 2) + reader.flush() == []
    assert (len(first), reader.dropped) == (2, 2)


@pytest.mark.case("R10")
def test_a_call_without_arguments_has_an_empty_object():
    assert told(read(HERMES, '<tool_call>{"name": "get"}</tool_call>')) == [("get", "{}")]


@pytest.mark.case("R9")
@pytest.mark.parametrize("value", ["null", '""', '"null"', "[1]", "5"])
def test_arguments_that_are_no_object_are_passed_on_for_the_gate_to_judge(value):
    assert told(read(HERMES, f'<tool_call>{{"name": "get", "arguments": {value}}}</tool_call>')) == [("get", value)]


@pytest.mark.case("A1")
@pytest.mark.case("A3")
@pytest.mark.parametrize("inside", ['{"to":"bob","to":"eve"}', '{"amount":NaN}', '{"amount":1e400}', "{'a': 1}"])
def test_arguments_that_are_no_json_are_passed_on_as_they_are_and_refused(inside):
    ((name, text),) = told(read(HERMES, f'<tool_call>{{"name": "pay", "arguments": {inside}}}</tool_call>'))
    assert (name, text) == ("pay", inside)
    with pytest.raises(MalformedCall):
        loads(text)


@pytest.mark.case("A2")
def test_a_second_name_never_names_another_tool():
    ((name, text),) = told(read(HERMES, '<tool_call>{"name":"get","arguments":{},"name":"put"}</tool_call>'))
    assert name == "get"
    with pytest.raises(MalformedCall):
        loads(text)
    reply = read(HERMES, '<tool_call>{"name":"get","name":"put","arguments":{}}</tool_call>')
    assert [call.name for call in reply.calls] == [""]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>get(1)</tool_call>",
        '<tool_call>{"name": 5, "arguments": {}}</tool_call>',
        '<tool_call>{"name": "", "arguments": {}}</tool_call>',
        '<tool_call>{"arguments": {}}</tool_call>',
        '<tool_call>{"name": "get", "why": "x", "arguments": {}}</tool_call>',
        '<tool_call>{"name" "get"}</tool_call>',
        "<tool_call></tool_call>",
    ],
)
def test_what_began_like_a_call_and_is_none_has_no_name_and_is_kept_whole(text):
    (call,) = read(HERMES, text).calls
    assert (call.name, call.arguments, call.complete) == ("", text, True)


def test_behind_what_is_no_call_nothing_is_read_for_calls():
    """Where the strings of broken JSON end is not known, so a call inside one cannot be told from one behind it."""
    text = '<tool_call>{"name": "get": "<tool_call>{"name": "put", "arguments": {}}</tool_call>"}</tool_call>'
    assert told(read(HERMES, text)) == [("", text)]


def test_what_is_no_call_in_a_layout_without_marks_was_text():
    for text in (
        '{"name": "Bob", "age": 3}',
        ' {"a": 1}',
        "{",
        '{"name": "get',
        'So {"name": "get", "parameters": {}}',
    ):
        assert read(LLAMA3, text) == ChatReply(text)


@pytest.mark.case("A11")
@pytest.mark.case("R3")
@pytest.mark.parametrize("end", range(len('<tool_call>{"name":"get","arguments":{"to":"bob"}}') - len("<tool_call>")))
def test_a_call_that_is_cut_off_is_broken_and_never_closed(end):
    text = '<tool_call>{"name":"get","arguments":{"to":"bob"}}'[: len("<tool_call>") + end]
    (call,) = read(HERMES, text).calls
    assert not call.complete
    assert call.arguments == (text.partition('"arguments":')[2].removesuffix("}}") or text)[: len(call.arguments)]


def test_a_turn_that_ends_inside_a_trigger_is_text():
    assert read(HERMES, "Look: <tool_ca") == ChatReply("Look: <tool_ca")


@pytest.mark.case("A17")
@pytest.mark.parametrize("name", ["read\\n", "READ", " read", "rеad", "ｒｅａｄ"])
def test_a_name_is_passed_on_exactly(name):
    ((told_name, _),) = told(read(HERMES, f'<tool_call>{{"name":"{name}","arguments":{{}}}}</tool_call>'))
    assert told_name == json.loads(f'"{name}"')


@pytest.mark.case("R14")
def test_control_tokens_behind_a_name_are_taken_off_where_a_tool_is_left():
    def name_of(written_name):
        return told(read(HERMES, f'<tool_call>{{"name":"{written_name}","arguments":{{}}}}</tool_call>'))[0][0]

    assert name_of("get<|channel|>") == "get"
    assert name_of("get<|channel|><|end|>") == "get"
    assert name_of("get<|channel|>commentary") == "get<|channel|>commentary"
    assert name_of("got<|channel|>") == "got<|channel|>"
    made = '[TOOL_CALLS]get[CALL_ID]abcdefghi[ARGS]{"a": 1}'
    assert told(read(LAYOUTS["mistral-args"], made)) == [("get", '{"a": 1}')]


@pytest.mark.case("R20")
def test_ids_are_new_in_the_conversation_and_the_same_for_the_same_one():
    text = '<tool_call>{"name":"get","arguments":{}}</tool_call>' * 3
    first = [call.id for call in read(HERMES, text).calls]
    history = (Message(Role.USER, "x"), Message(Role.ASSISTANT, "", tuple(ChatCall(i, "get", "{}") for i in first)))
    asked = ChatRequest(history, tools=TOOLS)
    second = [call.id for call in read(HERMES, text, asked=asked).calls]
    assert len({*first, *second}) == 6
    assert first == [call.id for call in read(HERMES, text).calls]


@pytest.mark.case("R53")
def test_mistral_s_ids_have_nine_letters_and_digits():
    reader = named("mistral").reader(request())
    (delta, *_) = reader.push('[TOOL_CALLS][{"name": "get", "arguments": {}}]')
    assert len(delta.id) == 9
    assert delta.id.isalnum()


@pytest.mark.case("R26")
def test_where_nothing_may_be_called_all_is_text():
    text = '<tool_call>{"name":"get","arguments":{}}</tool_call> '
    assert read(HERMES, text, asked=ChatRequest((Message(Role.USER, "x"),))) == ChatReply(text)


@pytest.mark.case("A19")
def test_ten_thousand_calls_are_read_in_bounded_time_and_the_first_ones_are_kept():
    started = time.monotonic()
    reader = Reader(HERMES, request())
    kept = reader.push('<tool_call>{"name":"get","arguments":{}}</tool_call>' * 10_000)
    assert len({delta.index for delta in kept}) == LIMITS.calls_per_turn
    assert reader.dropped == 10_000 - LIMITS.calls_per_turn
    assert time.monotonic() - started < 20


@pytest.mark.case("A22")
@every_layout
@few
@given(st.lists(st.integers(0, 99)))
def test_a_call_without_end_is_cut_at_its_bound_and_the_rest_is_text(layout, sizes):
    text = laid_out(layout, [("get", '{"a": "' + "<tool_call>x" * 100 + '"}')])
    limits = Limits(argument_bytes=300)
    reply = read(layout, text, sizes, limits=limits)
    (call,) = reply.calls
    assert not call.complete
    assert len(call.arguments) <= 300
    assert reply.text
    assert text.endswith(call.arguments[-50:] + reply.text)


@pytest.mark.case("C2")
def test_a_result_starts_nothing_since_only_what_was_sampled_is_read():
    reader = Reader(HERMES, ChatRequest((Message(Role.USER, laid_out(HERMES, [("put", "{}")])),), tools=TOOLS))
    assert reader.push("done") + reader.flush() == Reader(HERMES, request()).push("done")
