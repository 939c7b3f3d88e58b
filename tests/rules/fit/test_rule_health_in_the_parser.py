"""Counts, verdicts and marks on their way through parsers: who tells what and when, and what becomes of a page."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from nephila.kernel import messages as m
from nephila.kernel.topics import RULE_STATS, RULE_VERDICTS, RULES
from nephila_rules.fit.collector import FLUSH_PAGES, FLUSH_S
from nephila_rules.fit.counts import MATCH
from nephila_rules.fit.health import ITEMS, LINKS
from nephila_rules.fit.judge import SAVE_PAGES, RuleJudge

from tests.jobs import crawl_job
from tests.parser.parser_room import Room, with_links
from tests.rules.execution.rule_rig import rule

SPEC = """
match: {url: '^http://a'}
fields:
  name: {css: h1, required: true}
  price: {css: .price, type: price, currency: EUR}
  rating: {css: .stars, type: number, default: '0'}
outlinks: [a.next]
"""
OWN = with_links("http://a.test/own", title="T", text=b"the page's own text")
LEARN = 60


def shop(number: int, name: str = "h1", price: str = "price", stars: str = "stars", link: str = "next") -> bytes:
    """A product; names of classes and elements as they are by now."""
    return (
        f"<{name}>Kettle {number}</{name}><p class={price}>{number}.99 €</p><p class={stars}>{number % 5}</p>"
        f"<a class={link} href=/p/{number}>next</a>"
    ).encode()


class Shop:
    """A parser on a bus with a judge, and all that the two say to each other."""

    def __init__(self, *, judged: bool = True) -> None:
        self.room = Room(OWN)
        self.stats: list[m.RuleStats] = []
        self.verdicts: list[m.RuleVerdict] = []
        bus = self.room.bus
        bus.subscribe(RULE_STATS, "test", self._on_stats, credits=1000)
        bus.subscribe(RULE_VERDICTS, "test", self._on_verdict, credits=1000)
        self.judge = RuleJudge(bus, self.room.clock)
        if judged:
            self.judge.start()

    def _on_stats(self, delivery: Any) -> None:
        self.stats.append(delivery.message)
        delivery.ack()

    def _on_verdict(self, delivery: Any) -> None:
        self.verdicts.append(delivery.message)
        delivery.ack()

    async def start(self, spec: str = SPEC) -> Shop:
        """Tell the rule and its job."""
        await self.room.start(crawl_job(uid="j", rules=["r"]))
        self.tell(spec)
        return self

    def tell(self, spec: str) -> None:
        """The rule as it is now."""
        self.room.bus.publish(RULES, 0, m.ParseRule("r", rule(spec).text, rule(spec).rule.version))

    def page(self, body: bytes, **fields: Any) -> tuple[m.Record, dict[str, str]]:
        """Record and metadata of a page."""
        out = self.room.send(body, **{"url": "http://a.test/p", **fields})
        record = out[-1]
        assert isinstance(record, m.Record)
        return record, json.loads(record.meta)

    def learn(self, pages: int = LEARN, **kind: str) -> None:
        """Have pages read."""
        for number in range(pages):
            self.page(shop(number, **kind))

    def until_marked(self, **kind: str) -> int:
        """Have changed pages read; the number of the first that is marked."""
        for number in range(1, 100):
            if "degraded" in self.page(shop(number, **kind))[1]:
                return number
        raise AssertionError("no page was marked")


async def test_counts_go_out_every_five_seconds_or_pages() -> None:
    """What comes first; with nothing to tell there is no timer."""
    place = await Shop(judged=False).start()
    place.learn(FLUSH_PAGES - 1)
    assert place.stats == []
    place.room.clock.advance(FLUSH_S - 0.1)
    assert place.stats == []
    place.room.clock.advance(0.1)
    assert [one.pages for one in place.stats] == [FLUSH_PAGES - 1]
    assert place.room.clock.next_due is None
    place.learn(2 * FLUSH_PAGES)
    assert [one.pages for one in place.stats[1:]] == [FLUSH_PAGES, FLUSH_PAGES]
    await place.room.parser.drain(1.0)
    assert len(place.stats) == 3
    place.learn(1)
    await place.room.parser.drain(1.0)
    assert place.stats[-1].pages == 1


async def test_counts_say_what_became_of_every_field() -> None:
    """Filled, refused and defaulted values, items and links; a page of an error counts for nothing."""
    place = await Shop(judged=False).start()
    place.page(shop(7))
    place.page(b"<h1>K</h1><p class=price>ask us</p>")
    place.page(b"gone", status=404)
    await place.room.parser.drain(1.0)
    (stats,) = place.stats
    assert (stats.rule, stats.version, stats.pages) == ("r", rule(SPEC).rule.version, 2)
    found = {one.field: one for one in stats.fields}
    assert list(found) == [ITEMS, LINKS, "name", "price", "rating"]
    price = found["price"]
    assert (price.pages, price.filled, price.refused, price.valued, price.digits) == (2, 1, 1, 1, 1)
    # A default is no sign that the field is there.
    assert (found["rating"].filled, found["rating"].valued) == (1, 1)
    assert (found[ITEMS].filled, found[ITEMS].lengths) == (2, [0, 2])
    assert found[LINKS].filled == 1
    assert (found["name"].length, found["name"].lengths) == (len("Kettle 7") + 1, [0, 1, 0, 0, 1])


async def test_a_field_that_is_gone_is_marked_and_its_items_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """The row keeps title and text, says what is wrong, and the log says it once with the remedy."""
    place = await Shop().start()
    place.learn()
    with caplog.at_level(logging.WARNING):
        assert place.until_marked(price="amount") <= 50
    (line,) = [one.getMessage() for one in caplog.records]
    assert line.startswith(
        f"rule r (version {rule(SPEC).rule.version}) is degraded: price: found on 100% of pages, now"
    )
    assert "nephila rules try URL --rule r" in line
    record, meta = place.page(shop(1, price="amount"))
    assert (record.rule, record.items, record.title, record.text) == ("r", [], "T", b"the page's own text")
    assert meta["degraded"].startswith("price: found on 100% of pages, now on 0%")
    assert meta["items_left_out"] == "1"
    # What still looks right is kept, and marked all the same.
    record, meta = place.page(shop(1))
    assert json.loads(record.items[0])["name"] == "Kettle 1"
    assert "degraded" in meta
    assert "items_left_out" not in meta


async def test_a_default_does_not_hide_that_a_field_is_gone() -> None:
    """Its items look whole, and are left out."""
    place = await Shop().start()
    place.learn()
    assert place.until_marked(stars="score") <= 50
    assert place.page(shop(1, stars="score"))[0].items == []


async def test_links_are_those_of_the_page_when_the_rule_finds_none() -> None:
    """A crawl goes on when what led it is gone."""
    place = await Shop().start()
    place.learn()
    assert bytes(place.room.send(shop(1), url="http://a.test/p")[0].urls) == b"http://a.test/p/1"  # type: ignore[union-attr]
    assert place.until_marked(link="onwards") <= 50
    assert bytes(place.room.send(shop(1, link="onwards"), url="http://a.test/p")[0].urls) == b"http://a.test/own"  # type: ignore[union-attr]


@pytest.mark.parametrize("outlinks", ["[]", "[a.next]"])
async def test_links_stay_those_of_the_rule_when_something_else_is_wrong(outlinks: str) -> None:
    """A field is gone; that a leaf has none of the rule's links, or no page has any, is no sign that they are."""
    place = await Shop().start(SPEC.replace("[a.next]", outlinks))
    place.learn(link="next")
    assert place.until_marked(price="amount") <= 50
    leaf = place.room.send(shop(1, price="amount", link="other"), url="http://a.test/p")
    assert [type(one) for one in leaf] == [m.Record]


