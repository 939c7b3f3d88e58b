"""Links get a relevance for the job's keywords, from their anchor, their URL and their page; best-first finds by it."""

from __future__ import annotations

import heapq
import itertools
import random
import struct

import pytest
from nephila.kernel.messages import Outlinks
from nephila.kernel.pages.link_position import IN_MAIN, IN_NAV
from nephila.parser.links.relevance import MAX_HITS, Relevance
from nephila.scheduler.jobs.strategies import STRATEGIES, inherited

from tests.jobs import crawl_job
from tests.parser.parser_room import Room, with_links


def list_messages(*links: tuple[str, str]) -> Outlinks:
    """Packed links of (URL, anchor)."""

    def pack(texts: list[str]) -> tuple[bytes, bytes]:
        raw = [text.encode() for text in texts]
        return b"".join(raw), struct.pack(f"<{len(raw)}I", *itertools.accumulate(map(len, raw)))

    urls, url_ends = pack([url for url, _ in links])
    anchors, anchor_ends = pack([anchor for _, anchor in links])
    return Outlinks(
        fingerprints=bytes(16 * len(links)),
        urls=urls,
        url_ends=url_ends,
        anchors=anchors,
        anchor_ends=anchor_ends,
    )


def priority(keyword: str, anchor: str = "", url: str = "http://a.test/", title: str = "", text: str = "") -> int:
    """Of a link that stands between two that are silent."""
    links = list_messages(("http://a.test/x", "more"), (url, anchor), ("http://a.test/y", "less"))
    return Relevance([keyword]).priorities(title, text.encode(), links)[1]


def test_anchor_counts_most_then_url_then_page():
    """Each alone is worth less than the one before it; together they are worth more than any."""
    anchor = priority("solar", "Solar farms")
    url = priority("solar", url="http://a.test/energy/solar.html")
    page = priority("solar", title="Solar energy", text="solar " * 50)
    assert 255 > anchor > url > page > priority("solar") == 0
    together = priority("solar", "Solar", "http://a.test/solar", "Solar energy", "solar " * 50)
    assert 255 >= together > anchor


def test_links_without_a_keyword_have_what_their_page_has():
    """The neighbours of a relevant link are not relevant for that; those on a relevant page all are, a little."""
    links = list_messages(
        ("http://a.test/1", "imprint"), ("http://a.test/2", "wind power"), ("http://a.test/3", "contact")
    )
    silent = Relevance(["wind power"]).priorities("", b"", links)
    assert silent[0] == silent[2] == 0 < silent[1]
    near = Relevance(["wind power"]).priorities("Wind power", b"All about wind power", links)
    assert 0 < near[0] == near[2] < near[1]


def test_links_of_menus_have_less_of_their_page():
    """What stands in navigation alone inherits less than what stands in the text; what nobody placed inherits in full,
    and a keyword of its own counts the same everywhere."""
    texts = [("http://a.test/1", "more"), ("http://a.test/2", "more"), ("http://a.test/3", "solar")]
    links = list_messages(*texts, *texts[:2])
    links.flags = bytes((IN_MAIN, IN_NAV, IN_NAV, IN_MAIN | IN_NAV | 1, 0))
    inside, menu, named, both, unknown = Relevance(["solar"]).priorities("Solar", b"solar", links)
    assert named > inside == both == unknown > menu > 0
    links.flags = b""
    assert len(set(Relevance(["solar"]).priorities("", b"solar", links)[:2])) == 1


def test_several_keywords_say_more_than_one():
    """Two in an anchor beat one; a page with two different ones beats a page with one twice."""
    relevance = Relevance(["solar", "wind power"])
    one, two = relevance.priorities(
        "", b"", list_messages(("http://a.test/1", "solar"), ("http://a.test/2", "Solar, wind power"))
    )
    assert two > one
    assert relevance.of_page("", b"solar and wind power") > relevance.of_page("", b"solar and solar")


