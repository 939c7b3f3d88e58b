"""TLS settings of connections that Python opens, and the reasons of failed ones.

Groups and ciphers are the defaults of OpenSSL: X25519 and P-256 first, from 3.5 on X25519MLKEM768 before them.
"""

from __future__ import annotations

import ssl
from typing import Final

from nephila.downloader.http.contract import FetchError
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.errors import UsageError


def tls_context(verify: bool, ca_file: str = "") -> ssl.SSLContext:
    """The TLS context of the client; one for all connections. `ca_file`: a PEM file that is trusted as well.

    TLS 1.2 with forward secrecy is the least, as in the native core (ADR 227)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("DEFAULT:!kRSA")
    context.set_alpn_protocols(["http/1.1"])
    context.load_default_certs()
    if ca_file:
        trust_file(context, ca_file)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def trust_file(context: ssl.SSLContext, ca_file: str) -> None:
    """Trust the certificates of a PEM file. Raises `UsageError` if it cannot be read or has none."""
    try:
        context.load_verify_locations(ca_file)
    except ssl.SSLError:
        raise UsageError(f"{ca_file} has no PEM certificate (-----BEGIN CERTIFICATE-----)") from None
    except OSError as error:
        raise UsageError(f"cannot read the certificates {ca_file}: {error.strerror}") from None


DEMANDED: Final = "handshake: the server demands a client certificate"
# Codes of OpenSSL, include/openssl/x509_vfy.h.
_VERIFY_CAUSES: Final = {
    9: Reason.TLS_NOT_YET_VALID,
    10: Reason.TLS_EXPIRED,
    18: Reason.TLS_SELF_SIGNED,
    19: Reason.TLS_ISSUER,
    20: Reason.TLS_ISSUER,
    21: Reason.TLS_ISSUER,
    62: Reason.TLS_NAME,
    64: Reason.TLS_NAME,
}
_HANDSHAKE_CAUSES: Final = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": Reason.TLS_CLIENT_CERTIFICATE,
    "TLSV1_ALERT_PROTOCOL_VERSION": Reason.TLS_PROTOCOL,
    "TLSV1_ALERT_INSUFFICIENT_SECURITY": Reason.TLS_PROTOCOL,
    "SSLV3_ALERT_HANDSHAKE_FAILURE": Reason.TLS_PROTOCOL,
    "SSL/TLS_ALERT_HANDSHAKE_FAILURE": Reason.TLS_PROTOCOL,
    "UNSUPPORTED_PROTOCOL": Reason.TLS_PROTOCOL,
    "WRONG_SSL_VERSION": Reason.TLS_PROTOCOL,
    "NO_CIPHERS_AVAILABLE": Reason.TLS_PROTOCOL,
}


def dial_error(error: BaseException, scheme: str) -> FetchError:
    """Reason, cause and text of a connection that could not be opened."""
    if isinstance(error, FetchError):
        return error
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        cause = _VERIFY_CAUSES.get(error.verify_code, "")
        return FetchError(Reason.TLS, f"certificate: {error.verify_message}", cause)
    if isinstance(error, ssl.SSLError):
        reason = error.reason or text
        return FetchError(Reason.TLS, f"handshake: {reason}", _HANDSHAKE_CAUSES.get(reason, ""))
    if scheme == "https" and isinstance(error, (ConnectionResetError, ConnectionAbortedError, EOFError)):
        return FetchError(Reason.TLS, f"the connection was closed during the handshake: {text}")
    if isinstance(error, OSError):
        return FetchError(Reason.CONNECT, text)
    return FetchError(Reason.CONNECT, f"{type(error).__name__}: {text}")
