"""C* of a finished run in formats that other trainers read.

    export(finished_run(folder), "messages", Path("messages.jsonl"))

`run` is what is exported, `formats` the table of what it can become, one file a format: `text`, `messages`, `tokens`,
`dataset` with its `card`. `output` makes the result whole or not at all.
"""

from toolwise.teach.export.formats import FORMATS, Exported, check_format, export
from toolwise.teach.export.run import Run, finished_run
from toolwise.teach.export.tokens import Encoding

__all__ = ["FORMATS", "Encoding", "Exported", "Run", "check_format", "export", "finished_run"]
