"""The bus contract, run over every bus there is (base.py says what each word means)."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.bus.base import Delivery, Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.clock import ManualClock
from nephila.kernel.errors import PermanentError, TemporaryError
from nephila.kernel.messages import DeadLetter, Seed
from nephila.kernel.topics import DEAD, RECORDS, SEEDS

BUSES = {"local": LocalBus}


@pytest.fixture(params=sorted(BUSES))
def rig(request):
    """A bus and the clock that drives it."""
    clock = ManualClock()
    return BUSES[request.param](clock), clock


def test_the_receipt_waits_for_every_group(rig):
    """Responsibility has been taken when all groups have acked, not before."""
    bus, _ = rig
    taken: list[Delivery] = []
    bus.subscribe(SEEDS, "a", taken.append, credits=9)
    bus.subscribe(SEEDS, "b", taken.append, credits=9)
    receipt = bus.publish(SEEDS, 3, Seed("j", "u"))
    assert [d.message.url for d in taken] == ["u", "u"]
    assert {d.partition for d in taken} == {3}
    taken[0].ack()
    assert not receipt.done
    assert bus.unacked == 1
    taken[1].ack()
    assert receipt.done
    assert bus.unacked == 0


def test_a_second_ack_counts_nothing(rig):
    """Acking twice neither resolves another group's part nor gives credit away."""
    bus, _ = rig
    taken: list[Delivery] = []
    bus.subscribe(SEEDS, "a", taken.append, credits=1)
    bus.subscribe(SEEDS, "b", lambda d: None, credits=9)
    receipt = bus.publish(SEEDS, 0, Seed())
    taken[0].ack()
    taken[0].ack()
    assert not receipt.done
    bus.publish(SEEDS, 0, Seed())
    bus.publish(SEEDS, 0, Seed())
    assert len(taken) == 2


def test_credits_bound_what_is_unacked_and_keep_the_order(rig):
    """With two credits the third message waits until one is acked."""
    bus, _ = rig
    taken: list[Delivery] = []
    urls: list[str] = []
    bus.subscribe(SEEDS, "a", lambda d: (taken.append(d), urls.append(d.message.url)), credits=2)
    for i in range(5):
        bus.publish(SEEDS, 0, Seed("j", str(i)))
    assert urls == ["0", "1"]
    taken[1].ack()
    assert urls == ["0", "1", "2"]
    for _ in range(5):
        for delivery in taken:
            delivery.ack()
    assert urls == list("01234")
    assert bus.unacked == 0


def test_ack_after_waits_for_what_was_derived(rig):
    """A message is acked when the receipts of everything derived from it have resolved, in any order."""
    bus, _ = rig
    seeds: list[Delivery] = []
    records: list[Delivery] = []
    bus.subscribe(SEEDS, "a", seeds.append, credits=9)
    bus.subscribe(RECORDS, "b", records.append, credits=9)
    receipt = bus.publish(SEEDS, 0, Seed())
    seeds[0].ack_after([bus.publish(RECORDS, 0, None), bus.publish(RECORDS, 1, None), Receipt(0)])
    records[1].ack()
    assert not receipt.done
    records[0].ack()
    assert receipt.done


def test_nothing_derived_acks_at_once(rig):
    """ack_after of nothing is ack."""
    bus, _ = rig
    bus.subscribe(SEEDS, "a", lambda d: d.ack_after([]), credits=1)
    assert bus.publish(SEEDS, 0, Seed()).done


def test_a_topic_nobody_reads_takes_the_message(rig):
    """The receipt of a message without a reader is resolved."""
    bus, _ = rig
    assert bus.publish(SEEDS, 0, Seed()).done


def test_a_temporary_error_brings_the_message_again(rig):
    """After its delay, not before, and the attempts are counted."""
    bus, clock = rig
    attempts: list[int] = []

    def handler(delivery: Delivery) -> None:
        attempts.append(delivery.attempts)
        if delivery.attempts < 3:
            raise TemporaryError("later", delay_s=5)
        delivery.ack()

    bus.subscribe(SEEDS, "a", handler, credits=1)
    receipt = bus.publish(SEEDS, 0, Seed())
    clock.advance(4.9)
    assert attempts == [1]
    clock.advance(0.2)
    assert attempts == [1, 2]
    clock.advance(5)
    assert attempts == [1, 2, 3]
    assert receipt.done


@pytest.mark.parametrize("error", [PermanentError("no"), ValueError("bug"), TemporaryError("always", 1)])
def test_poison_becomes_a_dead_letter_and_the_next_message_goes_on(rig, error):
    """The dead letter names message, service and error; `on_dead` ends the URL; the credit comes back."""
    bus, clock = rig
    dead: list[DeadLetter] = []
    ended: list[object] = []
    fine: list[str] = []

    def handler(delivery: Delivery) -> None:
        if delivery.message.url == "poison":
            raise error
        fine.append(delivery.message.url)
        delivery.ack()

    def on_dead(message: Seed, why: BaseException) -> list[Receipt]:
        ended.append((message.url, type(why)))
        return []

    bus.subscribe(DEAD, "x", lambda d: (dead.append(d.message), d.ack()), credits=9)
    bus.subscribe(SEEDS, "a", handler, credits=1, on_dead=on_dead)
    receipt = bus.publish(SEEDS, 0, Seed("j", "poison"))
    bus.publish(SEEDS, 0, Seed("j", "good"))
    clock.advance(10)
    assert receipt.done
    assert fine == ["good"]
    assert ended == [("poison", type(error))]
    assert (dead[0].topic, dead[0].service, dead[0].url, dead[0].job) == ("seeds", "a", "poison", "j")
    assert str(error) in dead[0].error


def test_a_group_reads_a_topic_once(rig):
    """The same group twice on a topic would split its messages without anyone wanting it."""
    bus, _ = rig
    bus.subscribe(SEEDS, "a", lambda d: d.ack(), credits=1)
    with pytest.raises(ValueError, match="already reads"):
        bus.subscribe(SEEDS, "a", lambda d: d.ack(), credits=1)


async def test_a_receipt_can_be_awaited(rig):
    """Outside the hot path a receipt is awaited like a future."""
    bus, _ = rig
    taken: list[Delivery] = []
    bus.subscribe(SEEDS, "a", taken.append, credits=1)
    receipt = bus.publish(SEEDS, 0, Seed())

    async def wait() -> str:
        await receipt
        return "done"

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    assert not task.done()
    taken[0].ack()
    assert await task == "done"


def test_a_long_queue_is_not_a_deep_stack(rig):
    """Ten thousand messages that waited for credit reach a handler that acks at once, in order, each once."""
    bus, _ = rig
    taken: list[Delivery] = []
    got: list[int] = []

    def handler(delivery: Delivery) -> None:
        if not taken:
            taken.append(delivery)
            return
        got.append(int(delivery.message.url))
        delivery.ack()

    bus.subscribe(SEEDS, "a", handler, credits=1)
    for number in range(10_001):
        bus.publish(SEEDS, 0, Seed("j", str(number)))
    taken[0].ack()
    assert got == list(range(1, 10_001))
    assert bus.unacked == 0