async def test_second_pages_are_watched_and_told_as_well() -> None:
    """Under their own name, in what a program says at its end, until their rule is deleted."""
    place = await Shop().start(
        "match: {url: '^http://a.*/p$'}\nfields: {name: {css: h1}}\n"
        "followUps: {more: {css: a.next, url: '/more$', fields: {price: {css: .price, type: price}}}}"
    )
    for number in range(LEARN):
        place.page(shop(number), url="http://a.test/more")
    for number in range(50):
        place.page(shop(number, price="amount"), url="http://a.test/more")
    assert [(one.rule, one.degraded) for one in place.judge.verdicts()] == [("r/more", True)]
    place.room.bus.publish(RULES, 0, m.ParseRule("r", deleted=True))
    assert place.judge.verdicts() == []
    assert place.room.parser.rules.health.verdicts == {}


async def test_pages_that_lack_what_a_rule_asks_of_them_are_marked() -> None:
    """A rule that is not for a page any more would otherwise end without a word."""
    place = await Shop().start(SPEC.replace("'^http://a'}", "'^http://a', content: {css: .price}}"))
    place.learn()
    assert place.until_marked(price="amount") <= 50
    record, meta = place.page(shop(1, price="amount"))
    assert record.rule == ""
    assert meta["degraded"].startswith("content that the rule matches: found on 100% of pages")
    assert place.verdicts[-1].findings[0].field == MATCH


