"""The bus contract, run over every bus there is (base.py says what each word means)."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.bus.contract import Delivery, Receipt
from nephila.kernel.messages import DeadLetter, Record, Seed
from nephila.kernel.runtime.errors import PermanentError, TemporaryError
from nephila.kernel.topics import DEAD, RECORDS, SEEDS

from tests.contracts.buses import RIGS


@pytest.fixture(params=sorted(RIGS))
async def rig(request):
    """A bus, the clock that drives it, and how to wait for it."""
    broker = request.getfixturevalue("broker") if request.param == "kafka" else None
    made = RIGS[request.param](broker)
    yield made
    await made.close()


async def test_every_group_gets_the_message_and_the_receipt_comes(rig):
    """Responsibility: within one program all groups have acked, over a broker it has the message; not before."""
    bus = rig.bus
    taken: list[Delivery] = []
    bus.subscribe(SEEDS, "a", taken.append, credits=9)
    bus.subscribe(SEEDS, "b", taken.append, credits=9)
    await rig.start()
    receipt = bus.publish(SEEDS, 3, Seed("j", "u"))
    assert not receipt.done
    await rig.until(lambda: len(taken) == 2)
    assert [d.message.url for d in taken] == ["u", "u"]
    assert {d.partition for d in taken} == {3}
    taken[0].ack()
    if rig.acked_receipts:
        assert not receipt.done
    else:
        await rig.until(lambda: receipt.done)
    assert bus.unacked == 1
    taken[1].ack()
    await rig.until(lambda: receipt.done)
    assert bus.unacked == 0


async def test_a_second_ack_counts_nothing(rig):
    """Acking twice neither resolves another group's part nor gives credit away."""
    bus = rig.bus
    mine: list[Delivery] = []
    others: list[Delivery] = []
    bus.subscribe(SEEDS, "a", mine.append, credits=1)
    bus.subscribe(SEEDS, "b", others.append, credits=9)
    await rig.start()
    for _ in range(3):
        bus.publish(SEEDS, 0, Seed("j", "u"))
    await rig.until(lambda: len(mine) == 1 and len(others) == 3)
    mine[0].ack()
    mine[0].ack()
    await rig.settle()
    assert len(mine) == 2
    assert bus.unacked == 5


async def test_credits_bound_what_is_unacked_and_keep_the_order(rig):
    """With two credits the third message waits until one is acked."""
    bus = rig.bus
    taken: list[Delivery] = []
    urls: list[str] = []
    bus.subscribe(SEEDS, "a", lambda d: (taken.append(d), urls.append(d.message.url)), credits=2)
    await rig.start()
    for i in range(5):
        bus.publish(SEEDS, 0, Seed("j", str(i)))
    await rig.settle()
    assert urls == ["0", "1"]
    taken[1].ack()
    await rig.settle()
    assert urls == ["0", "1", "2"]
    for _ in range(5):
        for delivery in taken.copy():
            delivery.ack()
    assert urls == list("01234")
    assert bus.unacked == 0


async def test_ack_after_waits_for_what_was_derived(rig):
    """A message is acked when the receipts of everything derived from it have resolved, in any order."""
    bus = rig.bus
    seeds: list[Delivery] = []
    bus.subscribe(SEEDS, "a", seeds.append, credits=9)
    bus.subscribe(RECORDS, "b", lambda d: d.ack(), credits=9)
    await rig.start()
    bus.publish(SEEDS, 0, Seed("j", "u"))
    await rig.until(lambda: len(seeds) == 1)
    late = Receipt()
    seeds[0].ack_after([late, bus.publish(RECORDS, 1, Record("j")), Receipt(0)])
    await rig.settle()
    assert not seeds[0].acked
    late.resolve_one()
    await rig.until(lambda: seeds[0].acked and not bus.unacked)


