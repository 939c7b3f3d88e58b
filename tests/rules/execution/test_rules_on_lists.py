"""A rule that matches a feed or sitemap gives items; a list that rules cannot read says why."""

from __future__ import annotations

import gzip
import json

import msgspec
from nephila.kernel import messages as m
from nephila.kernel.topics import RULES

from tests.jobs import crawl_job
from tests.parser.parser_room import Room
from tests.rules.execution.rule_rig import rule
from tests.waits import until

FEED = (
    b"<rss version='2.0'><channel><title>F</title><item><title>One</title><link>http://a/1</link></item>"
    b"<item><title>Two</title><link>http://a/2</link></item></channel></rss>"
)
RULE = rule("match: {url: '^http://a'}\neach: {css: item}\nfields: {title: {css: title}, link: {css: link}}")


async def _record_of(body: bytes, content_type: str) -> m.Record:
    room = Room()
    await room.start(crawl_job(uid="j", rules=["r"]))
    room.bus.publish(RULES, 0, m.ParseRule("r", RULE.text, RULE.rule.version))
    room.send(body, url="http://a/feed.xml", content_type=content_type)
    room.clock.run_due()
    await until(lambda: any(isinstance(one, m.Record) for one in room.log))
    await room.parser.close()
    return next(one for one in room.log if isinstance(one, m.Record))


async def test_a_feed_gives_items() -> None:
    record = await _record_of(FEED, "application/rss+xml")
    assert [msgspec.json.decode(item)["link"] for item in record.items] == ["http://a/1", "http://a/2"]
    assert json.loads(record.meta)["list"]


async def test_a_compressed_list_says_why_it_has_none() -> None:
    record = await _record_of(gzip.compress(FEED), "application/gzip")
    assert not record.items
    assert "compressed" in json.loads(record.meta)["rule_problems"]
