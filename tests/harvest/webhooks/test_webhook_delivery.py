"""Deliveries on a clock of the test: order, faults of the receiver, dead letters, replays, restarts."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.runtime.secret_files import read_secret
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_harvest.change_feed import changes
from nephila_harvest.send_webhooks import health_application
from nephila_harvest.webhooks.config import Webhook, WebhooksConfig
from nephila_harvest.webhooks.message import signature
from nephila_harvest.webhooks.sender import WebhookSender
from nephila_harvest.webhooks.store import WebhookStore
from nephila_harvest.webhooks.transport import DeliveryAnswer

from tests.control.http.asgi import AsgiClient
from tests.storage.storage_rig import record


def secret_of(key):
    """The text of a key."""
    return "whsec_" + base64.b64encode(key).decode()


KEY = bytes(range(32))
SECRET = secret_of(KEY)
DAY_S = 86_400.0


class Receiver:
    """Accepts deliveries, or answers what `answers` says; checks every signature."""

    def __init__(self, clock, answers=lambda number: 200):
        self.clock = clock
        self.key = KEY
        self.answers = answers
        self.attempts = []
        self.accepted = []

    async def post(self, url, headers, body):
        """See `WebhookTransport`."""
        id, at = headers["webhook-id"], int(headers["webhook-timestamp"])
        assert headers["webhook-signature"] == signature(self.key, id, at, body)
        assert at == int(self.clock.now())
        assert json.loads(body)["data"]["id"] == id
        self.attempts.append((self.clock.now(), id))
        answer = self.answers(len(self.attempts))
        answer = answer if isinstance(answer, DeliveryAnswer) else DeliveryAnswer(answer)
        if 200 <= answer.status < 300:
            self.accepted.append((url, id))
        return answer

    async def close(self):
        """See `WebhookTransport`."""

    @property
    def ids(self):
        """Ids in the order in which they were accepted."""
        return [id for _, id in self.accepted]


@pytest.fixture
def place(database_url, tmp_path):
    """A directory, and the source of its rows."""
    (tmp_path / "o").mkdir()
    return tmp_path / "o", database_url


def source_of(place):
    """Where rows and positions are."""
    return place[1] or place[0]


def write(place, *numbers, fetch_no=1, **fields):
    """Changes of new pages."""
    one = Writer(StorageConfig(directory=place[0], store=place[1], fsync=False), ManualClock())
    one.open()
    records = [record(number, fetch_no, **fields) for number in numbers]
    one.commit(records, [None] * len(records), [])
    one.close()


def all_ids(place):
    """The ids of the table, in order."""
    return [row.change.id for row in changes(source_of(place)).rows]


def hook(name="one", **fields):
    """A destination that begins with the first change."""
    values = {"url": f"https://{name}.test/hook", "secret": SECRET, "since": "first", **fields}
    return Webhook(name=name, **values)


@asynccontextmanager
async def sending(place, receiver, *webhooks, **settings):
    """A started sender."""
    config = WebhooksConfig(webhooks=webhooks or (hook(),), **settings)
    source = source_of(place)
    store = WebhookStore(source)
    one = WebhookSender(config, source, store, receiver, receiver.clock, jitter=lambda: 0.0, in_thread=inline)
    await one.start()
    try:
        yield one
    finally:
        await one.close()


async def inline(work, *arguments):
    """Runs in the loop: threads would make the order of calls random."""
    return work(*arguments)


async def until(clock, condition):
    """Let tasks run, and move the clock to the next timer whenever a task waits for one."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0)
            due = clock.next_due
            if due is not None:
                clock.advance(max(due - clock.monotonic(), 0.0))


async def until_settled(clock, sender):
    """Every change is stored as delivered."""
    while not await sender.idle():
        await until(clock, lambda: True)


async def test_every_change_arrives_once_in_order_at_a_receiver_that_fails_one_call_in_three(place):
    """By its id; each destination has an order of its own."""
    clock = ManualClock()
    write(place, *range(40))
    receiver = Receiver(clock, lambda number: 500 if number % 3 == 0 else 204)
    async with sending(place, receiver, hook("one"), hook("two")) as sender:
        await until(clock, lambda: len(receiver.accepted) >= 80)
        write(place, 1, fetch_no=2, text=b"other", text_hash=b"12345678")
        await until(clock, lambda: len(receiver.accepted) >= 82)
        await until_settled(clock, sender)
    for name in ("one", "two"):
        assert [id for url, id in receiver.accepted if name in url] == all_ids(place)
    assert sender.dead == {}


