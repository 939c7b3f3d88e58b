"""Keyword schemes: the cost of a plan and of a match, and a simulation of overlapping searches.

The simulation has 100 keyword groups and 12 platforms with the same articles in different lists; the scheme is changed
in the middle. It counts requests and records beside a crawl that searches everything again after the change.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote_plus

from nephila.harvest.schemes import planner
from nephila.kernel.documents.scheme_schema import (
    NamedPlatform,
    NamedScheme,
    Part,
    PlatformUse,
    Schemes,
    SchemeSpec,
    Search,
)
from nephila.kernel.keywords.matcher import KeywordMatcher
from nephila.native import IMPLEMENTATION, KeywordSet, parse_url

PLATFORMS, GROUPS, ARTICLES, PAGE_SIZE, PAGES = 12, 100, 5_000, 20, 5
SYLLABLES = ["ka", "lo", "mi", "ne", "ru", "sa", "ti", "vo", "be", "du"]
HAN = "河南北京上海洪水地震台风火灾交通事故通报会议经济学校医院道路工厂"


def words(number: int, chance: random.Random) -> list[str]:
    """Distinct keywords, half of them Latin, half Han."""
    found: dict[str, None] = {}
    while len(found) < number:
        latin = "".join(chance.choices(SYLLABLES, k=chance.randint(2, 4)))
        found["".join(chance.choices(HAN, k=chance.randint(2, 4))) if len(found) % 2 else latin] = None
    return list(found)


def peak_bytes() -> int:
    """Most memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def plan_of(searches: int) -> tuple[int, float]:
    """Number and seconds of a plan of about so many searches."""
    side = round((searches / 10) ** 0.5)
    chance = random.Random(1)
    parts = {"region": Part(words(side, chance)), "event": Part(words(side, chance))}
    names = [f"p{number}" for number in range(10)]
    spec = SchemeSpec([PlatformUse(name) for name in names], {"g": parts})
    searches_by = [NamedPlatform(name, Search(f"http://{name}.test/s?q={{keyword}}", encoding="gbk")) for name in names]
    state = Schemes([NamedScheme("s", spec)], searches_by)
    began = time.perf_counter()
    number = sum(1 for _ in planner.plan(state))
    return number, time.perf_counter() - began


