"""A response body: decoded while it arrives, counted on the wire and decoded, cut off at the limits."""

from __future__ import annotations

from collections.abc import Iterator

from nephila.downloader.http.config import HttpConfig
from nephila.downloader.http.contract import FetchError
from nephila.downloader.http.response.decode import BoundedCoding, Coding, Piece, pump_all
from nephila.kernel.reasons.table import Reason

# Below this many decoded bytes the ratio is not checked: a small page of zeros is harmless.
RATIO_FLOOR_BYTES = 1 << 20
_MANY = 1024


class Pieces:
    """Collects bytes piece by piece; 1,024 pieces are joined into one, so that tiny pieces cost only their bytes."""

    __slots__ = ("_joined", "_parts")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._joined = 0

    def append(self, data: bytes) -> None:
        """O(len(data)) amortised: each byte is copied once before `join`."""
        parts = self._parts
        parts.append(data)
        if len(parts) - self._joined >= _MANY:
            parts[self._joined :] = (b"".join(parts[self._joined :]),)
            self._joined = len(parts)

    def join(self) -> bytes:
        """All bytes."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class Body:
    """Collects decoded bytes. `keep` > 0: the body is `full` at that size; further bytes are dropped without an error.
    `max_bytes` > 0 replaces both limits of the settings.

    Invariant: memory ≤ max_body_bytes (or keep) + one piece, + max_wire_bytes when the wire form is stored.
    """

    __slots__ = (
        "_codings",
        "_keep",
        "_parts",
        "_ratio",
        "_wire",
        "_wire_limit",
        "full",
        "limit",
        "size",
        "wire_bytes",
    )

    def __init__(
        self,
        config: HttpConfig,
        codings: list[Coding],
        keep: int = 0,
        keep_wire: bool = False,
        max_bytes: int = 0,
    ) -> None:
        self.limit = max_bytes or config.max_body_bytes
        # With several codings the output of the last one is counted here, that of the others in BoundedCoding.
        self._codings = [BoundedCoding(coding) for coding in codings[:-1]] + codings[-1:]
        self._keep = keep
        self._ratio = config.max_ratio
        self._wire_limit = max_bytes or config.max_wire_bytes
        self._parts = Pieces()
        self.size = 0
        self._wire = Pieces() if keep_wire and codings else None
        self.wire_bytes = 0
        self.full = False

    @property
    def coded(self) -> bool:
        """Whether bytes from the wire have to be decoded, which takes time."""
        return bool(self._codings)

    def feed(self, data: Piece) -> None:
        """Add bytes from the wire; raises `FetchError` (too_large, encoding)."""
        for _ in self.steps(data):
            pass

    def steps(self, data: Piece) -> Iterator[None]:
        """The same in steps of some milliseconds; the caller runs it to its end unless the body is `full`."""
        self.wire_bytes += len(data)
        if self.wire_bytes > self._wire_limit and not self._keep:
            raise FetchError(Reason.TOO_LARGE, f"more than {self._wire_limit} bytes on the wire")
        if self._wire is not None:
            self._wire.append(bytes(data))
        if self._codings:
            for piece in pump_all(self._codings, data):
                self._gather(piece)
                if self.full:
                    return
                yield
        else:
            self._gather(bytes(data))
        if self._keep and self.wire_bytes >= self._wire_limit:
            self.full = True

    def _gather(self, piece: bytes) -> None:
        if not piece:
            return
        self._parts.append(piece)
        self.size += len(piece)
        if self._keep:
            if self.size >= self._keep:
                self.full = True
        elif self.size > self.limit:
            raise FetchError(Reason.TOO_LARGE, f"more than {self.limit} bytes decoded")
        elif self.size > RATIO_FLOOR_BYTES and self.size > self._ratio * self.wire_bytes:
            raise FetchError(Reason.TOO_LARGE, f"ratio over {self._ratio:g}: {self.wire_bytes} bytes make {self.size}")

    def finish(self) -> bytes:
        """The whole body; raises `FetchError` when a coding is not complete."""
        if not self.full:
            for coding in self._codings:
                coding.finish()
        body = self._parts.join()
        self._parts = Pieces()
        return body[: self._keep] if self._keep else body

    def wire_body(self) -> bytes | None:
        """The body as received; None when it was not stored or equals the decoded one."""
        return None if self._wire is None else self._wire.join()
