"""Web Bot Auth: each request carries a signature by which a site recognises the crawler (RFC 9421, Ed25519).

Signed are the authority of the request and Signature-Agent, the URL of the directory with the public key, as
draft-meunier-web-bot-auth-architecture defines. A signature costs some 60 us and is valid for five minutes.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.middleware.contract import Middleware
from nephila.kernel import messages as m
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.extras import BROWSER, install_line

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LIFE_S = 300
_TAG = "web-bot-auth"


class WebBotAuth(Middleware):
    """Signs requests if the settings name a key."""

    def __init__(self, config: MiddlewareConfig, clock: Clock) -> None:
        self._clock = clock
        self._key = read_key(config.signature_key) if config.signature_key else None
        self._keyid = key_id(self._key) if self._key is not None else ""
        agent = config.signature_agent
        if any(char in agent for char in '"\\') or not agent.isascii() or not agent.isprintable():
            raise UsageError(f"signature_agent {agent!r}: not a URL")
        self._agent = f'"{agent}"' if agent else ""

    def acts_on(self, job: m.CrawlJob | None) -> bool:
        return self._key is not None

    def on_request(self, request: m.FetchRequest, http_request: HttpRequest) -> None:
        assert self._key is not None
        created = int(self._clock.now())
        components, base = '"@authority"', f'"@authority": {http_request.target.host_header.lower()}\n'
        if self._agent:
            components += ' "signature-agent"'
            base += f'"signature-agent": {self._agent}\n'
            http_request.add_header("Signature-Agent", self._agent)
        parameters = (
            f"({components});created={created};expires={created + LIFE_S}"
            f';keyid="{self._keyid}";alg="ed25519";tag="{_TAG}"'
        )
        signature = self._key.sign(f'{base}"@signature-params": {parameters}'.encode("ascii"))
        http_request.add_header("Signature-Input", f"sig={parameters}")
        http_request.add_header("Signature", f"sig=:{b64encode(signature).decode('ascii')}:")


def read_key(path: str) -> Ed25519PrivateKey:
    """The Ed25519 key of a PEM file; raises `UsageError` without its content."""
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise UsageError(f"signature_key: cryptography is not installed; {install_line(BROWSER)}") from None
    try:
        key = load_pem_private_key(Path(path).read_bytes(), None)
    except OSError as error:
        raise UsageError(f"signature_key {path}: {error.strerror}") from None
    except (ValueError, TypeError):
        raise UsageError(f"signature_key {path}: not a PEM file of a private key without password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"signature_key {path}: not an Ed25519 key")
    return key


def key_id(key: Ed25519PrivateKey) -> str:
    """The JWK thumbprint of the public key (RFC 8037), by which the directory names it."""
    x = urlsafe_b64encode(key.public_key().public_bytes_raw()).rstrip(b"=").decode("ascii")
    thumbprint = sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest()
    return urlsafe_b64encode(thumbprint).rstrip(b"=").decode("ascii")
