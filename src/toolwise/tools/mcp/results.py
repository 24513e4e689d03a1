"""What a server's result is to a model: text, of which pictures and sounds are told by their kind and size."""

from __future__ import annotations

from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import ToolwiseError
from toolwise.core.limits import Limits


def text_of(result: Any, limits: Limits) -> str:
    """The text of a result's content; of one that has none, its structured content as JSON."""
    said = "\n".join(_block(block, limits) for block in result.content)
    if said or result.structured_content is None:
        return said
    try:
        return jsonio.dumps(result.structured_content, limits)
    except ToolwiseError:
        return "a structured value that cannot be read"


def _block(block: Any, limits: Limits) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "resource" if hasattr(block.resource, "text"):
            return str(block.resource.text)
        case "resource_link":
            return jsonio.printable(f"{block.name}: {block.uri}", limits.url_chars)
        case "resource":
            return f"{_kind(block.resource, limits)} of {len(block.resource.blob) * 3 // 4} bytes, which is no text"
        case _:
            return f"{_kind(block, limits)} of {len(getattr(block, 'data', '')) * 3 // 4} bytes, which is no text"


def _kind(part: Any, limits: Limits) -> str:
    return jsonio.printable(getattr(part, "mime_type", None) or "something", limits.name_chars)
