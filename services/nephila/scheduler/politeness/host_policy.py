"""Delay and concurrency that one job wants on a host; compiled once per job. Pure.

    delay = max(configured, Crawl-delay of robots.txt, if adaptive: 5 x the last fetch's time within 1-30 s)

"Configured" comes from the first policy that matches the host, else from the job. Where several jobs use a host, the
scheduler takes the longest delay and the smallest concurrency.
"""

from __future__ import annotations

from nephila.kernel.documents.field_types import seconds
from nephila.kernel.documents.job_schema import Host, Politeness
from nephila.kernel.runtime.errors import UsageError
from nephila.native import UrlError, parse_url

ADAPTIVE_FACTOR = 5.0
ADAPTIVE_MIN_S = 1.0
ADAPTIVE_MAX_S = 30.0


class HostPolicies:
    """The policies hold settings by host pattern. The constructor raises `UsageError` for an invalid pattern."""

    def __init__(self, politeness: Politeness) -> None:
        self._delay_s = seconds(politeness.delay)
        self._concurrency = politeness.concurrency_per_host
        self._adaptive = politeness.adaptive
        self._respect_robots = politeness.respect_robots
        self._exact: dict[str, int] = {}
        self._below: dict[str, int] = {}
        self._found: list[tuple[float, int]] = []
        for policy in politeness.hosts:
            self._add(policy)
        self.paced_by_address = self._delay_s > 0
        """Whether the pace of server addresses applies: not where the user has set the delay to 0."""
        self.everywhere = 0 if self._found else self._concurrency
        """Concurrent fetches on every host; 0: they depend on the host."""

    def delay_s(self, host: str, crawl_delay_s: float = 0.0, took_s: float = 0.0) -> float:
        """Seconds from the end of a fetch to the start of the next. O(labels of the host's name)."""
        delay_s = self._configured(host)[0] if self._found else self._delay_s
        if self._respect_robots:
            delay_s = max(delay_s, crawl_delay_s)
        if self._adaptive:
            delay_s = max(delay_s, min(max(ADAPTIVE_FACTOR * took_s, ADAPTIVE_MIN_S), ADAPTIVE_MAX_S))
        return delay_s

    def concurrency(self, host: str) -> int:
        """Concurrent fetches on the host, at least 1."""
        return self._configured(host)[1]

    def _configured(self, host: str) -> tuple[float, int]:
        first = self._first(host) if self._found else None
        return self._found[first] if first is not None else (self._delay_s, self._concurrency)

    def _first(self, host: str) -> int | None:
        """Number of the first policy that matches the host key or a name above it, with or without its port."""
        patterns = [self._exact.get(host)]
        if self._below:
            name, colon, port = host.partition(":")
            while name := name.partition(".")[2]:
                patterns.append(self._below.get(name))
                if colon:
                    patterns.append(self._below.get(f"{name}:{port}"))
        return min((number for number in patterns if number is not None), default=None)

    def _add(self, policy: Host) -> None:
        wild = policy.host.startswith("*.")
        name = policy.host[2:] if wild else policy.host
        try:
            if not name or any(char in name for char in "*/@?#\\ "):
                raise ValueError("expected a host or '*.' and a name")
            key = parse_url(f"http://{name}/").host_key
        except (UrlError, ValueError) as error:
            raise UsageError(f"politeness of {policy.host!r}: {error}") from None
        delay_s = self._delay_s if policy.delay is None else seconds(policy.delay)
        (self._below if wild else self._exact).setdefault(key, len(self._found))
        self._found.append((delay_s, policy.concurrency or self._concurrency))