async def test_nothing_derived_acks_at_once(rig):
    """ack_after of nothing is ack."""
    bus = rig.bus
    taken: list[Delivery] = []
    bus.subscribe(SEEDS, "a", lambda d: (taken.append(d), d.ack_after([])), credits=1)
    await rig.start()
    bus.publish(SEEDS, 0, Seed("j", "u"))
    await rig.until(lambda: bool(taken) and taken[0].acked)
    assert bus.unacked == 0


async def test_a_topic_nobody_reads_takes_the_message(rig):
    """The receipt of a message without a reader resolves."""
    await rig.start()
    receipt = rig.bus.publish(SEEDS, 0, Seed("j", "u"))
    await rig.until(lambda: receipt.done)


async def test_a_temporary_error_brings_the_message_again(rig):
    """After its delay, not before, and the attempts are counted."""
    bus, clock = rig.bus, rig.clock
    attempts: list[int] = []

    def handler(delivery: Delivery) -> None:
        attempts.append(delivery.attempts)
        if delivery.attempts < 3:
            raise TemporaryError("later", delay_s=5)
        delivery.ack()

    bus.subscribe(SEEDS, "a", handler, credits=1)
    await rig.start()
    bus.publish(SEEDS, 0, Seed("j", "u"))
    await rig.until(lambda: attempts == [1])
    clock.advance(4.9)
    assert attempts == [1]
    clock.advance(0.2)
    assert attempts == [1, 2]
    clock.advance(5)
    assert attempts == [1, 2, 3]
    assert bus.unacked == 0


@pytest.mark.parametrize("error", [PermanentError("no"), ValueError("bug"), TemporaryError("always", 1)])
async def test_poison_becomes_a_dead_letter_and_the_next_message_goes_on(rig, error):
    """The dead letter names message, service and error; `on_dead` ends the URL; the credit comes back."""
    bus, clock = rig.bus, rig.clock
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
    await rig.start()
    bus.publish(SEEDS, 0, Seed("j", "poison"))
    bus.publish(SEEDS, 0, Seed("j", "good"))
    await rig.settle()
    clock.advance(10)
    await rig.until(lambda: bool(dead) and not bus.unacked)
    assert fine == ["good"]
    assert ended == [("poison", type(error))]
    assert (dead[0].topic, dead[0].service, dead[0].url, dead[0].job) == ("seeds", "a", "poison", "j")
    assert str(error) in dead[0].error


async def test_a_group_reads_a_topic_once(rig):
    """The same group twice on a topic would split its messages without anyone wanting it."""
    rig.bus.subscribe(SEEDS, "a", lambda d: d.ack(), credits=1)
    with pytest.raises(ValueError, match="already reads"):
        rig.bus.subscribe(SEEDS, "a", lambda d: d.ack(), credits=1)


async def test_a_receipt_can_be_awaited(rig):
    """Outside the hot path a receipt is awaited like a future."""
    bus = rig.bus
    taken: list[Delivery] = []
    bus.subscribe(SEEDS, "a", taken.append, credits=1)
    await rig.start()
    receipt = bus.publish(SEEDS, 0, Seed("j", "u"))

    async def wait() -> str:
        await receipt
        return "done"

    task = asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    assert not task.done()
    await rig.until(lambda: bool(taken))
    taken[0].ack()
    assert await task == "done"


async def test_a_long_queue_is_not_a_deep_stack(rig):
    """Ten thousand messages that waited for credit reach a handler that acks at once, in order, each once."""
    bus = rig.bus
    taken: list[Delivery] = []
    got: list[int] = []

    def handler(delivery: Delivery) -> None:
        if not taken:
            taken.append(delivery)
            return
        got.append(int(delivery.message.url))
        delivery.ack()

    bus.subscribe(SEEDS, "a", handler, credits=1)
    await rig.start()
    for number in range(10_001):
        bus.publish(SEEDS, 0, Seed("j", str(number)))
    await rig.until(lambda: bool(taken))
    taken[0].ack()
    await rig.until(lambda: len(got) == 10_000)
    assert got == list(range(1, 10_001))
    assert bus.unacked == 0
