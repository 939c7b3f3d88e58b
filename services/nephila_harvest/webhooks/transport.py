"""Sends one delivery over HTTP. Invariant: only addresses that the egress guard or the allow-list passes are dialled.

A name is resolved once for a connection, each address is checked, and only checked ones are dialled. Redirects are not
followed, proxies of the environment are not used, and of the answer only status and Retry-After are read.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from nephila.kernel.net.egress import EgressError, EgressGuard
from nephila.native import parse_url


class DeliveryAnswer(NamedTuple):
    """How an attempt ended."""

    status: int
    """0: no answer."""
    error: str = ""
    """Why there is no answer, in one line."""
    retry_after_s: float = 0.0


class WebhookTransport(Protocol):
    """How deliveries are sent."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAnswer:
        """One attempt; never raises for a fault of the receiver or the network."""

    async def close(self) -> None:
        """Close all connections."""


class AllowedAddresses:
    """The egress guard, with networks that may be dialled although they are private."""

    def __init__(self, networks: Iterable[str] = (), guard: EgressGuard | None = None) -> None:
        self._networks = [ipaddress.ip_network(network) for network in networks]
        self._guard = guard or EgressGuard()

    def check(self, host: str, addresses: Iterable[str]) -> list[str]:
        """The addresses that may be dialled. Raises `EgressError` when there is none."""
        candidates = list(addresses)
        passed = [address for address in candidates if self._listed(address)]
        return passed or list(self._guard.allowed(host, candidates))

    def check_port(self, port: int) -> None:
        """Raise `EgressError` for the port of another protocol."""
        self._guard.check_port(port)

    def _listed(self, address: str) -> bool:
        parsed = ipaddress.ip_address(address.partition("%")[0])
        return any(parsed.version == network.version and parsed in network for network in self._networks)


class GuardedNames(AbstractResolver):
    """Resolves names to checked addresses."""

    def __init__(self, allowed: AllowedAddresses) -> None:
        self._allowed = allowed
        self._inner = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Raises `EgressError`, `OSError`."""
        results = await self._inner.resolve(host, port, family)
        passed = set(self._allowed.check(host, [result["host"] for result in results]))
        return [result for result in results if result["host"] in passed]

    async def close(self) -> None:
        await self._inner.close()


class HttpTransport:
    def __init__(self, allow_addresses: Iterable[str], timeout_s: float) -> None:
        self._allowed = AllowedAddresses(allow_addresses)
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAnswer:
        requested_url = url
        try:
            url = parse_url(url).href  # hosts in their canonical spelling: full-width digits are an address, too
            self._check_literal(url)
            async with self._open().post(url, data=body, headers=headers, allow_redirects=False) as response:
                return DeliveryAnswer(response.status, "", _seconds(response.headers.get("Retry-After", "")))
        except EgressError as error:
            return DeliveryAnswer(0, f"refused: {error}; list the network in allow_addresses to allow it")
        except TimeoutError:
            return DeliveryAnswer(0, f"no answer in {self._timeout.total:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return DeliveryAnswer(
                0, _without_url(" ".join(str(error).split()), requested_url, url)[:300] or type(error).__name__
            )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _check_literal(self, url: str) -> None:
        # The client resolves names by `GuardedNames`, but an address in the URL is dialled without it.
        parts = urlsplit(url)
        host = parts.hostname or ""
        self._allowed.check_port(80 if parts.port is None else parts.port)
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return
        self._allowed.check(host, [host])

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(resolver=GuardedNames(self._allowed), use_dns_cache=False, limit=100)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=self._timeout, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


def _without_url(text: str, *urls: str) -> str:
    """A text without the URLs of a webhook: their path is often its secret."""
    for url in urls:
        _, _, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        for secret in (url, rest, slash + path):
            if len(secret) > 1:
                text = text.replace(secret, f"{host}/..." if host in secret else "/...")
    return text


def _seconds(text: str) -> float:
    """The seconds of a Retry-After header; 0 for a date and for nonsense."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0.0
