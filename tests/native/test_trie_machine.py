"""The trie against a Python set: any sequence of its operations, with crashes and reopens, and `check()` after each.

Short by default; NEPHILA_LONG=1 (make test-long) runs 100,000 operations for each implementation and each kind of trie.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests import state_machines
from tests.native.conftest import load

LONG = bool(os.environ.get("NEPHILA_LONG"))
LONG_OPERATIONS = 100_000
STEPS = 250

# Hosts whose prefixes are equal, next to each other, far apart, and at both ends.
HOSTS = [bytes(4), b"\0\0\0\1", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\x80\0\0\1", b"\xc1\x23\x45\x67", b"\xff" * 4]
hosts = st.sampled_from(HOSTS)
# Numbers make keys that are spread, crowded behind a long common prefix, or alike in the last byte.
tails = st.integers(0, 400).map(
    lambda n: [
        (n * 0x9E3779B97F4A7C15F39CC060 & (1 << 96) - 1).to_bytes(12, "big"),
        bytes(10) + n.to_bytes(2, "big"),
        n.to_bytes(2, "big") + bytes(10),
    ][n % 3]
)
keys = st.builds(lambda host, tail: host + tail, hosts, tails)
batches = st.lists(keys, max_size=40)
# A host with many URLs at once, so that leaves and directories split.
floods = st.builds(
    lambda host, start, count: [
        host + ((start + n) * 0x9E3779B97F4A7C15F39CC060 & (1 << 96) - 1).to_bytes(12, "big") for n in range(count)
    ],
    hosts,
    st.integers(0, 2000),
    st.integers(60, 400),
)
bounds = st.one_of(hosts, keys, st.binary(max_size=2), keys.map(lambda key: key + b"\0"))


class TrieMachine(RuleBasedStateMachine):
    """One trie and the set it should be."""

    core: Any
    budget = 0
    on_disk = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="trie-"))
        self.splits = 0
        self.trie = self.open()
        self.model: set[bytes] = set()
        self.durable: tuple[bytes, frozenset[bytes]] | None = None
        self.offered: tuple[bytes, frozenset[bytes]] | None = None

    def open(self) -> Any:
        """A trie as the next start of the program makes it."""
        return self.core.Trie(self.folder, "job", self.budget) if self.on_disk else self.core.Trie()

    @rule(batch=batches)
    def add(self, batch: list[bytes]) -> None:
        """Insert a page's links."""
        assert self.trie.add(b"".join(batch)) == len(set(batch) - self.model)
        self.model |= set(batch)

    @rule(batch=floods, bulk=st.booleans())
    def flood(self, batch: list[bytes], bulk: bool) -> None:
        """Insert many URLs of one host, in order or not."""
        buffer = b"".join(sorted(batch) if bulk else batch)
        assert (self.trie.load if bulk else self.trie.add)(buffer) == len(set(batch) - self.model)
        self.model |= set(batch)

    @rule(batch=batches)
    def missing(self, batch: list[bytes]) -> None:
        """Ask for a page's links."""
        fresh = [i for i, key in enumerate(batch) if key not in self.model and key not in batch[:i]]
        assert self.trie.missing(b"".join(batch)) == fresh

    @rule(key=keys)
    def discard(self, key: bytes) -> None:
        """Remove one URL."""
        assert self.trie.discard(key) == (key in self.model)
        self.model.discard(key)

    @rule(batch=batches)
    def discard_many(self, batch: list[bytes]) -> None:
        """Remove some URLs of a host, as where two share its prefix."""
        assert self.trie.discard_many(b"".join(batch)) == len(set(batch) & self.model)
        self.model -= set(batch)

    @rule(prefix=hosts, bits=st.sampled_from([32, 32, 32, 31, 17, 1]))
    def discard_host(self, prefix: bytes, bits: int) -> None:
        """Remove a host, or a range of them."""
        top = int.from_bytes(prefix, "big") >> (32 - bits)
        gone = {key for key in self.model if int.from_bytes(key[:4], "big") >> (32 - bits) == top}
        assert self.trie.discard_prefix(prefix, bits) == len(gone)
        self.model -= gone

    @rule(start=bounds, limit=st.integers(0, 300))
    def walk(self, start: bytes, limit: int) -> None:
        """Read a piece in key order."""
        assert self.trie.keys(start, limit) == b"".join(sorted(k for k in self.model if k >= start)[:limit])

    @rule(first=bounds, last=st.none() | bounds, back=st.booleans(), named=st.booleans(), more=batches)
    def split_and_merge(self, first: bytes, last: bytes | None, back: bool, named: bool, more: list[bytes]) -> None:
        """Hand a range over, change it there, and take it back or not."""
        self.splits += 1
        part = self.trie.split(first, last, f"part-{self.splits}" if named and self.on_disk else "")
        theirs = {key for key in self.model if first <= key and (last is None or key < last)}
        self.model -= theirs
        part.check()
        assert part.dump() == b"".join(sorted(theirs))
        part.add(b"".join(more))
        theirs |= set(more)
        if back:
            assert self.trie.merge(part) == len(theirs - self.model)
            self.model |= theirs
            assert len(part) == 0
            part.check()

    @rule()
    def checkpoint(self) -> None:
        """Take a checkpoint that the caller has not made durable yet."""
        if self.on_disk:
            self.offered = self.trie.checkpoint(), frozenset(self.model)

    @rule()
    def make_durable(self) -> None:
        """The caller made the last manifest durable: the others' files go."""
        if self.offered is not None:
            self.durable, self.offered = self.offered, None
            self.trie.cleanup()

    @rule()
    def crash(self) -> None:
        """All memory is lost, and what no durable manifest names."""
        if not self.on_disk:
            return
        self.trie, self.model, self.offered = self.open(), set(), None
        if self.durable is not None:
            self.trie.restore(self.durable[0])
            self.model = set(self.durable[1])
            self.trie.cleanup()

    @invariant()
    def right(self) -> None:
        """The invariants hold, and the count is right; now and then, all keys."""
        self.trie.check()
        assert len(self.trie) == len(self.model)

    def teardown(self) -> None:
        """All keys at the end."""
        assert self.trie.dump() == b"".join(sorted(self.model))
        shutil.rmtree(self.folder)


KINDS = {"memory": {}, "durable": {"on_disk": True}, "tiny budget": {"on_disk": True, "budget": 2000}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["rust", "python"])
@pytest.mark.timeout(7200 if LONG else 120)
def test_any_sequence_of_operations(name: str, kind: str) -> None:
    """Whatever is done in whatever order, the trie is the set."""
    machine = type("Machine", (TrieMachine,), {"core": load(name), **KINDS[kind]})
    if LONG:
        examples, steps = LONG_OPERATIONS // STEPS, STEPS
    else:
        examples, steps = (12, 60) if name == "rust" else (4, 40)
    state_machines.run(machine, examples, steps, long=LONG)
