"""TLS settings of connections that Python opens, and the reasons of failed ones.

Groups and ciphers are the defaults of OpenSSL: X25519 and P-256 first, from 3.5 on X25519MLKEM768 before them.
"""

from __future__ import annotations

import ssl

from nephila.downloader.http.contract import FetchError
from nephila.kernel.reasons.table import Reason


def tls_context(verify: bool) -> ssl.SSLContext:
    """The TLS context of the client; one for all connections."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
