"""Between a parser and the broker: links go to the partitions of their targets, all of them before their page."""

from __future__ import annotations

import random
import struct

import pytest
from nephila.kernel import messages as m
from nephila.kernel.bus.contract import Receipt, all_of
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.layout import layout_of
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import PermanentError
from nephila.kernel.topics import JOB_STATUS, JOBS, OUTCOMES, OUTLINKS, PAGES, RECORDS
from nephila.native import partition_of
from nephila.programs.outlink_router import HOLD_S, LINKS, OutlinkRouter, split

from tests.jobs import crawl_job
from tests.links import outlinks, urls_of

PARTITIONS = 16
LAYOUT = layout_of(PARTITIONS)


class Broker(LocalBus):
    """Takes messages and confirms them when the test says so; a record may be one that cannot travel."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.sent: list[tuple[str, int, object, Receipt]] = []
        self.refuses = False

    def publish(self, topic, partition, message):
        """See `Bus.publish`."""
        if topic in (JOBS, JOB_STATUS):
            return super().publish(topic, partition, message)
        receipt = Receipt()
        self.sent.append((topic.name, partition, message, receipt))
        return receipt

    def publish_after(self, receipts, topic, partition, message):
        """See `Outlet`."""
        if self.refuses:
            raise PermanentError("half a character")
        receipt = Receipt()
        result = all_of(receipts)
        result.add_done_callback(lambda: self.sent.append((topic.name, partition, message, receipt)))
        return receipt

    def confirm(self):
        """All that was sent has arrived."""
        sent, self.sent = self.sent, []
        for _, _, _, receipt in sent:
            receipt.resolve_one()
        return [(topic, partition, message) for topic, partition, message, _ in sent]


class Room:
    """An exchange, its clock and its broker."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = Broker(self.clock)
        self.wanting = False
        self.exchange = OutlinkRouter(self.broker, self.clock, lambda: LAYOUT, lambda: self.wanting)
        self.tell(JOBS, crawl_job("j", scope=Scope(max_depth=-1)))

    def tell(self, topic, message):
        """What all services hear."""
        self.broker.publish(topic, 0, message)

    def links(self, *urls, **fields):
        """Links of a page come out of the parser."""
        return self.exchange.publish(OUTLINKS, 3, outlinks(*urls, **fields))

    def sent(self):
        """What has gone to the broker after the longest wait, and arrived there."""
        self.clock.advance(HOLD_S)
        return self.broker.confirm()


@pytest.fixture
def room():
    """With a job that is known."""
    return Room()


@pytest.mark.parametrize("partitions", [1, 2, 16, 256, 512, 65_536])
def test_every_number_of_partitions_is_read_off_the_top_bits(partitions):
    """The quick way for up to 256 and the other say what `partition_of` says."""
    rng = random.Random(partitions)
    keys = [rng.randbytes(16) for _ in range(200)]
    assert list(layout_of(partitions).of_many(b"".join(keys))) == [partition_of(key, partitions) for key in keys]


@pytest.mark.parametrize("seed", range(5))
def test_a_page_is_cut_without_loss(seed):
    """Every link once, on its own partition, with its text, its flags and its date; whose it is stays said."""
    rng = random.Random(seed)
    urls = [f"http://h{rng.randrange(30)}.test/{n}" for n in range(rng.randrange(2, 60))]
    dates = struct.pack(f"<{len(urls)}d", *map(float, range(len(urls))))
    whole = outlinks(
        *urls,
        anchors=[f"text {n}" for n in range(len(urls))],
        flags=bytes(range(len(urls))),
        priorities=bytes(range(len(urls))),
        lastmods=dates,
        source=m.LinkSource.FEED,
        parent_priority=9,
        context=m.Context(session="s"),
    )
    chosen = sorted(rng.sample(range(len(urls)), rng.randrange(1, len(urls))))
    found = {}
    for partition, part in split(whole, chosen, LAYOUT):
        texts = [0, *memoryview(part.anchor_ends).cast("I")]
        assert (part.parent_key, part.parent_url, part.parent_priority) == (b"p" * 16, "http://parent/", 9)
        assert (part.source, part.context) == (m.LinkSource.FEED, m.Context(session="s"))
        for i, url in enumerate(urls_of(part)):
            key = part.fingerprints[16 * i : 16 * i + 16]
            assert partition_of(key, PARTITIONS) == partition
            number = part.flags[i]
            assert part.anchors[texts[i] : texts[i + 1]].decode() == f"text {number}"
            assert part.priorities[i] == number
            assert struct.unpack_from("<d", part.lastmods, 8 * i) == (float(number),)
            found[number] = url
    assert found == {i: urls[i] for i in chosen}


def test_a_page_that_leads_to_one_partition_is_not_copied():
    """Most do: the message goes as it came."""
    whole = outlinks("http://a.test/1", "http://a.test/2")
    ((partition, part),) = split(whole, range(2), LAYOUT)
    assert part is whole
    assert partition == partition_of(whole.fingerprints, PARTITIONS)
    assert split(whole, (), LAYOUT) == []


def test_links_wait_a_moment_for_others_and_go_together(room):
    """Nothing goes before; then each message to its own partition, in order."""
    room.links("http://a.test/1")
    room.links("http://a.test/2")
    assert room.broker.sent == []
    sent = room.sent()
    assert [urls_of(links) for _, _, links in sent] == [["http://a.test/1"], ["http://a.test/2"]]
    (partition,) = {partition for _, partition, _ in sent}
    assert partition == partition_of(sent[0][2].fingerprints, PARTITIONS)
    room.links("http://a.test/3")
    assert len(room.sent()) == 1


