"""Exports of a crawl's WARC files: one CDXJ index over all of them, and a WACZ package.

The index is merged from one sorted index per file: that beside the file if it is not older, else one that is read from
the file. A package lists the stored pages whose answer is in its files; a revisit record is no answer. Memory: the
lines of one WARC file; for a package 100 bytes per answer.

ReplayWeb.page reads `indexes/index.cdxj` as a whole and finds a page by its URL (ADR 246). It takes a member without an
extra field in the directory of the package to have none before its data, so both have one or neither has.
"""

import contextlib
import hashlib
import heapq
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec
from nephila import __version__
from nephila.kernel.runtime.errors import UNREADABLE, UserError
from nephila.storage.ledgers.read_connection import ReadConnection, open_for_reading
from nephila.storage.read.export import Shown, write_file, write_rows
from nephila.storage.source import Source

from nephila_stores.warcs.cdxj import REVISIT, index_path, lines_of_file
from nephila_stores.warcs.warc_records import record_uri

WACZ_VERSION: Final = "1.1.1"
_PAGE_ROWS: Final = 1000
_BLOCK: Final = 1 << 20


def warc_files(directory: Path) -> list[Path]:
    """The WARC files of a crawl, by name. Raises `UserError` if there are none."""
    paths = sorted(directory.glob("*.warc.gz"))
    if not paths:
        raise UserError(f"{directory} has no WARC files; crawl with --format warc")
    return paths


class Packed(NamedTuple):
    """The pages of a package."""

    listed: int
    missing: int
    """Stored pages whose answer is in no WARC file."""


class _Answer(msgspec.Struct):
    url: str = ""
    mime: str = ""
    status: str = ""


_answer_of = msgspec.json.Decoder(_Answer).decode


def write_cdxj(directory: Path, stream: IO[bytes]) -> int:
    """Write the index of all WARC files and return its number of lines. Raises `UserError`, `OSError`."""
    written = 0
    for line in _lines(directory):
        stream.write(line)
        written += 1
    return written


def _lines(directory: Path) -> Iterator[bytes]:
    """The lines of the index of all WARC files, sorted."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nephila-")))
        sources = [stack.enter_context(_index(path, folder).open("rb")) for path in warc_files(directory)]
        yield from heapq.merge(*sources)


def _index(warc: Path, folder: Path) -> Path:
    path = index_path(warc)
    if path.is_file() and path.stat().st_mtime_ns >= warc.stat().st_mtime_ns:
        return path
    path = folder / path.name
    path.write_bytes("".join(f"{line}\n" for line in sorted(lines_of_file(warc), key=str.encode)).encode())
    return path


def write_wacz(directory: Path, source: Source, out: Path, job: str | None = None) -> Packed:
    """Write a WACZ package of the WARC files. `source`: the rows, for the list of pages. Raises `UserError`,
    `OSError`."""
    warcs = warc_files(directory)
    with zipfile.ZipFile(out, "w", allowZip64=True) as package:
        writer = _Package(package)
        for path in warcs:
            with path.open("rb") as stream:
                writer.add(f"archive/{path.name}", stream)
        held: set[int] = set()
        with tempfile.TemporaryFile() as index:
            for line in _lines(directory):
                index.write(line)
                if (url := _url_of_answer(line)) is not None:
                    held.add(hash(url))
            index.seek(0)
            writer.add("indexes/index.cdxj", index, compressed=True)
        pages = missing = 0
        with tempfile.TemporaryFile() as listed:
            _line(listed, {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"})
            with open_for_reading(source, check=True) as connection:
                for row in _pages(connection, job):
                    if hash(record_uri(row[1])) not in held:
                        missing += 1
                        continue
                    _line(listed, dict(zip(("id", "url", "title", "ts"), row, strict=True)))
                    pages += 1
            listed.seek(0)
            writer.add("pages/pages.jsonl", listed, compressed=True)
        writer.close()
    return Packed(pages, missing)


def _url_of_answer(line: bytes) -> str | None:
    """The URL of a line whose record has the body of a page; None for others."""
    try:
        answer = _answer_of(line.split(b" ", 2)[2])
    except (IndexError, *UNREADABLE):
        return None
    return answer.url if answer.mime != REVISIT and answer.status.startswith("2") else None


class _Package:
    """The members of a package, with their digests."""

    def __init__(self, package: zipfile.ZipFile) -> None:
        self._package = package
        self._resources: list[dict[str, Any]] = []

    def add(self, name: str, stream: IO[bytes], *, compressed: bool = False) -> str:
        """Add a member; WARC files stay uncompressed, so that readers can seek. Returns its digest."""
        info = zipfile.ZipInfo(name, datetime.now(UTC).timetuple()[:6])
        # zipfile reserves the extra field of ZIP64 by an estimate of this size, the directory has it by the exact one.
        expected = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        info.file_size = expected if expected > zipfile.ZIP64_LIMIT else 0
        info.compress_type = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        digest, size = hashlib.sha256(), 0
        with self._package.open(info, "w") as member:
            while block := stream.read(_BLOCK):
                member.write(block)
                digest.update(block)
                size += len(block)
        sha256 = f"sha256:{digest.hexdigest()}"
        self._resources.append({"name": Path(name).name.lower(), "path": name, "hash": sha256, "bytes": size})
        return sha256

    def close(self) -> None:
        """Add the description of the package and its digest."""
        description = {
            "profile": "data-package",
            "wacz_version": WACZ_VERSION,
            "software": f"nephila {__version__}",
            "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "resources": list(self._resources),
        }
        digest = self.add("datapackage.json", io.BytesIO(json.dumps(description, indent=2).encode()), compressed=True)
        digests = json.dumps({"path": "datapackage.json", "hash": digest}).encode()
        self.add("datapackage-digest.json", io.BytesIO(digests), compressed=True)


def _line(stream: IO[bytes], value: dict[str, Any]) -> None:
    stream.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def _pages(connection: ReadConnection, job: str | None) -> Iterator[tuple[str, str, str, str]]:
    """(id, URL, title, time in seconds) of each stored HTML page."""
    key, last = connection.walk
    behind = ", ".join(f":last_{name}" for name in key)
    only = "AND job = :job" if job is not None else ""
    query = (
        f"SELECT {', '.join(key)}, url_key, url, title, fetched_at FROM pages WHERE ({', '.join(key)}) > ({behind})"
        f" AND outcome = 'stored' AND content_type LIKE '%html%' {only} ORDER BY {', '.join(key)} LIMIT {_PAGE_ROWS}"
    )
    while True:
        at = {f"last_{name}": value for name, value in zip(key, last, strict=True)}
        rows = connection.execute(query, {"job": job, **at}).fetchall()
        for row in rows:
            url_key, url, title, fetched_at = row[len(key) :]
            yield url_key, url, title or url, f"{fetched_at[:19]}Z"
        if len(rows) < _PAGE_ROWS:
            return
        last = rows[-1][: len(key)]


def export_archive(
    directory: Path,
    source: Source,
    format: str,
    out: Path | None,
    *,
    job: str | None = None,
    shown: Shown | None = None,
) -> Packed:
    """Write the CDXJ index of the WARC files of a directory, or a WACZ package of them. Returns its number of lines or
    pages, and the number of stored pages that a package does not have. `out` None is standard output, for WACZ
    DIR/export.wacz. Raises `UserError`."""
    warc_files(directory)
    if format == "wacz":
        return write_file(out or directory / "export.wacz", lambda part: write_wacz(directory, source, part, job))
    return Packed(write_rows(out, lambda stream: write_cdxj(directory, stream), shown), 0)
