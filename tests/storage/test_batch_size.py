"""The size of a flush follows the database: halves when it is slow, steps when it is fast, bounds always."""

from __future__ import annotations

import random

from nephila.storage.batch_size import SLOW_S, BatchSize

SLOW, FAST = SLOW_S + 0.1, 0.1


def test_flushes_that_fail_shrink_to_one_row_and_grow_again():
    """Each failure halves; a database that is fast again gets the most within some twelve flushes."""
    size = BatchSize(2048, 64)
    seen = []
    for _ in range(12):
        size.failed(size.limit)
        seen.append(size.limit)
    assert seen == [1024, 512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1]
    flushes = 0
    while size.limit < 2048:
        size.succeeded(size.limit, FAST)
        flushes += 1
    assert flushes <= 13


def test_the_way_back_to_the_size_that_failed_is_in_equal_steps():
    """Eight of them; beyond it they double."""
    size = BatchSize(2048, 64)
    size.failed(512)
    seen = []
    for _ in range(12):
        size.succeeded(size.limit, FAST)
        seen.append(size.limit)
    assert seen == [288, 320, 352, 384, 416, 448, 480, 512, 544, 608, 736, 992]


def test_a_slow_disk_keeps_batches_of_a_useful_size():
    """There smaller flushes take as long as larger ones."""
    size = BatchSize(2048, 64)
    for _ in range(20):
        size.succeeded(size.limit, SLOW)
    assert size.limit == 64
    size.failed(64)
    assert size.limit == 32


def test_a_small_flush_says_nothing_about_larger_ones():
    """A fast one below the limit is no reason to raise it."""
    size = BatchSize(256, 64)
    size.failed(256)
    size.succeeded(10, FAST)
    assert size.limit == 128


def test_a_database_with_a_rate_and_a_limit_gets_about_what_it_takes():
    """At any rate, after any other: few flushes fail, and most of the time goes into rows that are stored."""
    rng = random.Random(7)
    size = BatchSize(512, 64)
    for _ in range(50):
        rate, stored, spent_s = rng.choice((0.5, 3.0, 5.0, 30.0, 1000.0)), 0, 0.0
        for step in range(400):
            rows = size.limit
            assert 1 <= rows <= 512
            took_s = min(rows / rate, 15.0)
            failed = rows / rate > 15.0
            size.failed(rows) if failed else size.succeeded(rows, took_s)
            if step >= 20:
                spent_s += took_s
                stored += 0 if failed else rows
        assert stored > 0.5 * rate * spent_s
