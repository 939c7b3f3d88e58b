"""Keeps the pool up to date in the background: reads sources, checks proxies, stores the pool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.waits import OneTimer

from nephila_proxies.pool import MAX_PROXIES, ProxyPool
from nephila_proxies.proxy import ALIVE, CANDIDATE, Proxy, ProxyFault
from nephila_proxies.sources import MAX_LIST_BYTES, MAX_SKIPPED, ProxySource, SourceError
from nephila_proxies.store import PoolFile
from nephila_proxies.validator import CheckResult, Validator

log = logging.getLogger(__name__)

TICK_S = 1.0
SAVE_S = 10.0


class ProxyKeeper:
    """Runs from `start` to `close`. A fault of a source or of a check never ends it."""

    def __init__(
        self,
        pool: ProxyPool,
        sources: Sequence[ProxySource],
        validator: Validator,
        file: PoolFile,
        clock: Clock,
        *,
        collect_s: float,
        concurrency: int,
    ) -> None:
        """`collect_s`: between two reads of a source. `concurrency`: checks at once."""
        self._pool = pool
        self._sources = sources
        self._validator = validator
        self._file = file
        self._clock = clock
        self._collect_s = collect_s
        self._concurrency = concurrency
        self._read_at: dict[str, float] = {}
        self._checking: dict[str, asyncio.Task[None]] = {}
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._timer = OneTimer(clock, self._tick)
        self._saved_at = 0.0
        self._saving: asyncio.Task[None] | None = None
        self._refused: set[str] = set()
        self.checks = 0
        self.source_failures = 0

    async def start(self) -> None:
        """Load the stored pool, read the sources that need no network, and begin."""
        names = {source.name for source in self._sources if source.stored}
        stored = self._file.load()
        for proxy in stored:
            proxy.sources &= names
            # A proxy that the operator named has to be in the settings again.
            if proxy.sources and not proxy.endpoint.trusted:
                self._pool.restore(proxy)
        for source in self._sources:
            if not source.stored:
                await self._read(source)
        for proxy in stored:
            self._pool.restore_trust(proxy)
        self._saved_at = self._clock.monotonic()
        self._tick()

    async def close(self) -> None:
        """Stop, and store the pool."""
        self._timer.cancel()
        tasks = [*self._checking.values(), *self._reading.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._saving is not None:
            await self._saving
        await self._save()
        await self._validator.close()

    def on_fault(self, proxy: Proxy, fault: ProxyFault) -> None:
        """A request through a proxy failed. Refused credentials are reported once per proxy."""
        if fault is ProxyFault.REFUSED and proxy.name not in self._refused:
            self._refused.add(proxy.name)
            log.error("proxy %s refuses the credentials (407): it is out until its list has others", proxy.name)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        loop = asyncio.get_running_loop()
        for source in self._sources:
            if source.name not in self._reading and self._read_at.get(source.name, now) <= now:
                self._reading[source.name] = loop.create_task(self._read(source))
        for proxy in self._pool.due(now):
            if len(self._checking) >= self._concurrency:
                break
            if proxy.name not in self._checking:
                self._checking[proxy.name] = loop.create_task(self._check(proxy))
        if now - self._saved_at >= SAVE_S:
            self._saved_at = now
            if self._saving is None or self._saving.done():
                self._saving = loop.create_task(self._save())
        self._timer.start(TICK_S)

    async def _save(self) -> None:
        """Write the pool in a thread: an fsync may take seconds."""
        await asyncio.to_thread(self._file.save, list(self._pool.proxies()))

    async def _read(self, source: ProxySource) -> None:
        try:
            collected = await source.read()
            if collected is not None:
                refused = self._pool.replace(source.name, collected.endpoints)
                log.info("proxies: %d from %s", len(collected.endpoints), source.name)
                if collected.cut or refused:
                    log.warning(
                        "%s: not all of it is used: at most %d proxies, %d MB and %d lines that are no proxies",
                        source.name,
                        MAX_PROXIES,
                        MAX_LIST_BYTES >> 20,
                        MAX_SKIPPED,
                    )
                if collected.skipped:
                    log.warning("%s: %d lines skipped: %s", source.name, collected.skipped, collected.first_error)
        except SourceError as error:
            self.source_failures += 1
            log.warning("proxies of %s are not read: %s", source.name, error)
        except Exception:
            self.source_failures += 1
            log.exception("proxies of %s are not read", source.name)
        finally:
            self._read_at[source.name] = self._clock.monotonic() + self._collect_s
            self._reading.pop(source.name, None)

    async def _check(self, proxy: Proxy) -> None:
        self.checks += 1
        try:
            self._apply(proxy, await self._validator.check(proxy))
        except Exception:
            log.exception("the check of proxy %s failed", proxy.name)
            self._pool.check_failed(proxy, self._clock.monotonic())
        finally:
            self._checking.pop(proxy.name, None)

    def _apply(self, proxy: Proxy, result: CheckResult) -> None:
        now = self._clock.monotonic()
        if result.fault is ProxyFault.REFUSED:
            self.on_fault(proxy, result.fault)
            self._pool.failed(proxy, result.fault, "", now)
        elif result.fault is not None:
            if proxy.state in (ALIVE, CANDIDATE):
                log.warning("proxy %s is evicted: %s: %s", proxy.name, result.fault.value, result.detail)
            self._pool.check_failed(proxy, now)
        else:
            proxy.anonymity, proxy.https = result.anonymity, result.https
            proxy.country = proxy.endpoint.country or result.country or proxy.country
            self._pool.check_passed(proxy, result.took_s, now)
