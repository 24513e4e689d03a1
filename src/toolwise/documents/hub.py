"""Data sets of the hub as documents: `hub:owner/name`, read by the `datasets` package (extra `datasets`).

    hub:NAME[@REVISION][:CONFIG[:SPLIT]]    the split is `train` unless another is named; NAME may be a folder here

A row is a document as a line of JSON is one: it needs a `text`. The data set is downloaded once into that package's own
cache and read from there, memory-mapped. Its digest is the package's own hash, of the commit on the hub or of names and
times of local files. The revision `refs/convert/parquet` is the hub's own copy as Parquet, which sets that come as a
program have as well.

Not covered: whether a data set runs code of its own; versions of `datasets` that still could, ask first and get a no.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolwise.core import jsonio
from toolwise.core.errors import BadInput
from toolwise.core.limits import Limits
from toolwise.documents.read import Found

PREFIX = "hub:"
#: Where the hub keeps every data set as Parquet, also those that are programs: a folder a configuration.
_EXPORT = "refs/convert/parquet"
_NAME = re.compile(r"(?P<name>[^@:]+)(?:@(?P<revision>[^@:]+))?(?::(?P<config>[^@:]+)(?::(?P<split>[^@:]+))?)?")


@dataclass(frozen=True, slots=True)
class HubSource:
    """One split of a data set."""

    dataset: str
    revision: str | None = None
    config: str | None = None
    split: str = "train"

    @property
    def name(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"{PREFIX}{self.dataset}{revision}:{self.config or 'default'}:{self.split}"

    def digest(self) -> str:
        with self._reading() as datasets:
            builder = self._builder(datasets)
            return jsonio.fingerprint([builder.hash, builder.config.name, self.split])

    def find(self, limits: Limits) -> Iterator[Found]:
        with self._reading() as datasets:
            builder = self._builder(datasets)
            builder.download_and_prepare()
            return self._rows(builder.as_dataset(split=self.split))

    def _rows(self, rows: Any) -> Iterator[Found]:
        stem = self.dataset.rstrip("/").rpartition("/")[2]
        with self._reading():
            for number, fields in enumerate(rows, 1):
                yield Found(f"{self.name!r} row {number}", f"{stem}-{number:06d}", fields)

    def _builder(self, datasets: Any) -> Any:
        if self.revision == _EXPORT:
            return datasets.load_dataset_builder(self.dataset, data_dir=self.config, revision=self.revision)
        return datasets.load_dataset_builder(self.dataset, self.config, revision=self.revision)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """The package, with its errors as one of ours."""
        try:
            import datasets
            import datasets.exceptions
        except ImportError as error:
            raise BadInput("Texts of the hub need datasets: pip install 'toolwise[datasets]'") from error
        try:
            yield datasets
        except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
            said = jsonio.first_line(error) or type(error).__name__
            raise BadInput(f"cannot read {self.name!r}: {said}; check its name, its split and the network") from error


def hub_source(text: str) -> HubSource:
    """The data set that `hub:...` names. Raises BadInput."""
    match = _NAME.fullmatch(text.removeprefix(PREFIX))
    if match is None:
        raise BadInput(f"{text!r} names no data set; write hub:owner/name, or hub:owner/name@revision:config:split")
    return HubSource(match["name"], match["revision"], match["config"], match["split"] or "train")
