"""Objects of the claim check: kept as long as a record may name them, removed after, whoever sweeps."""

from __future__ import annotations

import asyncio

import pytest
from nephila.kernel.runtime.clock import SystemClock
from nephila.kernel.runtime.errors import NotReadyError, PermanentError, TemporaryError
from nephila_cluster.kafka import claim_check
from nephila_cluster.kafka.bus import KafkaBus
from nephila_cluster.kafka.claim_check import DAY_S, SPARE_S, BlobClaimStore, open_claim_store, sweep
from nephila_stores.remote.blobs import DirectoryBlobs, open_blobs


@pytest.fixture(params=["directory", "obstore"])
def claim_store(request, tmp_path):
    """Over a directory, and over a store of obstore's."""
    return BlobClaimStore(DirectoryBlobs(tmp_path) if request.param == "directory" else open_blobs("memory:///x"))


def test_an_object_outlives_every_record_that_can_name_it(claim_store):
    """By the retention of its own topic, with the rest of a segment to spare; the same twice is one object."""
    now = 1_800_000_000.0
    page, letter = claim_store.put(b"page", now + 7 * DAY_S), claim_store.put(b"letter", now + 30 * DAY_S)
    assert claim_store.put(b"page", now + 7 * DAY_S) == page
    assert claim_store.expire(now + 7 * DAY_S + SPARE_S) == 0
    assert claim_store.get(page) == b"page"
    assert claim_store.expire(now + 8 * DAY_S + SPARE_S) == 1
    with pytest.raises(PermanentError, match="is gone"):
        claim_store.get(page)
    assert claim_store.get(letter) == b"letter"
    assert claim_store.expire(now + 31 * DAY_S + SPARE_S) == 1
    assert claim_store.expire(now + 31 * DAY_S + SPARE_S) == 0


@pytest.mark.parametrize("name", ["", "claims", "claims/../x", "frontier/p00/manifests/1", "/etc/passwd", "claims/a b"])
def test_nothing_else_is_read_whatever_a_record_says(claim_store, name):
    """A record may have been written by anyone who reaches the broker."""
    with pytest.raises(PermanentError):
        claim_store.get(name)


def test_no_place_no_store():
    """Then large messages are refused when they are published."""
    assert open_claim_store("") is None


async def test_a_sweep_goes_on_after_a_store_that_cannot_be_reached(monkeypatch, caplog):
    """Now and then, as long as the program lives; what goes wrong is one line."""
    monkeypatch.setattr(claim_check, "FIRST_SWEEP_S", 0)
    monkeypatch.setattr(claim_check, "SWEEP_S", 0)
    swept = asyncio.Event()

    class Store:
        calls = 0

        def reach(self) -> None:
            """It answers."""

        def expire(self, now: float) -> int:
            self.calls += 1
            if self.calls == 1:
                raise TemporaryError("no route to host")
            loop.call_soon_threadsafe(swept.set)
            return 3

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(sweep(Store(), SystemClock()))
    await asyncio.wait_for(swept.wait(), 60)
    task.cancel()
    await asyncio.wait([task])
    assert "were not deleted: no route to host" in caplog.text


async def test_a_member_without_its_blob_store_does_not_join():
    """Its partitions would stand still; it waits, not ready, and says why."""

    class Away(BlobClaimStore):
        def reach(self) -> None:
            """It does not."""
            raise TemporaryError("s3://bucket: connection refused")

    with pytest.raises(NotReadyError, match="the blob store does not answer: s3://bucket: connection refused"):
        await KafkaBus._reach(Away(open_blobs("memory:///x")))


def test_a_store_answers_though_it_is_empty(tmp_path):
    """A directory that nobody has written to yet, and one that cannot be read."""
    BlobClaimStore(open_blobs(str(tmp_path / "new"))).reach()
    (tmp_path / "file").write_text("")
    with pytest.raises(TemporaryError, match="Not a directory"):
        BlobClaimStore(open_blobs(str(tmp_path / "file"))).reach()
