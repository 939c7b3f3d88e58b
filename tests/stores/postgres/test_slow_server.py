"""A real server that is slow for each row and ends long transactions: flushes shrink until it takes them."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.storage.storage_rig import record, running
from tests.stores.postgres.test_postgres import change, table

SLEEPS = """
CREATE FUNCTION sleeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.01); RETURN NEW; END $$;
CREATE TRIGGER sleeps BEFORE INSERT ON pages FOR EACH ROW EXECUTE FUNCTION sleeps();
"""


@pytest.mark.parametrize("limit", ["statement_timeout", "idle_in_transaction_session_timeout"])
async def test_all_rows_arrive_at_a_server_that_takes_a_few_at_a_time(tmp_path, store, limit, monkeypatch):
    """64 rows take 0.64 s, and it allows 0.3 s for a statement; or the writer is slow between two statements."""
    async with running(tmp_path, store=store, patience_s=0) as rig:
        ledger = rig.storage._writer._ledger
        opened = ledger.open

        def limited() -> None:
            opened()
            ledger._connection.execute(f"SET {limit} = '300ms'")

        monkeypatch.setattr(ledger, "open", limited)
        if limit == "statement_timeout":
            change(store, SLEEPS)
        else:
            slow_client(ledger, store, monkeypatch)
        ledger._connection.execute(f"SET {limit} = '300ms'")
        rig.send(*(record(number) for number in range(64)))
        async with asyncio.timeout(60):
            while len(rig.receipts) < 64:
                rig.clock.advance(0.01)
                await asyncio.to_thread(int)
        assert rig.storage.batch_size.limit < 64
        assert not rig.fatal
        assert rig.storage.trouble == ""
    assert len(table(store)) == 64
    assert len(table(store, "fetches", "id")) == 64


def slow_client(ledger, store, monkeypatch) -> None:
    """The transaction of `durable` waits 10 ms for each row before the next statement."""
    stage = ledger.stage

    def late(batch) -> None:
        with psycopg.connect(store) as other:
            other.execute("SELECT pg_sleep(%s)", (0.01 * len(batch.rows),))
        stage(batch)

    monkeypatch.setattr(ledger, "stage", late)