async def test_a_rotated_secret_signs_the_next_delivery(place, tmp_path):
    """Without a restart; a file that holds no secret for a moment changes nothing."""
    clock = ManualClock()
    write(place, 0)
    receiver = Receiver(clock)
    receiver.key = bytes(range(2, 34))
    file = tmp_path / "secret"
    file.write_text(secret_of(receiver.key))
    async with sending(place, receiver, hook(secret=read_secret(str(file), "secret_file"))) as sender:
        await until(clock, lambda: len(receiver.accepted) == 1)
        file.write_text("whsec_")
        write(place, 1)
        await until(clock, lambda: len(receiver.accepted) == 2)
        receiver.key = bytes(range(1, 33))
        file.write_text(secret_of(receiver.key))
        write(place, 2)
        await until(clock, lambda: len(receiver.accepted) == 3)
        await until_settled(clock, sender)


async def test_a_day_of_errors_costs_one_warning_and_bounded_memory(place, caplog):
    """Deliveries continue afterwards, in order, none lost; pauses grow to 15 minutes."""
    clock = ManualClock()
    write(place, *range(250))
    down_until = clock.now() + DAY_S
    receiver = Receiver(clock, lambda number: 500 if clock.now() < down_until else 200)
    with caplog.at_level(logging.WARNING):
        async with sending(place, receiver) as sender:
            await until(clock, lambda: clock.now() > down_until - 1000)
            assert len(receiver.attempts) < 110
            assert len({id for _, id in receiver.attempts}) == 1
            assert [line for line in caplog.messages if "status 500" in line] == caplog.messages
            assert len(caplog.messages) == 1
            assert sender.failing["one"] > DAY_S - 2000
            await until(clock, lambda: len(receiver.accepted) == 250)
            assert sender.failing["one"] == 0
    assert receiver.ids == all_ids(place)
    times = [at for at, _ in receiver.attempts[:12]]
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses[:4] == pytest.approx([5, 10, 20, 40])
    assert pauses[-1] == pytest.approx(900)
    assert "accepts deliveries again" in caplog.messages[-1]


async def test_a_change_is_a_dead_letter_after_three_days_and_can_be_replayed(place):
    """The changes behind it are delivered; the dead letter keeps its content and its id."""
    clock = ManualClock()
    write(place, 1, 2, 3)
    first, *others = all_ids(place)
    receiver = Receiver(clock)
    receiver.answers = lambda number: (
        DeliveryAnswer(0, "no answer in 15 s") if receiver.attempts[-1][1] == first else 200
    )
    async with sending(place, receiver) as sender:
        store = sender.store
        await until(clock, lambda: len(receiver.accepted) == 2)
        assert receiver.ids == others
        (dead,) = store.dead("one")
        assert (dead.row.change.id, dead.error) == (first, "no answer in 15 s")
        assert sender.dead == {"one": 1}
        assert 3 * DAY_S <= clock.now() - receiver.attempts[0][0] < 3 * DAY_S + 2000
        receiver.answers = lambda number: 200
        assert store.replay_dead("one") == 1
        await until(clock, lambda: len(receiver.accepted) == 3)
        assert receiver.ids[-1] == first
        await until(clock, lambda: not store.dead("one"))


async def test_each_replay_of_a_dead_letter_is_one_attempt_and_is_counted(place):
    """Refused again it stays, with the new answer, and waits for the next replay; accepted it is one delivery more."""
    clock = ManualClock()
    write(place, 1, 2)
    first, second = all_ids(place)
    receiver = Receiver(clock)
    receiver.answers = lambda number: 400 if receiver.attempts[-1][1] == first else 200
    async with sending(place, receiver) as sender:
        await until(clock, lambda: receiver.ids == [second] and sender.delivered["one"] == 1)
        failed, attempts = sender.failed["one"], len(receiver.attempts)
        receiver.answers = lambda number: 410
        assert sender.store.replay_dead("one") == 1
        await until(clock, lambda: not sender.store.dead("one", replay=True))
        assert [(one.row.change.id, one.error) for one in sender.store.dead("one")] == [(first, "status 410")]
        assert (len(receiver.attempts), sender.failed["one"]) == (attempts + 1, failed + 1)
        receiver.answers = lambda number: 200
        assert sender.store.replay_dead("one") == 1
        await until(clock, lambda: not sender.store.dead("one"))
        assert receiver.ids == [second, first]
        assert (sender.delivered["one"], sender.failed["one"]) == (2, failed + 1)


async def test_a_refused_change_does_not_stop_the_others(place):
    """A receiver that answers 400 to one change gets it eight times, then the next one."""
    clock = ManualClock()
    write(place, 1, 2, 3)
    second = all_ids(place)[1]
    receiver = Receiver(clock, lambda number: 400 if receiver.attempts[-1][1] == second else 200)
    async with sending(place, receiver) as sender:
        await until(clock, lambda: len(receiver.accepted) == 2)
        assert [id for _, id in receiver.attempts].count(second) == 8
        assert [one.row.change.id for one in sender.store.dead()] == [second]


