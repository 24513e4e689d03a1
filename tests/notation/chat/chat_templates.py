"""Small chat templates, one a family of models: written for these tests in the manner of the public ones."""

HERMES = """
{%- if tools %}
{{- '<|im_start|>system\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{% endif %}
{{- "# Tools\n<tools>" }}
{%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{% endfor %}
{{- "\n</tools>\nWrite <tool_call></tool_call> around name and arguments.<|im_end|>\n" }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}{{- '\n' + message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
{%- set call = call.function %}
{{- '\n<tool_call>\n{"name": "' ~ call.name ~ '", "arguments": ' ~ call.arguments | tojson ~ '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- elif message.role == 'tool' %}
{%- if messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{% endif %}
{{- '\n<tool_response>\n' }}{{- message.content }}{{- '\n</tool_response>' }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\n' }}{% endif %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}
"""

LLAMA3 = """{{- bos_token }}
{%- if not tools is defined %}{% set tools = none %}{% endif %}
{%- macro head(role) %}{{- '<|start_header_id|>' + role + '<|end_header_id|>\n\n' }}{% endmacro %}
{{- head('system') + 'Today: ' + strftime_now('%d %b %Y') + '\n' }}
{%- if tools is not none %}
{%- for tool in tools %}{{- tool | tojson(indent=4) }}{{- '\n\n' }}{% endfor %}
{%- endif %}
{%- if messages[0]['role'] == 'system' %}
{{- messages[0]['content'] | trim }}{% set messages = messages[1:] %}
{%- endif %}
{{- '<|eot_id|>' }}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- head('ipython') + (message.content | tojson) + '<|eot_id|>' }}
{%- elif 'tool_calls' in message %}
{%- if message.tool_calls | length != 1 %}{{- raise_exception('This model makes one call at a time!') }}{% endif %}
{%- set call = message.tool_calls[0].function %}
{{- head('assistant') }}{{- '{"name": "' + call.name + '", ' }}{{- '"parameters": ' }}{{- call.arguments | tojson }}
{{- '}<|eot_id|>' }}
{%- else %}
{{- head(message['role']) + message['content'] | trim + '<|eot_id|>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- head('assistant') }}{% endif %}
"""

MISTRAL = """{{- bos_token }}
{%- set ns = namespace(turns=0) %}
{%- for message in messages if message.role == 'user' or (message.role == 'assistant' and not message.tool_calls) %}
{%- if (message.role == 'user') != (ns.turns % 2 == 0) %}{{- raise_exception('Roles must alternate!') }}{% endif %}
{%- set ns.turns = ns.turns + 1 %}
{%- endfor %}
{%- for message in messages %}
{%- if message.role == 'system' %}{{- '[SYSTEM_PROMPT]' + message.content + '[/SYSTEM_PROMPT]' }}
{%- elif message.role == 'user' %}
{%- if loop.last and tools %}{{- '[AVAILABLE_TOOLS]' + tools | tojson + '[/AVAILABLE_TOOLS]' }}{% endif %}
{{- '[INST]' + message['content'] + '[/INST]' }}
{%- elif message.tool_calls is defined %}
{{- '[TOOL_CALLS][' }}
{%- for call in message.tool_calls %}
{%- if call.id | length != 9 %}{{- raise_exception('Ids have nine characters!') }}{% endif %}
{%- set out = call.function | tojson %}
{{- out[:-1] + ', "id": "' + call.id + '"}' }}{{- ', ' if not loop.last else ']' }}
{%- endfor %}{{- eos_token }}
{%- elif message.role == 'assistant' %}{{- message.content + eos_token }}
{%- else %}{{- '[TOOL_RESULTS]{"content": ' + message.content | tojson }}
{{- ', "call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
{%- endif %}
{%- endfor %}
"""

MISTRAL_ARGS = """{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}
{%- if tools %}{{- '[AVAILABLE_TOOLS]' + tools | tojson + '[/AVAILABLE_TOOLS]' }}{% endif %}
{{- '[INST]' + message.content + '[/INST]' }}
{%- elif message.role == 'assistant' %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{%- set arguments = call.function.arguments %}
{%- if arguments is not string %}{% set arguments = arguments | tojson %}{% endif %}
{{- '[TOOL_CALLS]' + call.function.name + '[ARGS]' + arguments }}
{%- endfor %}{{- eos_token }}
{%- elif message.role == 'tool' %}{{- '[TOOL_RESULTS]' + message.content + '[/TOOL_RESULTS]' }}
{%- else %}{{- '[SYSTEM_PROMPT]' + message.content + '[/SYSTEM_PROMPT]' }}
{%- endif %}
{%- endfor %}
"""

GEMMA = """{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}{{- raise_exception('System role not supported') }}{% endif %}
{%- for message in messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('Roles must alternate') }}{% endif %}
{%- if message['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}
{{- '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<start_of_turn>model\n' }}{% endif %}
"""

