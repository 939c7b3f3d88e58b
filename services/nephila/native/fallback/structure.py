"""Structures are made and read by the native core alone: here no page has one, and Markdown is the plain text."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(structure: bytes, text: bytes, url: str, links: str = "inline", nowhere: str = "") -> bytes:
    return b""


def recoded(structure: bytes, text: bytes, stored: bytes) -> bytes:
    return b""


def blocks(structure: bytes, text: bytes, url: str) -> bytes:
    return b""


def structure_by(body: bytes, encoding: str, main: Sequence[int]) -> tuple[bytes, bytes]:
    return b"", b""
