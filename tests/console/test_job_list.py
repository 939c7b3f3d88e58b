"""The list of jobs: sorted by each column, and changed together after one screen that says what will be done."""

from __future__ import annotations

import pytest
from lxml import html
from nephila_console.screens.job_list import SHOWN, SORTS
from nephila_control.access.roles import Role
from nephila_control.job_types import ApplyJob, JobName, ListJobs

from tests.console.console_rig import console
from tests.control.documents import document

NAMES = ("alpha", "beta", "news")


@pytest.fixture
async def rig(tmp_path):
    """A console over three paused jobs."""
    async with console(tmp_path) as rig:
        for name in NAMES[:2]:
            await rig.control.apply_job(ApplyJob(job=document(name, paused=True)))
        yield rig


def names(answer):
    """The jobs in their order."""
    return html.fromstring(answer.text).xpath("//tbody//th/a[1]//text()")


async def states(rig):
    """State by job."""
    return {job.name: job.state for job in (await rig.control.list_jobs(ListJobs())).jobs}


async def test_each_column_sorts_the_jobs_and_says_so(rig):
    browser = await rig.opened()
    assert names(await browser.get("/console/jobs")) == list(NAMES)
    assert names(await browser.get("/console/jobs?sort=-name")) == list(reversed(NAMES))
    assert names(await browser.get("/console/jobs?sort=nothing")) == list(NAMES)
    for column in SORTS:
        screen = html.fromstring((await browser.get(f"/console/jobs?sort=-{column}")).text)
        assert len(screen.xpath("//thead//th[@aria-sort='descending']")) == 1, column


async def test_the_last_error_of_a_job_is_in_its_row(rig):
    browser = await rig.opened()
    (job,) = [job for job in (await rig.control.list_jobs(ListJobs())).jobs if job.name == "news"]
    assert job.last_error is None
    world_job = rig.control._backend._scheduler.frontier.jobs["news"]
    world_job.counts.ended.update({_failed(): 1})
    (job,) = [job for job in (await rig.control.list_jobs(ListJobs())).jobs if job.name == "news"]
    assert (job.last_error.reason, job.last_error.at > 0) == ("http_404", True)
    assert 'reason=http_404"' in (await browser.get("/console/jobs?sort=-error")).text


def _failed():
    from nephila.kernel.messages import Outcome

    return Outcome.FAILED


async def test_chosen_jobs_are_resumed_after_one_screen_that_says_what_will_be_done(rig):
    browser = await rig.opened()
    listed = html.fromstring((await browser.get("/console/jobs")).text)
    assert listed.xpath("//form[@class='bulk']/@action") == ["/console/bulk"]
    assert listed.xpath("//input[@name='job']/@value") == list(NAMES)
    asked = await browser.get("/console/bulk?do=resume&job=alpha&job=beta&job=nobody")
    assert names(asked) == ["alpha", "beta"]
    assert "goes on with" in asked.text
    assert set((await states(rig)).values()) == {"paused"}
    (field,) = html.fromstring(asked.text).xpath("//input[@name='jobs']/@value")
    done = await browser.post("/console/bulk", {"do": "resume", "jobs": field})
    assert "2 jobs: done" in done.text
    assert [name for name, state in (await states(rig)).items() if state == "paused"] == ["news"]


async def test_a_job_that_is_gone_does_not_stop_the_others(rig):
    browser = await rig.opened()
    await browser.get("/console/bulk?do=delete&job=alpha&job=beta")
    await rig.control.delete_job(JobName(name="alpha"))
    answer = await browser.post("/console/bulk", {"do": "delete", "jobs": "alpha\nbeta"})
    assert "1 of 2 jobs were refused" in answer.text
    assert "no job &#39;alpha&#39;" in answer.text
    assert sorted(await states(rig)) == ["news"]


async def test_the_weight_of_several_jobs_is_set_and_a_wrong_one_changes_nothing(rig):
    browser = await rig.opened()
    await browser.get("/console/bulk?do=weight&job=alpha&job=beta")
    for weight in ("", "0", "-1", "1001", "nan", "much"):
        refused = await browser.post("/console/bulk", {"do": "weight", "jobs": "alpha\nbeta", "weight": weight})
        assert refused.status_code == 400, weight
        assert "problem" in html.fromstring(refused.text).xpath("//input[@id='weight']/@aria-describedby")
    done = await browser.post("/console/bulk", {"do": "weight", "jobs": "alpha\nbeta", "weight": "2,5"})
    assert "2 jobs: done" in done.text
    for name in ("alpha", "beta"):
        assert (await rig.control.get_job(JobName(name=name))).document["spec"]["weight"] == 2.5


async def test_all_jobs_are_chosen_without_script_and_an_empty_choice_is_explained(rig):
    browser = await rig.opened()
    listed = html.fromstring((await browser.get("/console/jobs?select=all")).text)
    assert len(listed.xpath("//input[@name='job'][@checked]")) == 3
    assert "No job is chosen" in (await browser.get("/console/bulk?do=pause")).text
    assert "No job is chosen" in (await browser.get("/console/bulk?do=explode&job=alpha")).text
    assert (await browser.post("/console/bulk", {"do": "explode", "jobs": "alpha"})).status_code == 400


async def test_a_change_takes_no_more_jobs_than_a_screen_has(rig):
    browser = await rig.opened()
    await browser.get("/console/bulk?do=pause&job=alpha")
    answer = await browser.post("/console/bulk", {"do": "pause", "jobs": "\n".join(["alpha"] * (SHOWN + 5))})
    assert len(names(answer)) == SHOWN


async def test_a_viewer_sees_no_choice_and_changes_nothing(rig):
    browser = rig.of_role(Role.VIEWER)
    listed = html.fromstring((await browser.get("/console/jobs")).text)
    assert not listed.xpath("//input[@name='job'] | //main//button[@name='do']")
    asked = html.fromstring((await browser.get("/console/bulk?do=delete&job=alpha")).text)
    assert not asked.xpath("//main//form[@method='post']")
    answer = await browser.post("/console/bulk", {"do": "delete", "jobs": "alpha\nbeta"})
    assert answer.status_code in (403, 409)
    assert len(await states(rig)) == 3


async def test_a_form_of_another_site_changes_no_job(rig):
    browser = await rig.opened()
    answer = await browser.post("/console/bulk", {"do": "delete", "jobs": "alpha", "csrf": "x"})
    assert answer.status_code == 403
    assert len(await states(rig)) == 3
