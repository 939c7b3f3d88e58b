"""Finds the head of a response in the bytes of a connection. Heads with a status of 1xx before it are skipped. Pure."""

from __future__ import annotations

from nephila.downloader.http.contract import MAX_HEAD_BYTES, MAX_INTERIM, FetchError
from nephila.downloader.http.response import response_head
from nephila.kernel.reasons.table import Reason

Head = tuple[int, dict[str, str], bool, bytes, memoryview]
"""Status, headers, whether it is HTTP/1.1 or newer, the bytes of the head, and the bytes after it."""


class StaleError(FetchError):
    """The bytes belong to an earlier response."""

    def __init__(self) -> None:
        super().__init__(Reason.PROTOCOL, "bytes of an earlier answer")


class HeadReader:
    """A head that arrives in one read is parsed in the buffer of the read; only an incomplete one is copied."""

    __slots__ = ("_head", "_interim")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """The next bytes begin a response."""
        self._head: bytearray | None = None
        self._interim = 0

    @property
    def begun(self) -> bool:
        """Whether a part of a head has arrived."""
        return self._head is not None

    def feed(self, shared: bytearray, shared_view: memoryview, nbytes: int, reused: bool) -> Head | None:
        """The first `nbytes` of the buffer have arrived; None: the head is not complete. `reused`: an earlier response
        came on this connection. Raises `FetchError`."""
        head = self._head
        if head is None:
            buffer, view, start, stop = shared, shared_view, 0, nbytes
        else:
            start = max(0, len(head) - 3)
            head += shared_view[:nbytes]
            buffer, view, stop = head, None, len(head)
        at = 0
        while True:
            end = response_head.find_end(buffer, max(at, start), stop)
            if (end if end >= 0 else stop) - at > MAX_HEAD_BYTES:
                raise FetchError(Reason.PROTOCOL, "headers over 64 KiB")
            if end < 0:
                self._keep(buffer, at, stop, reused)
                return None
            raw = bytes(buffer[at:end])
            status, headers, http11 = _parse(raw, reused)
            at = end
            if status >= 200:
                break
            if status == 101:
                raise FetchError(Reason.PROTOCOL, "the server switches protocols without a request")
            self._interim += 1
            if self._interim > MAX_INTERIM:
                raise FetchError(Reason.PROTOCOL, f"over {MAX_INTERIM} heads with a status of 1xx")
        self._head = None
        if view is None:
            view = memoryview(bytes(buffer))
        return status, headers, http11, raw, view[at:stop]

    def _keep(self, buffer: bytearray, at: int, stop: int, reused: bool) -> None:
        if self._head is None:
            self._head = buffer[at:stop]
        elif at:
            del self._head[:at]
        if len(self._head) >= 5 and not self._head.lstrip(b"\r\n").startswith(b"HTTP/"[: len(self._head)]):
            _parse(bytes(self._head), reused)


def _parse(raw: bytes, reused: bool) -> tuple[int, dict[str, str], bool]:
    try:
        return response_head.parse(raw.lstrip(b"\r\n"))
    except FetchError:
        if reused:
            # Rest of the previous response, whose length was wrong: this request has no response yet.
            raise StaleError from None
        raise