async def test_it_recovers_by_itself() -> None:
    """When the site is as it was, and when the rule is mended; marks end with that."""
    place = await Shop().start()
    place.learn()
    place.until_marked(price="amount")
    place.learn(30)
    assert "degraded" not in place.page(shop(1))[1]
    place.learn()
    place.until_marked(price="amount")
    place.tell(SPEC.replace(".price", ".amount"))
    record, meta = place.page(shop(1, price="amount"))
    assert "degraded" not in meta
    assert len(record.items) == 1
    place.learn(LEARN, price="amount")
    assert [one.degraded for one in place.verdicts][-1] is False
    assert place.judge.alarms == 2


async def test_a_rule_in_the_child_process_is_watched_as_well() -> None:
    """What it counts comes with the answer."""
    place = await Shop(judged=False).start("match: {url: '^http://a'}\nfields: {t: {xpath: //h1}}")
    place.room.send(b"<h1>One</h1>", url="http://a.test/p")
    await place.room.parser.drain(60.0)
    await place.room.parser.close()
    (stats,) = place.stats
    assert [(one.field, one.filled) for one in stats.fields] == [(ITEMS, 1), ("t", 1)]


async def test_who_comes_to_own_a_rule_goes_on_where_the_other_was() -> None:
    """From the newest verdict, which all members read; what another one said meanwhile is newer than one's own."""
    place = await Shop().start()
    place.learn(SAVE_PAGES + FLUSH_PAGES)
    saved = place.verdicts[-1]
    assert saved.pages == SAVE_PAGES + FLUSH_PAGES
    assert not saved.degraded
    other = await Shop().start()
    other.room.bus.publish(RULE_VERDICTS, 0, saved)
    assert other.until_marked(price="amount") <= 50
    place.room.bus.publish(RULE_VERDICTS, 0, other.verdicts[-1])
    assert place.judge.rules == {}
    assert "degraded" in place.page(shop(1, price="amount"))[1]
    place.learn(FLUSH_PAGES, price="amount")
    assert place.judge.rules["r"].findings()


async def test_a_state_that_cannot_be_read_is_learned_anew() -> None:
    """Of another release, or damaged: told once, and no page is lost for it."""
    place = await Shop().start()
    place.room.bus.publish(RULE_VERDICTS, 0, m.RuleVerdict("r", state=b"\xc1", judge="x", pages=5))
    place.learn(10)
    assert place.judge.rules["r"].pages == 10


async def test_a_rule_that_is_deleted_is_forgotten() -> None:
    """With what was said of it."""
    place = await Shop().start()
    place.learn(10)
    assert [one.rule for one in place.judge.verdicts()] == ["r"]
    place.room.bus.publish(RULES, 0, m.ParseRule("r", deleted=True))
    assert place.judge.verdicts() == []
    assert place.verdicts[-1].deleted
    assert place.room.parser.rules.health.verdicts == {}
