"""The pool file: proxies with their scores, so that a restart begins with what is known. One JSON document, 0600.

The file is replaced as a whole (write, fsync, rename). A file that cannot be read is reported once and ignored: the
lists and the checks rebuild it. Instants are stored in UTC. It contains the credentials of proxies from the web.
"""

import logging
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UNREADABLE

from nephila_proxies.endpoint import Endpoint
from nephila_proxies.pool import LIE_S
from nephila_proxies.proxy import ALIVE, CANDIDATE, LIAR, Proxy, ProxyState

log = logging.getLogger(__name__)
VERSION = 1
MAX_WAIT_S = 7200.0
"""Longest wait for a check that a file may state; a longer one comes from another clock."""


class StoredProxy(msgspec.Struct, omit_defaults=True):
    """One proxy of the file."""

    endpoint: Endpoint
    state: ProxyState
    sources: list[str]
    kind: str = ""
    country: str = ""
    provider: str = ""
    addresses: tuple[str, ...] = ()
    anonymity: str = ""
    https: bool = True
    response_s: float = 1.0
    success: float = 0.8
    evictions: int = 0
    check_at: float = 0.0
    """Seconds since 1970 UTC."""
    bans: dict[str, float] = msgspec.field(default_factory=dict)
    agreed: int = 0
    lies: dict[str, float] = msgspec.field(default_factory=dict)


class StoredPool(msgspec.Struct):
    """The document."""

    version: int
    proxies: list[StoredProxy]


class PoolFile:
    """Reads and writes one file; an empty path: nothing is stored."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = Path(path) if path else None
        self._clock = clock

    def load(self) -> list[Proxy]:
        """The stored proxies."""
        if self._path is None:
            return []
        try:
            stored = msgspec.json.decode(self._path.read_bytes(), type=StoredPool)
        except FileNotFoundError:
            return []
        except (OSError, *UNREADABLE) as error:
            log.warning("the proxy pool %s is not read: %s", self._path, error)
            return []
        if stored.version != VERSION:
            log.warning("the proxy pool %s is not read: version %s", self._path, stored.version)
            return []
        return [self._proxy(row) for row in stored.proxies]

    def save(self, proxies: Iterable[Proxy]) -> None:
        """Replace the file; may run in a thread. A failure is logged; the pool works without it."""
        if self._path is None:
            return
        body = msgspec.json.encode(StoredPool(VERSION, [self._row(proxy) for proxy in proxies]))
        part = self._path.with_name(self._path.name + f".{os.getpid()}.part")
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self._path)
        except OSError as error:
            log.warning("the proxy pool %s is not written: %s", self._path, error.strerror or error)

    def _row(self, proxy: Proxy) -> StoredProxy:
        offset = self._clock.now() - self._clock.monotonic()
        return StoredProxy(
            endpoint=proxy.endpoint,
            state=proxy.state,
            sources=sorted(proxy.sources),
            kind=proxy.kind,
            country=proxy.country,
            provider=proxy.provider,
            addresses=proxy.addresses,
            anonymity=proxy.anonymity,
            https=proxy.https,
            response_s=round(proxy.response_s, 4),
            success=round(proxy.success, 4),
            evictions=proxy.evictions,
            check_at=proxy.check_at + offset,
            bans={host: until + offset for host, until in dict(proxy.bans).items()},  # a copy: the pool may change it
            agreed=proxy.agreed,
            lies={host: until + offset for host, until in dict(proxy.lies).items()},
        )

    def _proxy(self, row: StoredProxy) -> Proxy:
        now, offset = self._clock.monotonic(), self._clock.now() - self._clock.monotonic()
        proxy = Proxy(row.endpoint)
        proxy.sources = set(row.sources)
        proxy.state = row.state if row.state is not ALIVE or row.addresses else CANDIDATE
        proxy.kind, proxy.country, proxy.provider = row.kind, row.country, row.provider
        proxy.addresses, proxy.anonymity, proxy.https = row.addresses, row.anonymity, row.https
        proxy.response_s = max(row.response_s, 0.0)
        proxy.success = min(max(row.success, 0.0), 1.0)
        proxy.evictions = min(max(row.evictions, 0), 10)
        proxy.agreed = max(row.agreed, 0)
        proxy.lies = {host: min(until - offset, now + LIE_S) for host, until in row.lies.items()}
        proxy.check_at = min(row.check_at - offset, now + (LIE_S if row.state is LIAR else MAX_WAIT_S))
        proxy.bans = {host: min(until - offset, now + MAX_WAIT_S) for host, until in row.bans.items()}
        return proxy
