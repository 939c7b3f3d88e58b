"""A job that comes over the API is checked before anything is published: its sitemaps, feeds and files of seeds, and
added exclusions. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephila.kernel.documents.job_document import JobDocument, lists_of
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.errors import UsageError


def source_seeds(document: JobDocument, *, seeds_follow: bool) -> list[Seed]:
    """The sitemaps and feeds of a job. A file of seeds belongs to the client: none of this program is read for a
    request. Raises `UsageError` for one whose content does not follow."""
    if document.files and not seeds_follow:
        raise UsageError(
            f"{document.location}: the file {document.files[0]!r} (spec.seeds) is not read here; send its URLs with "
            "the job (nephila jobs apply -f does it), or add them as seeds"
        )
    return [Seed(document.name, address, kind) for kind, address in lists_of(document.spec)]


def with_exclusions(document: Mapping[str, Any], exclude: Sequence[str]) -> dict[str, Any]:
    """Appends exclusions to those of the document."""
    spec = document.get("spec", {})
    scope = spec.get("scope", {})
    patterns = [*dict.fromkeys([*scope.get("exclude", []), *exclude])]
    return {**document, "spec": {**spec, "scope": {**scope, "exclude": patterns}}}
