"""Heartbeats are as far apart as a member wants them; other requests do not wait."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.protocol.group import HeartbeatRequest, SyncGroupRequest
from nephila.kernel.runtime.clock import ManualClock
from nephila_cluster.kafka.beat import Beat
from nephila_cluster.kafka.client import consumer as client

HEARTBEAT = HeartbeatRequest("g", 1, "m")


async def test_a_heartbeat_waits_until_it_is_due():
    clock, sent = ManualClock(), []

    async def send(node_id, request):
        sent.append(clock.monotonic())
        return SimpleNamespace(error_code=0)

    consumer = SimpleNamespace(_client=SimpleNamespace(send=send))
    answers = SimpleNamespace(on_answer=lambda at: None, on_sync=lambda at: None)
    began = clock.monotonic()
    client.watch_session(consumer, clock, answers, lambda: 2.0)
    await consumer._client.send(0, SyncGroupRequest("g", 1, "m", "d", []))
    for due_s in (2.0, 4.0):
        waiting = asyncio.ensure_future(consumer._client.send(0, HEARTBEAT))
        await asyncio.sleep(0)
        clock.advance(1.9)
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.advance(0.1)
        await waiting
        assert sent[-1] == pytest.approx(began + due_s)
    assert sent[0] == began


@pytest.mark.parametrize(("session_s", "interval_s"), [(6.0, 2.0), (3.0, 1.0)])
def test_members_send_few_heartbeats_in_a_beat(session_s, interval_s):
    """Not while partitions move: the others learn of it by their heartbeats."""
    beat = Beat(ManualClock(), 0.5)
    assert beat.heartbeat_s(session_s, True) == beat.commit_s == 0.0
    beat.set_least_delay(1.0)
    assert (beat.heartbeat_s(session_s, True), beat.commit_s) == (interval_s, 2.0)
    assert beat.heartbeat_s(session_s, False) == 0.0
