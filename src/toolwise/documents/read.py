"""Plain text in: documents from files, strictly.

    .txt               one document a file
    .jsonl, .jsonl.gz  one object a line: `text`, and optionally `id`, `date`, `url`, `language`; the rest is metadata
    .parquet           the same, one row a document
    a folder           all such files below it, in the order of their names; links to folders are not followed

Every file is read to its end or refused with the place in it: a corpus that is silently shorter than its files would
falsify whatever is measured on it. Nothing is read into memory beyond one document (Parquet: a bounded batch of rows).

Not covered: encodings other than UTF-8, and compressed text files.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from toolwise.core import jsonio
from toolwise.core.durable import sha256
from toolwise.core.errors import BadInput, ToolwiseError
from toolwise.core.limits import LIMITS, Limits
from toolwise.core.types import Document
from toolwise.documents import parquet
from toolwise.documents.arrow import arrow
from toolwise.documents.dates import date_in_head, date_in_title, date_in_url, partial_date

_BOM = b"\xef\xbb\xbf"
_FIELDS = ("text", "id", "date", "url", "language")


class Found(NamedTuple):
    """One document's fields as its source gave them, the id it gets if it brings none, and where it stands."""

    place: str
    id: str
    fields: Mapping[str, Any]


def read_documents(path: str | Path, *, limit: int | None = None, limits: Limits = LIMITS) -> Iterator[Document]:
    """The documents of a file or a folder, the first `limit` of them.

    A document without an id is called after its file and line, `corpus-000012`. Its date is the `date` field, or
    else one in the `url`, the `title` or the text's head, as a partial ISO date (`documents.dates`); a `date` that is
    none stays in the metadata.

    Raises BadInput, with file and line, for what is missing, empty, not UTF-8, not JSON, without a `text` field, larger
    than `limits.document_bytes`, with NUL characters in it, or called like another document; also for a folder with
    something in it that is named like a corpus and is no file, such as a link to nowhere.
    """
    return islice(unique_documents(find(path, limits), str(path), limits), limit)


def find(path: str | Path, limits: Limits = LIMITS) -> Iterator[Found]:
    """What stands in a file or a folder, not yet looked at. Raises BadInput at once when there is nothing to read."""
    with _reading(Path(path)):
        sources = _sources(Path(path))  # before the first document is asked for
    return (found for file, stem, reader in sources for found in reader(file, stem, limits))


def unique_documents(found: Iterable[Found], where: str, limits: Limits = LIMITS) -> Iterator[Document]:
    """The documents of what was found in `where`. Raises BadInput as `read_documents` does.

    A document that brings no id and would be called like an earlier one, as files of one name in two folders, is called
    `notes~2`.
    """
    seen: set[str] = set()
    for each in found:
        document = _document(each, limits)
        if document.id in seen and each.fields.get("id") is not None:
            raise BadInput(f"{each.place}: the id {jsonio.quote(document.id)} is taken; give every document its own")
        if document.id in seen:
            others = (f"{document.id}~{number}" for number in count(2))
            document = replace(document, id=next(other for other in others if other not in seen))
        seen.add(document.id)
        yield document
    if not seen:
        raise BadInput(f"{where!r} holds no document; give a file with text in it")


def corpus_digest(path: str | Path) -> str:
    """SHA-256 over the names and bytes of the files that `read_documents` reads. Raises BadInput as it does."""
    with _reading(Path(path)):
        digest = hashlib.sha256()
        for file, stem, _ in _sources(Path(path)):
            digest.update(f"{stem} {file.name} {sha256(file)}\n".encode())
    return digest.hexdigest()


