"""Our own server of the chat APIs over the scripted model, as somebody's upstream."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from toolwise.models.scripted_chat import ScriptedChat
from toolwise.serve.app import api_app
from toolwise.serve.run import bound, server


@contextmanager
def serving_scripted() -> Iterator[str]:
    """Its address, until the end of the block."""
    made, where = server(api_app([ScriptedChat()])), bound(0)
    thread = threading.Thread(target=made.run, kwargs={"sockets": [where]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{where.getsockname()[1]}"
    finally:
        made.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
