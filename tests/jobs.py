"""Jobs as services get them: a message with the document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from nephila.kernel.documents.job_document import job_of, spec_of
from nephila.kernel.documents.job_schema import JobSpec, Politeness, Quota, Scope, Seed, SiteOfJob
from nephila.kernel.messages import CrawlJob


def crawl_job(
    uid: str = "",
    name: str = "",
    generation: int = 0,
    seeds: Iterable[str] = (),
    scope: Scope | None = None,
    politeness: Politeness | None = None,
    *,
    paused: bool = False,
    deleted: bool = False,
    site: str = "",
    site_quota: Quota | None = None,
    **fields: Any,
) -> CrawlJob:
    """A job of these seeds and sections. Without sections it has no delay and no depth; None leaves a field out."""
    spec = JobSpec(
        seeds=[Seed(url=url) for url in seeds],
        scope=scope or Scope(max_depth=0),
        politeness=politeness or Politeness(delay="0"),
        paused=paused,
        site=SiteOfJob(site, site_quota or Quota()) if site else None,
        **{name: value for name, value in fields.items() if value is not None},
    )
    return msgspec.structs.replace(job_of(uid, spec), name=name, generation=generation, deleted=deleted)


def changed(job: CrawlJob, **fields: Any) -> CrawlJob:
    """The job with other sections."""
    spec = msgspec.structs.replace(spec_of(job), **fields)
    return msgspec.structs.replace(job, document=job_of(job.uid, spec).document, tenant=spec.tenant)
