"""What brings nothing new and feeds on itself is closed; what brings something, however slowly, is not."""

from __future__ import annotations

import datetime
import hashlib
import random

import pytest
from nephila.scheduler.traps import novelty
from nephila.scheduler.traps.novelty import (
    CAP_FETCHES,
    MAX_PATTERNS,
    SAME_TEXT,
    WATCH_FROM,
    NoveltyTracker,
    PatternCounts,
)
from nephila.scheduler.traps.recent_hashes import RecentHashSet

from benchmarks.web import endless
from tests.scheduler.traps import trap_web
from tests.scheduler.traps.trap_web import NOW, ROOT, Page, crawl

MONTHS = [f"{datetime.date(2026, month, 1):%B}" for month in range(1, 13)]
WORDS = random.Random(1).sample([f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"], 120)


def prose(key: str, words: int = 400) -> str:
    """A text of its own for each key, of about so many words."""
    rng = random.Random(key)
    return " ".join(rng.choices(WORDS, k=rng.randint(words // 2, words)))


def real_pages(count: int) -> trap_web.Site:
    """A tree of articles below a home page."""

    def site(path: str) -> Page | None:
        number = 0 if path == "/" else int(path.removeprefix("/articles/"))
        children = [n for n in range(5 * number + 1, 5 * number + 6) if n <= count]
        return Page(prose(path), [f"/articles/{n}" for n in children])

    return site


def with_trap(trap: trap_web.Site, start: str, prefix: str, pages: int = 300) -> trap_web.Site:
    """Real articles and, from the home page, a way into a trap."""
    articles = real_pages(pages)

    def site(path: str) -> Page | None:
        if path.startswith(prefix):
            return trap(path)
        page = articles(path)
        assert page is not None
        return Page(page.text, [*page.links, start]) if path == "/" else page

    return site


def of_the_bench(kind: str, links: int = 2) -> trap_web.Site:
    """A trap of the hostile bench web."""

    def site(path: str) -> Page | None:
        body = endless.page({"do": kind, "links": links}, path)
        return Page(f"{len(path)}\nmore", endless.LINKS[kind]({"links": links}, path), len(body))

    return site


def month_names(path: str) -> Page:
    """A calendar of empty months whose texts and lengths differ, day pages below each."""
    year, month, *day = map(int, path.removeprefix("/plan/").split("/"))
    if day:
        return Page(f"Nothing on {day[0]} {MONTHS[month - 1]} {year}", [f"/plan/{year}/{month}"])
    after = year * 12 + month
    links = [f"/plan/{after // 12}/{after % 12 + 1}", *(f"/plan/{year}/{month}/{d}" for d in range(1, 29))]
    return Page(f"Nothing in {MONTHS[month - 1]} {year}", links)


def basket(path: str) -> Page:
    """Three products under tokens that change with every page, under a name that no list knows."""
    links = [f"/buy/view?key={hashlib.md5(f'{path}{i}'.encode()).hexdigest()}&item={i}" for i in range(3)]
    return Page(f"Product {path[-1]}", links)


def shop(path: str) -> Page:
    """Four hundred products under tokens that change with every page: each page shows two more."""
    links = []
    for i in range(2):
        token = hashlib.md5(f"{path}{i}".encode()).hexdigest()
        links.append(f"/sale/view?item={int(token[:6], 16) % 400}&key={token}")
    item = path.partition("item=")[2].partition("&")[0]
    return Page(prose(f"item {item}"), links)


def relative(path: str) -> Page:
    """Links that forgot their slash, in a path whose shape is within all limits."""
    words = random.Random(path).sample(WORDS, 2)
    return Page("No such page", [f"{path}/{word}" for word in words] if path.count("/") < 30 else [])


def mirrors(path: str) -> Page:
    """Three scripts that hand a token to each other: none of them feeds itself."""
    token = hashlib.md5(path.encode()).hexdigest()
    return Page(path[:6], [f"/go/{name}?t={token}" for name in "abc"])


def words(path: str) -> Page:
    """Names without numbers in one directory, one text."""
    return Page(
        "Not what you want", [f"/maze/{a}{b}" for a, b in [random.Random(path + k).sample(WORDS, 2) for k in "xy"]]
    )


TRAPS = {
    "calendar of the bench": (of_the_bench("calendar"), "/calendar/2026/11", "/calendar/"),
    "repeating path of the bench": (of_the_bench("repeat"), "/a/b/", "/a/"),
    "session ids of the bench": (of_the_bench("session"), "/shop/item?sid=0", "/shop/"),
    "facets of the bench": (of_the_bench("facets"), "/find?page=1", "/find"),
    "month names": (month_names, "/plan/2026/11", "/plan/"),
    "unknown session id": (basket, "/buy/view?key=0&item=0", "/buy/"),
    "relative path": (relative, "/rel/a", "/rel/"),
    "several places": (mirrors, "/go/a?t=0", "/go/"),
    "words": (words, "/maze/x", "/maze/"),
}


def costs_little(name: str) -> None:
    """The trap ends within twice its cap, and all 300 articles beside it are found."""
    trap, start, prefix = TRAPS[name]
    result = crawl(with_trap(trap, start, prefix))
    print(f"{name}: {result.count(prefix)} fetches, closed {[quarantine.place for quarantine in result.quarantines]}")
    assert result.count("/articles/") == 300
    assert 0 < result.count(prefix) <= 2 * CAP_FETCHES
    assert sum(result.refused.values()) > 0


@pytest.mark.parametrize("name", TRAPS)
def test_traps_cost_twice_their_cap_at_most_and_real_pages_are_found(name):
    """Every kind of trap ends; not one article beside it is lost."""
    costs_little(name)


@pytest.mark.parametrize("name", [name for name in TRAPS if not name.startswith("facets")])
def test_yield_alone_is_enough(name, monkeypatch):
    """The same with no help from shapes and session ids. (Facets of the bench grow by a parameter with every click.)"""
    monkeypatch.setattr(trap_web, "shape", lambda url, now: "")
    monkeypatch.setattr(novelty, "without_session", lambda url: "")
    costs_little(name)


def test_a_trap_on_a_large_host_may_cost_its_share():
    """Five per cent of what the host has had: a small corner of a large site is no reason to judge."""
    result = crawl(with_trap(month_names, "/plan/2026/11", "/plan/", 12_000))
    assert result.count("/articles/") == 12_000
    assert 2 * CAP_FETCHES < result.count("/plan/") <= 2 * 0.05 * len(result.fetched)


def chain(path: str) -> Page | None:
    """A comic: each strip leads to the next only, each has its own words, all are about as long."""
    number = int(path[1:] or 0)
    return Page(prose(path, 120), [f"/{number + 1}"]) if number < 1500 else None


def duplicates(path: str) -> Page | None:
    """A list whose 500 leaves all say the same: a soft 404, but finite."""
    return Page("Sold out") if path != "/" else Page("list", [f"/sold/{n}" for n in range(500)])


def slow_yield(path: str) -> Page | None:
    """Empty days, and a real one in every fiftieth; each leads to the next."""
    day = int(path.removeprefix("/day/") or 0) if path != "/" else -1
    return Page(prose(path) if day % 50 == 0 else "No entry", [f"/day/{day + 1}"]) if day < 3000 else None


def lists(path: str) -> Page | None:
    """Five hundred list pages with one main text, each leading to a product of its own."""
    if path.startswith("/product"):
        return Page(prose(path))
    page = int(path.partition("=")[2] or 0)
    return Page("All products", [f"/list?page={page + 1}", f"/product/{page}"]) if page < 500 else None


def mentions(path: str) -> Page | None:
    """The same, but the products stand on other hosts."""
    page = int(path.partition("=")[2] or 0)
    return Page("Links", [f"/list?page={page + 1}", f"http://b{page}.test/"]) if page < 500 else None


def forum(path: str) -> Page | None:
    """Everything behind one script and two parameters."""
    thread, _, page = path.partition("&page=")
    if path == "/":
        return Page("forum", ["/view?t=0&page=1"])
    number = int(thread.partition("=")[2])
    links = [f"/view?t={number}&page={int(page) + 1}"] if int(page) < 5 else []
    return Page(prose(path, 100), [*links, *([f"/view?t={number + 1}&page=1"] if number < 400 else [])])


def images(path: str) -> Page | None:
    """Files without a text, all of one length."""
    number = int(path.removeprefix("/file/") or 0) if path != "/" else -1
    return Page("", [f"/file/{number + 1}"], 1000) if number < 800 else None


def manual(path: str) -> Page | None:
    """A manual in ten languages below one directory, each page linking to its neighbours and translations: 140 pages of
    every further language are the English ones, and three are its own."""
    languages = ["en", "de", "es", "fr", "ja", "ko", "ru", "tr", "zh", "pt"]
    if path == "/":
        return Page("languages", [f"/docs/2.4/{language}/mod/0.html" for language in languages])
    language, number = path.split("/")[3], int(path.split("/")[5].removesuffix(".html"))
    if number >= 143:
        return None
    own = language == "en" or number in (70, 120, 142)
    links = [f"{n}.html" for n in (number + 1, number + 2, number * 2)]
    return Page(prose(path if own else f"/docs/2.4/en/mod/{number}.html"), links)


def mirror(path: str) -> Page | None:
    """A directory of 400 pages and a copy of it, in which the last is a page of its own."""
    if path == "/":
        return Page("start", ["/a/0", "/copy/0"])
    number = int(path.rsplit("/", 1)[1])
    own = path == "/copy/399"
    return Page(prose(path if own else str(number)), [f"{n}" for n in (2 * number + 1, 2 * number + 2) if n < 400])


def listed(path: str) -> Page | None:
    """A directory whose list names 400 pages at once, all but three of one text."""
    if path == "/":
        return Page("start", ["/shop/"])
    if path == "/shop/":
        return Page("list", [f"/shop/item-{WORDS[n % 120]}{n}" for n in range(400)])
    return Page(prose(path) if path.endswith(("200", "300", "399")) else "Sold out", ["/shop/"])


def stopped(path: str) -> Page | None:
    """A directory of one text that grows for 97 pages, and then leads to 40 that are its last, one of its own."""
    number = int(path.rpartition("/")[2] or 0) if path != "/" else -1
    more = [f"/x/{number + 1}"] if number < 97 else [f"/x/{n}" for n in range(98, 138)]
    return Page(prose(path) if number == 137 else "The same", more if number < 98 else [])


@pytest.mark.parametrize(
    ("site", "pages"),
    [
        (manual, 1431),
        (mirror, 801),
        (listed, 402),
        (stopped, 139),
        (chain, 1500),
        (duplicates, 501),
        (slow_yield, 3001),
        (lists, 1000),
        (mentions, 500),
        (forum, 2006),
        (images, 801),
    ],
)
def test_real_sites_are_crawled_whole(site, pages):
    """Mirrors, translations, directories that stop growing, chains, soft 404s, sparse diaries, lists, forums in one
    script, files without text: none loses a page, and hardly one is closed."""
    result = crawl(site)
    assert not result.quarantines or site is stopped
    assert len(result.fetched) == pages


def test_a_parameter_that_brings_one_text_is_closed_without_growth():
    """Each article leads to a login of its own: 100 of them are enough, the articles go on."""
    articles = real_pages(2000)

    def site(path: str) -> Page | None:
        if path.startswith("/login"):
            return Page("Please log in")
        page = articles(path)
        return Page(page.text, [*page.links, f"/login?lang=en&back={path}"])

    result = crawl(site)
    assert result.count("/articles/") == 2000
    assert result.count("/login") <= 2 * CAP_FETCHES
    assert [q.place for q in result.quarantines] == ["/login?back"]


def test_twins_by_scheme_are_no_trap():
    """A site served by http and by https, each leading on within itself: all pages of both are open."""
    judge = NoveltyTracker("j", "a.test")
    for scheme in ("http", "https"):
        for number in range(500):
            url = f"{scheme}://a.test/articles/{number}"
            judge.linked(url, [f"{scheme}://a.test/articles/{number + 1}"])
            judge.fetched(url, hashlib.md5(b"%d" % number).digest()[:8], number * 50, NOW)
    assert not judge.closed


def test_a_directory_that_was_fruitful_stays_open():
    """Three traps in a directory of 400 articles are closed one by one; articles that come to light later are open."""
    judge = NoveltyTracker("j", "a.test")
    for number in range(400):
        judge.fetched(f"{ROOT}/go/title-{number}", hashlib.md5(b"%d" % number).digest()[:8], number * 50, NOW)
    for number in range(600):
        url = f"{ROOT}/go/{'abc'[number % 3]}?t={number}"
        if not judge.verdict(url):
            judge.linked(url, [f"{url}{number}"])
            judge.fetched(url, b"one text", 1000, NOW)
    assert sorted(judge.closed) == ["/go/a?t", "/go/b?t", "/go/c?t"]
    assert judge.verdict(f"{ROOT}/go/another-title") == ""
    judge.check()


def test_a_quarantine_says_what_and_why_and_can_be_released():
    """It names place, reason, time and fetches; released, the place is open for good."""
    site = with_trap(basket, "/buy/view?key=0&item=0", "/buy/", 10)
    result = crawl(site)
    (quarantine,) = result.quarantines
    assert (quarantine.job, quarantine.host, quarantine.place) == ("j", "a.test", "/buy/view?key")
    assert (quarantine.since, quarantine.released) == (NOW, False)
    assert CAP_FETCHES <= quarantine.fetches <= 2 * CAP_FETCHES
    judge, url = result.judge, f"{ROOT}/buy/view?key=new&item=1"
    assert {run for place, _, _, run in judge.patterns() if place.startswith("/buy/")} == {0}, (
        "what is around begins again"
    )
    assert judge.verdict(url) == f"/buy/view?key was closed as a trap: {quarantine.reason}"
    assert judge.verdict(f"{ROOT}/buy/view?item=1") == judge.verdict(f"{ROOT}/buy/else?key=1") == ""
    released = judge.release("/buy/view?key")
    assert released is not None
    assert released.released
    assert judge.release("/buy/view?key") is judge.release("/nowhere/") is None
    assert judge.verdict(url) == ""
    again = crawl(site, limit=1000, judge=judge)
    assert not again.quarantines
    assert again.count("/buy/") > 900


def test_what_is_on_its_way_when_a_place_closes_changes_nothing():
    """Late fetches of a closed place count, close nothing more, and cost the places around nothing."""
    judge = crawl(with_trap(basket, "/buy/view?key=0&item=0", "/buy/", 10)).judge
    for number in range(500):
        assert judge.fetched(f"{ROOT}/buy/view?key={number}late&item=1", b"x" * 8, 100, NOW) is None
    assert len(judge.closed) == 1
    assert all(run < CAP_FETCHES for _, _, _, run in judge.patterns())


def test_the_second_copy_of_a_session_passes_the_third_does_not():
    """Copies of one page under new session ids are refused from the third on; other pages and plain URLs are not."""
    judge = NoveltyTracker("j", "a.test")
    tokens = [hashlib.md5(bytes([n])).hexdigest() for n in range(4)]
    verdicts = [judge.is_session_copy(f"{ROOT}/x?PHPSESSID={token}") for token in tokens]
    assert verdicts == ["", "", *[f"session id: {ROOT}/x is known under others"] * 2]
    assert judge.is_session_copy(f"{ROOT}/y?PHPSESSID={tokens[0]}") == judge.is_session_copy(f"{ROOT}/x") == ""


def test_state_survives_a_snapshot():
    """Cut anywhere by a snapshot and a restart, a crawl gives the verdicts it would have given."""
    site = with_trap(month_names, "/plan/2026/11", "/plan/", 50)
    calls = []

    class Noting(NoveltyTracker):
        """A judge that writes down what it was told."""

        def linked(self, parent, new):
            calls.append(("linked", parent, list(new)))
            super().linked(parent, new)

        def fetched(self, *args):
            calls.append(("fetched", *args))
            return super().fetched(*args)

    whole = crawl(site, judge=Noting("j", "a.test")).judge
    judge = NoveltyTracker("j", "a.test")
    for number, (name, *args) in enumerate(calls):
        getattr(judge, name)(*args)
        if number % 7 == 0:
            packed = judge.pack()
            judge = NoveltyTracker("j", "a.test")
            judge.unpack(packed)
            judge.check()
            assert judge.pack() == packed
    assert judge.pack() == whole.pack()
    assert list(judge.closed) == list(whole.closed) != []


def test_a_damaged_state_is_refused_in_one_line():
    """Cut, torn or of another version: one ValueError that names the host, and what was there stays."""
    judge = crawl(with_trap(basket, "/buy/view?key=0&item=0", "/buy/", 10)).judge
    packed = judge.pack()
    for damaged in (packed[:-1], packed[:40], b"", b"\x00" + packed, packed.replace(b"\x97\x01", b"\x97\x02", 1)):
        with pytest.raises(ValueError, match=r"^state of the traps of a\.test is damaged: [^\n]+$"):
            judge.unpack(damaged)
    assert judge.pack() == packed


def test_memory_is_bounded_whatever_the_urls():
    """Fifty thousand URLs of random shapes: at most 256 places, a state under 200 KiB, invariants kept."""
    rng, judge = random.Random(8), NoveltyTracker("j", "a.test", 10, 0.0001)
    for number in range(50_000):
        depth = rng.randrange(4)
        path = "/".join(rng.choice(WORDS) + str(rng.randrange(9)) for _ in range(depth))
        query = "&".join(f"{rng.choice(WORDS)}={rng.randrange(5)}" for _ in range(rng.randrange(3)))
        url = f"{ROOT}/{path}" + (f"?{query}" if query else "")
        text = rng.choice([b"", b"same text", rng.randbytes(8)])
        if number % 3 == 0:
            judge.linked(url, [f"{url}/{n}" for n in range(rng.randrange(3))])
        judge.fetched(url, text, rng.randrange(3000), NOW)
        judge.is_session_copy(f"{url};jsessionid={rng.randbytes(10).hex()}")
        if number % 2500 == 0:
            judge.check()
    judge.check()
    assert sum(1 for _ in judge.patterns()) <= MAX_PATTERNS
    assert len(judge.pack()) < 200 * 1024


def test_a_memory_forgets_and_never_invents():
    """Nothing it was not told, everything while there is room, its limit whatever comes, the same after a snapshot."""
    rng, memory, reported = random.Random(9), RecentHashSet(256), set()
    for number in range(20_000):
        key = rng.getrandbits(64) if rng.random() < 0.6 or not reported else rng.choice(sorted(reported)[-50:])
        known = key in memory
        assert memory.add(key) is not known
        assert not known or key in reported
        reported.add(key)
        assert key in memory
        if number % 2000 == 0:
            memory.check()
            copy = RecentHashSet(256)
            copy.restore(memory.pack())
            assert len(copy) == len(memory) <= 256
            reported = {k for k in reported if k in memory}


def test_while_there_is_room_hardly_anything_is_forgotten():
    """Of two thousand hashes in a memory of eight thousand slots, 99 in 100 at least are known."""
    rng, memory = random.Random(11), RecentHashSet(8192)
    keys = [rng.getrandbits(64) for _ in range(2000)]
    for key in keys:
        memory.add(key)
    assert sum(key in memory for key in keys) >= 1980


def test_a_shop_under_changing_tokens_ends_when_it_has_no_news():
    """Products come at random: when a hundred pages in a row were known, nine in ten are found, and it ends."""
    result = crawl(with_trap(shop, "/sale/view?item=0&key=0", "/sale/"))
    items = {url.partition("item=")[2].partition("&")[0] for url in result.fetched if "/sale/" in url}
    print(f"{len(items)} products in {result.count('/sale/')} fetches")
    assert len(items) >= 360
    assert result.count("/articles/") == 300
    assert [quarantine.place for quarantine in result.quarantines] == ["/sale/view?key"]


def test_what_keeps_coming_back_is_not_forgotten():
    """A hash seen every tenth time stays through a flood that fills the memory a hundred times over."""
    rng, memory = random.Random(10), RecentHashSet(256)
    memory.add(77)
    for number in range(25_600):
        memory.add(rng.getrandbits(64))
        if number % 10 == 0:
            assert not memory.add(77)


@pytest.mark.parametrize(("texts", "duplicates", "closed"), [(1, 120, True), (10, 450, False), (10, 600, True)])
def test_a_parameter_that_has_brought_texts_is_closed_later(texts, duplicates, closed):
    """Without growth: one new text in 50 fetches keeps it open."""
    judge = NoveltyTracker("j", "a.test")
    for number in range(WATCH_FROM + texts + duplicates):
        text = b"text %d" % number if number < WATCH_FROM + texts else b"one text"
        judge.fetched(f"{ROOT}/view?id={number}", hashlib.md5(text).digest()[:8], number * 50, NOW)
    assert list(judge.closed) == ["/view?id"] * closed


@pytest.mark.parametrize(("since_self_link", "closes"), [(49, True), (50, False)])
def test_a_directory_is_closed_while_it_grows_by_itself(since_self_link, closes):
    """Its last new URL from within came at most half a cap ago."""
    counts = PatternCounts()
    for _ in range(100):
        counts.record_duplicate(SAME_TEXT, fresh=True)
    counts.self_links, counts.since_self_link = 100, since_self_link
    assert counts.can_close(100.0, "/maze/") is closes


@pytest.mark.parametrize("restarted", [False, True])
def test_a_directory_that_has_stopped_growing_stays_open_over_a_restart(restarted):
    """Its queued URLs are as many as there will be; the restart is no sign of growth."""
    judge = NoveltyTracker("j", "a.test")
    for number in range(WATCH_FROM + 120):
        if number < WATCH_FROM + 20:
            judge.linked(f"{ROOT}/maze/p{number}", [f"{ROOT}/maze/q{number}-{link}" for link in range(5)])
        judge.fetched(f"{ROOT}/maze/p{number}", b"one text", 1000, NOW)
        if restarted and number == WATCH_FROM + 95:
            packed, judge = judge.pack(), NoveltyTracker("j", "a.test")
            judge.unpack(packed)
    assert not judge.closed


def test_a_link_within_a_directory_is_no_novelty_for_it():
    """From its first duplicates on; a link to another directory begins its run again."""
    judge = NoveltyTracker("j", "a.test")
    runs = []
    for number in range(WATCH_FROM + 10):
        judge.linked(f"{ROOT}/maze/p{number}", [f"{ROOT}/maze/p{number + 1}"])
        judge.fetched(f"{ROOT}/maze/p{number}", b"one text", 1000, NOW)
        runs += [run for place, _, _, run in judge.patterns() if place == "/maze/"]
    assert runs[-6:] == list(range(runs[-1] - 5, runs[-1] + 1))
    judge.linked(f"{ROOT}/maze/p0", [f"{ROOT}/articles/1"])
    assert {run for place, _, _, run in judge.patterns()} == {0}
