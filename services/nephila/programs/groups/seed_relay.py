"""Seeds between partitions, written down before they are confirmed: the main process is their broker.

A partition holds its commit back until the seeds that it has sent to others are safe. If that meant "in the log of the
other", two partitions could wait for each other. So a seed is safe when it is in this file, and it is sent again after
a restart until the log of its partition has it. The file is emptied whenever nothing in it is outstanding and the logs
are on the disk. An entry that was torn by a crash was never confirmed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from nephila.kernel.bus.contract import Receipt
from nephila.kernel.messages import Seed
from nephila.programs.groups.disk_sync import After, at_once
from nephila.scheduler.durability.commit_log import disk_error, frame, whole_frames
from nephila.scheduler.group.partition_logs import RELAY


class Relayed(msgspec.Struct, array_like=True):
    """A seed on its way."""

    partition: int
    seed: Seed


class SeedRelay:
    """The file of a directory; `send` passes a seed on, and its receipt resolves when the log of the partition has
    it."""

    def __init__(
        self,
        directory: Path,
        send: Callable[[int, Seed], Receipt],
        after_logs: After = at_once,
        sync: Callable[[Callable[[], None]], After] = lambda sync: at_once,
    ) -> None:
        """`after_logs`: what is in the logs now is on the disk; `sync` makes such a wait of the sync of this file."""
        self.path = directory / RELAY
        self._send = send
        self._after_logs = after_logs
        self._after_sync = sync(self._sync)
        self._written = 0
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
        """Write a seed down and pass it on; the receipt resolves when it is on the disk. Raises `UserError` when the
        disk refuses."""
        entry = Relayed(partition, seed)
        data = frame(msgspec.msgpack.encode(entry))
        try:
            if os.pwrite(self._fd, data, self._size) != len(data):
                raise OSError(28, os.strerror(28))
        except OSError as error:
            raise disk_error(error, self.path) from None
        self._size += len(data)
        self._outstanding += 1
        self._written += 1
        self._pass_on(entry)
        receipt = Receipt()
        self._after_sync(receipt.resolve_one)
        return receipt

    def _sync(self) -> None:
        """In a thread; the file may be closed meanwhile."""
        try:
            with self.path.open("rb") as file:
                os.fdatasync(file.fileno())
        except OSError as error:
            raise disk_error(error, self.path) from None

    def _pass_on(self, entry: Relayed) -> None:
        self._send(entry.partition, entry.seed).add_done_callback(self._arrived)

    def _arrived(self) -> None:
        self._outstanding -= 1
        if not self._outstanding and self._size:
            self._after_logs(partial(self._empty, self._written))

    def _empty(self, written: int) -> None:
        """All seeds up to this number are on the disk in the logs of their partitions."""
        if written == self._written and self._size and self._fd >= 0:
            os.ftruncate(self._fd, 0)
            self._size = 0

    def close(self) -> None:
        """Close the file; what is outstanding stays in it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
