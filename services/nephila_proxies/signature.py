"""What two fetches of one URL are compared by: status, target of a redirect, bytes, words. Pure.

Two responses are alike when their bytes are equal, or when their words are: the simhashes of the documents as received
differ in at most `MAX_DISTANCE` of 64 bits. So a page with other times, tokens or advertisements is alike, and a page
of the proxy's own is not. A change of some words within a page is not found.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from nephila.downloader.http.contract import HttpResponse
from nephila.native import simhash

MAX_DISTANCE = 16
"""Of 64 bits. Unrelated texts differ in 32 +- 4, so 1 of 20,000 pairs of them is alike."""
COMPARED_BYTES = 256 << 10
"""The words of a longer document are compared up to here."""


class Signature(NamedTuple):
    """One response."""

    status: int
    location: str
    digest: bytes
    """Of the body; empty: there is none."""
    words: int
    """Simhash; 0: fewer than 16 words."""

    def is_like(self, other: Signature) -> bool:
        """Whether both responses may be those of one server."""
        if self.status != other.status or self.location != other.location:
            return False
        if self.digest == other.digest:
            return True
        return bool(self.words and other.words) and (self.words ^ other.words).bit_count() <= MAX_DISTANCE


def digest_of(response: HttpResponse) -> bytes:
    """Digest of a body; empty without one."""
    return blake2b(response.body, digest_size=16).digest() if response.body else b""


def signature_of(response: HttpResponse) -> Signature:
    """The signature of a response. O(bytes), at most `COMPARED_BYTES` of them for the words."""
    body = response.body
    words = simhash(bytes(body[:COMPARED_BYTES])) if body else 0
    return Signature(response.status, response.headers.get("location", ""), digest_of(response), words)
