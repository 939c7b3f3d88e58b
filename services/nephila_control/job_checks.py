"""A job that comes over the API is checked before anything is published: its seeds, sitemaps, feeds and files of seeds,
and added exclusions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from nephila.kernel.documents.job_document import JobDocument, keeps_routes, lists_of
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.seeds import MAX_URL, seed_url
from nephila.scheduler.jobs.scope import CompiledScope

from nephila_control.job_types import RefusedSeed


def source_seeds(document: JobDocument, *, seeds_follow: bool) -> list[Seed]:
    """The sitemaps and feeds of a job. A file of seeds belongs to the client: none of this program is read for a
    request. Raises `UsageError` for one whose content does not follow."""
    if document.files and not seeds_follow:
        raise UsageError(
            f"{document.location}: the file {document.files[0]!r} (spec.seeds) is not read here; send its URLs with "
            "the job (nephila jobs apply -f does it), or add them as seeds"
        )
    return [Seed(document.name, address, kind) for kind, address in lists_of(document.spec)]


def checked_seeds(seeds: Sequence[Seed], spec: JobSpec) -> tuple[list[Seed], list[RefusedSeed]]:
    """The seeds that a job takes, as absolute URLs, and those that it refuses, with the reasons of a file of seeds."""
    scope, routes = CompiledScope(spec.scope), keeps_routes(spec)
    good: list[Seed] = []
    refused: list[RefusedSeed] = []
    for seed in seeds:
        try:
            url = seed_url(seed.url, files=False)
            excluded = scope.excluded(parse_for(routes, url).href)
            reason = f"excluded by {excluded!r}" if excluded else ""
        except UsageError as error:
            url, reason = seed.url[:MAX_URL], str(error)
        if reason:
            refused.append(RefusedSeed(url=url, reason=reason))
        else:
            good.append(msgspec.structs.replace(seed, url=url))
    return good, refused


def with_exclusions(document: Mapping[str, Any], exclude: Sequence[str]) -> dict[str, Any]:
    """Appends exclusions to those of the document."""
    spec = document.get("spec", {})
    scope = spec.get("scope", {})
    patterns = [*dict.fromkeys([*scope.get("exclude", []), *exclude])]
    return {**document, "spec": {**spec, "scope": {**scope, "exclude": patterns}}}
