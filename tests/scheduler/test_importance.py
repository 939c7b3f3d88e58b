"""What fetched pages give their links decides what is fetched next, in bounded memory; every URL is fetched once."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import random
from collections import Counter

import pytest
from nephila.scheduler.frontier.importance import AVERAGE, STEPS, Importance


def key(name: object) -> bytes:
    """A fingerprint."""
    return hashlib.md5(str(name).encode()).digest()


def keys(*names: object) -> bytes:
    """Fingerprints as a page's links."""
    return b"".join(map(key, names))


def test_links_of_one_partition_get_their_part_of_the_page():
    """Whether the others of the page stand in the same message or not."""
    whole, part = Importance(), Importance()
    for importance in (whole, part):
        importance.give(key("home"), keys(*range(8)), range(8))
    whole.give(key("fan"), keys(*range(8)), [])
    part.give(key("fan"), keys(0, 1), [], 8)
    part.give(key("fan"), keys(2), [], 8)
    part.give(key("fan"), keys(*range(3, 8)), [], 8)
    assert [part.priority(key(n)) for n in range(8)] == [whole.priority(key(n)) for n in range(8)]


def test_links_of_a_page_share_alike_and_further_gifts_raise_them():
    """Ten new links are average; one that another page names alone stands out by the ratio, in steps per doubling."""
    importance = Importance()
    priorities, rises = importance.give(key("home"), keys(*range(10)), range(10))
    assert (priorities, rises) == ([AVERAGE] * 10, [])
    _, rises = importance.give(key("fan"), keys(3), [])
    assert [i for i, _ in rises] == [0]
    assert rises[0][1] == importance.priority(key(3)) > AVERAGE + 2 * STEPS
    assert importance.priority(key(4)) < AVERAGE
    assert importance.priority(key("never met")) == 0
    importance.check()


def test_a_page_passes_on_what_it_was_given():
    """The only link of an important page is more important than that of an unimportant one."""
    importance = Importance()
    importance.give(key("home"), keys("a", "b"), [0, 1])
    for n in range(20):
        importance.give(key(n), keys("a"), [])
    importance.take(key("a"))
    importance.take(key("b"))
    importance.give(key("a"), keys("of a"), [0])
    importance.give(key("b"), keys("of b"), [0])
    assert importance.priority(key("of a")) > importance.priority(key("of b")) + STEPS


def test_only_what_waits_rises():
    """A page already taken, or one never admitted, is not to be queued again however often it is linked to."""
    importance = Importance()
    importance.give(key("home"), keys("taken", "waits"), [0, 1])
    importance.take(key("taken"))
    risen = set()
    for n in range(50):
        _, rises = importance.give(key(n), keys("taken", "waits", "outside"), [])
        risen |= {i for i, _ in rises}
    assert risen == {1}
    importance.check()


def test_what_was_linked_before_it_was_admitted_keeps_its_cash():
    """Twenty links out of scope count once the URL is in."""
    importance = Importance()
    for n in range(20):
        importance.give(key(n), keys("late", f"x{n}"), [1])
    (late, other), _ = importance.give(key("home"), keys("late", "other"), [0, 1])
    assert late > other + 3 * STEPS


def test_of_all_copies_the_latest_counts():
    """A hundred gifts make a handful of copies; all but the last are stale, a retry under its number is not."""
    importance = Importance()
    importance.give(key("home"), keys("a"), [0])
    copies = [0]
    for n in range(100):
        copies += [importance.copied(key("a")) for _ in importance.give(key(n), keys("a"), [])[1]]
    assert 4 <= len(copies) <= 9
    assert copies[-1] == importance.copy_of(key("a"))
    assert [importance.is_stale(key("a"), copy) for copy in copies] == [True] * (len(copies) - 1) + [False]
    importance.check()
    importance.take(key("a"))
    for _ in copies[1:]:
        assert importance.stale
        assert not importance.is_stale(key("a"), copies[-1])
        importance.dropped(key("a"))
    assert not importance.stale
    assert not importance.is_stale(key("a"), copies[-1]), "a retry of it is still the one that counts"
    importance.check()


