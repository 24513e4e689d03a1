"""Names of fields: the API writes them `likeThis`, and takes them `like_this` as well."""

from __future__ import annotations

import re
from typing import Any

from toolwise.notation.wire.fields import Field

_UNDERSCORE = re.compile(r"(?<=[A-Za-z0-9])_([a-z0-9])")


def camel(place: Field) -> Field:
    """The object with its keys `likeThis`; what stands in it is left as it is. Absent stays absent."""
    if place.absent:
        return place
    named: dict[str, Any] = {}
    for key, value in place.object().items():
        name = _UNDERSCORE.sub(lambda found: found[1].upper(), key)
        if name in named:
            raise place[name].refused("stands there in both its spellings; send one of them")
        named[name] = value
    return Field(named, place.path)
