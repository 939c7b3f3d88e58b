"""TLS settings of the fetchers, sessions for resumption, and the reasons of failed connections.

Groups and ciphers are the defaults of OpenSSL: X25519 and P-256 first, from 3.5 on X25519MLKEM768 before them.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from typing import Any

from nephila.downloader.http.contract import FetchError
from nephila.kernel.reasons.table import Reason

MAX_SESSIONS = 2000
"""Sessions stored for resumption, about 4 KB each; the one used least recently is dropped."""


class ResumingContext(ssl.SSLContext):
    """A client context that offers the server its last session: no signature is made and no chain is checked again.

    Event loops have no parameter for a session, so it is added where they begin a connection. OpenSSL offers only
    sessions that have not expired, and a server that does not accept one makes a full handshake.
    """

    _sessions: OrderedDict[str, ssl.SSLSession]

    def __new__(cls, *arguments: Any, **options: Any) -> ResumingContext:
        context = super().__new__(cls, *arguments, **options)
        context._sessions = OrderedDict()
        return context

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """See `ssl.SSLContext.wrap_bio`."""
        if session is None and isinstance(server_hostname, str):
            session = self._sessions.get(server_hostname)
            if session is not None:
                self._sessions.move_to_end(server_hostname)
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def keep_session(self, tls: ssl.SSLObject) -> None:
        """Offer the session of this connection at the next ones to its host.

        A resumed connection has nothing to store: the earlier session serves until the server does not accept it. To
        read a session costs a quarter of a handshake, since Python copies it with the certificate.
        """
        if tls.session_reused or not isinstance(tls.server_hostname, str):
            return
        session = tls.session
        if session is None or not session.has_ticket:
            return
        self._sessions[tls.server_hostname] = session
        self._sessions.move_to_end(tls.server_hostname)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)


def tls_context(verify: bool) -> ResumingContext:
    """The TLS context of the client; one for all connections."""
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    context.load_default_certs()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def dial_error(error: BaseException, scheme: str) -> FetchError:
    """Reason and text of a connection that could not be opened."""
    if isinstance(error, FetchError):
        return error
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        return FetchError(Reason.TLS, f"certificate: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return FetchError(Reason.TLS, f"handshake: {error.reason or text}")
    if scheme == "https" and isinstance(error, (ConnectionResetError, ConnectionAbortedError, EOFError)):
        return FetchError(Reason.TLS, f"the connection was closed during the handshake: {text}")
    if isinstance(error, OSError):
        return FetchError(Reason.CONNECT, text)
    return FetchError(Reason.CONNECT, f"{type(error).__name__}: {text}")
