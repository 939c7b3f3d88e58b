"""The trie's files: checkpoints and what a crash leaves, damage and how it is said, memory kept below a budget."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path
from types import ModuleType
from zlib import crc32

import pytest

from tests.native.conftest import core_only, load

RNG = random.Random(5)
KEYS = [RNG.randbytes(16) for _ in range(4000)]


def joined(keys: list[bytes]) -> bytes:
    """One buffer."""
    return b"".join(keys)


def test_a_checkpoint_brings_back_what_was(core: ModuleType, tmp_path: Path) -> None:
    """Inserts, removals and removed ranges of several checkpoints, after a reopen."""
    trie = core.Trie(tmp_path, "job")
    trie.add(joined(KEYS[:1000]))
    trie.checkpoint()
    trie.discard_many(joined(KEYS[:100]))
    trie.add(joined(KEYS[1000:2000]))
    trie.checkpoint()
    trie.discard_prefix(b"\x80", 1)
    again = next(key for key in KEYS[500:1000] if key[0] >= 0x80)
    trie.add(again)
    manifest = trie.checkpoint()
    trie.add(joined(KEYS[2000:]))
    back = core.Trie(tmp_path, "job")
    back.restore(manifest)
    back.check()
    assert back.dump() == joined(sorted({key for key in KEYS[100:2000] if key[0] < 0x80} | {again}))


def test_files_of_the_last_manifest_stay(core: ModuleType, tmp_path: Path) -> None:
    """Until cleanup, the manifest before the last one can be restored, however many runs were united since."""
    trie = core.Trie(tmp_path, "job")
    trie.add(joined(KEYS[:100]))
    durable = trie.checkpoint()
    for start in range(100, 3000, 100):
        trie.add(joined(KEYS[start : start + 100]))
        last = trie.checkpoint()
    for manifest, count in ((durable, 100), (last, 3000)):
        back = core.Trie(tmp_path, "job")
        back.restore(manifest)
        assert back.dump() == joined(sorted(KEYS[:count]))
    assert trie.stats()[3] <= 9
    assert trie.cleanup() > 0
    assert trie.cleanup() == 0
    assert len(list(tmp_path.glob("seen-job-*.run"))) == trie.stats()[3]
    back = core.Trie(tmp_path, "job")
    back.restore(last)
    assert len(back) == 3000


def test_a_crash_loses_only_what_no_manifest_names(core: ModuleType, tmp_path: Path) -> None:
    """A run that was written after the last manifest is no part of it, and goes at the next cleanup."""
    trie = core.Trie(tmp_path, "job")
    trie.add(joined(KEYS[:50]))
    manifest = trie.checkpoint()
    trie.add(joined(KEYS[50:]))
    trie.checkpoint()
    back = core.Trie(tmp_path, "job")
    back.restore(manifest)
    assert back.dump() == joined(sorted(KEYS[:50]))
    assert back.cleanup() == 1
    back.add(joined(KEYS[50:60]))
    again = core.Trie(tmp_path, "job")
    again.restore(back.checkpoint())
    assert len(again) == 60


@core_only
def test_an_unchanged_trie_writes_nothing(core: ModuleType, tmp_path: Path) -> None:
    """A checkpoint without changes names the same runs."""
    trie = core.Trie(tmp_path, "job")
    assert len(trie.checkpoint()) == 28
    trie.add(KEYS[0])
    assert trie.checkpoint() == trie.checkpoint()
    assert len(list(tmp_path.iterdir())) == 1


def test_names_do_not_mix(core: ModuleType, tmp_path: Path) -> None:
    """Tries of other names in one directory keep their files, one name being the start of another or not."""
    for name in ("a", "a-00000001", "b"):
        trie = core.Trie(tmp_path, name)
        trie.add(KEYS[0])
        trie.checkpoint()
    other = core.Trie(tmp_path, "a")
    other.add(KEYS[1])
    other.checkpoint()
    assert other.cleanup() == 1
    assert len(list(tmp_path.iterdir())) == 3


def broken(path: Path, damage: str) -> None:
    """Damage a run file of two pages of keys."""
    data = bytearray(path.read_bytes())
    if damage == "torn":
        data = data[:-100]
    elif damage == "version":
        data[-12:-8] = struct.pack("<I", 9)
    elif damage == "no run":
        data[-8:] = b"whatever"
    elif damage == "page":
        data[16 + 4096 + 5] ^= 1
    elif damage == "table":
        data[-60] ^= 1
    path.unlink()
    if damage != "missing":
        path.write_bytes(data)


DAMAGES = {
    "missing": "missing",
    "torn": r"torn: \d+ bytes, not \d+",
    "version": "version 9, this program reads 1",
    "no run": "not a run of the trie",
    "page": "wrong checksum at byte 4112",
    "table": "wrong checksum of its table",
}


@core_only
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_is_refused(core: ModuleType, tmp_path: Path, damage: str) -> None:
    """One line names the file and what is wrong; the trie stays empty and takes a sound manifest."""
    trie = core.Trie(tmp_path, "job")
    trie.add(joined(KEYS[:10]))
    sound = trie.checkpoint()
    trie.add(joined(KEYS[10:500]))
    manifest = trie.checkpoint()
    path = tmp_path / "seen-job-00000002.run"
    broken(path, damage)
    back = core.Trie(tmp_path, "job")
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: {DAMAGES[damage]}$"):
        back.restore(manifest)
    assert len(back) == 0
    back.restore(sound)
    assert len(back) == 10


@core_only
def test_a_damaged_manifest_is_refused(core: ModuleType, tmp_path: Path) -> None:
    """Garbage, another version and a flipped bit, each in one line."""
    trie = core.Trie(tmp_path, "job")
    trie.add(KEYS[0])
    manifest = trie.checkpoint()
    newer = manifest[:8] + struct.pack("<I", 7) + manifest[12:-4]
    for bad, what in (
        (b"", "not one"),
        (b"junk" * 20, "not one"),
        (newer + struct.pack("<I", crc32(newer)), "version 7, this program reads 1"),
        (manifest[:-9] + b"!" + manifest[-8:], "wrong checksum"),
        (manifest[:-1], "wrong checksum"),
    ):
        with pytest.raises(ValueError, match=f"^manifest of the trie: {what}$"):
            core.Trie(tmp_path, "job").restore(bad)


def test_what_cannot_be(core: ModuleType, tmp_path: Path) -> None:
    """No checkpoint without a directory, no budget, no restore over keys, no name that leaves the directory."""
    with pytest.raises(ValueError, match="directory"):
        core.Trie().checkpoint()
    with pytest.raises(ValueError, match="directory"):
        core.Trie(budget_bytes=1000)
    with pytest.raises(ValueError, match="directory"):
        core.Trie().split(b"", None, "name")
    for name in ("", "../x", "a b", "x" * 101, "é"):
        with pytest.raises(ValueError, match="the name of a trie"):
            core.Trie(tmp_path, name)
    trie = core.Trie(tmp_path, "job")
    trie.add(KEYS[0])
    manifest = trie.checkpoint()
    with pytest.raises(ValueError, match="only an empty trie"):
        trie.restore(manifest)
    with pytest.raises(ValueError, match="own"):
        trie.split(b"", None, "job")
    assert core.Trie().cleanup() == 0


def test_a_part_with_a_name_has_its_own_files(core: ModuleType, tmp_path: Path) -> None:
    """A hand-over on disk: both parts come back from their own manifests."""
    trie = core.Trie(tmp_path, "low")
    trie.add(joined(KEYS))
    trie.checkpoint()
    part = trie.split(b"\x80", None, "high")
    backs = []
    for one, name in ((trie, "low"), (part, "high")):
        backs.append(core.Trie(tmp_path, name))
        backs[-1].restore(one.checkpoint())
    assert backs[0].dump() == joined(sorted(key for key in KEYS if key[0] < 0x80))
    assert backs[1].dump() == joined(sorted(key for key in KEYS if key[0] >= 0x80))


BUDGET = 60_000


def test_the_budget_bounds_memory(tmp_path: Path) -> None:
    """Ten times what fits: memory stays near the budget, and every answer is exact."""
    core = load("rust")
    trie, rng = core.Trie(tmp_path, "job", BUDGET), random.Random(1)
    keys = [rng.randbytes(16) for _ in range(30_000)]
    for start in range(0, len(keys), 50):
        trie.add(joined(keys[start : start + 50]))
        assert trie.nbytes < 2 * BUDGET
    _, cold_regions, on_disk, _ = trie.stats()
    assert cold_regions > 0
    assert on_disk > len(keys) // 2
    assert trie.missing(joined(keys)) == []
    strangers = joined([rng.randbytes(16) for _ in range(20_000)])
    assert trie.missing(strangers) == list(range(20_000))
    trie.check()
    assert trie.discard_many(joined(keys[::3])) == 10_000
    assert trie.add(joined(keys[:300])) == 100
    manifest = trie.checkpoint()
    back = core.Trie(tmp_path, "job", BUDGET)
    back.restore(manifest)
    back.check()
    assert back.nbytes < 2 * BUDGET
    assert (
        back.dump()
        == trie.dump()
        == joined(
            sorted(
                {
                    *keys,
                }
                - {*keys[300::3]}
            )
        )
    )


def test_a_host_asked_for_again_comes_back(tmp_path: Path) -> None:
    """A range that is looked up in files oftener than it has keys returns to memory."""
    trie, rng = load("rust").Trie(tmp_path, "job", 30_000), random.Random(2)
    keys = [bytes([n % 256]) + rng.randbytes(15) for n in range(6000)]
    trie.add(joined(keys))
    before = trie.stats()[2]
    assert before > 4000
    hot = sorted(keys)[:20]
    for _ in range(200):
        assert trie.missing(joined(hot)) == []
        trie.add(rng.randbytes(16))
    assert trie.missing(joined(keys)) == []
    trie.check()


def test_damage_under_a_running_trie_is_said(tmp_path: Path) -> None:
    """A page of a run that went bad is an error of the lookup that needs it, not a wrong answer."""
    trie, rng = load("rust").Trie(tmp_path, "job", 10_000), random.Random(2)
    keys = [rng.randbytes(16) for _ in range(3000)]
    trie.add(joined(keys))
    for path in tmp_path.iterdir():
        with path.open("r+b") as file:
            file.seek(16)
            file.write(bytes(4000))
    with pytest.raises(ValueError, match=r"seen-job-\d+\.run: wrong checksum at byte"):
        trie.missing(joined(keys))
