"""robots.txt in the scheduler: fetched by a paced request of its own, valid for a while, stored in the commit log.

`nephila.kernel.net.robots` decides which answers allow, forbid or say nothing (RFC 9309, 2.3.1). An unreachable host is
not "forbidden": its URLs fail with the network error, because the user needs to know it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, RobotsTxt
from nephila.kernel.net.robots import Robots, policy_for
from nephila.kernel.reasons.table import row_of
from nephila.native import parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.politeness.robots_cache import RobotsCache


class OriginRobots(msgspec.Struct):
    """The valid robots.txt of one origin; `expires` is in monotonic seconds."""

    policy: str
    """rules, allow, disallow, or failed (the host cannot be reached, for `text.reason`)."""
    rules: Robots | None
    expires: float
    text: RobotsTxt
    """As logged, without its body."""

    def effort(self, agent: str, url: str) -> int:
        """Upper bound of the cost of one check: rules times characters, a few nanoseconds each."""
        return self.rules.rules(agent).scanned * len(url) if self.rules is not None else 0

    def allows(self, agent: str, url: str) -> bool:
        """Whether a URL of this origin may be fetched."""
        if self.rules is None:
            return self.policy == "allow"
        return self.rules.allowed(agent, url[url.index("/", url.index("://") + 3) :].partition("#")[0])


def origin_of(url: str, host_key: str) -> str:
    """ "https://host:port" of a URL on a host; userinfo is no part of an origin."""
    return url[: url.index("://") + 3] + host_key


def robots_request(origin: str, host_key: str, attempt: int) -> FetchRequest:
    """The request for an origin's robots.txt. It belongs to no job, because all jobs use the answer."""
    url = origin + "/robots.txt"
    return FetchRequest("", parse_url(url).fingerprint, url, host_key, FetchKind.ROBOTS, fetch_no=1, attempt=attempt)


def from_outcome(outcome: FetchOutcome, origin: str, now_utc: float, config: SchedulerConfig) -> RobotsTxt:
    """The robots.txt that an outcome brought, with the instant at which it expires."""
    policy = policy_for(outcome.status, outcome.reason)
    ttl = config.robots_ttl_s if policy in ("rules", "allow") else config.robots_retry_s
    body = outcome.body if policy == "rules" else b""
    return RobotsTxt(origin, outcome.host, outcome.status, body, now_utc, now_utc + ttl, outcome.reason, outcome.cause)


def from_log(text: RobotsTxt, now: float, now_utc: float, cache: RobotsCache) -> OriginRobots:
    """The working form of a logged robots.txt; the cache holds its rules."""
    policy = "failed" if row_of(text.reason).unreachable else policy_for(text.status, text.reason)
    rules = cache.take(text.body) if policy == "rules" else None
    remaining = min(text.expires_at - now_utc, max(text.expires_at - text.fetched_at, 0.0))
    return OriginRobots(policy, rules, now + remaining, msgspec.structs.replace(text, body=b""))


def to_log(origin: OriginRobots) -> RobotsTxt:
    """The logged form, with the bytes of the file."""
    return origin.text if origin.rules is None else msgspec.structs.replace(origin.text, body=origin.rules.body)


def crawl_delay_s(origins: Iterable[OriginRobots], config: SchedulerConfig) -> float:
    """The longest Crawl-delay of a host's origins, capped."""
    delays = [origin.rules.crawl_delay_s(config.agent) or 0.0 for origin in origins if origin.rules is not None]
    return min(max(delays, default=0.0), config.crawl_delay_max_s)
