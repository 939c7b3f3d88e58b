"""Readers of cgroup files, over file trees of both versions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from nephila.kernel.process.container import Container

MIB = 1 << 20
MEMINFO = "MemTotal:       16384000 kB\nMemFree:         1000000 kB\nMemAvailable:    8192000 kB\n"


def tree(root: Path, files: dict[str, str]) -> Container:
    """A container whose files are these; the machine has 16 GB and 8 cores."""
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Container(root, cores=8)


V2 = {
    "proc/self/cgroup": "0::/pod/app\n",
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "sys/fs/cgroup/pod/app/memory.max": f"{512 * MIB}\n",
    "sys/fs/cgroup/pod/app/memory.current": f"{500 * MIB}\n",
    "sys/fs/cgroup/pod/app/memory.stat": f"anon {100 * MIB}\nfile {390 * MIB}\nshmem {5 * MIB}\nslab_unreclaimable 0\n",
    "sys/fs/cgroup/pod/app/memory.pressure": "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00\n",
    "sys/fs/cgroup/pod/app/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/pod/app/cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
}
V1 = {
    "proc/self/cgroup": "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/\n",
    "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": f"{512 * MIB}\n",
    "sys/fs/cgroup/memory/docker/abc/memory.stat": f"cache {390 * MIB}\ntotal_rss {100 * MIB}\ntotal_shmem {5 * MIB}\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "150000\n",
    "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpuacct/docker/abc/cpuacct.usage": "2500000000\n",
}


V1_JOINED = {
    name.replace("/cpuacct/", "/cpu,cpuacct/").replace("/cpu/", "/cpu,cpuacct/"): text for name, text in V1.items()
}
"""As systems mount both controllers at one place, without links of their single names."""


@pytest.mark.parametrize(
    ("files", "pressure"),
    [(V2, 0.125), (V1, 0.0), (V1_JOINED, 0.0)],
    ids=["version 2", "version 1", "version 1 with joined controllers"],
)
def test_the_limits_of_a_container(tmp_path: Path, files: dict[str, str], pressure: float) -> None:
    """Memory without the page cache, CPU against its quota, pressure where the kernel reports it."""
    usage = tree(tmp_path, files).read()
    assert usage.memory_limit_bytes == 512 * MIB
    assert usage.memory_bytes == 105 * MIB
    assert (usage.cpu_s, usage.cores) == (2.5, 1.5)
    assert usage.memory_pressure == pressure


@pytest.mark.parametrize("files", [V2, V1], ids=["version 2", "version 1"])
def test_a_mount_that_shows_the_own_group_as_its_root(tmp_path: Path, files: dict[str, str]) -> None:
    """As in a container with a cgroup namespace, or a path of the host in /proc/self/cgroup."""
    moved = {name.replace("/pod/app", "").replace("/docker/abc", ""): text for name, text in files.items()}
    moved["sys/fs/cgroup/memory/memory.limit_in_bytes"] = f"{512 * MIB}\n"
    if files is V2:
        moved = {name: text for name, text in moved.items() if "/memory/" not in name}
    usage = tree(tmp_path, moved).read()
    assert (usage.memory_bytes, usage.memory_limit_bytes, usage.cores) == (105 * MIB, 512 * MIB, 1.5)


def test_a_limit_above_the_own_group_counts(tmp_path: Path) -> None:
    """The level with the least memory left binds, with its own use."""
    files = {
        **V2,
        "sys/fs/cgroup/pod/app/memory.max": "max\n",
        "sys/fs/cgroup/pod/memory.max": f"{300 * MIB}\n",
        "sys/fs/cgroup/pod/memory.stat": f"anon {250 * MIB}\n",
    }
    usage = tree(tmp_path, files).read()
    assert (usage.memory_bytes, usage.memory_limit_bytes) == (250 * MIB, 300 * MIB)


def test_a_machine_that_has_less_left_than_the_container(tmp_path: Path) -> None:
    """Its killer of processes does not ask for the limit of the container."""
    meminfo = "MemTotal:       16384000 kB\nMemAvailable:    102400 kB\n"
    usage = tree(tmp_path, {**V2, "proc/meminfo": meminfo}).read()
    assert usage.memory_limit_bytes == 16384000 * 1024
    assert usage.memory_limit_bytes - usage.memory_bytes == 100 * MIB


def test_without_limits_the_machine_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of the machine; CPU of this process against all cores."""
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu\n",
        "sys/fs/cgroup/cpu.max": "max 100000",
    }
    monkeypatch.setattr(time, "process_time", lambda: 12.5)
    usage = tree(tmp_path, files).read()
    assert (usage.memory_bytes, usage.memory_limit_bytes) == (8192000 * 1024, 16384000 * 1024)
    assert (usage.cpu_s, usage.cores) == (12.5, 8)


def test_a_quota_above_the_cores_is_none(tmp_path: Path) -> None:
    """It can never bind."""
    usage = tree(tmp_path, {**V2, "sys/fs/cgroup/pod/app/cpu.max": "1600000 100000\n"}).read()
    assert usage.cores == 8


@pytest.mark.parametrize("text", ["", "rubbish\n", "\x00\xff", "anon\nanon x\n", "-1\n"])
def test_files_that_make_no_sense_bind_nothing(tmp_path: Path, text: str) -> None:
    """Another system, a kernel of next year: no error, no limit."""
    container = tree(tmp_path, dict.fromkeys((*V2, *V1, "proc/meminfo"), text))
    usage = container.read()
    assert usage.memory_limit_bytes > 1 << 50
    assert usage.cores == 8


def test_this_machine_can_be_read() -> None:
    """Its files are those of no test; CPU time rises."""
    container = Container()
    first = container.read()
    assert 0 < first.memory_bytes < first.memory_limit_bytes
    assert first.cores > 0
    assert container.read().cpu_s >= first.cpu_s