@pytest.mark.parametrize(
    ("keyword", "anchor", "found"),
    [
        ("solar", "SOLAR!", True),
        ("solar", "solars", True),
        ("solar", "solarium", False),
        ("solar", "insolar", False),
        ("art", "party", False),
        ("art", "Art", True),
        ("wind power", "Wind Power plants", True),
        ("wind power", "wind  power", False),
        ("энергия", "Энергия солнца", True),
        ("энергия", "ЭНЕРГИЯ", True),
        ("энергия", "биоэнергия", False),
        ("café", "CAFÉ noir", True),
        ("太阳能", "关于太阳能的新闻", True),
        ("太阳能", "关于月亮的新闻", False),
        ("solar", "关于solar的新闻", True),
        ("solar", "“solar” 2026", True),
        ("พลังงาน", "โรงไฟฟ้าพลังงานแสงอาทิตย์", True),
    ],
)
def test_words_are_found_as_their_script_writes_them(keyword, anchor, found):
    """Case does not matter; words have a beginning and nearly their end; unspaced scripts have neither."""
    assert (priority(keyword, anchor) > 0) is found


@pytest.mark.parametrize(
    ("keyword", "url", "found"),
    [
        ("solar", "http://a.test/energy/solar", True),
        ("solar", "http://a.test/solar-farms.html", True),
        ("solar", "http://a.test/solarium", False),
        ("wind power", "http://a.test/wind-power/1", True),
        ("wind power", "http://a.test/?q=Wind+Power", True),
        ("wind power", "http://a.test/windpower", True),
        ("wind power", "http://a.test/wind/power", False),
        ("太阳能", "http://a.test/wiki/%E5%A4%AA%E9%98%B3%E8%83%BD", True),
        ("энергия", "http://a.test/wiki/%D1%8D%D0%BD%D0%B5%D1%80%D0%B3%D0%B8%D1%8F", True),
    ],
)
def test_words_are_found_as_urls_write_them(keyword, url, found):
    """With hyphens, underscores, plus signs, joined, percent-escaped; at the end of a URL too."""
    assert (priority(keyword, url=url) > 0) is found


def test_neighbouring_texts_are_not_read_as_one():
    """Anchors are packed without gaps: "so" and "lar" are no "solar", and "in" before "solar" is no "insolar"."""
    links = list_messages(
        *(("http://a.test/", anchor) for anchor in ("so", "lar", "in", "solar", "ium", "wind", " power"))
    )
    assert [p > 0 for p in Relevance(["solar", "wind power"]).priorities("", b"", links)] == [
        False,
        False,
        False,
        True,
        False,
        False,
        False,
    ]


def test_hostile_pages_and_keywords_are_bounded():
    """A page that is nothing but the keyword is read to a point; odd keywords and empty pages do no harm."""
    links = list_messages(*(("http://a.test/solar/" * 5, "solar " * 20) for _ in range(200)))
    priorities = Relevance(["solar"]).priorities("solar " * 9999, b"solar " * 99_999, links)
    assert len(priorities) == 200
    assert min(priorities) > 0
    many = list_messages(*(("http://a.test/", "solar") for _ in range(MAX_HITS + 500)))
    assert sum(p > 0 for p in Relevance(["solar"]).priorities("", b"", many)) == MAX_HITS
    odd = Relevance(["", "  ", "\ud800", "%", "solar", "solar", *map(str, range(500))])
    assert len(odd.priorities("\ud800", b"\xff\xfe\x80", list_messages(("http://a.test/", "x")))) == 1
    assert odd.priorities("", b"", Outlinks()) == b""


async def test_only_best_first_jobs_with_keywords_are_judged():
    """The parser fills in priorities for them, one per link, and for nobody else; a changed job changes it."""
    found = with_links("http://a.test/solar", "http://a.test/moon", title="News", text=b"of the day")

    def judged(room: Room) -> bytes:
        links = room.send()[0]
        assert isinstance(links, Outlinks)
        return links.priorities

    best = crawl_job("j", "j", 1, strategy="best-first", keywords=["solar"])
    room = await Room(found).start(best)
    priorities = judged(room)
    assert len(priorities) == 2
    assert priorities[0] > priorities[1] == 0
    for job in (
        crawl_job("j", "j", 2, strategy="best-first"),
        crawl_job("j", "j", 3, keywords=["solar"]),
    ):
        assert judged(await Room(found).start(job)) == b""
        assert judged(await Room(found).start(best, job)) == b""


