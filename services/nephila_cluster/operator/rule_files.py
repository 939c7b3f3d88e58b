"""Folders with files of rules, which become ParseRule resources: a ConfigMap, or a repository that git-sync keeps.

Files are looked at every CHECK_S seconds; the rules of the namespace every `rules_interval_s`, so that a rule that was
deleted or edited by hand is soon that of its file again. A file that is refused changes no rule: the error is written
to the annotation `nephila.dev/file-error` of the rules that were read from it before, and to an Event of the operator's
pod.

Invariants: a rule has one file, and a second file with its name is refused; a rule whose file is gone stays, unless
`prune` is set.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.waits import sleep
from nephila_rules.files import read
from nephila_rules.runtime.load import RuleDocument, distinct

from nephila_cluster.operator.cluster import ResourceRefused
from nephila_cluster.operator.config import OperatorConfig
from nephila_cluster.operator.ownership import LABEL, Ownership
from nephila_cluster.operator.plan import one_line
from nephila_cluster.operator.reconcile_rule import FILE, FILE_ERROR

log = logging.getLogger(__name__)

CHECK_S: Final = 2.0
NAMES: Final = ("rule.yaml", "rule.yml")


class RuleResources(Protocol):
    """The part of `Cluster` that has ParseRules."""

    async def rules(self) -> list[dict[str, Any]]: ...

    async def put_rule(self, document: Mapping[str, Any], annotations: Mapping[str, str | None]) -> str: ...

    async def annotate_rule(self, name: str, annotations: Mapping[str, str | None]) -> None: ...

    async def delete_rule(self, name: str) -> None: ...

    async def post_own_event(self, pod: str, reason: str, message: str, now: float) -> None: ...


def find(folder: Path) -> Iterator[Path]:
    """The files of rules in a folder: every YAML file directly in it, and `rule.yaml` anywhere below. Hidden folders,
    as those of git and of mounted ConfigMaps, are skipped."""
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            top = Path(directory) == folder and name.endswith((".yaml", ".yml")) and not name.startswith(".")
            if top or name in NAMES:
                yield Path(directory, name)


def read_folders(
    folders: Sequence[Path], owners: Mapping[str, str]
) -> tuple[dict[str, list[RuleDocument]], dict[str, str]]:
    """File → its rules, and file → why it is refused. A file is named relative to its folder, or completely where there
    are several folders. `owners`: rule → the file that it was read from before; the rule stays with that file while the
    file has it or is refused, else the first file has it."""
    by_file: dict[str, list[RuleDocument]] = {}
    refused: dict[str, str] = {}
    for folder in folders:
        for path in find(folder):
            name = str(path.relative_to(folder) if len(folders) == 1 else path)
            try:
                by_file[name] = distinct(read(path, name))
            except (UserError, OSError) as error:
                refused[name] = one_line(str(error))
    first: dict[str, str] = {rule: file for rule, file in owners.items() if file in refused}
    for file, documents in by_file.items():
        for document in documents:
            if first.get(document.name) is None or owners.get(document.name) == file:
                first[document.name] = file
    for file, documents in list(by_file.items()):
        twice = next((rule for rule in documents if first[rule.name] != file), None)
        if twice is not None:
            refused[file] = f"{twice.location}: the rule {twice.name!r} comes twice, first in {first[twice.name]}"
            del by_file[file]
    return by_file, refused


def annotations_of(resource: Mapping[str, Any]) -> Mapping[str, str]:
    """The annotations of a resource."""
    return resource["metadata"].get("annotations") or {}


class RuleFiles:
    """The rules of some folders."""

    def __init__(
        self,
        folders: Iterable[Path],
        resources: RuleResources,
        clock: Clock,
        config: OperatorConfig,
        ownership: Ownership,
        *,
        pod: str,
    ) -> None:
        """`pod`: the name of the operator's pod, for Events."""
        self._folders = tuple(folders)
        self._resources = resources
        self._clock = clock
        self._ownership = ownership
        self._prune = config.prune_rules
        self._interval_s = config.rules_interval_s
        self._applied_at = float("-inf")
        self._pod = pod
        self._signature: tuple[object, ...] = ()
        self._known: dict[str, tuple[object, ...]] = {}
        """Rule → its file, its document, and the object and generation that were found to have this document."""
        self._orphans: set[str] = set()
        """Rules that stay without a file."""
        self.refused: dict[str, str] = {}
        """File → why it is refused."""

    async def run(self) -> None:
        """Check the files until cancelled."""
        while True:
            await self.check()
            await sleep(self._clock, CHECK_S)

    async def check(self) -> None:
        """Apply what has changed. A fault of the API server is tried again at the next check."""
        signature, now = await asyncio.to_thread(self._look), self._clock.monotonic()
        if signature == self._signature and now - self._applied_at < self._interval_s:
            return
        try:
            self._applied_at = now
            await self._apply()
            self._signature = signature
        except UserError as error:
            log.warning("rules of files: %s; trying again", error)

    def _look(self) -> tuple[object, ...]:
        """Changes with every change of a file."""
        signature: list[object] = []
        for folder in self._folders:
            for path in find(folder):
                try:
                    stat = path.stat()
                except OSError:
                    continue  # it is being replaced
                signature.append((str(path.resolve()), stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return (*signature, *(folder.is_dir() for folder in self._folders))

    async def _apply(self) -> None:
        resources = {resource["metadata"]["name"]: resource for resource in await self._resources.rules()}
        files: dict[str, str] = {
            name: annotations_of(resource)[FILE]
            for name, resource in resources.items()
            if FILE in annotations_of(resource) and self._ownership.is_served(resource)
        }
        by_file, refused = await asyncio.to_thread(read_folders, self._folders, files)
        for file, documents in by_file.items():
            for document in documents:
                try:
                    await self._put(file, document, resources.get(document.name))
                except ResourceRefused as error:
                    refused[file] = one_line(f"{document.location}: {error}")
        present = {document.name for documents in by_file.values() for document in documents}
        await self._report(refused, files, resources)
        if absent := [str(folder) for folder in self._folders if not folder.is_dir()]:
            # A repository that was not synchronised yet must not delete the rules of the last one.
            log.warning("no rule is pruned: %s is no folder", ", ".join(absent))
            return
        for name, file in files.items():
            if name not in present and file not in refused:
                await self._gone(name, file)

    async def _put(self, file: str, document: RuleDocument, resource: Mapping[str, Any] | None) -> None:
        self._orphans.discard(document.name)
        seen: tuple[object, ...] = ()
        if resource is not None:
            metadata, annotations = resource["metadata"], annotations_of(resource)
            if metadata.get("deletionTimestamp"):
                return  # made again when it is gone
            if not self._ownership.is_served(resource):
                raise ResourceRefused(f"the rule {document.name!r} belongs to another release")
            seen = (file, document.text, metadata.get("uid"), metadata.get("generation"))
            same_file = annotations.get(FILE) == file and FILE_ERROR not in annotations
            if self._known.get(document.name) == seen and same_file:
                return
        labels = {LABEL: self._ownership.release} if self._ownership.release else {}
        content = {**document.content, "metadata": {**document.content["metadata"], "labels": labels}}
        verdict = await self._resources.put_rule(content, {FILE: file, FILE_ERROR: None})
        if verdict == "unchanged":
            self._known[document.name] = seen
        else:
            # The next list has the generation that this write made.
            self._applied_at = float("-inf")
            log.info("rule %s: %s from %s", document.name, verdict, file)

    async def _report(
        self, refused: dict[str, str], files: Mapping[str, str], resources: Mapping[str, Mapping[str, Any]]
    ) -> None:
        for file, message in refused.items():
            if self.refused.get(file) != message:
                log.warning("a file of rules is refused, its last good rules stay: %s", message)
                await self._resources.post_own_event(self._pod, "RuleFileRefused", message, self._clock.now())
            for name in [name for name, owner in files.items() if owner == file]:
                if annotations_of(resources[name]).get(FILE_ERROR) != message:
                    await self._resources.annotate_rule(name, {FILE_ERROR: message})
        self.refused = refused

    async def _gone(self, name: str, file: str) -> None:
        if self._prune:
            log.info("rule %s: deleted, its file %s is gone", name, file)
            await self._resources.delete_rule(name)
        elif name not in self._orphans:
            self._orphans.add(name)
            log.info("rule %s stays: its file %s is gone, and prune_rules is not set", name, file)
        self._known.pop(name, None)
