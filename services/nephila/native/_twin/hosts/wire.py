"""Bytes of the host store's files: variable-length integers, sealed buffers, and the three kinds of header.

Invariant: whatever the bytes are, reading ends in a value or in a ValueError of one line that names the file and the
remedy; no length is believed before it was compared with what is there.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

VERSION = 1
RUN_MAGIC = b"NPHQRUN\x00"
RUN_END = b"NPHQEND\x00"
TABLE_MAGIC = b"NPHQTAB\x00"
MANIFEST_MAGIC = b"NPHQMAN\x00"
HEAD = 12
"""Bytes of magic and version."""

_CRC = struct.Struct("<I")


def damaged(path: Path | str, where: int) -> ValueError:
    """The file is ours and cannot be right."""
    return ValueError(f"{path} is damaged at byte {where}; restore it from a backup")


def head(magic: bytes) -> bytes:
    """Magic and version."""
    return magic + _CRC.pack(VERSION)


def check_head(path: Path | str, data: bytes, magic: bytes) -> None:
    """ValueError unless `data` begins with this magic and our version."""
    if data[:8] != magic:
        raise ValueError(f"{path} is not a host store file of nephila; move it away or choose another --out")
    if len(data) < HEAD:
        raise damaged(path, len(data))
    version = _CRC.unpack_from(data, 8)[0]
    if version != VERSION:
        raise ValueError(
            f"{path} was written in host store format {version}, this program reads {VERSION}; "
            "resume with the program version that wrote it"
        )


def seal(data: bytes) -> bytes:
    """The bytes with their CRC-32 behind them."""
    return data + _CRC.pack(zlib.crc32(data))


def unseal(path: Path | str, data: bytes) -> bytes:
    """The inverse of `seal`; ValueError when the checksum does not fit."""
    if len(data) < 4 or _CRC.unpack_from(data, len(data) - 4)[0] != zlib.crc32(data[:-4]):
        raise damaged(path, max(0, len(data) - 4))
    return data[:-4]


def varint(value: int) -> bytes:
    """LEB128: seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    """A signed integer as a varint: 0, -1, 1, -2, ... are 0, 1, 2, 3, ..."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


class Cursor:
    """Reads a buffer from its front."""

    __slots__ = ("_data", "_path", "at")

    def __init__(self, path: Path | str, data: bytes, at: int) -> None:
        self._path = path
        self._data = data
        self.at = at

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        part = self._data[self.at : self.at + length]
        if len(part) != length:
            raise damaged(self._path, self.at)
        self.at += length
        return part

    def varint(self, most: int = 2**63) -> int:
        """The next variable-length integer, at most `most`."""
        value = shift = 0
        while True:
            if shift > 63 or self.at >= len(self._data):
                raise damaged(self._path, self.at)
            byte = self._data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                break
            shift += 7
        if value > most:
            raise damaged(self._path, self.at)
        return value

    def zigzag(self) -> int:
        """The next signed integer."""
        value = self.varint()
        return value >> 1 if value & 1 == 0 else -(value + 1 >> 1)

    def end(self) -> None:
        """ValueError when something is left."""
        if self.at != len(self._data):
            raise damaged(self._path, self.at)