def match_times(terms: int = 1000, kilobytes: int = 10) -> list[tuple[str, float]]:
    """Microseconds of one match by kind of text. The last one is the worst case: a keyword begins at each character."""
    chance = random.Random(2)
    han = [chr(0x4E00 + 7 * number) for number in range(2000)]
    latin = ["".join(chance.choices("etaoinshrdlucmfwypvbgk", k=chance.randint(3, 10))) for _ in range(20_000)]
    size = kilobytes * 1000
    usual = KeywordSet(
        chance.sample(latin, terms // 2) + ["".join(chance.choices(han, k=3)) for _ in range(terms // 2)]
    )
    dense = KeywordSet(words(terms, chance))
    texts = [
        ("Latin", usual, " ".join(chance.choices(latin, k=size // 6))),
        ("Han", usual, "".join(chance.choices(han, k=size // 3))),
        ("dense Han", dense, "".join(chance.choices(HAN, k=size // 3))),
    ]
    found = []
    for name, known, text in texts:
        data = text.encode()[:size]
        best = min(timed(lambda known=known, data=data: known.find(data)) for _ in range(200))  # type: ignore[misc]
        found.append((name, best * 1e6))
    return found


def timed(work: Callable[[], object]) -> float:
    """Seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# ---- the simulation


@dataclass
class Crawl:
    """A crawl of searches on the generated platforms, one request after the other."""

    texts: list[str]
    lists: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)
    fetched: dict[str, int] = field(default_factory=dict)
    records: dict[str, list[str]] = field(default_factory=dict)
    platforms: dict[str, set[str]] = field(default_factory=dict)
    """Content page → platforms that lead to it."""
    navigation: int = 0

    def run(self, seeds: Iterator[planner.NavigationSeed], matcher: KeywordMatcher) -> None:
        """All searches and what they lead to; a URL is fetched once."""
        queue: deque[str] = deque()
        for seed in seeds:
            self._add(queue, seed.url)
        while queue:
            url = queue.popleft()
            if "/s?" in url:
                self._navigation(url, queue)
            else:
                self.fetched[url] = self.fetched.get(url, 0) + 1
                match = matcher.match(self.texts[int(url.rpartition("/")[2])].encode(), self.platforms[url])
                if match.schemes:
                    self.records[url] = match.schemes["s"]

    def _add(self, queue: deque[str], url: str) -> None:
        key = parse_url(url).fingerprint
        if key not in self.seen:
            self.seen.add(key)
            queue.append(url)

    def _navigation(self, url: str, queue: deque[str]) -> None:
        self.navigation += 1
        base, _, page = url.partition("&p=")
        host, keywords = base[7:].split("/", 1)[0], unquote_plus(base.partition("q=")[2])
        number = int(page or "1")
        found = self.lists.get((host, keywords))
        if found is None:
            parts = keywords.split(" ")
            own = int(host[1:].partition(".")[0])
            # Every article is on two of three platforms.
            hits = (n for n, text in enumerate(self.texts) if (n + own) % 3 and all(one in text for one in parts))
            found = self.lists[host, keywords] = list(hits)
        for article in found[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]:
            target = f"http://articles.test/a/{article}"
            self.platforms.setdefault(target, set()).add(host.partition(".")[0])
            self._add(queue, target)
        if len(found) > number * PAGE_SIZE and number < PAGES:
            self._add(queue, f"{base}&p={number + 1}")


def state_of(groups: dict[str, dict[str, Part]]) -> Schemes:
    """The scheme of the simulation."""
    names = [f"p{number}" for number in range(PLATFORMS)]
    searches = [NamedPlatform(name, Search(f"http://{name}.test/s?q={{keyword}}")) for name in names]
    return Schemes([NamedScheme("s", SchemeSpec([PlatformUse(name) for name in names], groups))], searches)


def simulation() -> None:
    """A scheme of 100 groups, half of whose groups get another keyword in the middle."""
    chance = random.Random(3)
    regions, events = words(20, chance), words(120, chance)
    texts = [" ".join(chance.sample(regions, 2) + chance.sample(events, 3)) for _ in range(ARTICLES)]
    groups = {
        f"g{number}": {"region": Part(chance.sample(regions, 2)), "event": Part([events[number]])}
        for number in range(GROUPS)
    }
    changed = {
        name: {**parts, "event": Part([*parts["event"].any, events[100 + number % 20]])} if number % 2 else parts
        for number, (name, parts) in enumerate(groups.items())
    }
    first, second = state_of(groups), state_of(changed)
    ours = Crawl(texts)
    ours.run(planner.plan(first), KeywordMatcher(first.schemes))
    searches, navigation, content = sum(planner.count(first).values()), ours.navigation, len(ours.fetched)
    difference = list(planner.plan(second, first))
    ours.run(iter(difference), KeywordMatcher(second.schemes))
    again = Crawl(texts)
    again.run(planner.plan(second), KeywordMatcher(second.schemes))
    everything = navigation + content + again.navigation + len(again.fetched)
    requests = ours.navigation + len(ours.fetched)
    assert set(ours.fetched.values()) == {1}
    assert set(again.fetched) <= set(ours.fetched)
    owners = sum(len(one) > 1 for one in ours.records.values())
    print(f"simulation: {GROUPS} groups x {PLATFORMS} platforms, {ARTICLES:,} articles, each on 8 platforms")
    print(f"  first run       {searches:8,} searches  {navigation:8,} navigation pages  {content:7,} content pages")
    print(f"  changed scheme  {len(difference):8,} searches  {ours.navigation - navigation:8,} navigation pages  "
          f"{len(ours.fetched) - content:7,} content pages")  # fmt: skip
    print(f"  requests        {requests:8,} in all; searching everything again: {everything:,}")
    print(f"  records         {len(ours.records):8,}, of several groups {owners:,}; no content page twice")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--searches", type=int, default=1_000_000)
    searches = parser.parse_known_args()[0].searches
    before = peak_bytes()
    number, seconds = plan_of(searches)
    print(f"plan: {number:,} searches in {seconds:.2f} s, {(peak_bytes() - before) / 1e6:.0f} MB more")
    for name, microseconds in match_times():
        print(f"match ({IMPLEMENTATION}): 10 KB of {name} text, 1,000 terms: {microseconds:.1f} µs")
    simulation()


if __name__ == "__main__":
    main()
