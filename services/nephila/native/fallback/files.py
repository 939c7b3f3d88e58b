"""Files and manifests of the fallback: one msgpack value behind a magic, a format number and a CRC-32.

Invariant: a file has its name only when it is complete and durable. A value that does not fit its checksum, its format
number or its type is refused with one line.
"""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec

MAGIC = b"NPHFALL\x00"
FORMAT = 1
_HEAD = struct.Struct("<8sII")
_encode = msgspec.msgpack.Encoder().encode


def pack(value: Any) -> bytes:
    """A value with magic, format number and checksum."""
    payload = _encode(value)
    return _HEAD.pack(MAGIC, FORMAT, crc32(payload)) + payload


def unpack(data: bytes, where: str, kind: Any) -> Any:
    """The value of a type; ValueError for other bytes."""
    if data[:8] != MAGIC or len(data) < _HEAD.size:
        raise ValueError(f"{where} is not a file of nephila's Python fallback; move it away or choose another --out")
    _, number, checksum = _HEAD.unpack_from(data)
    if number != FORMAT:
        raise ValueError(
            f"{where} was written in fallback format {number}, this program reads {FORMAT}; "
            "resume with the program version that wrote it"
        )
    try:
        if crc32(data[_HEAD.size :]) == checksum:
            return msgspec.msgpack.decode(data[_HEAD.size :], type=kind)
    except msgspec.DecodeError:
        pass
    raise ValueError(f"{where} is damaged; restore it from a backup")


class Checkpoints:
    """The files DIRECTORY/PREFIX-NNNNNNNN.SUFFIX of one structure: one for each checkpoint, named by its manifest.

    Files stay until `cleanup`.
    """

    def __init__(self, directory: str, prefix: str, suffix: str) -> None:
        self.directory = Path(directory)
        self._prefix, self._suffix = prefix, suffix
        self._named: int | None = None
        self.size_bytes = 0

    def _path(self, number: int) -> Path:
        return self.directory / f"{self._prefix}-{number:08}.{self._suffix}"

    def _numbers(self) -> list[int]:
        pattern = re.compile(rf"{re.escape(self._prefix)}-([0-9]{{8,}})\.{self._suffix}")
        names = os.listdir(self.directory) if self.directory.is_dir() else []
        return [int(match[1]) for name in names if (match := pattern.fullmatch(name))]

    def write(self, value: Any) -> bytes:
        """Write a checkpoint durably; its manifest. OSError, with no file left behind, when the disk refuses."""
        self.directory.mkdir(parents=True, exist_ok=True)
        number = max(self._numbers(), default=0) + 1
        path, data = self._path(number), pack(value)
        temporary = path.with_name(path.name + ".tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.rename(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise OSError(error.errno, error.strerror, str(path)) from None
        descriptor = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._named, self.size_bytes = number, len(data)
        return pack((self._prefix, number, crc32(data)))

    def read(self, manifest: bytes, kind: Any) -> Any:
        """The value of the checkpoint that a manifest names."""
        _, number, checksum = unpack(manifest, f"manifest of {self._prefix}", tuple[str, int, int])
        path = self._path(number)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise ValueError(f"{path} is missing; restore it from a backup") from None
        value = unpack(data, str(path), kind)
        if crc32(data) != checksum:
            raise ValueError(f"{path} belongs to another checkpoint; restore it from a backup")
        self._named, self.size_bytes = number, len(data)
        return value

    def cleanup(self) -> int:
        """Delete the files that the last manifest does not name; how many. Without a manifest: all of the prefix."""
        for left in self.directory.glob(f"{self._prefix}-*.tmp"):
            left.unlink(missing_ok=True)
        gone = [number for number in self._numbers() if number != self._named]
        for number in gone:
            self._path(number).unlink(missing_ok=True)
        return len(gone)
