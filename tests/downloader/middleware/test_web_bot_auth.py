"""Web Bot Auth: signatures that a site can verify with the public key."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from nephila.downloader.http.contract import HttpRequest
from nephila.downloader.http.route import NO_ROUTE
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.middleware.web_bot_auth import WebBotAuth, key_id
from nephila.kernel.messages import FetchRequest
from nephila.kernel.runtime.clock import ManualClock
from nephila.kernel.runtime.errors import UsageError

# The Ed25519 key of RFC 9421, B.1.4, and its thumbprint in draft-meunier-web-bot-auth-architecture.
PEM = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----
"""
THUMBPRINT = "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"


def signed(url: str, key: Path, agent: str = "") -> dict[str, str]:
    """The headers that a request to this URL gets."""
    middleware = WebBotAuth(MiddlewareConfig(signature_key=str(key), signature_agent=agent), ManualClock())
    request = HttpRequest(TargetUrl(url), NO_ROUTE)
    middleware.on_request(FetchRequest(), request)
    return request.own_headers()


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """The key in a file."""
    path = tmp_path / "key.pem"
    path.write_text(PEM)
    return path


@pytest.mark.parametrize(
    ("url", "authority"),
    [("https://Site.Example/a?b", "site.example"), ("http://site.example:8080/", "site.example:8080")],
)
def test_a_site_verifies_the_signature(key: Path, url: str, authority: str) -> None:
    """The signature base is built from the headers as RFC 9421 2.5 says, and the public key accepts it."""
    headers = signed(url, key, "https://crawler.example")
    parameters = headers["Signature-Input"].removeprefix("sig=")
    assert f'keyid="{THUMBPRINT}"' in parameters
    assert 'tag="web-bot-auth"' in parameters
    created, expires = (int(re.search(rf"{name}=(\d+)", parameters)[1]) for name in ("created", "expires"))  # type: ignore[index]
    assert (created, expires) == (1_800_000_000, 1_800_000_300)
    base = (
        f'"@authority": {authority}\n"signature-agent": {headers["Signature-Agent"]}\n"@signature-params": {parameters}'
    )
    assert headers["Signature-Agent"] == '"https://crawler.example"'
    signature = b64decode(headers["Signature"].removeprefix("sig=:").removesuffix(":"))
    private = Ed25519PrivateKey.from_private_bytes(b64decode(PEM.split("\n")[1])[-32:])
    private.public_key().verify(signature, base.encode())
    assert key_id(private) == THUMBPRINT


def test_without_a_key_nothing_is_signed() -> None:
    """The middleware acts on no job."""
    assert not WebBotAuth(MiddlewareConfig(), ManualClock()).acts_on(None)


def test_keys_that_cannot_sign(tmp_path: Path, key: Path) -> None:
    """One line names the setting and the file, never the content."""
    text = tmp_path / "text.pem"
    text.write_text("secret")
    rsa = tmp_path / "rsa.pem"
    rsa.write_bytes(generate_private_key(65_537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    for path in (text, rsa, tmp_path / "missing.pem"):
        with pytest.raises(UsageError, match="signature_key") as error:
            signed("https://site.example/", path)
        assert "secret" not in str(error.value)
    with pytest.raises(UsageError, match="signature_agent"):
        signed("https://site.example/", key, 'https://a"b')
