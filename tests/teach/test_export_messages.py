"""Conversations as trainers of chat models read them: their layout, and what chat templates make of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from export_runs import DATE, MILL, PLAIN, TOOLS, row, run_of

from toolwise.core.jsonio import loads
from toolwise.core.schema import Validator
from toolwise.teach.export.messages import SYSTEM, conversations

#: As the models of the Hermes and Qwen families write tools, calls and results.
TEMPLATE = """
{%- for message in messages %}
{{- '<|im_start|>' + ('user' if message.role == 'tool' else message.role) + '\n' }}
{%- if message.role == 'assistant' %}
{%- generation %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\n<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) }}
{{- '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>' }}
{%- endgeneration %}
{%- elif message.role == 'tool' %}
{{- '<tool_response>\n' + message.content + '\n</tool_response><|im_end|>' }}
{%- else %}
{{- message.content }}
{%- if loop.first and tools %}
{{- '\n<tools>' }}
{%- for tool in tools %}
{{- '\n' + (tool | tojson) }}
{%- endfor %}
{{- '\n</tools>' }}
{%- endif %}
{{- '<|im_end|>' }}
{%- endif %}
{{- '\n' }}
{%- endfor %}
""".strip()

CALLS = [("Calculator", {"expression": "24 + 18"}), ("Weather", {"city": "Ålesund (west)", "days": 1})]


def conversation(*given: Any) -> dict[str, Any]:
    (found,) = conversations(run_of(*given))
    return found


def contents(said: list[dict[str, Any]], *roles: str) -> list[str]:
    return [message["content"] for message in said if message["role"] in roles]


# The layout


def test_a_passage_is_one_conversation_with_a_round_for_every_call() -> None:
    found = conversation(MILL)
    assert (found["id"], found["document"]) == ("mill#0", "mill")
    assert found["messages"] == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": "The mill ground 24 sacks in the morning. "},
        {
            "role": "assistant",
            "content": "It ground 18 more in the afternoon, so",
            "tool_calls": [
                {
                    "id": "call00000",
                    "type": "function",
                    "function": {"name": "Calculator", "arguments": {"expression": "24 + 18"}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call00000", "name": "Calculator", "content": "42"},
        {
            "role": "assistant",
            "content": " 42 sacks went to the harbour. It was dry there, at",
            "tool_calls": [
                {
                    "id": "call00001",
                    "type": "function",
                    "function": {"name": "Weather", "arguments": {"city": "Ålesund (west)", "days": 1}},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call00001", "name": "Weather", "content": "dry, 21 °C]"},
        {"role": "assistant", "content": " 21 degrees."},
    ]


def test_what_user_and_assistant_say_is_the_plain_text() -> None:
    for given in (MILL, DATE):
        assert "".join(contents(conversation(given)["messages"], "user", "assistant")) == given.plain


@pytest.mark.parametrize(
    ("at", "opening"),
    [
        (0, ""),
        (PLAIN.index(" 24"), "The mill ground"),
        (PLAIN.index(" It ground"), "The mill ground 24 sacks in the morning."),
        (PLAIN.index("It ground"), "The mill ground 24 sacks in the morning. "),
        (PLAIN.index(" 18"), "The mill ground 24 sacks in the morning. "),
        (len(PLAIN), PLAIN[: PLAIN.index("It was dry")]),
    ],
)
def test_the_user_has_the_sentences_before_the_first_call_or_else_the_words_before_it(at: int, opening: str) -> None:
    said = conversation(row(PLAIN, (at, "Calendar", {}, "Monday")))["messages"]
    assert said[1] == {"role": "user", "content": opening}
    assert "tool_calls" in said[2]
    assert said[-1] == {"role": "assistant", "content": PLAIN[at:]}


def test_two_calls_at_one_place_are_two_rounds() -> None:
    said = conversation(row(PLAIN, (9, "Calendar", {}, "Monday"), (9, "Calculator", {"expression": "1"}, "1")))
    assert [message["role"] for message in said["messages"][2:]] == ["assistant", "tool"] * 2 + ["assistant"]
    assert contents(said["messages"], "tool") == ["Monday", "1"]


def test_the_tools_are_functions_whose_schemas_their_calls_fit() -> None:
    found = conversation(MILL)
    assert [tool["function"]["name"] for tool in found["tools"]] == list(TOOLS)
    for tool in found["tools"]:
        assert (tool.keys(), tool["type"]) == ({"type", "function"}, "function")
        assert tool["function"].keys() == {"name", "description", "parameters"}
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in found["tools"]}
    called = [call["function"] for message in found["messages"] for call in message.get("tool_calls", [])]
    assert [(call["name"], Validator(schemas[call["name"]]).validate(call["arguments"])) for call in called] == CALLS


def test_ids_are_what_the_strictest_templates_take() -> None:
    said = conversation(row(PLAIN, *((n, "Calendar", {}, "Monday") for n in range(11))))["messages"]
    ids = [call["id"] for message in said for call in message.get("tool_calls", [])]
    assert len(set(ids)) == 11
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", id_) for id_ in ids)


# Chat templates


def test_a_template_that_knows_tools_writes_text_calls_results_and_definitions() -> None:
    tokenizer = pytest.importorskip("tiny_models").tokenizer()
    found = conversation(MILL)
    shown = tokenizer.apply_chat_template(
        found["messages"], tools=found["tools"], chat_template=TEMPLATE, tokenize=False
    )
    written = [loads(call) for call in re.findall(r"<tool_call>\n(.*)\n</tool_call>", shown)]
    assert [(call["name"], call["arguments"]) for call in written] == CALLS
    assert re.findall(r"<tool_response>\n(.*)\n</tool_response>", shown) == ["42", "dry, 21 °C]"]
    assert [loads(line) for line in re.search(r"<tools>\n(.*?)\n</tools>", shown, re.DOTALL)[1].split("\n")] == (
        found["tools"]
    )
    said = re.findall(r"<\|im_start\|>assistant\n(.*?)(?:\n<tool_call>.*?)?<\|im_end\|>", shown, re.DOTALL)
    assert said == contents(found["messages"], "assistant")


def test_what_only_the_assistant_writes_is_learnt_with_its_calls_and_without_results() -> None:
    tokenizer = pytest.importorskip("tiny_models").tokenizer()
    found = conversation(MILL)
    done = tokenizer.apply_chat_template(
        found["messages"],
        tools=found["tools"],
        chat_template=TEMPLATE,
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    learnt = tokenizer.decode([i for i, own in zip(done["input_ids"], done["assistant_masks"], strict=True) if own])
    texts = re.sub(r"\n<tool_call>\n.*\n</tool_call>|<\|im_end\|>", "", learnt)
    assert texts == "".join(contents(found["messages"], "assistant"))
    assert '"arguments": {"expression": "24 + 18"}' in learnt


def test_the_template_of_a_real_model_shows_every_turn_in_order(smollm2: Any) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(smollm2)
    found = conversation(MILL)
    shown = tokenizer.apply_chat_template(found["messages"], tools=found["tools"], tokenize=False)
    turns = re.findall(r"<\|im_start\|>(\w+)\n(.*?)<\|im_end\|>\n", shown, re.DOTALL)
    assert turns == [(message["role"], message["content"]) for message in found["messages"]]
    # It was made before tools were: only a template that knows them shows the calls, and the tokenizer serves it too.
    assert "tool_call" not in shown
    shown = tokenizer.apply_chat_template(found["messages"], chat_template=TEMPLATE, tokenize=False)
    assert [loads(call)["arguments"] for call in re.findall(r"<tool_call>\n(.*)\n</tool_call>", shown)] == [
        arguments for _, arguments in CALLS
    ]
