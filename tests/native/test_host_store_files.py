"""The host store's files: what a restore brings back, who may read whose files, and what damage or a full disk does."""

from __future__ import annotations

import errno
import re
import resource
import shutil
import signal
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .conftest import core_only, load
from .host_stores import drain, url


def filled(core: ModuleType, directory: Path, urls: int = 40) -> Any:
    """A store with three hosts, two jobs, a state and a place on the workbench."""
    store = core.HostStore(str(directory))
    for name in ("a.test", "b.test", "ü.test"):
        store.host(name)
    for number in range(urls):
        store.push(number % 2, number % 3 % 2, number % 4, url(number))
    store.set_state(2, b"robots")
    store.schedule(1, 12.5)
    return store


def contents(store: Any) -> dict[str, Any]:
    """All that is in a store, by name."""
    return {
        store.name(host): (
            store.state(host),
            store.ready_at(host),
            {job: store.items(host, job) for job, _ in store.jobs(host)},
        )
        for host in store.ids()
    }


def restored(core: ModuleType, directory: Path, manifest: bytes, **options: bool) -> Any:
    """A new store from a manifest."""
    store = core.HostStore(str(directory), **options)
    store.restore(manifest)
    store.check()
    return store


@pytest.fixture(params=["rust-python", "python-rust", "rust-rust", "python-python"])
def pair(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """(who writes, who reads)."""
    writer, reader = request.param.split("-")
    return load(writer), load(reader)


def test_tombstones_outlive_checkpoints_and_merges(core: ModuleType, tmp_path: Path) -> None:
    """URLs taken from the middle of what is on disk stay away, however often runs are merged and restored."""
    store = core.HostStore(str(tmp_path))
    host, left, turn = store.host("h"), [], 0
    for turn in range(12):
        for number in range(turn * 100, turn * 100 + 100):
            store.push(host, 0, 0, url(number))
            left.append(number)
        manifest = store.checkpoint()
        for number in range(turn * 100 + 3, turn * 100 + 100, 7):
            assert store.take(host, 0, url(number)[:16]) == url(number)
            left.remove(number)
        if turn % 3 == 1:
            manifest = store.checkpoint()
            store = restored(core, tmp_path, manifest)
        store.check()
        assert store.stats()["runs"] <= 10
        assert store.length(host, 0) == len(left)
    assert [packed for _, packed in store.items(host, 0)] == [url(number) for number in left]
    assert store.peek(host, 0) == url(left[0])
    assert drain(store, host, 0) == [url(number) for number in left]
    store.checkpoint()
    assert (store.stats()["runs"], store.stats()["tombstones"]) in ((0, 0), (1, 0))


def test_a_checkpoint_merges_no_more_than_its_share(tmp_path: Path) -> None:
    """What a checkpoint writes is bounded by what is new and its share; runs stay few, and in the end nothing is
    left behind."""
    store, size, written = load("rust").HostStore(str(tmp_path), merge_bytes=20_000), 60, []
    hosts = [store.host(f"h{n}.test") for n in range(100)]
    for turn in range(60):
        for n, host in enumerate(hosts):
            store.push(host, 0, 0, url(100 * turn + n, size=size))
        before = store.stats()["written_bytes"]
        store.checkpoint()
        store.check()
        written.append(store.stats()["written_bytes"] - before)
        assert store.stats()["runs"] <= 20
    # New URLs, the table of hosts and the share; its last host may go beyond it by what it has.
    assert max(written) < 100 * (size + 20) + 100 * 21 * 40 + 20_000 + 60 * (size + 20)
    for n, host in enumerate(hosts):
        assert drain(store, host, 0) == [url(100 * turn + n, size=size) for turn in range(60)]
    store.checkpoint()
    store.check()
    assert store.stats()["runs"] <= 1


def test_later_urls_may_come_first(core: ModuleType, tmp_path: Path) -> None:
    """What is pushed after a checkpoint with a smaller order, or newest first, stands before the tail on disk."""
    store = core.HostStore(str(tmp_path))
    host = store.host("h")
    for number in range(10):
        store.push(host, 0, 5, url(number))
        store.push(host, 1, 5, url(number), True)
    store.checkpoint()
    store.push(host, 0, 4, url(20))
    store.push(host, 0, 5, url(21))
    store.push(host, 0, 6, url(22))
    store.push(host, 1, 5, url(23), True)
    assert store.head(host) == [(0, 4), (1, 5)]
    assert drain(store, host, 0) == [url(n) for n in (20, *range(10), 21, 22)]
    assert drain(store, host, 1) == [url(n) for n in (23, *range(9, -1, -1))]


def test_files_of_the_manifest_before_stay_until_cleanup(core: ModuleType, tmp_path: Path) -> None:
    """A crash between a checkpoint and its manifest's becoming durable falls back to the one before."""
    store = filled(core, tmp_path)
    first, wanted = store.checkpoint(), contents(store)
    for _ in range(6):
        drain(store, 0, 0)
        store.push(1, 0, 0, url(100))
        second, later = store.checkpoint(), contents(store)
    fallen = restored(core, tmp_path, first)
    assert contents(fallen) == wanted
    newest = restored(core, tmp_path, second)
    (tmp_path / "queue-00000099.run.tmp").write_bytes(b"half")
    (tmp_path / "other.txt").write_bytes(b"not ours")
    newest.cleanup()
    assert contents(newest) == later
    assert contents(restored(core, tmp_path, second)) == later
    assert not list(tmp_path.glob("*.tmp"))
    assert (tmp_path / "other.txt").exists()
    with pytest.raises(ValueError, match=r"is missing; restore it from a backup|is damaged|another host store"):
        core.HostStore(str(tmp_path)).restore(first)


def test_a_run_that_is_consumed_goes(core: ModuleType, tmp_path: Path) -> None:
    """When all URLs of a run are popped, its file goes with the next checkpoint and cleanup."""
    store = filled(core, tmp_path)
    store.set_state(2, b"")
    store.checkpoint()
    for host in range(2):
        for job, _ in store.jobs(host):
            drain(store, host, job)
    store.check()
    store.checkpoint()
    store.cleanup()
    assert sum(path.stat().st_size for path in tmp_path.glob("*.run")) < 100
    assert len(list(tmp_path.glob("*.hosts"))) == 1


def test_cleanup_before_any_manifest_deletes_nothing(core: ModuleType, tmp_path: Path) -> None:
    """A store that was told nothing yet does not know what may go."""
    store = filled(core, tmp_path)
    manifest = store.checkpoint()
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    core.HostStore(str(tmp_path)).cleanup()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert contents(restored(core, tmp_path, manifest)) == contents(store)


def test_read_only_writes_nothing(core: ModuleType, tmp_path: Path) -> None:
    """A reader sees everything, may pop in memory, and leaves every file as it was."""
    store = filled(core, tmp_path)
    manifest = store.checkpoint()
    (tmp_path / "queue-00000099.run").write_bytes(b"stray")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    reader = restored(core, tmp_path, manifest, read_only=True)
    assert drain(reader, 0, 0)
    with pytest.raises(ValueError, match="read-only"):
        reader.checkpoint()
    reader.cleanup()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_restore_wants_a_new_store(core: ModuleType, tmp_path: Path) -> None:
    """A store that has hosts is not overwritten."""
    store = filled(core, tmp_path)
    manifest = store.checkpoint()
    with pytest.raises(ValueError, match="when it is new"):
        store.restore(manifest)


def resealed(data: bytes) -> bytes:
    """Bytes with the checksum at their end made right again."""
    return data[:-4] + zlib.crc32(data[:-4]).to_bytes(4, "little")


@core_only
@pytest.mark.parametrize("kind", ["run", "hosts", "manifest"])
@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda data: data[:-1], "damaged|another host store"),
        (lambda data: data[: len(data) // 2], "damaged"),
        (lambda data: data[:10], "damaged"),
        (lambda data: b"", "not a host store file"),
        (lambda data: b"GIF89a--" + data[8:], "not a host store file"),
        (lambda data: resealed(data[:8] + b"\x07" + data[9:]), "format 7, this program reads 1"),
        (lambda data: data[:-10] + bytes([data[-10] ^ 1]) + data[-9:], "damaged"),
    ],
)
def test_what_is_not_ours_or_torn_is_refused(core: ModuleType, kind: str, harm: Any, says: str, tmp_path: Path) -> None:
    """One line that names the file and what to do; the store stays empty and may be given another manifest."""
    manifest = filled(core, tmp_path).checkpoint()
    store = core.HostStore(str(tmp_path))
    good = manifest
    if kind == "manifest":
        manifest = harm(manifest)
    else:
        [path] = tmp_path.glob(f"*.{kind}")
        whole = path.read_bytes()
        path.write_bytes(harm(whole))
    with pytest.raises(ValueError, match=says) as caught:
        store.restore(manifest)
    text = str(caught.value)
    assert "\n" not in text
    assert ("manifest" if kind == "manifest" else path.name) in text
    assert any(remedy in text for remedy in ("backup", "program version", "move it away"))
    assert len(store) == 0
    if kind != "manifest":
        path.write_bytes(whole)
    store.restore(good)
    assert len(store) == 3