def test_the_table_is_bounded_and_sums_stay_right_on_average():
    """A table of 500 under 20,000 URLs: what is left stands for all, and for each half of them, within ten per cent."""
    importance, given, rng = Importance(500), {0: 0.0, 1: 0.0}, random.Random(2)
    for page in range(2000):
        links = [rng.randrange(20_000) for _ in range(10)]
        links = list(dict.fromkeys(links))
        importance.give(key(f"p{page}"), keys(*links), [])
        for link in links:
            given[link % 2] += 0.85 * 0.15 / len(links)
        assert len(importance) <= 625
    importance.check()
    names = {key(n): n for n in range(20_000)}
    kept = {0: 0.0, 1: 0.0}
    for fingerprint, cash in importance._cash.items():
        kept[names[fingerprint] % 2] -= cash
    assert kept == pytest.approx(given, rel=0.1)


def test_forgetting_keeps_what_matters():
    """A page that one in ten links to is still the most important after the table was cut again and again."""
    importance = Importance(200)
    importance.give(key("home"), keys("star"), [0])
    for n in range(3000):
        links = [f"{n}-{i}" for i in range(5)] + (["star"] if n % 10 == 0 else [])
        importance.give(key(f"p{n}"), keys(*links), range(5))
    importance.check()
    assert importance.priority(key("star")) == max(map(importance.priority, importance._cash))


def test_state_survives_a_snapshot_and_damage_is_refused():
    """Packed and unpacked it answers alike; a torn state is one ValueError."""
    importance, copy, rng = Importance(100), Importance(100), random.Random(4)
    for n in range(500):
        links = keys(*(rng.randrange(900) for _ in range(4)))
        importance.give(key(n), links, [])
        names = [f"new{n}", *(f"new{m}" for m in range(max(0, n - 3), n))]
        for i, _ in importance.give(key(n), keys(*names), [0])[1]:
            importance.copied(key(names[i]))
    assert importance.stale
    copy.unpack(importance.pack())
    copy.check()
    assert copy.pack() == importance.pack()
    assert copy.give(key("x"), keys("y", "new499"), [0]) == importance.give(key("x"), keys("y", "new499"), [0])
    for damaged in (importance.pack()[:-3], b"", b"\x94\x03\x00\x80\x80"):
        with pytest.raises(ValueError, match="state of importance"):
            copy.unpack(damaged)


def skewed_web(pages: int, rng: random.Random) -> dict[int, list[int]]:
    """Pages with a dozen links each, most of them to few pages that lie anywhere."""
    weights = list(itertools.accumulate((n + 1) ** -0.8 for n in range(pages)))
    place = rng.sample(range(pages), pages)
    drawn = (dict.fromkeys(rng.choices(range(pages), cum_weights=weights, k=12)) for _ in range(pages))
    return {place[n]: [place[target] for target in targets] for n, targets in enumerate(drawn)}


def crawl(links: dict[int, list[int]], start: int, limit: int, by_importance: bool) -> list[int]:
    """The first `limit` pages, by importance or by arrival."""
    importance, seen, fetched = Importance(), {start}, []
    queue, arrival = [(0, 0, start, 0)], itertools.count(1)
    while queue and len(fetched) < limit:
        _, _, page, copy = heapq.heappop(queue)
        if importance.is_stale(key(page), copy):
            importance.dropped(key(page))
            continue
        importance.take(key(page))
        fetched.append(page)
        targets = links[page]
        new = [i for i, target in enumerate(targets) if target not in seen]
        seen.update(targets)
        pushes = [(i, 0, 0) for i in new]
        if by_importance:
            priorities, rises = importance.give(key(page), keys(*targets), new)
            pushes = [(i, priority, 0) for i, priority in zip(new, priorities, strict=True)]
            pushes += [(i, priority, importance.copied(key(targets[i]))) for i, priority in rises]
        for i, priority, number in pushes:
            heapq.heappush(queue, (256 - priority, next(arrival), targets[i], number))
    importance.check()
    return fetched


def test_important_pages_are_fetched_early_and_each_once():
    """Of the 300 pages with most links, the first 300 fetches find clearly more than in the order of arrival."""
    links = skewed_web(3000, random.Random(6))
    in_links = Counter(target for targets in links.values() for target in targets)
    top = {page for page, _ in in_links.most_common(300)}
    start = next(iter(links))
    found = {mode: len(top.intersection(crawl(links, start, 300, mode))) for mode in (True, False)}
    print(f"of the 300 most linked pages, the first 300 fetches find {found[True]}; breadth-first {found[False]}")
    assert found[True] > 1.3 * found[False]
    everything = crawl(links, start, 3000, True)
    assert sorted(everything) == sorted(crawl(links, start, 3000, False))
