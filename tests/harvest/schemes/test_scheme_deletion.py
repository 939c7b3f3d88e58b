"""Deletion of keyword schemes: the others stay as they are, and the last one takes the job with it."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila_harvest.schemes import applying, documents

from tests.e2e.scheme_sites import JOB, PLATFORMS, SCHEME

SECOND = SCHEME.replace("name: floods", "name: storms").replace("[地震]", "[台风]")


class Jobs:
    """A program with jobs."""

    def __init__(self):
        self.documents = {}
        self.seeds = []
        self.changes = 0

    async def job(self, name):
        """See `applying.Target`."""
        return self.documents.get(name)

    async def apply_rules(self, rules):
        """See `applying.Target`."""

    async def apply_job(self, document):
        """See `applying.Target`."""
        self.changes += 1
        self.documents[document["metadata"]["name"]] = document

    async def delete_job(self, name):
        """See `applying.Target`."""
        self.changes += 1
        del self.documents[name]

    async def add_seeds(self, name, seeds, *, last):
        """See `applying.Target`."""
        self.seeds += [(seed.scheme, seed.url) for seed in seeds]
        return []


async def applied(jobs, *texts):
    """Documents, applied."""
    found = documents.load([("f.yaml", "---\n".join(texts).encode())])
    return await applying.apply(jobs, found, "schemes", 100)


@pytest.fixture
async def jobs():
    """Two schemes on the same platforms, with searches in common."""
    made = Jobs()
    await applied(made, PLATFORMS, SCHEME, SECOND, JOB)
    return made


async def test_the_other_schemes_and_the_settings_stay(jobs):
    before = jobs.documents["schemes"]["spec"]
    assert await applying.delete(jobs, "floods", "schemes") == ["storms"]
    after = jobs.documents["schemes"]["spec"]
    assert after["schemes"]["schemes"] == before["schemes"]["schemes"][1:]
    assert after["schemes"]["platforms"] == before["schemes"]["platforms"]
    assert {**after, "schemes": 0} == {**before, "schemes": 0}


async def test_the_last_scheme_deletes_the_job(jobs):
    await applying.delete(jobs, "floods", "schemes")
    assert await applying.delete(jobs, "storms", "schemes") == []
    assert jobs.documents == {}


async def test_an_unfinished_apply_stays_unfinished(jobs):
    jobs.documents["schemes"]["spec"]["schemes"]["incomplete"] = True
    await applying.delete(jobs, "floods", "schemes")
    assert jobs.documents["schemes"]["spec"]["schemes"]["incomplete"] is True


async def test_a_deleted_scheme_is_planned_when_it_is_applied_again(jobs):
    await applying.delete(jobs, "floods", "schemes")
    jobs.seeds.clear()
    await applied(jobs, SCHEME)
    assert len(jobs.seeds) == 9
    assert {scheme for scheme, _ in jobs.seeds} == {"floods"}


@pytest.mark.parametrize(
    ("scheme", "job", "line"),
    [
        ("flods", "schemes", "the job 'schemes' has no scheme 'flods'; did you mean 'floods'?"),
        ("x", "schemes", "the job 'schemes' has no scheme 'x'; known are floods, storms"),
        ("floods", "news", "the job 'news' has no schemes; see nephila schemes apply"),
    ],
)
async def test_an_unknown_name_is_one_line_and_changes_nothing(jobs, scheme, job, line):
    before = jobs.changes
    with pytest.raises(UserError) as raised:
        await applying.delete(jobs, scheme, job)
    assert str(raised.value) == line
    assert jobs.changes == before