async def test_retry_after_is_respected(place):
    """A longer pause than that of the back-off, up to the longest one."""
    clock = ManualClock()
    write(place, 1)
    receiver = Receiver(clock, lambda number: DeliveryAnswer(429, "", 600.0) if number == 1 else 200)
    async with sending(place, receiver):
        await until(clock, lambda: receiver.accepted)
    assert receiver.attempts[1][0] - receiver.attempts[0][0] == pytest.approx(600)


async def test_a_restart_continues_behind_the_last_accepted_change(place):
    """Also in the middle of failures: their time counts on."""
    clock = ManualClock()
    write(place, *range(5))
    receiver = Receiver(clock, lambda number: 200 if number <= 3 else 503)
    async with sending(place, receiver):
        await until(clock, lambda: len(receiver.attempts) >= 6)
    receiver.answers = lambda number: 200
    async with sending(place, receiver) as sender:
        await until(clock, lambda: len(receiver.accepted) == 5)
        await until_settled(clock, sender)
    assert receiver.ids == all_ids(place)


async def test_a_replay_from_an_id_repeats_the_same_ids(place):
    """While the sender runs."""
    clock = ManualClock()
    write(place, *range(5))
    receiver = Receiver(clock)
    async with sending(place, receiver) as sender:
        await until(clock, lambda: len(receiver.accepted) == 5)
        rows = changes(source_of(place)).rows
        sender.store.replay("one", rows[1].seq)
        await until(clock, lambda: len(receiver.accepted) == 8)
    assert receiver.ids == [*all_ids(place), *all_ids(place)[2:]]


async def test_filters_and_the_first_position(place):
    """A destination gets the changes that it wants, from the position that it names."""
    clock = ManualClock()
    write(place, 1, 2)
    write(place, 1, fetch_no=2, text=b"other", text_hash=b"12345678")
    write(place, 3)
    old = all_ids(place)
    receiver = Receiver(clock)
    hooks = (
        hook("changed", changes=("changed",)),
        hook("none", jobs=("another",)),
        hook("late", since=""),
        hook("behind", since=old[2]),
    )
    async with sending(place, receiver, *hooks) as sender:
        await until(clock, lambda: len(sender.positions) == 4 and len(receiver.accepted) >= 2)
        await until(clock, lambda: all(one.seq for one in sender.positions.values()))
        write(place, 4)
        await until(clock, lambda: len(receiver.accepted) == 4)
        await until_settled(clock, sender)
    found = {one.name: [id for url, id in receiver.accepted if one.name in url] for one in hooks}
    new = all_ids(place)[-1]
    assert found == {"changed": [old[2]], "none": [], "late": [new], "behind": [old[3], new]}


async def test_one_sender_at_a_time(place):
    """The second one is refused in one line; after the end of the first it may begin."""
    clock = ManualClock()
    write(place, 1)
    async with sending(place, Receiver(clock)):
        with pytest.raises(UserError, match="another program sends the webhooks of"):
            async with sending(place, Receiver(clock)):
                pass
    receiver = Receiver(clock)
    async with sending(place, receiver, hook("new")):
        await until(clock, lambda: receiver.accepted)


async def test_a_database_that_appears_later(tmp_path):
    """`nephila up` begins without rows: the sender waits, and then delivers from the first change."""
    clock = ManualClock()
    place = (tmp_path / "o", "")
    place[0].mkdir()
    write(place)
    receiver = Receiver(clock)
    async with sending(place, receiver, hook(since="")) as sender:
        await until(clock, lambda: sender.positions)
        write(place, 1, 2)
        await until(clock, lambda: len(receiver.accepted) == 2)


async def test_health_and_metrics_of_the_sender(tmp_path):
    """Each webhook has its counters; a database that does not answer makes the program unready."""
    clock = ManualClock()
    place = (tmp_path / "o", "")
    place[0].mkdir()
    write(place, 1, 2)
    receiver = Receiver(clock, lambda number: 500 if number == 1 else 200)
    async with sending(place, receiver, hook("news")) as sender:
        await until(clock, lambda: len(receiver.accepted) == 2)
        await until_settled(clock, sender)
        client = AsgiClient(health_application(sender))
        text = (await asyncio.to_thread(client.get, "/metrics")).text
        assert 'nephila_webhooks_deliveries_total{webhook="news"} 2.0' in text
        assert 'nephila_webhooks_failed_attempts_total{webhook="news"} 1.0' in text
        assert 'nephila_webhooks_failing_seconds{webhook="news"} 0.0' in text
        assert (await asyncio.to_thread(client.get, "/readyz")).status_code == 200
        sender.unready = "no connection"
        unready = await asyncio.to_thread(client.get, "/readyz")
        assert (unready.status_code, unready.text) == (503, "no connection\n")
