"""A page that kills its group each time is singled out; all others are fetched."""

from __future__ import annotations

import pytest
from nephila.kernel.messages import FetchOutcome, FetchRequest, FetchResult, Record
from nephila.programs.groups.group_deaths import GroupDeaths
from nephila.programs.groups.worker.suspect_gate import SuspectGate


def key(number: int) -> tuple[str, bytes]:
    return "j", bytes([number]) * 16


def request(number: int) -> FetchRequest:
    uid, url_key = key(number)
    return FetchRequest(job=uid, url_key=url_key, url=f"http://a.test/{number}", host="a.test", attempt=1, fetch_no=1)


class Site:
    """A group whose pages in `poison` kill it, over one `GroupDeaths`; `run` is the life of one process."""

    def __init__(self, *poison: int) -> None:
        self.deaths = GroupDeaths()
        self.poison = {key(number) for number in poison}
        self.queued = [key(number) for number in range(10)]
        self.dead_letters: list[tuple[str, bytes]] = []
        self.fetched: list[tuple[str, bytes]] = []
        self.most = 0
        """Requests that were in flight at once while a suspect was probed."""

    def run(self) -> bool:
        """Whether the process lived until all URLs had ended."""
        deaths, handed = self.deaths, []
        gate = SuspectGate(
            deaths.suspects,
            deaths.poison,
            lambda partition, message: handed.append((message.job, message.url_key)),
            lambda partition, message: self.dead_letters.append((message.job, message.url_key)),
            lambda probed: setattr(deaths.suspects, "probing", probed),
            deaths.suspects.probed,
        )
        leased = list(self.queued)
        for _, url_key in leased:
            gate.request(0, request(url_key[0]))
        while handed:
            self.most = max(self.most, len(handed)) if deaths.suspects.probing else self.most
            now = handed[:]
            handed.clear()
            for url in now:
                if url in self.poison:
                    self.queued = [other for other in leased if other not in (*self.fetched, *self.dead_letters)]
                    deaths.died(self.queued)
                    return False
                self.fetched.append(url)
                deaths.recorded(url)
                gate.record(Record(job=url[0], url_key=url[1], fetch_no=1, attempt=1))
                gate.outcome(
                    FetchOutcome(job=url[0], url_key=url[1], fetch_no=1, attempt=1, result=FetchResult.FETCHED)
                )
        assert not deaths.suspects
        assert deaths.suspects.probing is None
        return True


def lives(site: Site) -> int:
    """Processes until all URLs have ended."""
    for number in range(1, 30):
        if site.run():
            return number
    raise AssertionError("the group dies for ever")


@pytest.mark.parametrize("poison", [(), (0,), (5,), (9,), (3, 4), (0, 5, 9)])
def test_poison_ends_as_a_dead_letter_and_all_else_is_fetched(poison):
    """Two deaths, then two of each poison page while it is alone."""
    site = Site(*poison)
    deaths = lives(site) - 1
    assert sorted(site.dead_letters) == [key(number) for number in poison]
    assert sorted(site.fetched) == [key(number) for number in range(10) if number not in poison]
    assert deaths <= 2 + 2 * len(poison) if poison else deaths == 0
    assert site.most <= 1


def test_one_death_makes_no_suspect():
    """As by a kill from outside: the requests are made again together."""
    deaths = GroupDeaths()
    assert deaths.died([key(1), key(2)]) == 2
    assert not list(deaths.suspects)


def test_only_what_was_in_flight_both_times_is_a_suspect():
    deaths = GroupDeaths()
    deaths.died([key(1), key(2), key(3)])
    deaths.recorded(key(3))
    assert deaths.died([key(2), key(3), key(4)]) == 2
    assert list(deaths.suspects) == [key(2)]


def test_a_suspect_that_was_not_fetched_stays_one():
    """Its request came too late, and comes once more."""
    deaths = GroupDeaths()
    for _ in range(2):
        deaths.died([key(1)])
    handed: list[FetchRequest] = []
    gate = SuspectGate(
        deaths.suspects,
        deaths.poison,
        lambda partition, message: handed.append(message),
        lambda partition, message: None,
        lambda probed: setattr(deaths.suspects, "probing", probed),
        deaths.suspects.probed,
    )
    for result, needed in ((FetchResult.EXPIRED, True), (FetchResult.FAILED, False)):
        gate.request(0, request(1))
        assert deaths.suspects.probing == key(1)
        gate.request(0, request(2))
        assert [message.url_key for message in handed] == [key(1)[1]]
        gate.outcome(FetchOutcome(job="j", url_key=key(1)[1], fetch_no=1, attempt=1, result=result))
        assert handed.pop().url_key == key(2)[1]
        gate.outcome(FetchOutcome(job="j", url_key=key(2)[1], fetch_no=1, attempt=1, result=FetchResult.FAILED))
        handed.clear()
        assert gate.needed is needed
        assert bool(deaths.suspects) is needed
