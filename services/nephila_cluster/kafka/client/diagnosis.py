"""Why a broker cannot be used, in one line with its remedy.

aiokafka reports one error for every failed connection: "Unable to bootstrap". The diagnosis connects once more, step by
step, and translates the error of the first step that fails: name, TCP, TLS, SASL, the listeners that the broker
advertises.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from typing import Any

from aiokafka.conn import AIOKafkaConnection, collect_hosts, create_conn
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from nephila_cluster.kafka.client.security import connection_options
from nephila_cluster.kafka.config import KafkaConfig

TIMEOUT_S = 5.0
_NAME_CODES = (62, 64)
"""OpenSSL's codes of a certificate for another host name, or another IP address."""


async def diagnose(config: KafkaConfig) -> str:
    """The first fault found; empty if a broker answers with all its listeners, or if none listens."""
    options = connection_options(config)
    advertised: list[tuple[str, int]] = []
    fault = ""
    for host, port, _ in collect_hosts(options.pop("bootstrap_servers")):
        reason = await _try(config, host, port, options, advertised)
        if not reason and advertised:
            break
        fault = fault or reason
    else:
        return fault
    for host, port in advertised:
        if reason := await _try(config, host, port, options, []):
            return f"the broker advertises {host}:{port}: {reason}"
    return ""


async def _try(
    config: KafkaConfig, host: str, port: int, options: dict[str, Any], advertised: list[tuple[str, int]]
) -> str:
    """Connect and ask for the brokers of the cluster, which are appended to `advertised`; the fault, or nothing."""
    connection: AIOKafkaConnection | None = None
    try:
        connection = await create_conn(host, port, request_timeout_ms=int(TIMEOUT_S * 1000), **options)
        answer = await connection.send(MetadataRequest([]))
        advertised += [(broker[1], broker[2]) for broker in answer.brokers]
        return ""
    except (KafkaError, OSError, EOFError, TimeoutError) as error:
        connected = connection is not None
        return await _explain(config, host, port, error, connected=connected)
    finally:
        if connection is not None:
            await connection.close()


async def _explain(config: KafkaConfig, host: str, port: int, error: BaseException, *, connected: bool) -> str:
    at = f"{host}:{port}"
    for cause in _causes(error):
        if reason := _known(config, at, cause):
            return reason
    if isinstance(error, ConnectionRefusedError):
        return ""
    if config.security_protocol.endswith("SSL"):
        if not connected and await _closes_tls(host, port):
            return (
                f"{at} does not speak TLS: it is a plaintext listener; name a TLS listener, or set security_protocol "
                f"{'SASL_PLAINTEXT' if config.security_protocol == 'SASL_SSL' else 'PLAINTEXT'}"
            )
    elif await _speaks_tls(host, port):
        return (
            f"{at} speaks TLS: set security_protocol "
            f"{'SASL_SSL' if config.security_protocol.startswith('SASL') else 'SSL, or SASL_SSL with a sasl_mechanism'}"
        )
    if connected and not config.security_protocol.startswith("SASL"):
        sasl = "SASL_SSL" if config.security_protocol == "SSL" else "SASL_PLAINTEXT"
        return f"{at} closes the connection before the first request: if it requires SASL, set security_protocol {sasl}"
    return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and what caused it."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _known(config: KafkaConfig, at: str, error: BaseException) -> str:
    """The line for an error whose type names the cause; empty for all others."""
    match error:
        case ssl.SSLCertVerificationError(verify_code=code, verify_message=message) if code in _NAME_CODES:
            return (
                f"the certificate of {at} is for another host ({message.rstrip('.')}): use the name in its "
                "certificate, or set ssl_check_hostname to false"
            )
        case ssl.SSLCertVerificationError(verify_message=message):
            trusted = config.ssl_ca_file or "the authorities of the system"
            return (
                f"the certificate of {at} is not trusted by {trusted} ({message}): set ssl_ca_file to the CA of the "
                "brokers"
            )
        case ssl.SSLError(reason=str(reason)) if "ALERT" in reason and "CERTIFICATE" in reason:
            return (
                f"{at} refuses the certificate of this client ({reason.lower().replace('_', ' ')}): set "
                "ssl_certificate_file and ssl_key_file to one that its CA signed"
            )
        case SaslAuthenticationFailed():
            return f"{at} does not authenticate this client: {_login(config, error)}"
        case UnsupportedSaslMechanismError():
            return f"{at} has no {config.sasl_mechanism}: set sasl_mechanism to one that the broker enables"
        case IllegalSaslStateError():
            protocol = "SSL" if config.security_protocol == "SASL_SSL" else "PLAINTEXT"
            return f"{at} does not use SASL: name another listener, or set security_protocol {protocol}"
        case socket.gaierror():
            return f"the name {at.rpartition(':')[0]} is not known: {error.strerror}"
    return ""


def _login(config: KafkaConfig, error: SaslAuthenticationFailed) -> str:
    """What to check; the broker's words where it has any, since the error itself is only that the login failed."""
    detail = " ".join(str(error.args[0] if error.args else "").split())
    if config.sasl_mechanism == "OAUTHBEARER":
        return detail or "check its token"
    return f"check sasl_username {config.sasl_username!r} and sasl_password ({detail or config.sasl_mechanism})"


async def _speaks_tls(host: str, port: int) -> bool:
    """Whether a TLS handshake is answered; no certificate is checked, nothing is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        async with asyncio.timeout(TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except (OSError, TimeoutError) as error:
        return isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or "")
    writer.transport.abort()
    return True


async def _closes_tls(host: str, port: int) -> bool:
    """Whether the port is open and answers no TLS handshake."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.transport.abort()
    return not await _speaks_tls(host, port)
