"""The sitemaps and feeds of a job that comes over the API, as seeds. A file of seeds belongs to the client. Pure."""

from __future__ import annotations

from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.messages import Seed
from nephila.kernel.runtime.errors import UsageError


def source_seeds(document: JobDocument, *, seeds_follow: bool) -> list[Seed]:
    """Raises `UsageError` for a file of seeds whose content does not follow: no file of this program is read for a
    request."""
    found = []
    for kind, place in document.sources:
        if kind != "file":
            found.append(Seed(document.job.uid, place, kind))
        elif not seeds_follow:
            raise UsageError(
                f"{document.location}: the file {place!r} (spec.seeds) is not read here; send its URLs with the job"
                " (nephila jobs apply -f does it), or add them as seeds"
            )
    return found
