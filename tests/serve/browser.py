"""A real browser, driven over pipes by its own protocol (https://chromedevtools.github.io/devtools-protocol)."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
_SECONDS = 30.0


class Browser:
    """One headless browser with one page. Every wait is bounded."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()

        def pipes() -> None:  # the browser reads file 3 and writes file 4
            kept = [os.dup(theirs_in), os.dup(theirs_out)]
            for target, kept_as in zip((3, 4), kept, strict=True):
                os.dup2(kept_as, target)

        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            "--window-size=800,600",
        ]
        self._process = subprocess.Popen(
            [CHROMIUM, *options, f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out, self._rest, self._sent, self._session = ours_in, ours_out, b"", 0, ""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.requested: list[str] = []
        self.send("Network.enable")
        self.send("Page.enable")

    def send(self, method: str, **params: Any) -> Any:
        """The answer to one command."""
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            told = self._read()
            if told.get("method") == "Network.requestWillBeSent":
                self.requested.append(told["params"]["request"]["url"])
            if told.get("id") == self._sent:
                assert "error" not in told, told
                return told["result"]

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """What an expression in the page gives."""
        told = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, script: str) -> Any:
        """The first value of the expression that is true."""
        ends = time.monotonic() + _SECONDS
        while not (value := self.value(f"(() => {{ try {{ return {script} }} catch {{ return null }} }})()")):
            assert time.monotonic() < ends, f"never: {script}"
            self.value("new Promise((done) => requestAnimationFrame(done))")
        return value

    def framed(self, script: str) -> Any:
        """The same in the page's frame, which has a process of its own."""
        (frame,) = [each for each in self.send("Target.getTargets")["targetInfos"] if each["type"] == "iframe"]
        outer = self._session
        self._session = self.send("Target.attachToTarget", targetId=frame["targetId"], flatten=True)["sessionId"]
        try:
            return self.value(script)
        finally:
            self._session = outer

    def close(self) -> None:
        self._process.kill()
        self._process.wait(10)
        os.close(self._in)
        os.close(self._out)

    def _read(self) -> Any:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], _SECONDS)
            assert ready, "the browser does not answer"
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise BrokenPipeError("the browser has gone")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)
