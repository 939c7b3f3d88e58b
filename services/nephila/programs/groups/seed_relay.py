"""Seeds between partitions, written down before they are confirmed: the main process is their broker.

A partition holds its commit back until the seeds that it has sent to others are safe. If that meant "in the log of the
other", two partitions could wait for each other. So a seed is safe when it is in this file, and it is sent again after
a restart until the log of its partition has it. The file is emptied whenever nothing in it is outstanding. An entry
that was torn by a crash was never confirmed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import Seed
from nephila.scheduler.durability.commit_log import disk_error, frame, whole_frames

NAME = "seeds.relay"


class Relayed(msgspec.Struct, array_like=True):
    """A seed on its way."""

    partition: int
    seed: Seed


class SeedRelay:
    """The file of a directory; `send` passes a seed on, and its receipt resolves when the log of the partition has
    it."""

    def __init__(self, directory: Path, send: Callable[[int, Seed], Receipt]) -> None:
        self.path = directory / NAME
        self._send = send
        self._fd = -1
        self._outstanding = 0
        self._size = 0
        self._left: list[Relayed] = []

    def open(self) -> None:
        """Open the file and read what a run before has left in it. Raises `UserError`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._left = list(self._read())
            os.ftruncate(self._fd, self._size)
        except OSError as error:
            raise disk_error(error, self.path) from None
        self._outstanding = len(self._left)

    def send_again(self) -> None:
        """Send what a run before has left, once; the jobs are at the partitions."""
        left, self._left = self._left, []
        for entry in left:
            self._pass_on(entry)

    def _read(self) -> Iterator[Relayed]:
        data = self.path.read_bytes()
        decode = msgspec.msgpack.Decoder(Relayed).decode
        for payload in whole_frames(data):
            self._size += len(frame(payload))
            yield decode(payload)

    def relay(self, partition: int, seed: Seed) -> Receipt:
        """Write a seed down and pass it on. Raises `UserError` when the disk refuses."""
        entry = Relayed(partition, seed)
        data = frame(msgspec.msgpack.encode(entry))
        try:
            if os.pwrite(self._fd, data, self._size) != len(data):
                raise OSError(28, os.strerror(28))
        except OSError as error:
            raise disk_error(error, self.path) from None
        self._size += len(data)
        self._outstanding += 1
        self._pass_on(entry)
        return Receipt(0)

    def _pass_on(self, entry: Relayed) -> None:
        self._send(entry.partition, entry.seed).add_done_callback(self._arrived)

    def _arrived(self) -> None:
        self._outstanding -= 1
        if not self._outstanding and self._size:
            os.ftruncate(self._fd, 0)
            self._size = 0

    def close(self) -> None:
        """Close the file; what is outstanding stays in it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
