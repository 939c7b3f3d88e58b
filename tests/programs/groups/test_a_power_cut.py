"""What a power cut may lose: nothing whose absence another log does not know."""

from __future__ import annotations

import asyncio
import threading

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.layout import layout_of
from nephila.kernel.messages import Receipts, Seed
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import RECEIPTS
from nephila.programs.groups import members
from nephila.programs.groups.disk_sync import DiskSync, LogFiles
from nephila.programs.groups.group_member import GroupMember
from nephila.programs.groups.members import Groups
from nephila.programs.groups.seed_relay import SeedRelay
from nephila.scheduler.group.partition_logs import RELAY


class Disk:
    """A sync in a thread takes until the test lets it end."""

    def __init__(self) -> None:
        self.syncs = 0
        self.begun = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._end = threading.Semaphore(0)

    def sync(self) -> None:
        self.syncs += 1
        self._loop.call_soon_threadsafe(self.begun.set)
        assert self._end.acquire(timeout=10)

    async def end_sync(self) -> None:
        await asyncio.wait_for(self.begun.wait(), 10)
        self.begun.clear()
        self._end.release()


async def test_what_comes_during_a_sync_waits_for_the_next_one():
    disk, done = Disk(), []
    wait = DiskSync(disk.sync, print)
    all_done = asyncio.Event()
    wait.after(lambda: done.append("first"))
    await asyncio.wait_for(disk.begun.wait(), 10)
    wait.after(lambda: done.append("second"))
    wait.after(all_done.set)
    assert done == []
    await disk.end_sync()
    await asyncio.wait_for(disk.begun.wait(), 10)
    assert done == ["first"]
    await disk.end_sync()
    await asyncio.wait_for(all_done.wait(), 10)
    assert (done, disk.syncs) == (["first", "second"], 2)


async def test_a_disk_that_refuses_ends_the_program_and_passes_nothing_on():
    failed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
    passed: list[str] = []

    def refuse() -> None:
        raise UserError("disk full")

    wait = DiskSync(refuse, failed.set_result)
    wait.after(lambda: passed.append("row"))
    assert str(await asyncio.wait_for(failed, 10)) == "disk full"
    wait.after(lambda: passed.append("row"))
    await asyncio.sleep(0)
    assert passed == []


class Link:
    """A process of a group."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[object] = asyncio.Queue()

    def send(self, topic, partition, message) -> Receipt:
        self.sent.put_nowait((topic.name, partition))
        return Receipt(0)

    def send_control(self, control) -> None: ...


async def test_a_receipt_reaches_its_log_after_the_links_of_the_page_are_on_the_disk(tmp_path, monkeypatch):
    disk = Disk()
    monkeypatch.setattr(members.LogFiles, "sync", lambda self: disk.sync())
    clock = ManualClock()
    bus, member = LocalBus(clock), GroupMember(0, range(16))
    limits = AddressLimits(0, 0.0)
    groups = Groups(bus, clock, [member], layout_of(16), limits, tmp_path, lambda: None, print, fsync=True)
    groups.start()
    link = Link()
    member.join(link)
    published = bus.publish(RECEIPTS, 3, Receipts())
    await asyncio.wait_for(disk.begun.wait(), 10)
    assert link.sent.empty()
    assert not groups.settled().done
    assert not published.done
    await disk.end_sync()
    assert await asyncio.wait_for(link.sent.get(), 10) == (RECEIPTS.name, 3)
    await groups.settled()
    assert published.done


async def test_seeds_that_have_arrived_stay_until_the_logs_are_on_the_disk(tmp_path):
    logs: list[object] = []
    relay = SeedRelay(tmp_path, lambda partition, seed: Receipt(0), logs.append)
    relay.open()
    relay.relay(1, Seed("job", "http://a.test/"))
    assert (tmp_path / RELAY).stat().st_size > 0
    relay.relay(2, Seed("job", "http://b.test/"))
    logs[0]()
    assert (tmp_path / RELAY).stat().st_size > 0, "the second seed came later than the sync of the logs"
    logs[1]()
    assert (tmp_path / RELAY).stat().st_size == 0
    relay.close()


async def test_a_seed_is_confirmed_when_it_is_on_the_disk(tmp_path):
    waiting: list[object] = []
    relay = SeedRelay(tmp_path, lambda partition, seed: Receipt(), sync=lambda sync: waiting.append)
    relay.open()
    receipt = relay.relay(1, Seed("job", "http://a.test/"))
    assert not receipt.done
    waiting[0]()
    assert receipt.done
    relay.close()


def test_only_logs_that_have_grown_are_synced(tmp_path, monkeypatch):
    synced: list[int] = []
    monkeypatch.setattr("os.fdatasync", synced.append)
    paths = [tmp_path / part for part in ("00", "01")]
    for path in paths:
        path.mkdir()
        (path / "00000001.log").write_bytes(b"log")
    files = LogFiles([*paths, tmp_path / "02"])
    files.sync()
    assert len(synced) == 2
    files.sync()
    assert len(synced) == 2
    (paths[0] / "00000002.log").write_bytes(b"log")
    files.sync()
    assert len(synced) == 3
