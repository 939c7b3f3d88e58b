"""The screens of hosts: an operator pauses a host, lets it go on and leaves it more time; a viewer only reads."""

from __future__ import annotations

import pytest
from lxml import html
from nephila_control.access.roles import Role
from nephila_control.job_types import ApplyJob
from nephila_control.local.backend import LocalBackend
from nephila_control.screen_types import ChangeHost, HostList, ListHosts

from tests.console.console_rig import console
from tests.control.documents import document


@pytest.fixture
async def rig(tmp_path):
    """A console over a paused job with a host."""
    async with console(tmp_path) as rig:
        yield rig


async def host(rig):
    """The host as the API has it."""
    return (await rig.control.list_hosts(ListHosts(name="a.test"))).hosts[0]


async def test_a_host_is_paused_and_resumed_on_its_screen(rig):
    browser = await rig.opened()
    screen = await browser.get("/console/hosts/a.test")
    assert "Pause for" in screen.text
    paused = await browser.post("/console/hosts/a.test", {"action": "pause", "seconds": "3600"})
    assert "A person has paused it for" in paused.text
    assert 3590 < (await host(rig)).held_s <= 3600
    resumed = await browser.post("/console/hosts/a.test", {"action": "retry", "seconds": "0"})
    assert "A person has paused it for" not in resumed.text
    assert (await host(rig)).held_s == 0


async def test_a_delay_is_set_and_a_wrong_one_is_a_line_beside_the_form(rig):
    browser = await rig.opened()
    await browser.get("/console/hosts/a.test")
    answer = await browser.post("/console/hosts/a.test", {"action": "delay", "seconds": "12,5"})
    assert "12 s set by a person" in answer.text
    assert (await host(rig)).least_delay_s == 12.5
    for seconds in ("soon", "-1", "nan", "90000", "1e9"):
        refused = await browser.post("/console/hosts/a.test", {"action": "delay", "seconds": seconds})
        assert refused.status_code == 400, seconds
        assert html.fromstring(refused.text).get_element_by_id("problem").text_content()
    assert (await browser.post("/console/hosts/a.test", {"action": "faster"})).status_code == 400
    assert (await host(rig)).least_delay_s == 12.5


async def test_the_list_leads_to_each_host_and_resumes_one_that_is_held(rig):
    browser = await rig.opened()
    assert 'value="retry"' not in (await browser.get("/console/hosts")).text
    await browser.post("/console/hosts/a.test", {"action": "pause", "seconds": "3600"})
    listed = await browser.get("/console/hosts")
    assert 'href="/console/hosts/a.test"' in listed.text
    assert ">Resume</button>" in listed.text
    answer = await browser.post("/console/hosts/a.test", {"action": "retry", "seconds": "0", "back": "list"})
    assert "<h1>Hosts</h1>" in answer.text


async def test_a_host_that_only_has_rows_is_shown_without_a_pace_and_an_unknown_one_is_not_there(rig):
    browser = await rig.opened()
    assert (await browser.get("/console/hosts/nowhere.test")).status_code == 404
    missing = await browser.post("/console/hosts/nowhere.test", {"action": "retry", "seconds": "0"})
    assert missing.status_code == 404


async def test_a_viewer_sees_no_action_and_may_use_none(rig):
    browser = rig.of_role(Role.VIEWER)
    await rig.control.change_host(ChangeHost(name="a.test", action="pause", seconds=3600))
    for address in ("/console/hosts", "/console/hosts/a.test"):
        screen = html.fromstring((await browser.get(address)).text)
        assert not screen.xpath("//main//form[@method='post']"), address
    assert (await browser.post("/console/hosts/a.test", {"action": "retry", "seconds": "0"})).status_code == 403
    assert (await host(rig)).held_s > 0


async def test_partitions_that_did_not_answer_are_named_and_their_hosts_are_not_said_to_be_done(rig, monkeypatch):
    async def partial(self, request, jobs=None):
        return HostList(hosts=[], total=0, partitions=8, answered=6)

    monkeypatch.setattr(LocalBackend, "hosts", partial)
    browser = await rig.opened()
    for address in ("/console/hosts", "/console/jobs/news?tab=hosts"):
        text = (await browser.get(address)).text
        assert "6 of 8 partitions answered" in text, address
        assert "has ended" not in text, address
    screen = await browser.get("/console/hosts/unknown.test")
    assert screen.status_code == 200
    assert "has not answered" in screen.text
    assert "no URL of it is queued" not in screen.text


async def test_a_host_shows_the_rank_of_its_domain_where_a_job_has_ranks(rig):
    browser = await rig.opened()
    assert "Rank of its domain" not in (await browser.get("/console/hosts/a.test")).text
    await rig.control.apply_job(ApplyJob(job=document(paused=True, domains={"ranks": ["b.test", "a.test"]})))
    screen = html.fromstring((await browser.get("/console/hosts/a.test")).text)
    (term,) = screen.xpath("//dt[.='Rank of its domain']")
    assert term.getnext().text_content() == "2"
