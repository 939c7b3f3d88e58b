"""A change of sites before it is made: documents that a grid or a table describes, against those that are in effect.

A person sees each difference before anything is changed, and the API refuses a site that was changed since. Both need
the same three facts: new documents, names of deleted sites, and the etag of each as it was read. Pure.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.runtime.errors import UsageError
from nephila_control.site_types import ApplySites, Site

MAX_PLAN: Final = 8 << 20
"""Bytes of a plan in a form, after decompression."""
DELETE: Final = "delete"
"""Column of the grid that deletes a row."""
NEW: Final = "+"
"""Row of the grid that adds a directory."""


class Column(NamedTuple):
    """A setting that the grid can change."""

    key: str
    """Key of a directory in the document of its site."""
    words: str
    read: Callable[[str], Any] = str
    """Value of a cell. Raises `ValueError` for a text that is none; the API names the mistake."""
    choices: tuple[str, ...] = ()


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(text)
    return text == "true"


COLUMNS: Final = (
    Column("url", "URL"),
    Column("frequency", "Frequency"),
    Column("score", "Score", float),
    Column("topPages", "Pages per run", int),
    Column("paused", "Paused", _truth, ("true", "false")),
    Column("country", "Country"),
    Column("type", "Type"),
)


class FieldChange(NamedTuple):
    name: str
    before: str
    """Empty if the setting is new."""
    after: str
    """Empty if the setting goes."""


class RowChange(NamedTuple):
    """What happens to a site or to a directory."""

    verdict: Literal["created", "changed", "deleted"]
    name: str
    """Site, or the job of a directory."""
    fields: list[FieldChange]
    line: int = 0
    """Line of the table; 0 for one that comes from the grid, or that is deleted."""


class Plan(NamedTuple):
    documents: list[dict[str, Any]]
    """Documents that differ from those in effect."""
    deleted: list[str]
    etags: dict[str, str]

    @property
    def request(self) -> ApplySites:
        """Raises `UsageError` for more sites than a request takes."""
        values = {"sites": self.documents, "delete": self.deleted, "etags": self.etags}
        try:
            return msgspec.convert(values, ApplySites)
        except msgspec.ValidationError as error:
            raise UsageError(f"{error}; make the change in parts") from None


def packed(plan: Plan) -> str:
    """Writes a plan into a field of a form."""
    return base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(plan), 6)).decode()


def unpacked(text: str) -> Plan:
    """Raises `UsageError`."""
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.urlsafe_b64decode(text.encode()), MAX_PLAN)
        return msgspec.json.decode(data, type=Plan)
    except (ValueError, zlib.error, msgspec.DecodeError):
        raise UsageError("the change cannot be read; preview it again") from None


def directories_of(site: Site) -> dict[str, dict[str, Any]]:
    """Maps each job to its directory in the document of a site."""
    parts = site.document.get("spec", {}).get("directories", [])
    return {f"{site.name}.{part['name']}": part for part in parts}


# ---- the cells of the grid


def cell(document: Mapping[str, Any], key: str) -> str:
    """Writes a setting of a directory as its cell has it; empty if the directory does not give it."""
    return _text(document[key]) if key in document else ""


def from_cells(sites: Sequence[Site], cells: Mapping[str, str]) -> Plan:
    """`cells` are fields of the form, "COLUMN@JOB" or "COLUMN@+". A field that is missing changes nothing. Raises
    `UsageError` for a new directory without site, name or URL."""
    by_name = {site.name: site for site in sites}
    documents: dict[str, dict[str, Any]] = {}
    deleted = []
    for site in sites:
        directories = directories_of(site)
        parts = [_edited(part, job, cells) for job, part in directories.items() if not cells.get(f"{DELETE}@{job}")]
        if not directories and cells.get(f"{DELETE}@{site.name}"):
            deleted.append(site.name)
        elif parts != list(directories.values()):
            documents[site.name] = _with_directories(site.document, parts)
    if any(cells.get(f"{name}@{NEW}", "").strip() for name in ("site", "name", "url")):
        _add(cells, by_name, documents)
    etags = {
        name: cells.get(f"etag@{name}", by_name[name].etag if name in by_name else "")
        for name in [*documents, *deleted]
    }
    return Plan(list(documents.values()), deleted, etags)


def _edited(part: dict[str, Any], job: str, cells: Mapping[str, str]) -> dict[str, Any]:
    edited = dict(part)
    for column in COLUMNS:
        text = cells.get(f"{column.key}@{job}")
        if text is None or text.strip() == cell(part, column.key):
            continue
        edited.pop(column.key, None)
        if text.strip():
            edited[column.key] = _value(column, text.strip())
    return edited


def _add(cells: Mapping[str, str], sites: Mapping[str, Site], documents: dict[str, dict[str, Any]]) -> None:
    site, name, url = (cells.get(f"{field}@{NEW}", "").strip() for field in ("site", "name", "url"))
    if not (site and name and url):
        raise UsageError("a new directory needs a site, a name and a URL")
    settings = {column.key: text for column in COLUMNS if (text := cells.get(f"{column.key}@{NEW}", "").strip())}
    part = {
        "name": name,
        **{column.key: _value(column, settings[column.key]) for column in COLUMNS if column.key in settings},
    }
    document = documents.get(site) or (sites[site].document if site in sites else _empty(site))
    parts = document["spec"].get("directories", [])
    if any(present["name"] == name for present in parts):
        raise UsageError(f"site {site} has a directory {name} already; change its row")
    documents[site] = _with_directories(document, [*parts, part])


def _value(column: Column, text: str) -> Any:
    try:
        return column.read(text)
    except ValueError:
        return text


def _empty(site: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Site", "metadata": {"name": site}, "spec": {}}


def _with_directories(document: dict[str, Any], parts: list[dict[str, Any]]) -> dict[str, Any]:
    spec = {key: value for key, value in document["spec"].items() if key != "directories"}
    return {**document, "spec": {**spec, "directories": parts} if parts else spec}


# ---- a whole table


def from_table(sites: Sequence[Site], documents: Iterable[dict[str, Any]], *, delete_others: bool) -> Plan:
    """`documents` are all sites of a table; those that are as in effect are left out."""
    present = {site.name: site for site in sites}
    named = {document["metadata"]["name"]: document for document in documents}
    changed = [
        document for name, document in named.items() if name not in present or present[name].document != document
    ]
    deleted = [name for name in present if name not in named] if delete_others else []
    names = [*(document["metadata"]["name"] for document in changed), *deleted]
    return Plan(changed, deleted, {name: present[name].etag if name in present else "" for name in names})


# ---- differences


def differences(sites: Sequence[Site], plan: Plan, lines: Mapping[str, int]) -> list[RowChange]:
    """`lines` maps a site or job to its line of the table."""
    present = {site.name: site.document for site in sites}
    rows: list[RowChange] = []
    for document in plan.documents:
        name = document["metadata"]["name"]
        rows += _row_changes(name, present.get(name), document, lines)
    for name in plan.deleted:
        rows += _row_changes(name, present.get(name), None, lines)
    return rows


def _row_changes(
    site: str, before: dict[str, Any] | None, after: dict[str, Any] | None, lines: Mapping[str, int]
) -> Iterator[RowChange]:
    old, new = _rows(site, before), _rows(site, after)
    for name in {**new, **old}:
        fields = list(_field_changes(old.get(name, {}), new.get(name, {})))
        if name not in old or name not in new or fields:
            verdict: Any = "created" if name not in old else "deleted" if name not in new else "changed"
            yield RowChange(verdict, name, fields, lines.get(name, 0))


def _rows(site: str, document: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Maps the site and each job to its settings."""
    if document is None:
        return {}
    spec = dict(document["spec"])
    directories = spec.pop("directories", [])
    parts = {
        f"{site}.{part['name']}": {key: value for key, value in part.items() if key != "name"} for part in directories
    }
    return {site: spec, **parts}


def _field_changes(old: dict[str, Any], new: dict[str, Any]) -> Iterator[FieldChange]:
    before, after = dict(_leaves(old)), dict(_leaves(new))
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield FieldChange(name, before.get(name, ""), after.get(name, ""))


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
