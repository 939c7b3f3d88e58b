"""A run that groups cannot make is refused with one line, before anything is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.documents.job_schema import JobSpec, Quota
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.groups.limits import check_job, check_kind


@pytest.mark.parametrize(
    ("spec", "refetch", "served", "named"),
    [
        (JobSpec(), ["failed"], False, "--retry-failed"),
        (JobSpec(quota=Quota(pages=10)), [], False, "spec.quota"),
        (JobSpec(tenant="news"), [], False, "spec.tenant"),
        (JobSpec(), [], True, "--api"),
    ],
)
def test_each_limit_is_one_line_with_the_remedy(spec, refetch, served, named):
    with pytest.raises(UsageError, match="--groups does not crawl") as refusal:
        check_job(spec, refetch, served=served)
    assert named in str(refusal.value)
    assert "leave --groups out" in str(refusal.value)


def test_a_plain_job_is_crawled():
    check_job(JobSpec(), [], served=False)


@pytest.mark.parametrize(("has_parts", "remedy"), [(True, "add --groups"), (False, "leave --groups out")])
def test_a_frontier_of_the_other_kind_is_not_continued(has_parts, remedy):
    with pytest.raises(UsageError, match=remedy):
        check_kind(Path("o"), has_parts=has_parts, groups=not has_parts)
    check_kind(Path("o"), has_parts=has_parts, groups=has_parts)