@core_only
def test_a_run_of_another_store_is_refused(core: ModuleType, tmp_path: Path) -> None:
    """A whole run file under the right name but from elsewhere is told from ours."""
    manifest = filled(core, tmp_path / "ours").checkpoint()
    filled(core, tmp_path / "theirs").checkpoint()
    [name] = [path.name for path in (tmp_path / "ours").glob("*.run")]
    shutil.copy(tmp_path / "theirs" / name, tmp_path / "ours" / name)
    with pytest.raises(ValueError, match="belongs to another host store; restore it from a backup"):
        core.HostStore(str(tmp_path / "ours")).restore(manifest)
    (tmp_path / "ours" / name).unlink()
    with pytest.raises(ValueError, match="is missing; restore it from a backup"):
        core.HostStore(str(tmp_path / "ours")).restore(manifest)


def read_all(store: Any, manifest: bytes, wanted: dict[str, Any]) -> None:
    """Restore and read everything, which is as wanted until something cannot be read."""
    store.restore(manifest)
    for host in store.ids():
        state, _, queues = wanted[store.name(host)]
        assert store.state(host) == state
        for job, _ in store.jobs(host):
            assert drain(store, host, job) == [packed for _, packed in queues[job]]


@core_only
def test_a_damaged_url_is_refused_when_it_is_read(core: ModuleType, tmp_path: Path) -> None:
    """A flipped bit anywhere among the entries is found by restore or by pop, never handed out."""
    store = filled(core, tmp_path, 12)
    manifest = store.checkpoint()
    [path] = tmp_path.glob("*.run")
    whole, wanted = path.read_bytes(), contents(store)
    for at in range(24, len(whole) - 36, 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        other = core.HostStore(str(tmp_path))
        with pytest.raises(ValueError, match=rf"{path.name} is damaged at byte \d+; restore it from a backup"):
            read_all(other, manifest, wanted)


@core_only
def test_a_table_of_any_bytes_is_refused(core: ModuleType, tmp_path: Path) -> None:
    """A table that was harmed and sealed again ends in one line, whatever it says."""
    manifest = filled(core, tmp_path, 12).checkpoint()
    [path] = tmp_path.glob("*.hosts")
    whole = path.read_bytes()
    for at in range(12, len(whole) - 4):
        table = resealed(whole[:at] + bytes([whole[at] ^ 0x81]) + whole[at + 1 :])
        path.write_bytes(table)
        head = manifest[:-8] + zlib.crc32(table).to_bytes(4, "little")
        store = core.HostStore(str(tmp_path))
        said = fault_of(store, head + zlib.crc32(head).to_bytes(4, "little"))
        assert said == "" or re.fullmatch(r"[^\n]*queue-\d+\.(run|hosts)[^\n]*", said)


def fault_of(store: Any, manifest: bytes) -> str:
    """What a restore and a look at everything end with; nothing when they end well."""
    try:
        store.restore(manifest)
        for host in store.ids():
            store.state(host)
            for job, _ in store.jobs(host):
                drain(store, host, job)
    except ValueError as error:
        return str(error)
    return ""


@contextmanager
def small_disk(limit: int) -> Iterator[None]:
    """Files may not grow beyond `limit` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


@pytest.mark.parametrize("limit", [0, 100, 2000, 300_000])
def test_a_full_disk_loses_nothing(core: ModuleType, limit: int, tmp_path: Path) -> None:
    """The error keeps its number and names the file; the store goes on, and the next checkpoint has everything."""
    store = filled(core, tmp_path)
    first, before = store.checkpoint(), contents(store)
    store.push_many([0] * 8000, 0, [3] * 8000, [url(number) for number in range(1000, 9000)])
    for number in range(3000):
        store.host(f"{number}.an-unlucky-name-that-is-long-enough.test")
    wanted = contents(store)
    with small_disk(limit), pytest.raises(OSError, match=r"queue-\d+\.(run|hosts)") as caught:
        store.checkpoint()
    assert caught.value.errno == errno.EFBIG
    assert not list(tmp_path.glob("*.tmp"))
    store.check()
    assert contents(store) == wanted
    store.cleanup()
    assert contents(restored(core, tmp_path, first)) == before
    assert contents(restored(core, tmp_path, store.checkpoint())) == wanted


def test_the_table_alone_does_not_fit(core: ModuleType, tmp_path: Path) -> None:
    """When the run was written and the table was not, the URLs are there still, and once."""
    store = core.HostStore(str(tmp_path))
    for number in range(2000):
        store.host(f"{number}.an-unlucky-name-that-is-long-enough.test")
    store.push(0, 0, 0, url(1))
    with small_disk(20_000), pytest.raises(OSError, match="hosts"):
        store.checkpoint()
    store.check()
    store.push(0, 0, 0, url(2))
    again = restored(core, tmp_path, store.checkpoint())
    assert [packed for _, packed in again.items(0, 0)] == [url(1), url(2)]


def test_a_directory_that_cannot_be(core: ModuleType, tmp_path: Path) -> None:
    """A file where the directory should be is an OSError with its number."""
    (tmp_path / "file").write_bytes(b"")
    store = filled(core, tmp_path / "file")
    with pytest.raises(OSError, match="file") as caught:
        store.checkpoint()
    assert caught.value.errno in (errno.EEXIST, errno.ENOTDIR)
    assert store.queued(0) == 20


def test_memory_after_a_checkpoint(tmp_path: Path) -> None:
    """A host whose URL is on disk takes the core less than 150 bytes; a long queue takes none per URL."""
    store = load("rust").HostStore(str(tmp_path))
    for number in range(20_000):
        store.push(store.host(f"www.host-{number}.test"), 0, 0, url(number, size=90))
    store.checkpoint()
    assert store.nbytes < 150 * 20_000
    before = store.nbytes
    for number in range(20_000):
        store.push(7, 0, 0, url(number, size=90))
    store.checkpoint()
    assert store.nbytes < before * 1.01 + 4096


def test_what_was_popped_does_not_fill_the_disk(core: ModuleType, tmp_path: Path) -> None:
    """A run of which little is left is written anew, without new URLs too."""
    store = core.HostStore(str(tmp_path))
    host = store.host("h")
    for number in range(2000):
        store.push(host, 0, 0, url(number))
    store.checkpoint()
    assert [store.pop(host, 0) for _ in range(1950)] == [url(number) for number in range(1950)]
    manifest = store.checkpoint()
    store.cleanup()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 10_000
    assert drain(restored(core, tmp_path, manifest), 0, 0) == [url(number) for number in range(1950, 2000)]
