"""Where documents come from: files and folders here, or a data set of the hub (`hub:owner/name`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol

from toolwise.core.errors import BadInput
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Document
from toolwise.documents.hub import PREFIX, HubSource, hub_source
from toolwise.documents.read import Found, corpus_digest, find, unique_documents


class Source(Protocol):
    """One corpus. `name` is for people; `digest` changes whenever its documents do."""

    @property
    def name(self) -> str: ...

    def digest(self) -> str: ...

    def find(self, limits: Limits) -> Iterator[Found]: ...


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A file or a folder, as `read_documents` takes it."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.resolve().name  # where it lies may change

    def digest(self) -> str:
        return corpus_digest(self.path)

    def find(self, limits: Limits) -> Iterator[Found]:
        return find(self.path, limits)


def source(named: str | Path) -> LocalSource | HubSource:
    """The source that a person named. Raises BadInput for a name of the hub that cannot be one."""
    text = str(named)
    return hub_source(text) if text.startswith(PREFIX) else LocalSource(Path(text))


def read_sources(sources: Sequence[Source], limits: Limits = LIMITS) -> Iterator[Document]:
    """The documents of all sources in their order; ids are unique over all of them. Raises BadInput."""
    found = chain.from_iterable([each.find(limits) for each in sources])
    return unique_documents(found, ", ".join(each.name for each in sources), limits)


def refuse_among(sources: Sequence[Source], out: Path) -> None:
    """Raises BadInput for a folder that would stand among the texts it is made of: they would be others next time."""
    folders = [each.path for each in sources if isinstance(each, LocalSource) and each.path.is_dir()]
    for folder in folders:
        if out.resolve().is_relative_to(folder.resolve()):
            raise BadInput(f"{str(out)!r} would stand among the texts that it is made of; choose a folder outside")
