"""How each family of models writes its calls, as data; see `base.Layout` for what the parts mean.

A special token stands as its text. What the models' own templates write is what stands here, so that a call that was
read and is told again as history gives the tokens that the model itself sampled.
"""

from __future__ import annotations

from toolwise.notation.chat.base import Layout

#: Hermes 2 and 3, Qwen 2.5 and 3, Granite 4, and many models that were tuned like them.
HERMES = Layout(
    trigger="<tool_call>",
    before='<tool_call>\n{"name": "',
    middle='", "arguments": ',
    after="}\n</tool_call>",
    separator="\n",
)

#: SmolLM2: one block with a JSON list.
SMOLLM2 = Layout(
    trigger="<tool_call>",
    open="<tool_call>[",
    before='{"name": "',
    middle='", "arguments": ',
    after="}",
    separator=", ",
    close="]</tool_call>",
)

#: SmolLM3: as Hermes, on one line.
SMOLLM3 = Layout(
    trigger="<tool_call>",
    before='<tool_call>{"name": "',
    middle='", "arguments": ',
    after="}</tool_call>",
    separator="\n",
)

#: Llama 3.1 to 3.3: bare JSON in place of an answer.
LLAMA3 = Layout(
    trigger='{"name": "',
    before='{"name": "',
    middle='", "parameters": ',
    after="}",
    separator="; ",
    bare=True,
)

#: Mistral's tokenizers v3 to v7: a JSON list behind one control token.
MISTRAL = Layout(
    trigger="[TOOL_CALLS]",
    open="[TOOL_CALLS][",
    before='{"name": "',
    middle='", "arguments": ',
    after="}",
    separator=", ",
    close="]",
)

#: Mistral's tokenizers from v11 on: name and arguments between control tokens.
MISTRAL_ARGS = Layout(trigger="[TOOL_CALLS]", before="[TOOL_CALLS]", middle="[ARGS]", after="")

#: Gemma 2 and 3, which were taught no calls of their own: JSON in a fence, as Google's guide tells it.
GEMMA = Layout(
    trigger="```tool_call",
    before='```tool_call\n{"name": "',
    middle='", "parameters": ',
    after="}\n```",
    separator="\n",
)

#: Granite 3: a JSON list behind one control token.
GRANITE = Layout(
    trigger="<|tool_call|>",
    open="<|tool_call|>[",
    before='{"name": "',
    middle='", "arguments": ',
    after="}",
    separator=", ",
    close="]",
)

#: DeepSeek V3 and R1: the name between control tokens, the arguments in a fence.
DEEPSEEK = Layout(
    trigger="<｜tool▁calls▁begin｜>",
    open="<｜tool▁calls▁begin｜>",
    before="<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
    middle="\n```json\n",
    after="\n```<｜tool▁call▁end｜>",
    separator="\n",
    close="<｜tool▁calls▁end｜>",
)

#: DeepSeek V3.1: the same without a fence.
DEEPSEEK_V31 = Layout(
    trigger="<｜tool▁calls▁begin｜>",
    open="<｜tool▁calls▁begin｜>",
    before="<｜tool▁call▁begin｜>",
    middle="<｜tool▁sep｜>",
    after="<｜tool▁call▁end｜>",
    close="<｜tool▁calls▁end｜>",
)
