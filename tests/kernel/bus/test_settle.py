"""What follows from an ack, in one loop: receipts, deliveries that wait for them, callbacks."""

from __future__ import annotations

from nephila.kernel.bus.contract import Delivery, Receipt, all_of, settle
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.messages import Record, Seed
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.topics import RECORDS, SEEDS

LONG = 20_000
"""Far more than the interpreter allows calls within calls."""


def test_a_long_chain_of_receipts_needs_no_nested_calls() -> None:
    done: list[int] = []
    first = last = Receipt()
    for _ in range(LONG):
        last = all_of([last])
    last.add_done_callback(lambda: done.append(1))
    first.resolve_one()
    assert (last.done, done) == (True, [1])


def test_many_deliveries_are_acked_in_their_order_and_once() -> None:
    acked: list[int] = []
    deliveries = [Delivery(None, 0, lambda n=n: acked.append(n)) for n in range(5)]  # type: ignore[misc]
    deliveries[3].ack()
    settle([*deliveries])
    settle([*deliveries])
    assert acked == [3, 0, 1, 2, 4]
    assert all(one.acked for one in deliveries)


def test_a_delivery_that_waits_for_two_receipts_is_acked_by_the_second() -> None:
    first, second = Receipt(), Receipt(2)
    delivery = Delivery(None, 0, lambda: None)
    delivery.ack_after([first, Receipt(0), second])
    first.resolve_one()
    second.resolve_one()
    assert not delivery.acked
    second.resolve_one()
    assert delivery.acked


def test_acks_of_a_batch_return_the_credits_and_deliver_what_waits() -> None:
    quiet: list[int] = []
    bus = LocalBus(ManualClock(), on_quiet=lambda: quiet.append(bus.unacked))
    got: list[Delivery] = []
    bus.subscribe(SEEDS, "g", got.append, credits=2)
    receipts = [bus.publish(SEEDS, 0, Seed("j", str(n))) for n in range(5)]
    assert (len(got), bus.unacked) == (2, 5)
    settle([*got])
    assert ([one.done for one in receipts], bus.unacked) == ([True, True, False, False, False], 3)
    assert [one.message.url for one in got[2:]] == ["2", "3"]
    settle(got[2:])
    got[-1].ack()
    assert (bus.unacked, quiet) == (0, [0])


def test_an_ack_reaches_the_message_that_it_was_derived_from() -> None:
    bus = LocalBus(ManualClock())
    records: list[Delivery] = []
    bus.subscribe(RECORDS, "g", records.append, credits=9)
    bus.subscribe(SEEDS, "g", lambda seed: seed.ack_after([bus.publish(RECORDS, 0, Record("j"))]), credits=9)
    receipt = bus.publish(SEEDS, 0, Seed("j"))
    assert not receipt.done
    records[0].ack()
    assert (receipt.done, bus.unacked) == (True, 0)