def read_objects(path: Path, limits: Limits = LIMITS) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a `.jsonl` or `.jsonl.gz` file, each with its place in words. Raises BadInput as above."""
    return ((found.place, found.fields) for found in _read_lines(path, path.name, limits))


def _sources(path: Path) -> list[tuple[Path, str, Reader]]:
    if not path.exists():
        raise BadInput(f"there is no file or folder {str(path)!r}; check the path")
    if path.is_dir():
        named = [(file, file.relative_to(path).as_posix()) for file in _below(path)]
    elif path.is_file():
        named = [(path, path.name)]
    else:
        raise BadInput(f"{str(path)!r} is neither a file nor a folder; give a corpus")
    found = [
        (file, name.removesuffix(suffix), reader)
        for file, name in sorted(named, key=lambda one: one[1])
        for suffix, reader in _READERS.items()
        if name.endswith(suffix)
    ]
    if not found:
        raise BadInput(f"{str(path)!r} is or holds no corpus; give {', '.join(_READERS)} or a folder of them")
    for file, stem, _ in found:
        if not file.is_file():
            raise BadInput(f"{str(file)!r} is a link to nowhere, or no regular file; remove it, or mend it")
        if not _is_unicode(stem):
            raise BadInput(
                f"{str(file)!r} has a name that is not UTF-8; rename it, since documents are called after it"
            )
    return found


def _is_unicode(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes of another encoding, which Python keeps as halves of surrogate pairs
        return False
    return True


def _below(folder: Path) -> Iterator[Path]:
    """All that stands below a folder and is no folder. Raises OSError for a folder that may not be read."""

    def refuse(error: OSError) -> None:
        raise error

    for parent, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(parent, name) for name in names)


def _read_text(path: Path, stem: str, limits: Limits) -> Iterator[Found]:
    place = repr(str(path))
    with _reading(path), path.open("rb") as stream:
        data = stream.read(limits.document_bytes + 1)
    _bound(len(data), place, limits)
    text = _decode(data, path, 0, 1)
    if not text.strip():
        raise BadInput(f"{place} is empty; give a file with text in it")
    yield Found(place, stem, {"text": text})


def _read_lines(path: Path, stem: str, limits: Limits) -> Iterator[Found]:
    generous = replace(limits, string_bytes=limits.document_bytes)
    with _reading(path), _opened(path) as stream:
        at = 0
        for number in count(1):
            place = _place(path, number)
            line = stream.readline(
                limits.document_bytes + 1
            )  # one more, so that a longer line shows without being read
            if not line:
                return
            _bound(len(line), place, limits)
            text = _decode(line, path, at, number)
            at += len(line)
            if not text.strip():
                continue
            try:
                fields = jsonio.loads(text, generous)
            except ToolwiseError as error:
                raise BadInput(f"{place}: {error}") from error
            if not isinstance(fields, dict):
                raise BadInput(f"{place}: not an object; write one object a line, with a text field")
            yield Found(place, f"{stem}-{number:06d}", fields)


def _read_parquet(path: Path, stem: str, limits: Limits) -> Iterator[Found]:
    pa, _ = arrow()
    number = 0
    try:
        with _reading(path):
            for number, fields in enumerate(parquet.rows(path, limits), 1):
                yield Found(_place(path, number, "row"), f"{stem}-{number:06d}", fields)
    except (pa.ArrowException, ValueError, OverflowError) as error:  # the latter two for values that Python cannot hold
        said = jsonio.first_line(error)
        raise BadInput(f"{str(path)!r} after row {number}: not a whole Parquet file of text ({said})") from error


Reader = Callable[[Path, str, Limits], Iterator[Found]]
_READERS: dict[str, Reader] = {
    ".txt": _read_text,
    ".jsonl": _read_lines,
    ".jsonl.gz": _read_lines,
    ".parquet": _read_parquet,
}


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{str(path)!r} is not a whole gzip file; fetch or pack it again") from error
    except OSError as error:
        raise BadInput(f"cannot read {str(path)!r}: {error.strerror or error}; check the file") from error


def _bound(size: int, place: str, limits: Limits) -> None:
    if size > limits.document_bytes:
        raise BadInput(f"{place}: more than {limits.document_bytes} bytes; split the document, or check for line ends")


def _decode(data: bytes, path: Path, at: int, line: int) -> str:
    """`data` begins at byte `at` and line `line` of its file, in front of which a byte order mark is no text."""
    mark = len(_BOM) if at == 0 and data.startswith(_BOM) else 0
    try:
        return data[mark:].decode("utf-8")
    except UnicodeDecodeError as error:
        bad = mark + error.start
        place = _place(path, line + data.count(b"\n", 0, bad))
        raise BadInput(f"{place}: not UTF-8 at byte {at + bad}; convert the file, or check that it is text") from None


def _place(path: Path, number: int, what: str = "line") -> str:
    return f"{str(path)!r} {what} {number}"


def _document(found: Found, limits: Limits) -> Document:
    place, fields = found.place, found.fields
    if "text" not in fields:
        there = jsonio.printable(", ".join(sorted(fields)) or "none", limits.message_chars)
        raise BadInput(f'{place}: there is no "text" field among {there}; name it text')
    if not isinstance(fields["text"], str):
        raise BadInput(f"{place}: the text field is {type(fields['text']).__name__}; make it a string")
    given = fields.get("id")
    if isinstance(given, int) and not isinstance(given, bool):
        given = str(given)
    named = {**fields, "id": found.id if given is None else given}
    for name in ("text", "id", "url", "language"):
        value = named.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or (name == "id" and not value):
            raise BadInput(f"{place}: the {name} field is not usable; make it a string")
        if name != "text" and len(value) > limits.label_chars:
            raise BadInput(f"{place}: the {name} has more than {limits.label_chars} characters; shorten it")
        _bound(len(value.encode()), place, limits)
        if "\0" in value:
            raise BadInput(f"{place}: NUL character at character {value.index(chr(0))} of the {name}; is it a text?")
    date = partial_date(fields.get("date"))
    metadata = {name: value for name, value in fields.items() if name not in _FIELDS}
    if date is None and fields.get("date") is not None:
        metadata["date"] = fields["date"]
    title = fields.get("title")
    return Document(
        id=named["id"],
        text=fields["text"],
        date=date
        or date_in_url(fields.get("url") or "")
        or (date_in_title(title) if isinstance(title, str) else None)
        or date_in_head(fields["text"]),
        url=fields.get("url"),
        language=fields.get("language"),
        metadata=metadata,
    )
