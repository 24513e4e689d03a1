"""What Schemathesis cannot know of a chat API: that the fields of a body also say something of each other.

A body that fits the schema may still be refused with 400 where its parts do not fit together. That is let pass only for
the sentences that say so; the stock check (`positive_data_acceptance`) is replaced by this one.
"""

from __future__ import annotations

import re

import schemathesis

TOGETHER = re.compile(
    r"has no result|which is no call of the turn before it|has a result already|is empty or stands there twice"
    r"|asks for a call; send tools|which is none of the tools|stands there twice|differs from max_completion_tokens"
    r"|is for a stream|end with a (message|content) of|send at least one (content|message)|stands beside parameters"
    r"|goes with the mode|waits for a result|put the results before|in both its spellings|send one of them"
    r"|responseSchema|parameters"  # Google's own kind of schema, of which ours says only that it is an object
)


@schemathesis.check
def accepted_where_its_parts_fit(ctx, response, case) -> None:  # type: ignore[no-untyped-def]
    if not case.meta or not case.meta.generation.mode.is_positive:
        return
    if response.status_code == 400:
        message = response.json()["error"]["message"]
        assert TOGETHER.search(message), f"a body that fits the schema is refused: {message}"
    assert response.status_code not in (413, 415, 422, 500), response.status_code
