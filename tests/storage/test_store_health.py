"""The state of the store: working, slow, away or failed, since when, why, and what waits."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.messages import StoreState
from nephila.kernel.runtime.errors import UserError
from nephila.storage.batch_size import SLOW_S
from nephila.storage.faults import StoreLost, StoreRefused
from nephila.storage.health import REMEDIES, remedy

from tests.storage.storage_rig import Rig, record, running


async def turns(rig: Rig, seconds: float = 0.0, count: int = 50) -> None:
    """Time passes, and the loop and the thread run."""
    for _ in range(count):
        rig.clock.advance(seconds / count)
        await asyncio.to_thread(int)


def test_each_state_in_which_rows_wait_has_a_remedy():
    """The others have none."""
    assert {state for state, remedy in REMEDIES.items() if remedy} == {
        StoreState.SLOW,
        StoreState.AWAY,
        StoreState.FAILED,
    }
    assert set(REMEDIES) == set(StoreState)


async def test_a_store_that_works_says_when_it_was_flushed_last(tmp_path):
    """Before its start it is not open."""
    rig = Rig(tmp_path)
    assert (rig.storage.store.state, rig.storage.store.place) == (StoreState.UNSPECIFIED, f"{tmp_path}/nephila.db")
    await rig.storage.start()
    rig.send(record(1), record(2))
    store = rig.storage.store
    assert (store.state, store.since, store.cause, store.rows_waiting) == (StoreState.WORKING, 0.0, "", 2)
    assert store.flushed_at == 0.0
    await rig.storage.flush()
    store = rig.storage.store
    assert (store.rows_waiting, store.flushed_at, store.batch_rows) == (0, rig.clock.now(), 2048)
    await rig.storage.close()


async def test_a_store_that_is_away_says_since_when_and_why(tmp_path):
    """Repeated attempts do not move the instant; afterwards it works again."""
    async with running(tmp_path, patience_s=0) as rig:
        commit, away = rig.storage._writer.commit, True

        def lost(*arguments):
            if away:
                raise StoreLost("cannot connect to postgresql://db.test/rows: connection refused")
            return commit(*arguments)

        rig.storage._writer.commit = lost
        rig.send(*(record(n) for n in range(300)))
        async with asyncio.timeout(60):
            while rig.storage.store.state is not StoreState.AWAY:
                await turns(rig, 0.02, 1)
        since = rig.storage.store.since
        await turns(rig, 60.0)
        store = rig.storage.store
        assert (store.state, store.since, store.rows_waiting) == (StoreState.AWAY, since, 300)
        assert "connection refused" in store.cause
        assert rig.storage.health.away_s == pytest.approx(rig.clock.now() - since)
        assert 59 < rig.storage.health.away_s < 62
        away = False
        async with asyncio.timeout(60):
            while rig.storage.store.state is StoreState.AWAY:
                await turns(rig, 1.0, count=1)
        assert rig.storage.store.state is StoreState.WORKING
        assert rig.storage.health.away_s == 0.0


async def test_a_refused_password_is_a_state_of_its_own_with_its_remedy(tmp_path):
    """Since the first refusal, also where the server was away before; with the new password it works again."""
    async with running(tmp_path, patience_s=0) as rig:
        commit = rig.storage._writer.commit
        faults = [StoreLost("connection refused"), StoreRefused("password authentication failed for user crawler")]

        def refused(*arguments):
            if faults:
                raise faults[0]
            return commit(*arguments)

        rig.storage._writer.commit = refused
        rig.send(*(record(n) for n in range(300)))
        await turns(rig, 30.0)
        assert (rig.storage.store.state, rig.storage.store.login_refused) == (StoreState.AWAY, False)
        assert remedy(rig.storage.store) == REMEDIES[StoreState.AWAY]
        away_since = rig.storage.store.since
        del faults[0]
        await turns(rig, 30.0)
        store = rig.storage.store
        assert (store.state, store.login_refused, store.rows_waiting) == (StoreState.AWAY, True, 300)
        assert away_since < store.since < rig.clock.now()
        assert "PGPASSWORD_FILE" in remedy(store)
        faults.clear()
        async with asyncio.timeout(60):
            while rig.storage.store.state is StoreState.AWAY:
                await turns(rig, 1.0, count=1)
        assert not rig.storage.store.login_refused


async def test_a_flush_that_does_not_end_is_slow(tmp_path):
    """Before it fails or ends, if it ever does."""
    async with running(tmp_path) as rig:
        release = asyncio.Event()
        loop = asyncio.get_running_loop()
        commit = rig.storage._writer.commit

        def waits(*arguments):
            asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
            return commit(*arguments)

        rig.storage._writer.commit = waits
        rig.send(*(record(n) for n in range(256)))
        await turns(rig)
        assert rig.storage.store.state is StoreState.WORKING
        rig.clock.advance(SLOW_S + 1)
        store = rig.storage.store
        assert (store.state, rig.clock.now() - store.since) == (StoreState.SLOW, SLOW_S + 1)
        assert store.cause
        release.set()
        await rig.storage.flush()
        assert rig.storage.store.state is StoreState.WORKING


async def test_a_store_that_failed_keeps_its_error(tmp_path):
    """No row is written any more."""
    rig = Rig(tmp_path)
    await rig.storage.start()

    def full(*_):
        raise UserError("disk full writing x; free space and run again with --resume")

    rig.storage._writer.commit = full
    rig.send(record(1))
    with pytest.raises(UserError):
        await rig.storage.flush()
    store = rig.storage.store
    assert (store.state, store.rows_waiting) == (StoreState.FAILED, 1)
    assert store.cause.startswith("disk full")
    assert store.since == rig.clock.now()
    await rig.storage.close()
