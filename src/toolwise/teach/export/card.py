"""The card of an exported dataset: what hub and `datasets` read at its top, and what a person should know below."""

from __future__ import annotations

from collections.abc import Mapping

from toolwise.core.jsonio import pretty
from toolwise.teach.export.messages import function
from toolwise.teach.export.run import Run

_TOP = """---
# Fill these three in. The texts come from the corpus that was annotated, and so does their licence.
license:
language:
pretty_name:
tags:
- toolwise
- tool-use
task_categories:
- text-generation
size_categories:
- {size}
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*.parquet
dataset_info:
  features:
  - name: id
    dtype: string
  - name: document
    dtype: string
  - name: text
    dtype: string
  - name: plain
    dtype: string
  - name: calls
    list:
    - name: tool
      dtype: string
    - name: arguments
      dtype: string
    - name: result
      dtype: string
    - name: at
      dtype: int64
    - name: start
      dtype: int64
    - name: end
      dtype: int64
---
"""

_BODY = """
# Texts with tool calls

{rows} passages of plain text in which a language model found calls of tools, by the method of Toolformer (Schick et al.
2023): it proposed calls, each was run, and a call was kept if its result makes the words behind it easier to predict.
That a call is kept says that its result predicts the text, not that it is true.

Calls of each tool: {calls}.

```python
from datasets import load_dataset

dataset = load_dataset("path/to/this/folder", split="train")
```

| column | |
|---|---|
| `id`, `document` | the passage, and the document that it is cut from |
| `text` | the passage with its calls, as in ` [Calculator(18 / 24) -> 0.75]` |
| `plain` | the same without calls, character by character as it was |
| `calls` | `tool`, `arguments` (JSON), `result`; in `plain` before character `at`, in `text` from `start` to `end` |

What looked like a call in a document already has a backslash behind its bracket in `text`.

## Source and licence

Say here which texts were annotated, who holds rights in them, and where the tools' results come from.

## Tools

```json
{tools}
```

## How it was made

`toolwise annotate`, run `{fingerprint}`:

```json
{settings}
```
"""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def card(run: Run, rows: int, calls: Mapping[str, int]) -> str:
    """The text of README.md for so many rows, and so many calls of each tool."""
    settings = {name: value for name, value in run.settings.items() if name not in ("tools", "prompts")}
    if isinstance(own := settings.get("settings"), Mapping):  # where an index or a server is, is nobody's business
        settings["settings"] = {name: value for name, value in own.items() if name != "options"}
    return _TOP.format(size=_size(rows)) + _BODY.format(
        rows=rows,
        calls=", ".join(f"{name} {count}" for name, count in sorted(calls.items())),
        tools=pretty([function(tool) for tool in run.tools]),
        fingerprint=run.fingerprint,
        settings=pretty(settings),
    )


def _size(rows: int) -> str:
    return next((name for below, name in _SIZES if rows < below), "1M<n<10M")
