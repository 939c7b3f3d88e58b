"""Sites as CSV: one row for each site and one for each directory, one column for each setting.

Columns: site, directory (empty in the row of a site), url, inherits, then the paths of all settings, as scope.maxDepth.
An empty cell is a setting that is not given. A list or a section is JSON; a list of one text may be that text.
Invariant: what `write` writes, `load` reads as the same sites. An error names file:line:column, with the column of the
table counted from 1.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.documents.yaml import Node, YamlEntry, from_builtins
from nephila.kernel.runtime.errors import UsageError, UsageErrors, suggest

from nephila_harvest.sites.settings import paths
from nephila_harvest.sites.site_documents import SiteDocument, site_of

OWN = ("site", "directory", "url", "inherits")
COLUMNS = (*OWN, *paths())


def write(stream: TextIO, sites: Iterable[SiteDocument]) -> None:
    """The sites as rows, with the columns that are in use."""
    rows: list[dict[str, str]] = []
    for site in sites:
        own = {"site": site.name, "url": site.url, "inherits": site.inherits}
        rows.append({**own, **{path: _cell(leaf.value) for path, leaf in site.settings.items()}})
        for directory in site.directories:
            cells = {path: _cell(leaf.value) for path, leaf in directory.settings.items()}
            rows.append({"site": site.name, "directory": directory.name, "url": directory.url, **cells})
    used = [name for name in COLUMNS if name in OWN or any(row.get(name) for row in rows)]
    writer = csv.DictWriter(stream, used, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def load(data: bytes, name: str) -> list[SiteDocument]:
    """The sites of a CSV file. Raises `UsageError` in one line; its `others` are the further errors."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8 text") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    errors = UsageErrors()
    sites: dict[str, dict[str, YamlEntry]] = {}
    directories: dict[str, list[Node]] = {}
    heads: dict[str, Node] = {}
    for location, row in _rows(reader, name):
        with errors:
            _add(row, location, heads, sites, directories)
    for site in directories:
        with errors:
            if site not in sites:
                first = directories[site][0].location
                raise UsageError(f"{first}: there is no row of the site {site!r}; its directory column is empty")
    errors.raise_all()
    documents = []
    for site, entries in sites.items():
        with errors:
            if site in directories:
                entries["directories"] = YamlEntry(heads[site], Node(directories[site], heads[site].location))
            documents.append(site_of(_document(heads[site], entries)))
    errors.raise_all()
    if not documents:
        raise UsageError(f"{name}: there is no site in it; the columns are {', '.join(OWN)} and settings")
    return documents


def _rows(reader: Any, name: str) -> Iterator[tuple[str, dict[str, Node]]]:
    """Location and cells of each row that is not empty."""
    try:
        header = next(reader, None) or []
        for number, column in enumerate(header, 1):
            if column not in COLUMNS:
                raise UsageError(f"{name}:1:{number}: unknown column {column[:60]!r}; {suggest(column, COLUMNS)}")
            if column in header[: number - 1]:
                raise UsageError(f"{name}:1:{number}: the column {column!r} comes twice")
        if missing := [column for column in ("site", "directory", "url") if column not in header]:
            raise UsageError(f"{name}:1: the column {missing[0]!r} is missing")
        before = reader.line_num
        for row in reader:
            line, before = before + 1, reader.line_num
            if not any(row):
                continue
            if len(row) != len(header):
                raise UsageError(f"{name}:{line}: {len(row)} cells in a table of {len(header)} columns")
            cells = {
                column: Node(cell, f"{name}:{line}:{number}", plain=True)
                for number, (column, cell) in enumerate(zip(header, row, strict=True), 1)
                if cell
            }
            yield f"{name}:{line}", cells
    except csv.Error as error:
        raise UsageError(f"{name}:{reader.line_num}: not CSV: {error}") from None


def _add(
    row: dict[str, Node],
    location: str,
    heads: dict[str, Node],
    sites: dict[str, dict[str, YamlEntry]],
    directories: dict[str, list[Node]],
) -> None:
    if "site" not in row:
        raise UsageError(f"{location}: the column 'site' is empty")
    site = str(row["site"].value)
    is_directory = "directory" in row
    entries: dict[str, YamlEntry] = {}
    for column, cell in row.items():
        if column not in ("site", "directory"):
            _put(entries, column, cell)
    if is_directory:
        if "inherits" in row:
            raise row["inherits"].error("inherits: only the row of a site may have it")
        entries["name"] = YamlEntry(row["directory"], row["directory"])
        directories.setdefault(site, []).append(Node(entries, location))
        return
    if site in sites:
        raise UsageError(f"{location}: the site {site!r} comes twice, first at {heads[site].location}")
    heads[site] = Node(site, location)
    sites[site] = entries


def _put(entries: dict[str, YamlEntry], column: str, cell: Node) -> None:
    section, _, key = column.rpartition(".")
    value = _value(cell)
    if not section:
        entries[column] = YamlEntry(Node(column, cell.location), value)
        return
    inner = entries.setdefault(section, YamlEntry(Node(section, cell.location), Node({}, cell.location))).value.value
    assert isinstance(inner, dict)
    inner[key] = YamlEntry(Node(key, cell.location), value)


_LISTS = frozenset(
    ("seeds", "keywords", "rules", "sinks", "scope.include", "scope.exclude", "parse.follow", "politeness.hosts")
)


def _value(cell: Node) -> Node:
    """The cell as a scalar, or as JSON when it is a list or a map."""
    text = str(cell.value)
    if text[:1] not in ("[", "{"):
        return cell
    try:
        value = json.loads(text)
    except ValueError:
        return cell
    return _moved(from_builtins(value, cell.location), cell.location)


def _moved(node: Node, location: str) -> Node:
    """The tree with one location, that of its cell."""
    if isinstance(node.value, dict):
        inner = {
            key: YamlEntry(Node(key, location), _moved(entry.value, location)) for key, entry in node.value.items()
        }
        return Node(inner, location)
    if isinstance(node.value, list):
        return Node([_moved(item, location) for item in node.value], location)
    return Node(node.value, location, node.plain)


def _document(head: Node, spec: dict[str, YamlEntry]) -> Node:
    def entry(key: str, value: Node) -> YamlEntry:
        return YamlEntry(Node(key, head.location), value)

    for path in _LISTS:
        _as_list(spec, path)
    for directory in spec["directories"].value.value if "directories" in spec else ():
        assert isinstance(directory, Node)
        assert isinstance(directory.value, dict)
        for path in _LISTS:
            _as_list(directory.value, path)
    parts = {
        "apiVersion": entry("apiVersion", Node(API_VERSION, head.location)),
        "kind": entry("kind", Node("Site", head.location)),
        "metadata": entry("metadata", Node({"name": entry("name", head)}, head.location)),
        "spec": entry("spec", Node(spec, head.location)),
    }
    return Node(parts, head.location)


def _as_list(entries: dict[str, YamlEntry], path: str) -> None:
    """A single text in the column of a list is a list of it."""
    section, _, key = path.rpartition(".")
    if section:
        if section not in entries:
            return
        inner = entries[section].value.value
        assert isinstance(inner, dict)
        entries = inner
    entry = entries.get(key)
    if entry is not None and isinstance(entry.value.value, str):
        entries[key] = YamlEntry(entry.key, Node([entry.value], entry.value.location))


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return str(value)
