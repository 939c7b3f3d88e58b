"""The server side of TLS over bytes in memory: no transport is exchanged while a connection is open."""

from __future__ import annotations

import ssl

_READ_BYTES = 64 << 10


class TlsLayer:
    """One TLS connection. `receive` raises `ssl.SSLError` for bytes that are not TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._open = False

    def receive(self, data: bytes) -> bytes:
        """Decrypt bytes of the peer; empty while the handshake is not complete."""
        self._incoming.write(data)
        parts = []
        try:
            if not self._open:
                self._tls.do_handshake()
                self._open = True
            while part := self._tls.read(_READ_BYTES):
                parts.append(part)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):  # the latter: close_notify; the peer closes next
            pass
        return b"".join(parts)

    def encrypt(self, data: bytes) -> None:
        """Add bytes for the peer; `to_send` returns them encrypted."""
        self._tls.write(data)

    def to_send(self) -> bytes:
        """Encrypted bytes that have to be written now."""
        return self._outgoing.read()
