"""A wrong clock is told from a slow network."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from nephila.kernel.runtime.clock import SystemClock
from nephila_cluster.kafka.clock_skew import ClockSkew
from nephila_cluster.kafka.config import KafkaConfig
from nephila_cluster.kafka.producer import LOG_APPEND_TIME, BatchingProducer


@pytest.mark.parametrize(
    ("sent", "stamped", "answered", "says"),
    [
        (100.0, 100.2, 100.4, ""),
        (100.0, 99.5, 100.1, ""),
        (105.0, 100.0, 105.1, "5.0 s ahead of"),
        (95.0, 100.0, 95.1, "4.9 s behind"),
        (100.0, 100.2, 160.0, ""),
        (100.0, 159.9, 160.0, ""),
    ],
)
def test_a_clock_that_is_off(sent, stamped, answered, says):
    """Only what no delay explains; within a second all is well."""
    skew = ClockSkew()
    skew.observe(sent, stamped, answered)
    assert (says in skew.trouble) if says else skew.trouble == ""


def test_a_clock_that_was_set_is_well_again():
    """The last record counts."""
    skew = ClockSkew()
    skew.observe(105.0, 100.0, 105.1)
    assert skew.trouble
    skew.observe(101.0, 101.05, 101.1)
    assert skew.trouble == ""


def test_a_clock_that_is_off_is_logged_once(caplog):
    """Not with every record; again after it was set."""
    producer = BatchingProducer(KafkaConfig(), SystemClock(), None)

    def taken(at):
        return SimpleNamespace(timestamp_type=LOG_APPEND_TIME, timestamp=at * 1000)

    now = time.time()
    for stamped in (now, now - 5, now - 5, now, now, now - 5):
        producer._stamped(now, taken(stamped))
    assert ["5.0 s ahead of the broker's" in record.message for record in caplog.records] == [True, True]


def test_a_topic_with_timestamps_of_its_members_says_nothing():
    """They are this clock's own."""
    producer = BatchingProducer(KafkaConfig(), SystemClock(), None)
    producer._stamped(time.time(), SimpleNamespace(timestamp_type=0, timestamp=0))
    assert producer.skew.trouble == ""
