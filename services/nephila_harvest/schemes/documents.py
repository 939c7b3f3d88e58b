"""Files with CrawlScheme and Platform documents, and at most one CrawlJob with the settings of their crawl.

Invariants: each error is one line with file:line:column; all documents are checked together before anything is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nephila.kernel.documents import document_files, job_document
from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.documents.scheme_schema import CrawlScheme, NamedPlatform, NamedScheme, Schemes, SchemeSpec, Search
from nephila.kernel.documents.struct_reader import read
from nephila.kernel.documents.yaml import Node, YamlEntry
from nephila.kernel.runtime.errors import UsageError, UsageErrors, suggest
from nephila_rules.runtime.load import from_json as rule_from_json

from nephila_harvest.schemes import platform_rules
from nephila_harvest.schemes.platform_schema import Platform, PlatformSpec
from nephila_harvest.schemes.templates import is_dated

KINDS = ("CrawlScheme", "Platform", "CrawlJob")


@dataclass(frozen=True, slots=True)
class SchemeDocument:
    """A valid CrawlScheme."""

    name: str
    spec: SchemeSpec
    node: Node

    @property
    def location(self) -> str:
        """file:line:column."""
        return self.node.location


@dataclass(frozen=True, slots=True)
class PlatformDocument:
    """A valid Platform."""

    name: str
    spec: PlatformSpec
    node: Node

    @property
    def location(self) -> str:
        """file:line:column."""
        return self.node.location


@dataclass(slots=True)
class Documents:
    """The documents of some files."""

    schemes: list[SchemeDocument] = field(default_factory=list)
    platforms: list[PlatformDocument] = field(default_factory=list)
    jobs: list[JobDocument] = field(default_factory=list)

    @property
    def named_schemes(self) -> list[NamedScheme]:
        """The schemes as a job has them."""
        return [NamedScheme(scheme.name, scheme.spec) for scheme in self.schemes]

    @property
    def named_platforms(self) -> list[NamedPlatform]:
        """The platforms as a job has them."""
        return [NamedPlatform(platform.name, platform.spec.search) for platform in self.platforms]

    @property
    def rules(self) -> list[dict[str, Any]]:
        """ParseRule documents of the platforms."""
        return [rule for platform in self.platforms for rule in platform_rules.rules_of(platform.name, platform.spec)]

    @property
    def content_rule_versions(self) -> dict[str, int]:
        """Version of the rule of the content pages of each platform."""
        versions = {rule["metadata"]["name"]: rule_from_json(rule).rule.version for rule in self.rules}
        return {platform.name: versions[platform.name] for platform in self.platforms}


def load(files: Iterable[tuple[str, bytes]]) -> Documents:
    """The documents of files (name, content). Raises `UsageError`."""
    loaded = Documents()
    for name, data in files:
        for document in document_files.load(data, name, _document, "scheme", "CrawlScheme"):
            if isinstance(document, SchemeDocument):
                loaded.schemes.append(document)
            elif isinstance(document, PlatformDocument):
                loaded.platforms.append(document)
            else:
                loaded.jobs.append(document)
    document_files.distinct(loaded.schemes, "scheme")
    document_files.distinct(loaded.platforms, "platform")
    if len(loaded.jobs) > 1:
        raise UsageError(f"{loaded.jobs[1].location}: there is a second job; schemes are crawled by one job")
    return loaded


def read_files(names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Files, and the YAML files of folders, in the order of their names. Raises `UsageError`."""
    for name in names:
        path = Path(name)
        files = (
            sorted(entry for entry in path.rglob("*") if entry.suffix in (".yaml", ".yml")) if path.is_dir() else [path]
        )
        if not files:
            raise UsageError(f"{name} has no file *.yaml, *.yml")
        for file in files:
            try:
                yield str(file), file.read_bytes()
            except OSError as error:
                raise UsageError(f"cannot read {file}: {error.strerror}") from None


def check(documents: Documents, state: Schemes | None = None) -> None:
    """Check the schemes against their platforms: those of the documents, and those that the job has already. Raises
    `UsageError` with the place of the first error; its `others` are the further ones."""
    platforms = {platform.name: platform.search for platform in state.platforms} if state is not None else {}
    platforms |= {platform.name: platform.spec.search for platform in documents.platforms}
    errors = UsageErrors()
    for scheme in documents.schemes:
        for number, use in enumerate(scheme.spec.platforms):
            with errors:
                search = platforms.get(use.name)
                node = _at(scheme.node, "spec", "platforms", number)
                if search is None:
                    raise node.error(
                        f"spec.platforms[{number}]: there is no platform {use.name!r}; {suggest(use.name, platforms)}"
                    )
                if is_dated(search) and scheme.spec.dates is None:
                    raise node.error(f"spec.platforms[{number}]: {use.name} searches by date; the scheme has no dates")
                _check_encoding(scheme, use.groups, use.name, search)
    errors.raise_all()


def _check_encoding(scheme: SchemeDocument, chosen: list[str], platform: str, search: Search) -> None:
    for name, group in scheme.spec.groups.items():
        if chosen and name not in chosen:
            continue
        for part, keywords in group.items():
            for number, word in enumerate(keywords.any):
                try:
                    word.encode(search.encoding)
                except UnicodeEncodeError:
                    node = _at(scheme.node, "spec", "groups", name, part, "any", number)
                    raise node.error(
                        f"spec.groups.{name}.{part}.any[{number}]: {word!r} cannot be written in {search.encoding}, "
                        f"the encoding of {platform}"
                    ) from None


def _at(node: Node, *path: str | int) -> Node:
    """The node at a path, or the last one on the way to it."""
    for step in path:
        value = node.value
        if isinstance(step, int):
            if not isinstance(value, list):
                return node
            node = value[step]
        elif isinstance(value, dict) and step in value:
            node = value[step].value
        else:
            return node
    return node


def _with_schemes(node: Node) -> Node:
    """A job document with the section `schemes`: its searches are its seeds."""
    assert isinstance(node.value, dict)
    spec = node.value.get("spec")
    if spec is None or not isinstance(spec.value.value, dict) or "schemes" in spec.value.value:
        return node
    location = spec.value.location
    section = YamlEntry(Node("schemes", location), Node({}, location))
    whole = Node({**spec.value.value, "schemes": section}, location)
    return Node({**node.value, "spec": YamlEntry(spec.key, whole)}, node.location)


def _document(node: Node) -> SchemeDocument | PlatformDocument | JobDocument:
    kind = node.value["kind"].value.value if isinstance(node.value, dict) and "kind" in node.value else ""
    if kind == "CrawlJob":
        return job_document.from_node(_with_schemes(node))
    if kind == "Platform":
        platform = read(node, Platform)
        name, spec = platform.metadata.name, platform.spec
        for rule in platform_rules.rules_of(name, spec):
            try:
                rule_from_json(rule)
            except UsageError as error:
                raise node.error(f"{name}: {str(error).partition(': error: ')[2] or error}") from None
        return PlatformDocument(name, spec, node)
    if kind != "CrawlScheme":
        raise node.error(f"kind {str(kind)[:60]!r} is none of {', '.join(KINDS)}")
    scheme = read(node, CrawlScheme)
    return SchemeDocument(scheme.metadata.name, scheme.spec, node)
