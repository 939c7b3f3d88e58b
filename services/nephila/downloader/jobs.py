"""Properties of jobs that several parts of the downloader need. Pure."""

from __future__ import annotations

from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of


def has_jar(job: m.CrawlJob) -> bool:
    spec = spec_of(job)
    return not job.deleted and (spec.cookies or spec.login is not None)
