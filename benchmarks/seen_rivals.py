"""The seen tests that bench_seen compares: the trie and its rivals behind one small face.

A rival gets its keys as the objects it wants, made before the clock runs; the trie gets the buffer that the page pass
gives. An absent package or server raises `Absent`, which the table shows.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Absent(Exception):
    """What is not installed here."""


def need(module: str) -> Any:
    """A package that may be absent."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Absent(f"{module} is not installed") from None


def records(buffer: bytes) -> list[bytes]:
    """The 16-byte records of a buffer as objects."""
    return [buffer[at : at + 16] for at in range(0, len(buffer), 16)]


class Rival:
    """A set in this process. `ask` returns how many of a batch it contains."""

    rounds = 3
    """Times that hits and misses are measured; the least counts."""

    def prepare(self, buffer: bytes) -> Any:
        """A batch as this rival wants it; not timed."""
        return records(buffer)

    def insert(self, batch: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def ask(self, batch: Any) -> int:
        """How many of a batch are said to be there."""
        raise NotImplementedError

    def cpu_s(self) -> float:
        """CPU seconds so far, of everything that works for it."""
        return time.process_time()

    def memory(self, rss_growth: int) -> int:
        """Bytes of memory, given the growth of this process."""
        return rss_growth

    def more(self) -> dict[str, float]:
        """Other figures."""
        return {}

    def close(self) -> None:
        """Give back what lies outside this process."""


class NativeTrie(Rival):
    """The MD5 trie, all of it in memory."""

    def __init__(self, keys: int) -> None:
        try:
            self.trie = importlib.import_module("nephila.native._core").Trie()
        except ImportError:
            raise Absent("the native core is not built") from None

    def prepare(self, buffer: bytes) -> bytes:
        """The buffer itself."""
        return buffer

    def insert(self, batch: bytes) -> None:
        """One call a batch."""
        self.trie.add(batch)

    def ask(self, batch: bytes) -> int:
        """One call a batch."""
        return len(batch) // 16 - len(self.trie.missing(batch))

    def more(self) -> dict[str, float]:
        """Its name and version."""
        return {"nbytes_per_key": self.trie.nbytes / len(self.trie)}


class BoundedTrie(NativeTrie):
    """The trie with a budget of 5 bytes a key: most of it on disk."""

    rounds = 1

    def __init__(self, keys: int) -> None:
        super().__init__(keys)
        self.folder = tempfile.mkdtemp(prefix="bench-seen-")
        self.trie = type(self.trie)(self.folder, "bench", 5 * keys)

    def more(self) -> dict[str, float]:
        """What lies on disk."""
        size = sum(path.stat().st_size for path in Path(self.folder).iterdir())
        return {**super().more(), "disk_bytes_per_key": size / len(self.trie)}

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.folder)


class PythonSet(Rival):
    """A Python set of 16-byte digests."""

    def __init__(self, keys: int) -> None:
        self.keys: set[Any] = set()

    def insert(self, batch: list[Any]) -> None:
        """One call a batch."""
        self.keys.update(batch)

    def ask(self, batch: list[Any]) -> int:
        """One look a key."""
        keys = self.keys
        return sum([key in keys for key in batch])


class Bloom(Rival):
    """A Bloom filter in Rust (rbloom), 1 % false positives."""

    rate = 0.01

    def __init__(self, keys: int) -> None:
        self.filter = need("rbloom").Bloom(keys, self.rate)

    def insert(self, batch: list[bytes]) -> None:
        """One call a batch."""
        self.filter.update(batch)

    def ask(self, batch: list[bytes]) -> int:
        """One look a key."""
        known = self.filter
        return sum([key in known for key in batch])


RIVALS: dict[str, Callable[[int], Rival]] = {
    "trie": NativeTrie,
    "trie with a budget": BoundedTrie,
    "Python set of digests": PythonSet,
    "Bloom 1 %": Bloom,
}
"""By the name in the table."""
