"""Positions: nothing is committed past what is open."""

from __future__ import annotations

import random

from nephila_cluster.kafka.consumer.offsets import PartitionPosition


def test_the_oldest_open_record_holds_the_position():
    """Done in another order than taken: it moves only when the first is done."""
    position = PartitionPosition(10)
    first, second, third = (position.take(offset) for offset in (10, 11, 12))
    third()
    second()
    assert (position.committed_to, position.next, position.opened) == (10, 13, 1)
    first()
    assert (position.committed_to, position.opened) == (13, 0)


def test_the_age_is_that_of_the_oldest_open_record():
    """A later record that is done first changes nothing; without an open record there is no age."""
    position = PartitionPosition(10)
    assert position.oldest_written_at is None
    first, second = position.take(10, 1_000), position.take(11, 2_000)
    second()
    assert position.oldest_written_at == 1_000
    first()
    assert position.oldest_written_at is None
    position.take(12, 3_000)
    assert position.oldest_written_at == 3_000


def test_random_orders_never_pass_what_is_open():
    """10,000 steps against a set of what is open."""
    rng, position, model, offset = random.Random(1), PartitionPosition(0), {}, 0
    for _ in range(10_000):
        if model and rng.random() < 0.5:
            model.pop(rng.choice(list(model)))()
        else:
            model[offset] = position.take(offset)
            offset += 1 + (rng.random() < 0.1)
            position.next = max(position.next, offset)
        assert position.committed_to == (min(model) if model else position.next)
        assert position.opened == len(model)
