"""`toolwise serve` and its keys, as a command line."""

from __future__ import annotations

import re
import signal
import socket
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest

from command_line import Toolwise, refused


def test_a_key_is_printed_once_and_kept_as_its_digest(toolwise: Toolwise, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    first = toolwise("serve", "keys", "new", "ann", "--keys", file, "--days", 30)
    second = toolwise("serve", "keys", "new", "bob", "--keys", file)
    assert re.fullmatch(r"tw-[\w-]{43}\n", first.out)
    assert first.out.strip() not in file.read_text()
    told = tomllib.loads(file.read_text())["keys"]
    assert [key["principal"] for key in told] == ["ann", "bob"]
    assert ["expires" in key for key in told] == [True, False]
    assert first.out != second.out


def test_a_file_of_keys_is_its_owner_s_alone_whatever_it_was_before(toolwise: Toolwise, tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    for name in ("ann", "bob"):
        toolwise("serve", "keys", "new", name, "--keys", file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.chmod(0o644)


@pytest.mark.parametrize("command", [("serve", "--model", "scripted"), ("mcp", "--tools", "Calculator")])
def test_a_file_of_keys_that_others_can_read_is_told_of_and_one_that_they_can_write_is_refused(
    command: tuple[str, ...], toolwise: Toolwise, tmp_path: Path
) -> None:
    file, taken = tmp_path / "keys.toml", socket.create_server(("127.0.0.1", 0))
    toolwise("serve", "keys", "new", "ann", "--keys", file)
    with taken:  # so that nothing is served
        words = (*command, "--port", taken.getsockname()[1], "--keys", file, "--state", tmp_path / "state.db")
        if command[0] == "serve":
            words = words[:-2]
        assert "other users" not in toolwise(*words).err
        file.chmod(0o644)
        assert "can be read by other users of this machine: chmod 600 it" in toolwise(*words).err
        file.chmod(0o646)
        refused(toolwise(*words), "bad_input", "Every user of this machine can write keys")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--host", "0.0.0.0"), "give --keys"),
        (("--host", "10.0.0.1"), "give --keys"),
        (("--host", "localhost"), "give an address"),
        (("--keys", "none.toml"), "none.toml"),
        (("--policy", "p.cedar"), "name them with --tools"),
        (("--tools", "Nothing"), "Nothing"),
        (("--tools", "Calculator", "--policy", "none.cedar"), "cannot be read"),
        (("--allow-host", "http://x"), "no name of a host"),
    ],
)
def test_what_cannot_be_served_is_one_line(
    words: tuple[str, ...], says: str, toolwise: Toolwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(toolwise("serve", "--model", "scripted", "--port", 0, *words), "bad_input", says)


def test_a_file_of_keys_that_is_none_gets_no_new_one(toolwise: Toolwise, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text("keys = 5")
    refused(toolwise("serve", "keys", "new", "ann", "--keys", tmp_path / "keys.toml"), "bad_input")
    assert (tmp_path / "keys.toml").read_text() == "keys = 5"


def test_the_server_says_where_it_is_answers_and_ends_when_it_is_interrupted(
    toolwise: Toolwise, tmp_path: Path
) -> None:
    key = toolwise("serve", "keys", "new", "ann", "--keys", tmp_path / "keys.toml").out.strip()
    command = [sys.executable, "-m", "toolwise", "serve", "--model", "scripted", "--port", "0"]
    command += ["--keys", "keys.toml", "--tools", "Calculator", "--state", "state.db"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            found = re.search(r"scripted: (http://127\.0\.0\.1:\d+)", served.stdout.readline())
            assert found
            said = {
                "model": "scripted",
                "messages": [{"role": "user", "content": 'call Calculator {"expression": "6*7"}'}],
            }
            url = f"{found[1]}/v1/chat/completions"
            assert httpx2.post(url, json=said, timeout=20).status_code == 401
            told = httpx2.post(url, json=said, headers={"x-api-key": key}, timeout=20).json()
            assert told["choices"][0]["message"]["content"] == "The results: 42"
        finally:
            served.send_signal(signal.SIGINT)
            out, err = served.communicate(timeout=20)
    assert key not in out + err
    assert "Traceback" not in err
