"""Properties of jobs that several parts of the downloader need. Pure."""

from __future__ import annotations

from nephila.kernel import messages as m


def has_jar(job: m.CrawlJob) -> bool:
    """Whether a job keeps cookies."""
    return not job.deleted and (job.cookies or job.login is not None)
