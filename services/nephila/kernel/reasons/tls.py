"""Rows of the causes of the reason `tls`: no safe connection to the server of a URL could be made. Pure.

All causes share their effects and are reported under `tls`, the word of versions that knew no causes. They differ in
the words and in the remedy: some faults end when a person trusts a certificate, some only at the server.
"""

from __future__ import annotations

from typing import Final

from nephila.kernel.messages import Outcome
from nephila.kernel.reasons.row import ListVerdict, Retry, Row

_ANY: Final = "--insecure (tls_verify: false) accepts any"
_TRUST: Final = f"--ca-file FILE (ca_file) trusts it, {_ANY}"


def _row(what: str, remedy: str = "") -> Row:
    words = f"no safe connection to its server could be made (TLS): {what}{f'; {remedy}' if remedy else ''}"
    return Row(Outcome.FAILED, words, verdict=ListVerdict.TLS, retry=Retry.TRIES, unreachable=True, reported_as="tls")


UNKNOWN_CAUSE: Final = Row(
    Outcome.FAILED,
    "no safe connection to its server could be made (TLS: certificate or handshake)",
    verdict=ListVerdict.TLS,
    retry=Retry.TRIES,
    unreachable=True,
)
SELF_SIGNED: Final = _row("its certificate is self-signed and not trusted", _TRUST)
ISSUER: Final = _row("the issuer of its certificate is not known, or the server leaves it out", _TRUST)
EXPIRED: Final = _row("its certificate has expired", _ANY)
NOT_YET_VALID: Final = _row("its certificate is not valid yet: check this machine's clock", _ANY)
NAME: Final = _row("its certificate is for another name", _ANY)
PROTOCOL: Final = _row("it has no version or cipher in common: TLS 1.0, TLS 1.1 and RSA key exchange are not used")
CLIENT_CERTIFICATE: Final = _row("it demands a client certificate, and the crawler has none")
