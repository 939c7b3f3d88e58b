"""Reads Site documents: a set of sites that is valid as a whole, or one line with the place of the fault.

Invariants of a `Sites`: names of sites and of jobs are unique, `inherits` names a site and has no cycle, no two
directories have the same prefix. `content` of a site reads as the same site.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from nephila.kernel.documents import document_files
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.documents.struct_reader import read
from nephila.kernel.documents.yaml import Node, from_builtins
from nephila.kernel.runtime.errors import UsageError, UsageErrors, suggest

from nephila_harvest.sites.settings import Leaf, Leaves, leaves, nested
from nephila_harvest.sites.site_schema import Site as SiteSchema
from nephila_harvest.sites.surt import directory_prefix, prefixes

DEFAULT = "default"
"""The site whose settings all others inherit."""


OF_THE_SITE = ("quota",)
"""Settings that are not inherited: of a site they hold for its directories together."""


@dataclass(frozen=True, slots=True)
class DirectoryDocument:
    """A directory as its document gives it."""

    name: str
    url: str
    settings: Leaves
    location: str


@dataclass(frozen=True, slots=True)
class SiteDocument:
    """A site as its document gives it."""

    name: str
    url: str
    inherits: str
    settings: Leaves
    directories: tuple[DirectoryDocument, ...]
    location: str

    @property
    def etag(self) -> str:
        """16 hexadecimal digits of the SHA-256 of the content: equal in two documents with the same content."""
        return hashlib.sha256(msgspec.json.encode(self.content, order="sorted")).hexdigest()[:16]

    @property
    def content(self) -> dict[str, Any]:
        """The document as JSON values, with the keys that were given."""
        spec: dict[str, Any] = {"url": self.url} if self.url else {}
        if self.inherits:
            spec["inherits"] = self.inherits
        spec |= nested(_values(self.settings))
        if self.directories:
            spec["directories"] = [
                {"name": directory.name, "url": directory.url, **nested(_values(directory.settings))}
                for directory in self.directories
            ]
        return {"apiVersion": API_VERSION, "kind": "Site", "metadata": {"name": self.name}, "spec": spec}


def load(data: bytes, name: str) -> list[SiteDocument]:
    """The sites of a YAML or JSON file. Raises `UsageError` in one line that begins with file:line:column."""
    return document_files.load(data, name, site_of, "site", "Site")


def from_json(content: Any, location: str = "site") -> SiteDocument:
    """The site of parsed JSON. Raises `UsageError` that names the key."""
    return site_of(from_builtins(content, location))


def distinct(sites: Iterable[SiteDocument]) -> list[SiteDocument]:
    """The sites as a list. Raises `UsageError` if two of them have the same name."""
    return document_files.distinct(sites, "site")


def site_of(node: Node) -> SiteDocument:
    """The site of a document. Raises `UsageError`."""
    document = read(node, SiteSchema)
    spec_node = _entry(node, "spec")
    spec = document.spec
    nodes = _entry(spec_node, "directories").value if spec.directories else []
    assert isinstance(nodes, list)
    return SiteDocument(
        document.metadata.name,
        spec.url,
        spec.inherits,
        leaves(spec_node, spec),
        tuple(
            DirectoryDocument(directory.name, directory.url, leaves(item, directory), item.location)
            for directory, item in zip(spec.directories, nodes, strict=True)
        ),
        node.location,
    )


@dataclass
class Sites:
    """All sites of a store, checked as a whole. Building it is O(directories x path length)."""

    sites: Mapping[str, SiteDocument]
    directories: dict[str, tuple[SiteDocument, DirectoryDocument]] = field(default_factory=dict, init=False)
    """By the name of the job."""
    prefixes: dict[str, str] = field(default_factory=dict, init=False)
    """SURT prefix → name of the job."""
    site_prefixes: dict[str, SiteDocument] = field(default_factory=dict, init=False)
    nested: dict[str, list[str]] = field(default_factory=dict, init=False)
    """Name of a job → prefixes below its own that belong to other directories."""

    def __post_init__(self) -> None:
        errors = UsageErrors()
        for site in self.sites.values():
            with errors:
                self.chain(site)
        errors.raise_all()
        for site in self.sites.values():
            with errors:
                if site.url:
                    self._bind_site(site)
            for directory in site.directories:
                with errors:
                    self._bind(site, directory)
        errors.raise_all()
        for prefix in self.prefixes:
            above = next(
                (
                    self.prefixes[shorter]
                    for shorter in prefixes(prefix)
                    if shorter != prefix and shorter in self.prefixes
                ),
                "",
            )
            if above:
                self.nested.setdefault(above, []).append(prefix)
        for below in self.nested.values():
            below.sort()

    def chain(self, site: SiteDocument) -> list[SiteDocument]:
        """The site and those that it inherits from, the nearest first. Raises `UsageError` for a cycle."""
        sites = [site]
        while sites[-1].inherits:
            last = sites[-1]
            above = self.sites.get(last.inherits)
            if above is None:
                hint = suggest(last.inherits, self.sites)
                raise UsageError(f"{last.location}: spec.inherits: there is no site {last.inherits!r}; {hint}")
            if above in sites:
                names = " → ".join(parent.name for parent in [*sites[sites.index(above) :], above])
                raise UsageError(f"{last.location}: spec.inherits: a cycle of inheritance: {names}")
            sites.append(above)
        default = self.sites.get(DEFAULT)
        if default is not None and default not in sites:
            sites.append(default)
        return sites

    def value(
        self, site: SiteDocument, directory: DirectoryDocument | None, path: str
    ) -> tuple[Leaf, SiteDocument, DirectoryDocument | None] | None:
        """The leaf of a setting and its owner: the directory, the site, or a site above it."""
        if directory is not None and path in directory.settings:
            return directory.settings[path], site, directory
        if path in OF_THE_SITE:
            return (site.settings[path], site, None) if directory is None and path in site.settings else None
        return next(
            ((ancestor.settings[path], ancestor, None) for ancestor in self.chain(site) if path in ancestor.settings),
            None,
        )

    def find(self, key: str) -> tuple[SiteDocument | None, str, str]:
        """The site, the job (empty: no directory) and the prefix that cover a SURT key; the longest prefix counts.
        O(length)."""
        for prefix in prefixes(key):
            if (job := self.prefixes.get(prefix)) is not None:
                return self.directories[job][0], job, prefix
            if (site := self.site_prefixes.get(prefix)) is not None:
                return site, "", prefix
        return None, "", ""

    def _bind_site(self, site: SiteDocument) -> None:
        prefix = directory_prefix(site.url, subdomains=self._subdomains(site, None))
        first = self.site_prefixes.setdefault(prefix, site)
        if first is not site:
            raise UsageError(
                f"{site.location}: spec.url: the prefix {prefix} is that of the site {first.name}, {first.location}"
            )

    def _bind(self, site: SiteDocument, directory: DirectoryDocument) -> None:
        name = f"{site.name}.{directory.name}"
        if name in self.directories:
            first = self.directories[name][1].location
            raise UsageError(f"{directory.location}: the directory {name!r} comes twice, first at {first}")
        self.directories[name] = site, directory
        prefix = directory_prefix(directory.url, subdomains=self._subdomains(site, directory))
        other = self.prefixes.setdefault(prefix, name)
        if other != name:
            first = self.directories[other][1].location
            raise UsageError(
                f"{directory.location}: the prefix {prefix} of {name!r} is that of {other!r}, {first}; "
                "a URL belongs to one directory"
            )

    def _subdomains(self, site: SiteDocument, directory: DirectoryDocument | None) -> bool:
        owned = self.value(site, directory, "scope.mode")
        return owned is not None and owned[0].value == "domain"


def merged(old: Mapping[str, SiteDocument], new: Iterable[SiteDocument], removed: Iterable[str] = ()) -> Sites:
    """The sites after a change; nothing is changed when it raises `UsageError`."""
    gone = set(removed)
    return Sites(
        {**{name: site for name, site in old.items() if name not in gone}, **{site.name: site for site in new}}
    )


def _entry(node: Node, key: str) -> Node:
    assert isinstance(node.value, dict)
    return node.value[key].value


def _values(settings: Leaves) -> dict[str, Any]:
    return {path: leaf.value for path, leaf in settings.items()}