def test_no_link_waits_while_the_fetchers_have_too_little_to_do(room):
    """A crawl of one site stood still for 40 ms on each level of its links."""
    room.links("http://a.test/1")
    room.wanting = True
    room.links("http://b.test/2")
    assert {url for _, _, links in room.broker.confirm() for url in urls_of(links)} == {
        "http://a.test/1",
        "http://b.test/2",
    }
    room.wanting = False
    room.links("http://a.test/3")
    assert room.broker.confirm() == []
    assert len(room.sent()) == 1


def test_many_links_or_long_ones_do_not_wait(room):
    """A full load goes at once, and so does what may be too large: its refusal has to be heard."""
    room.links(*[f"http://a.test/{n}" for n in range(LINKS)])
    room.links(*[f"http://a.test/{n}/{'x' * 8000}" for n in range(9)])
    assert [len(links.fingerprints) // 16 for _, _, links in room.broker.confirm()] == [LINKS, 9]


def test_a_record_goes_when_all_links_of_its_page_have_arrived(room):
    """Also those that went at different times; other pages do not wait for them."""
    room.links("http://a.test/1", "http://b.test/1")
    record = m.Record("j", b"p" * 16)
    receipt = room.exchange.publish(RECORDS, 5, record)
    other = m.Record("j", b"q" * 16)
    room.exchange.publish(RECORDS, 6, other)
    assert [message for _, _, message, _ in room.broker.sent] == [other]
    room.broker.confirm()
    room.clock.advance(HOLD_S)
    assert {topic for topic, _, _, _ in room.broker.sent} == {"outlinks"}
    room.broker.confirm()
    assert room.broker.confirm() == [("records", 5, record)]
    assert receipt.done


def test_a_record_that_cannot_travel_is_refused_at_once_and_its_substitute_waits_too(room):
    """The parser hears of it while it has the page in hand."""
    room.links("http://a.test/1")
    room.broker.refuses = True
    with pytest.raises(PermanentError):
        room.exchange.publish(RECORDS, 5, m.Record("j", b"p" * 16))
    room.broker.refuses = False
    room.exchange.publish(RECORDS, 5, m.Record("j", b"p" * 16, outcome=m.Outcome.FAILED))
    assert room.broker.sent == []
    assert [topic for topic, _, _ in room.sent()] == ["outlinks"]
    assert [topic for topic, _, _ in room.broker.confirm()] == ["records"]


def test_what_was_told_is_not_told_again_until_the_scope_grows(room):
    """Or the job is another."""
    result = room.links("http://a.test/1")
    assert not result.done
    assert len(room.sent()) == 1
    assert result.done
    assert room.links("http://a.test/1").done
    assert room.sent() == []
    room.tell(JOB_STATUS, m.JobStatus("j", stored=4))
    room.links("http://a.test/1")
    assert room.sent() == []
    for changed in ((JOB_STATUS, m.JobStatus("j", anchors=2)), (JOBS, crawl_job("j", generation=2))):
        room.tell(*changed)
        room.links("http://a.test/1")
        assert len(room.sent()) == 1


def test_links_of_a_page_that_is_fetched_once_more_are_sent_again(room):
    """Their first message may be lost; those of the next page are filtered as before."""
    pages = []
    room.exchange.subscribe(PAGES, "parser", lambda delivery: pages.append(delivery.message), credits=5)
    room.links("http://a.test/1")
    assert len(room.sent()) == 1
    super(Broker, room.broker).publish(PAGES, 3, m.Page("j", b"p" * 16, attempt=2))
    room.links("http://a.test/1")
    assert [urls_of(links) for _, _, links in room.sent()] == [["http://a.test/1"]]
    room.exchange.publish(RECORDS, 5, m.Record("j", b"p" * 16))
    room.sent()
    room.links("http://a.test/1")
    assert room.sent() == []
    assert len(pages) == 1


def test_links_that_cannot_be_sent_are_forgotten(room, monkeypatch):
    """Another page with the same link sends it."""

    def refuse(*words):
        raise PermanentError("too large")

    long = f"http://a.test/{'x' * 70_000}"
    with monkeypatch.context() as patch:
        patch.setattr(room.broker, "publish", refuse)
        with pytest.raises(PermanentError):
            room.links("http://a.test/1", long)
    room.links("http://a.test/1")
    assert [urls_of(links) for _, _, links in room.sent()] == [["http://a.test/1"]]


def test_all_else_goes_through(room):
    """What a service says and hears beside links and records is the bus' own."""
    room.exchange.publish(OUTCOMES, 1, m.FetchOutcome("j"))
    assert [(topic, partition) for topic, partition, _ in room.broker.confirm()] == [("outcomes", 1)]
    heard = []
    room.exchange.subscribe(JOBS, "parser", lambda delivery: heard.append(delivery.message), credits=5)
    room.tell(JOBS, crawl_job("other"))
    assert [job.uid for job in heard] == ["other"]
    assert room.exchange.unacked == 1


def test_a_page_that_cannot_be_parsed_becomes_a_dead_letter():
    """The parser publishes it through the same bus."""
    room = Room()
    room.exchange.dead_letter(PAGES, "parser", 3, m.Page("j", b"k" * 16, "http://a.test/"), ValueError("no"), 3)
    assert [(topic, message.service) for topic, _, message in room.broker.confirm()] == [("dead", "parser")]
