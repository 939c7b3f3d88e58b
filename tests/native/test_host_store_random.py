"""The host store against a naive model: random operations, checkpoints, and crashes after which the log is replayed."""

from __future__ import annotations

import os
import random
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from .conftest import load
from .host_stores import Walk, compare


class Crashing(Walk):
    """Checkpoints at random; a crash is a new store from the last manifest and what was done since."""

    def __init__(self, seed: int, make: list[Any], directory: Path, **limits: int) -> None:
        self.make = make
        self.directory = directory
        self.chance = random.Random(seed)
        self.manifest = b""
        super().__init__(seed, self.new(), **limits)

    def new(self) -> Any:
        """A store of one of the implementations on the same files."""
        return self.chance.choice(self.make)(str(self.directory))

    def checkpoint(self, cleanup: bool) -> None:
        """Make a manifest, and perhaps delete what it does not name."""
        self.manifest = self.store.checkpoint()
        self.done.clear()
        if cleanup:
            self.store.cleanup()

    def crash(self) -> None:
        """Lose the memory."""
        self.store = self.new()
        if self.manifest:
            self.store.restore(self.manifest)
        for action in self.done:
            action(self.store)
        if self.rng.random() < 0.5:
            self.store.cleanup()


def run(walk: Crashing, steps: int, look: int) -> None:
    """Steps with a checkpoint about every 60 and a crash about every 200; a look at everything every `look`."""
    for step in range(steps):
        walk.step()
        if walk.rng.random() < 1 / 60:
            walk.checkpoint(walk.rng.random() < 0.7)
        if walk.rng.random() < 1 / 200:
            walk.crash()
        walk.store.check()
        if step % look == 0:
            compare(walk.store, walk.model)
    compare(walk.store, walk.model)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("seed", "hosts"), [(1, 12), (2, 2), (3, 40)])
def test_random_operations_and_crashes(core: ModuleType, seed: int, hosts: int, tmp_path: Path) -> None:
    """Thousands of operations (10^5 with NEPHILA_LONG=1) with crashes in between leave what the model has."""
    steps, look = (100_000, 100) if os.environ.get("NEPHILA_LONG") else (2_500, 10)
    run(Crashing(seed, [core.HostStore], tmp_path, hosts=hosts), steps, look)


@pytest.mark.parametrize("share", [1, 400, 3000])
def test_merges_in_several_steps(share: int, tmp_path: Path) -> None:
    """A merge that stops at a host and goes on at the next checkpoint, or after a crash, loses and doubles nothing."""
    store = partial(load("rust").HostStore, merge_bytes=share)
    run(Crashing(21 + share, [store], tmp_path, hosts=40), 2_500, 10)


def test_one_large_host(core: ModuleType, tmp_path: Path) -> None:
    """A single queue over many runs, with long URLs in it, comes out in order from wherever it lies."""
    run(Crashing(12, [core.HostStore], tmp_path, jobs=1, hosts=1), 1_500, 50)
