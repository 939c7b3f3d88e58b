"""TLS settings of the fetchers, and the reasons of failed connections."""

from __future__ import annotations

import ssl

from nephila.downloader.http.contract import FetchError


def tls_context(verify: bool) -> ssl.SSLContext:
    """The TLS context of the client; one for all connections."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
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
        return FetchError("tls", f"certificate: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return FetchError("tls", f"handshake: {error.reason or text}")
    if scheme == "https" and isinstance(error, (ConnectionResetError, ConnectionAbortedError, EOFError)):
        return FetchError("tls", f"the connection was closed during the handshake: {text}")
    if isinstance(error, OSError):
        return FetchError("connect", text)
    return FetchError("connect", f"{type(error).__name__}: {text}")
