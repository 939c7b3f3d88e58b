"""What the overview says needs a person: a rate that fell, and whether it is errors or waiting hosts."""

from __future__ import annotations

import pytest
from nephila_console.screens.attention import needs_of
from nephila_control import api, screen_types, site_types, system_types


class Quiet(api.Control):
    """A system without anything but what a test gives."""

    def __init__(self, directories=(), webhooks=()):
        self._directories, self._webhooks = list(directories), list(webhooks)

    async def list_dead_letters(self, request):
        return system_types.DeadLetterList(dead_letters=[], next="")

    async def list_webhooks(self, request):
        return system_types.WebhookList(webhooks=self._webhooks)

    async def list_directories(self, request):
        return site_types.DirectoryList(directories=self._directories)


class Well:
    """A status without problems."""

    problems = ()


def samples(*steps, queued=100):
    """Of (seconds, stored, failed) per step, after each other."""
    at = stored = failed = 0
    found = []
    for seconds, more, worse in ((0, 0, 0), *steps):
        at, stored, failed = at + seconds, stored + more, failed + worse
        values = {"queued": queued, "in_flight": 1, "stored": stored, "denied": 0, "failed": failed, "dropped": 0}
        found.append(screen_types.Sample(at=at, **values))
    return found


async def needs(given=(), **control):
    """Texts and links."""
    return [tuple(one) for one in await needs_of(Quiet(**control), Well(), [], [], given)]


async def test_a_rate_that_fell_by_waiting_leads_to_the_hosts():
    """From ten to two pages a second, without more errors."""
    (found,) = await needs(samples(*[(60, 600, 0)] * 20, *[(60, 120, 0)] * 2))
    assert found == ("The rate fell from 10.0 to 2.0 pages/s; see which hosts wait", "/console/hosts")


async def test_a_rate_that_fell_by_errors_leads_to_them():
    """Their share before is beside it."""
    (found,) = await needs(samples(*[(60, 588, 12)] * 20, *[(60, 24, 96)] * 2))
    assert found[0] == "The rate fell from 10.0 to 2.0 pages/s; 80 % of the fetches fail, 2.0 % before"
    assert found[1] == "/console/pages?outcome=failed"


@pytest.mark.parametrize(
    "given",
    [
        [],
        samples(),
        samples((60, 600, 0), (60, 0, 0), (60, 0, 0)),
        samples(*[(60, 600, 0)] * 20, *[(60, 400, 0)] * 2),
        samples(*[(60, 600, 0)] * 20, *[(60, 0, 0)] * 2, queued=0),
        samples(*[(60, 6, 0)] * 20, *[(60, 0, 0)] * 2),
    ],
    ids=["nothing", "one sample", "too short", "little less", "nothing queued", "slow from the beginning"],
)
async def test_a_rate_that_did_not_fall_is_not_named(given):
    """Nor one of which too little is known."""
    assert await needs(given) == []


async def test_broken_lists_and_silent_webhooks_need_a_person():
    """One line for all lists."""
    words = dict.fromkeys(("url", "verdict", "reason", "target", "since", "words", "proposal"), "x")
    lists = [site_types.ListState(fault=fault, status=0, links=0, **words) for fault in (True, False, True)]
    site = site_types.Directory(name="s", last_run="", ended="", why="", new_pages=0, lists=lists)
    hook = system_types.WebhookRow(
        name="h", position=1, newest=2, failures=3, failing_since=1.0, error="refused", dead=0
    )
    assert await needs(directories=[site], webhooks=[hook]) == [
        ("2 lists of sites are broken", "/console/sites?broken=1"),
        ("Webhook h gets nothing: refused", "/console/system/webhooks"),
    ]
