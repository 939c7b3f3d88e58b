"""Admission of the seeds of a file, packed, by one call of the native core.

The effects are those of `admission.add_seed`, which admits all seeds that this does not: of jobs with patterns,
directories or sitemaps, of a scope without a native form. A seed costs some 3 instead of 16 microseconds. Pure.
"""

from __future__ import annotations

from nephila.kernel.fragment_routes import parse_for
from nephila.kernel.messages import Outlinks
from nephila.kernel.seeds import link_urls
from nephila.scheduler.engine.admission import add_seed, note_anchors
from nephila.scheduler.engine.page_admission import admit_seeds
from nephila.scheduler.frontier.frontier import Frontier
from nephila.scheduler.jobs.job import Job


def add_seeds(frontier: Frontier, job: Job, links: Outlinks) -> list[tuple[str, str]]:
    """Admit seeds of the frontier's partitions and anchor the scope at them; returns (URL, reason) of those that are
    refused."""
    document, native = job.compiled.document, job.scope.native
    scope = document.scope
    by_directory = scope.include or scope.exclude or scope.mode == "prefix"
    if native is None or by_directory or document.sitemaps:
        return _one_by_one(frontier, job, links)
    spans, urls = memoryview(links.host_spans).cast("I"), links.urls.decode("ascii")
    hosts = [urls[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)]
    anchors = job.scope.anchors_of(hosts)
    new = [anchor for anchor in anchors if anchor and anchor not in job.scope.anchors]
    note_anchors(frontier, job, new)
    if new:
        frontier.on_anchors(job.uid, new)
    admit_seeds(frontier, job, native, links)
    job.note_change()
    return []


def _one_by_one(frontier: Frontier, job: Job, links: Outlinks) -> list[tuple[str, str]]:
    refused = []
    for url in link_urls(links):
        parts = parse_for(job.compiled.routes, url)
        reason = add_seed(frontier, job, parts.host_key, parts.path_query, parts.href, parts.fingerprint)
        if reason:
            refused.append((url, reason))
    return refused
