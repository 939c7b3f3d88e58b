"""Options by which every Kafka client of the project connects: brokers, TLS and SASL.

Passwords and certificates are rotated while programs run, so they are read again for each connection. A token for
OAUTHBEARER is read, or requested, for each connection, so that a connection never starts with an expired one.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import json
import logging
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import SaslAuthenticationFailed
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.runtime.secret_files import current

from nephila_cluster.kafka.config import KafkaConfig

log = logging.getLogger(__name__)
TOKEN_TIMEOUT_S = 10.0
"""Timeout of a request to the token endpoint."""
REFRESH_AT = 0.8
"""Part of the life of a token after which another one is requested."""
DEFAULT_LIFE_S = 300.0
"""Life of a token whose answer has no `expires_in`."""
MAX_ANSWER = 1 << 20


def connection_options(config: KafkaConfig) -> dict[str, Any]:
    """Keyword arguments of aiokafka's clients. Raises `UsageError` for a file that cannot be used."""
    options: dict[str, Any] = {
        "bootstrap_servers": config.bootstrap,
        "security_protocol": config.security_protocol,
    }
    if config.security_protocol.endswith("SSL"):
        options["ssl_context"] = ssl_context(config)
    if config.security_protocol.startswith("SASL"):
        options["sasl_mechanism"] = config.sasl_mechanism
        if config.sasl_mechanism == "OAUTHBEARER":
            options["sasl_oauth_token_provider"] = _token_provider(config)
        else:
            options["sasl_plain_username"] = config.sasl_username
            options["sasl_plain_password"] = current(config.sasl_password)
    return options


def ssl_context(config: KafkaConfig) -> _Renewed:
    """A context that verifies brokers and presents the client's certificate. Raises `UsageError`."""
    context = _trusting(config.ssl_ca_file, "ssl_ca_file")
    context.check_hostname = config.ssl_check_hostname
    certificate, key = config.ssl_certificate_file, config.ssl_key_file
    if not certificate:
        return context
    for name, path in (("ssl_certificate_file", certificate), ("ssl_key_file", key)):
        if path:
            _readable(path, name)
    # Without a password OpenSSL would ask for one on the terminal.
    password = config.ssl_key_password or "-"
    try:
        context.load_cert_chain(certificate, key or None, password)
        context.files, context.seen = (certificate, key or None, password), _times(certificate, key)
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(
            f"kafka: no certificate with its key in {certificate}{f' and {key}' if key else ''} ({_reason(error)}): "
            "both have to be PEM and to belong together; an encrypted key needs ssl_key_password"
        ) from None
    return context


class _Renewed(ssl.SSLContext):
    """A context whose certificate is read again when its file changes."""

    files: tuple[str, str | None, str] = ("", None, "")
    """Certificate, key, and the password of the key; no certificate: nothing is read again."""
    seen: tuple[int, ...] = ()
    """Times of change of the files when they were read."""

    def renew(self) -> None:
        """Read the certificate again if its files have changed. Files that do not belong together, as in the middle of
        a rotation, change nothing; the next connection tries again."""
        certificate, key, password = self.files
        if not certificate:
            return
        try:
            times = _times(certificate, key)
            if times != self.seen:
                self.load_cert_chain(certificate, key, password)
                self.seen = times
        except (OSError, ValueError) as error:
            log.warning("the certificate %s is rotated and cannot be used yet: %s", certificate, _reason(error))


def _times(*paths: str | None) -> tuple[int, ...]:
    return tuple(Path(path).stat().st_mtime_ns for path in paths if path)


def renew_credentials(connection: Any) -> None:
    """Give a connection of aiokafka that is about to open the present password and certificate."""
    if connection._sasl_plain_password:
        connection._sasl_plain_password = current(connection._sasl_plain_password)
    if isinstance(connection._ssl_context, _Renewed):
        connection._ssl_context.renew()


def _trusting(ca_file: str, setting: str) -> _Renewed:
    """A context that trusts the authorities in a file, or those of the system."""
    if ca_file:
        _readable(ca_file, setting)
    try:
        context = _Renewed(ssl.PROTOCOL_TLS_CLIENT)
        if ca_file:
            context.load_verify_locations(ca_file)
        else:
            context.load_default_certs()
        return context
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(f"kafka: {setting} {ca_file} holds no PEM certificate ({_reason(error)})") from None


def _readable(path: str, setting: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise UsageError(f"kafka: {setting} {path}: {error.strerror}") from None


def _reason(error: Exception) -> str:
    return getattr(error, "reason", None) or " ".join(str(error).split()) or type(error).__name__


class _FileToken(AbstractTokenProvider):  # type: ignore[misc]
    """The token in a file that another program renews."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def token(self) -> str:
        """The token at present."""
        try:
            text = (await asyncio.to_thread(self._path.read_text, "ascii")).strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "is not ASCII text"
            raise SaslAuthenticationFailed(f"no token in sasl_oauth_token_file {self._path}: {why}") from None
        if not text:
            raise SaslAuthenticationFailed(f"no token in sasl_oauth_token_file {self._path}: it is empty")
        return text


class EndpointToken(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens of an OAuth server for the client's own credentials. One token is used until REFRESH_AT of its life."""

    def __init__(self, config: KafkaConfig, monotonic: Any = time.monotonic) -> None:
        self._config = config
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0

    async def token(self) -> str:
        """A token that is valid for some time."""
        return await asyncio.to_thread(self._valid_token)

    def _valid_token(self) -> str:
        with self._lock:
            if self._monotonic() >= self._until:
                self._token, life_s = self._request()
                self._until = self._monotonic() + life_s * REFRESH_AT
            return self._token

    def _request(self) -> tuple[str, float]:
        """A token, and its life in seconds. Raises `SaslAuthenticationFailed`."""
        config = self._config
        url = config.sasl_oauth_token_url
        form = {"grant_type": "client_credentials"}
        if config.sasl_oauth_scope:
            form["scope"] = config.sasl_oauth_scope
        # RFC 6749, 2.3.1: both are encoded, also a slash and a colon.
        secret = current(config.sasl_oauth_client_secret)
        pair = ":".join(urllib.parse.quote(part, safe="") for part in (config.sasl_oauth_client_id, secret))
        headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}", "Accept": "application/json"}
        try:
            request = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers)
            context = _trusting(config.sasl_oauth_ca_file, "sasl_oauth_ca_file")
            with urllib.request.urlopen(request, timeout=TOKEN_TIMEOUT_S, context=context) as answer:
                fields = json.loads(answer.read(MAX_ANSWER))
            return str(fields["access_token"]), float(fields.get("expires_in", DEFAULT_LIFE_S))
        except urllib.error.HTTPError as error:
            with error:
                raise SaslAuthenticationFailed(
                    f"the token endpoint {url} refuses with status {error.code}: check sasl_oauth_client_id and "
                    "sasl_oauth_client_secret"
                ) from None
        except OSError as error:
            why = getattr(error, "reason", error)
            raise SaslAuthenticationFailed(f"the token endpoint {url} does not answer: {why}") from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise SaslAuthenticationFailed(f"the token endpoint {url} answers without an access_token") from None


@functools.lru_cache(maxsize=8)
def _token_provider(config: KafkaConfig) -> AbstractTokenProvider:
    """One provider for all clients with these settings, so that they share a token."""
    return EndpointToken(config) if config.sasl_oauth_token_url else _FileToken(config.sasl_oauth_token_file)