def topical_web(pages: int, rng: random.Random) -> dict[int, tuple[str, list[int]]]:
    """Text and links of pages of ten topics: two of three links stay within the topic, text and anchors tell it most of
    the time, and a few pages of each topic say nothing about it."""
    web = {}
    for n in range(pages):
        topic = n % 10
        near = [rng.randrange(pages // 10) * 10 + topic for _ in range(8)]
        far = [rng.randrange(pages) for _ in range(4)]
        text = f"an article on topic{topic}x " * 4 if rng.random() < 0.8 else "an article"
        web[n] = (text, near + far)
    return web


def harvest(
    web: dict[int, tuple[str, list[int]]], name: str, limit: int, rng: random.Random, said: float = 0.4, main: int = 0
) -> float:
    """Share of pages of topic 3 among the first `limit` fetched from page 0. `said`: how many anchors name the topic;
    `main`: the first so many links are marked as the text's, the others as the menu's."""
    row, relevance, arrival = STRATEGIES[name], Relevance(["topic3x"]), itertools.count()
    queue, seen, fetched = [(1, 0, 0, 0)], {0}, []
    while queue and len(fetched) < limit:
        _, _, page, own = heapq.heappop(queue)
        fetched.append(page)
        text, targets = web[page]
        anchors = [f"topic{t % 10}x" if rng.random() < said else "more" for t in targets]
        links = list_messages(*((f"http://a.test/{t}", anchor) for t, anchor in zip(targets, anchors, strict=True)))
        links.flags = bytes((IN_MAIN if at < main else IN_NAV) if main else 0 for at in range(len(targets)))
        priorities = relevance.priorities("", text.encode(), links)
        for target, priority, flag in zip(targets, priorities, links.flags, strict=True):
            if target not in seen:
                seen.add(target)
                priority = inherited(priority, own, flag)
                heapq.heappush(queue, (row.order(0, priority), next(arrival), target, priority))
    return sum(page % 10 == 3 for page in fetched) / len(fetched)


def test_best_first_finds_clearly_more_relevant_pages():
    """Where topics keep to themselves, the first 200 pages hold at least three times as many of the subject."""
    web = topical_web(5000, random.Random(1))
    best, breadth = (harvest(web, name, 200, random.Random(2)) for name in ("best-first", "bfs"))
    print(f"harvest rate of the first 200 pages: best-first {best:.0%}, breadth-first {breadth:.0%}")
    assert best > 3 * breadth


def with_menus(pages: int, menu: int, rng: random.Random) -> dict[int, tuple[str, list[int]]]:
    """As `topical_web`, of fifty topics, and every page has a menu that leads anywhere."""
    web = {}
    for n in range(pages):
        near = [rng.randrange(pages // 50) * 50 + n % 50 for _ in range(8)]
        text = f"an article on topic{n % 50}x " * 4 if rng.random() < 0.8 else "an article"
        web[n] = (text, near + [rng.randrange(pages) for _ in range(4 + menu)])
    return web


@pytest.mark.parametrize("said", [0.4, 0.1])
def test_where_links_stand_helps_best_first(said: float):
    """Among pages with menus it finds more of the subject when it is told which links stand in the text, above all
    where anchors hardly ever say what they lead to."""
    result = untold = 0.0
    for seed in range(4):
        web = with_menus(5000, 20, random.Random(seed))
        result += harvest(web, "best-first", 200, random.Random(seed), said, main=12) / 4
        untold += harvest(web, "best-first", 200, random.Random(seed), said) / 4
    print(f"harvest with {said:.0%} of the anchors telling: {untold:.1%}, places told {result:.1%}")
    assert result >= untold
