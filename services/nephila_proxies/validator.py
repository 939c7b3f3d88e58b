"""The validator: is a proxy reachable, does it return the requested page, what does it reveal, where is it?

With a check URL the proxy fetches an echo page, a page that shows the request it received: `proxies.check_url`. The
request carries a random token, and the answer has to contain it, so a proxy that shows a page of its own fails. The
headers in the answer say how much the proxy reveals. Without a check URL only the connection is tested.
"""

import asyncio
import re
import secrets
import ssl
from typing import Any

import msgspec
from nephila.downloader.dns.contract import ResolveError
from nephila.downloader.dns.guarded_resolver import GuardedResolver
from nephila.downloader.http.contract import Fetcher, HttpRequest, HttpResponse
from nephila.downloader.http.route import Route, direct_route
from nephila.downloader.http.target import TargetUrl
from nephila.downloader.http.tls import dial_error, tls_context
from nephila.kernel.net.egress import EgressError
from nephila.kernel.reasons.table import Reason
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.late_pattern import late_pattern

from nephila_proxies.countries import Countries
from nephila_proxies.fetch_once import fetch_once
from nephila_proxies.proxy import Proxy, ProxyFault
from nephila_proxies.selection import route_through

ECHO_BYTES = 256 << 10
REACH_S = 10.0
"""Time limit of a connection test."""
_REVEALING = late_pattern(
    r"\b(via|forwarded|x-forwarded-for|x-forwarded-host|x-real-ip|client-ip|proxy-connection|x-proxy-id)\b", re.I
)
_ADDRESS = late_pattern(
    r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}"
)


class CheckResult(msgspec.Struct, frozen=True):
    """What a check found."""

    fault: ProxyFault | None
    detail: str = ""
    took_s: float = 0.0
    addresses: tuple[str, ...] = ()
    anonymity: str = ""
    https: bool = True
    country: str = ""


class Validator:
    """Checks proxies one by one; the caller bounds how many at once."""

    def __init__(
        self,
        fetcher: Fetcher,
        resolver: GuardedResolver,
        proxy_resolver: GuardedResolver,
        trusted_resolver: GuardedResolver,
        clock: Clock,
        countries: Countries,
        *,
        check_url: str,
        https_url: str,
        country_header: str,
        names: str,
        tls_verify: bool = True,
        ca_file: str = "",
    ) -> None:
        """`resolver` looks up the check URL, `proxy_resolver` proxies. `trusted_resolver` looks up proxies that the
        operator named, and accepts private addresses."""
        self._fetcher = fetcher
        self._resolver = resolver
        self._proxy_resolver = proxy_resolver
        self._trusted_resolver = trusted_resolver
        self._clock = clock
        self._countries = countries
        self._check_url = check_url
        self._https_url = https_url
        self._country_header = country_header.lower()
        self._names = names
        self._tls_verify, self._ca_file = tls_verify, ca_file
        self._tls: ssl.SSLContext | None = None
        self._own_addresses: frozenset[str] | None = None
        self._direct_words: frozenset[str] = frozenset()
        self._echo_addresses: set[str] = set()
        """Addresses of the echo page itself, which its text may show, in the header Host for example."""

    async def close(self) -> None:
        """Cancel look-ups."""
        await self._proxy_resolver.close()
        await self._trusted_resolver.close()

    async def check(self, proxy: Proxy) -> CheckResult:
        """Check one proxy; never raises for a fault of the proxy."""
        endpoint = proxy.endpoint
        resolver = self._trusted_resolver if endpoint.trusted else self._proxy_resolver
        try:
            addresses, port = await resolver.resolve(endpoint.host, endpoint.port)
        except (EgressError, ResolveError) as error:
            return CheckResult(ProxyFault.DEAD, str(error))
        proxy.addresses = addresses
        country = endpoint.country or self._countries.find(addresses[0])
        if not self._check_url:
            return await self._reach(proxy, addresses, port, country)
        if self._own_addresses is None:
            await self._learn_own_addresses()
        started = self._clock.monotonic()
        response, token = await self._echo(self._check_url, proxy)
        fault, detail = _judge(response, token)
        if fault is not None:
            return CheckResult(fault, detail, addresses=addresses)
        took_s = self._clock.monotonic() - started
        https = True
        if self._https_url:
            https = _judge(*await self._echo(self._https_url, proxy))[0] is None
        if self._country_header and (header := response.headers.get(self._country_header, "")):
            country = header.strip().lower()[:2]
        return CheckResult(None, "", took_s, addresses, self._anonymity(response), https, country)

    async def _reach(self, proxy: Proxy, addresses: tuple[str, ...], port: int, country: str) -> CheckResult:
        tls: dict[str, Any] = {}
        if proxy.endpoint.scheme == "https":
            if self._tls is None:
                self._tls = tls_context(self._tls_verify, self._ca_file)
            tls = {"ssl": self._tls, "server_hostname": proxy.endpoint.host}
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(REACH_S):
                _, writer = await asyncio.open_connection(addresses[0], port, **tls)
        except TimeoutError:
            return CheckResult(ProxyFault.DEAD, f"no connection within {REACH_S:g} s", addresses=addresses)
        except OSError as error:
            return CheckResult(ProxyFault.DEAD, dial_error(error, proxy.endpoint.scheme).detail, addresses=addresses)
        writer.transport.abort()
        return CheckResult(None, "", self._clock.monotonic() - started, addresses, country=country)

    async def _echo(self, url: str, proxy: Proxy | None) -> tuple[HttpResponse, str]:
        """Fetch the echo page; `proxy` None: directly."""
        token = secrets.token_hex(8)
        target = TargetUrl(f"{url}{'&' if '?' in url else '?'}check={token}")
        response = HttpResponse()
        try:
            addresses, port = await self._resolver.resolve(target.dial_host, target.port)
        except (EgressError, ResolveError) as error:
            response.reason, response.detail = Reason.CONNECT, f"the check URL: {error}"
            return response, token
        route: Route = direct_route(target, addresses, port)
        self._echo_addresses.update((target.dial_host, *addresses))
        if proxy is not None:
            route = route_through(proxy, target, route, self._names)
        return await fetch_once(self._fetcher, HttpRequest(target, route, any_type=True, keep=ECHO_BYTES)), token

    async def _learn_own_addresses(self) -> None:
        response, token = await self._echo(self._check_url, None)
        if _judge(response, token)[0] is None:
            text = response.body.decode("utf-8", "replace")
            self._own_addresses = frozenset(_ADDRESS.findall(text)) - self._echo_addresses
            self._direct_words = frozenset(word.lower() for word in _REVEALING.findall(text))

    def _anonymity(self, response: HttpResponse) -> str:
        text = response.body.decode("utf-8", "replace")
        if self._own_addresses and self._own_addresses & frozenset(_ADDRESS.findall(text)):
            return "transparent"
        words = frozenset(word.lower() for word in _REVEALING.findall(text))
        return "anonymous" if words - self._direct_words else "elite"


def _judge(response: HttpResponse, token: str) -> tuple[ProxyFault | None, str]:
    """The fault of an echo, and why."""
    if response.status == 407 or response.reason == Reason.PROXY_AUTH:
        return ProxyFault.REFUSED, response.detail or "407"
    if response.reason:
        return (ProxyFault.TAMPERED if response.reason == Reason.TLS else ProxyFault.DEAD), response.detail
    if response.status != 200:
        return ProxyFault.DEAD, f"status {response.status} for the check URL"
    if token.encode() not in response.body:
        return ProxyFault.TAMPERED, "another page than the check URL"
    return None, ""
