"""A generated web of sites whose directories list new pages, and what a harvest of it found.

A directory publishes at random times (Poisson, three quarters by day) a page, or now and then ten within an hour; its
list shows the newest pages, so that a late visit misses some. A page
is on topic or not; one half of those that are not are advertisements with a path of their own, which a scope can
exclude, the others look like the rest.
"""

import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nephila.harvest.sites.site_documents import Sites, site_of
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.documents.yaml import from_builtins

HOUR_S, DAY_S = 3_600.0, 86_400.0
START = 1_800_057_600.0
"""Midnight UTC."""
LIST = 15
"""Links of a list; older ones have left it."""
ON_TOPIC, ADVERTISEMENT = 0.70, 0.15
SLOWEST, FASTEST = 0.05, 8.0
"""Times per day at which a directory publishes, log-uniform."""
BURST, BURST_PAGES = 0.1, 10
NIGHT = 0.25 / 0.75
"""Publishing from 0 to 12 UTC relative to the other half of the day."""


class Published(NamedTuple):
    """A page."""

    at: float
    url: str
    on_topic: bool


@dataclass(slots=True)
class List:
    """A directory of the generated web."""

    name: str
    host: str
    url: str
    per_day: float
    score: float
    pages: list[Published]
    times: list[float] = field(default_factory=list)

    def newest(self, now: float) -> list[Published]:
        """What its list shows."""
        end = bisect_right(self.times, now)
        return self.pages[max(end - LIST, 0) : end]


def generate(sites: int, directories: int, length_s: float, seed: int) -> list[List]:
    """Directories of sites, the first `sites` of them on a site each."""
    rng = random.Random(seed)
    found = []
    for number in range(directories):
        site = number if number < sites else rng.randrange(sites)
        per_day = SLOWEST * (FASTEST / SLOWEST) ** rng.random()
        host = f"site-{site}.test"
        url = f"http://{host}/part-{number}/"
        one = List(f"site-{site}.part-{number}", host, url, per_day, float(rng.randrange(1, 11)), [])
        one.pages = sorted(_published(one, length_s, rng))
        one.times = [page.at for page in one.pages]
        found.append(one)
    return found


def _published(one: List, length_s: float, rng: random.Random) -> Iterator[Published]:
    peak = one.per_day * 2 / (1 + NIGHT)
    at = START
    while (at := at + rng.expovariate(peak / DAY_S)) < START + length_s:
        if at % DAY_S < DAY_S / 2 and rng.random() > NIGHT:
            continue
        count = BURST_PAGES if rng.random() < BURST else 1
        for instant in sorted(at + HOUR_S * rng.random() for _ in range(count)):
            kind = rng.random()
            part = "sponsored/" if ON_TOPIC <= kind < ON_TOPIC + ADVERTISEMENT else ""
            yield Published(instant, f"{one.url}{part}{instant:.0f}-{rng.randrange(10**6)}.html", kind < ON_TOPIC)


def documents(web: list[List], frequencies: dict[str, str], *, scores: bool = True, filtered: bool = True) -> Sites:
    """The Site documents of a web, read as the command reads them."""
    settings: dict[str, Any] = {"politeness": {"delay": "1s"}}
    if filtered:
        settings["scope"] = {"exclude": ["/sponsored/"]}
    specs: dict[str, dict[str, Any]] = {}
    for one in web:
        site, _, part = one.name.partition(".")
        directory = {"name": part, "url": one.url, "frequency": frequencies[one.name]}
        if scores:
            directory["score"] = f"{one.score:g}"
        specs.setdefault(site, {**settings, "directories": []})["directories"].append(directory)
    found = {}
    for name, spec in specs.items():
        content = {"apiVersion": API_VERSION, "kind": "Site", "metadata": {"name": name}, "spec": spec}
        found[name] = site_of(from_builtins(_numbers(content), name))
    return Sites(found)


def _numbers(value: Any) -> Any:
    """Scores as numbers."""
    if isinstance(value, dict):
        return {key: float(item) if key == "score" else _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True)
class Result:
    """What a harvest found, and what it cost."""

    length_s: float
    requests: int = 0
    runs: int = 0
    new_pages: int = 0
    on_topic: int = 0
    found: float = 0.0
    """Pages on topic published until a day before the end,"""
    score_found: float = 0.0
    """and the sum of their scores."""
    delays: list[tuple[float, float]] = field(default_factory=list)
    """From publication to fetch, of pages on topic, with their scores."""
    busy_s: float = 0.0
    """Time in which at least one run was in progress."""
    late_s: list[float] = field(default_factory=list)
    """From the due time of a run to its start."""

    def _delay_h(self, lowest: float, highest: float) -> float:
        """Mean delay over directories with these scores."""
        found = [delay for delay, score in self.delays if lowest <= score <= highest]
        return sum(found) / max(len(found), 1) / HOUR_S

    def figures(self, web: list[List]) -> dict[str, float]:
        """The figures of the table."""
        end = START + self.length_s - DAY_S
        wanted = [(one.score, page) for one in web for page in one.pages if page.on_topic and page.at < end]
        delays, late = sorted(delay for delay, _ in self.delays), sorted(self.late_s)
        return {
            "runs": self.runs,
            "requests": self.requests,
            "new": self.new_pages,
            "precision": self.on_topic / self.new_pages,
            "recall": self.found / len(wanted),
            "recall_by_score": self.score_found / sum(score for score, _ in wanted),
            "delay_h": sum(delays) / len(delays) / HOUR_S,
            "delay_8_10_h": self._delay_h(8, 10),
            "delay_1_3_h": self._delay_h(1, 3),
            "delay_p95_h": delays[int(0.95 * len(delays))] / HOUR_S,
            "requests_per_new": self.requests / max(self.on_topic, 1),
            "hours_per_day": self.busy_s / self.length_s * 24,
            "late_p95_h": late[int(0.95 * len(late))] / HOUR_S if late else 0.0,
        }