SMOLLM2 = """
{%- for message in messages %}
{%- if loop.first and messages[0]['role'] != 'system' %}{{- '<|im_start|>system\nYou are SmolLM<|im_end|>\n' }}
{%- endif %}
{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}
"""

SMOLLM3 = """
{{- '<|im_start|>system\nYou are SmolLM. Reasoning Mode: /no_think\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n' }}{% endif %}
{%- if xml_tools %}
{%- set ns = namespace(text='<tools>\n') %}
{%- for tool in xml_tools[:] %}{% set ns.text = ns.text ~ (tool | string) ~ '\n' %}{% endfor %}
{{- ns.text + '</tools>\nAnswer within <tool_call></tool_call>.' }}
{%- endif %}
{{- '<|im_end|>\n' }}
{%- for message in messages %}
{%- if message.role == 'user' or message.role == 'tool' %}{{ '<|im_start|>user\n' + message.content + '<|im_end|>\n' }}
{%- elif message.role == 'assistant' %}
{% generation %}{{ '<|im_start|>assistant\n' + message.content.lstrip('\n') + '<|im_end|>\n' }}{% endgeneration %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{% endif %}
"""

GRANITE = """
{%- if tools %}
{{- '<|start_of_role|>available_tools<|end_of_role|>' + tools | tojson(indent=4) + '<|end_of_text|>\n' }}
{{- 'Begin calls with <|tool_call|> and a JSON list.' }}
{%- endif %}
{%- for message in messages %}
{{- '<|start_of_role|>' + message['role'] + '<|end_of_role|>' + message['content'] + '<|end_of_text|>\n' }}
{%- if loop.last and add_generation_prompt %}{{- '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}
{%- endfor %}
"""

DEEPSEEK = """
{%- set ns = namespace(system='', tool=false) %}
{%- for message in messages if message.role == 'system' %}{% set ns.system = ns.system + message.content %}{% endfor %}
{{- bos_token + ns.system }}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<｜User｜>' + message.content + '<｜Assistant｜>' }}
{%- elif message.role == 'assistant' and message['tool_calls'] is defined %}
{%- for call in message['tool_calls'] %}
{%- if loop.first %}{{- message['content'] + '<｜tool▁calls▁begin｜>' }}{% else %}{{- '\n' }}{% endif %}
{{- '<｜tool▁call▁begin｜>' + call['type'] + '<｜tool▁sep｜>' + call['function']['name'] + '\n```json\n' }}
{{- call['function']['arguments'] + '\n```<｜tool▁call▁end｜>' }}
{%- endfor %}
{{- '<｜tool▁calls▁end｜><｜end▁of▁sentence｜>' }}
{%- elif message.role == 'assistant' %}{{- message.content + '<｜end▁of▁sentence｜>' }}
{%- elif message.role == 'tool' %}{{- '<｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜>' }}
{%- endif %}
{%- endfor %}
"""

DEEPSEEK_V31 = """{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}{{- '<｜User｜>' + message.content + '<｜Assistant｜></think>' }}
{%- elif message.role == 'assistant' %}
{{- message.content or '' }}
{%- if message.tool_calls is defined %}
{{- '<｜tool▁calls▁begin｜>' }}
{%- for call in message.tool_calls %}
{{- '<｜tool▁call▁begin｜>' + call.function.name + '<｜tool▁sep｜>' + call.function.arguments + '<｜tool▁call▁end｜>' }}
{%- endfor %}
{{- '<｜tool▁calls▁end｜>' }}
{%- endif %}
{{- '<｜end▁of▁sentence｜>' }}
{%- elif message.role == 'tool' %}{{- '<｜tool▁output▁begin｜>' + message.content + '<｜tool▁output▁end｜>' }}
{%- else %}{{- message.content }}
{%- endif %}
{%- endfor %}
"""

#: Dialect's name -> a template of its family.
TEMPLATES = {
    "hermes": HERMES,
    "llama3": LLAMA3,
    "mistral": MISTRAL,
    "mistral-args": MISTRAL_ARGS,
    "gemma": GEMMA,
    "smollm2": SMOLLM2,
    "smollm3": SMOLLM3,
    "granite": GRANITE,
    "deepseek": DEEPSEEK,
    "deepseek-v3.1": DEEPSEEK_V31,
}

#: The control tokens of all of these, as a model of each family has its own.
CONTROL = (
    *("<s>", "</s>", "<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>"),
    *("</tool_response>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "[INST]", "[/INST]"),
    *("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"),
    *("[/TOOL_RESULTS]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "<start_of_turn>", "<end_of_turn>"),
    *("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>", "<｜User｜>", "<｜Assistant｜>"),
    *("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
    *("<｜tool▁sep｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>", "<｜end▁of▁sentence｜>"),
)
