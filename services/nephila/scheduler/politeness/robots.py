"""robots.txt as the scheduler uses it: asked for as a paced request of its own, believed for a while, kept in the log.

Which answers allow, forbid or mean nothing is `nephila.kernel.net.robots` (RFC 9309, 2.3.1). A host that cannot be
reached at all is not "forbidden": its URLs fail with the network error, which is what its user has to know.
"""

from __future__ import annotations

import msgspec

from nephila.kernel.messages import FetchKind, FetchOutcome, FetchRequest, RobotsTxt
from nephila.kernel.net import robots
from nephila.native import parse_url
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.host_state import Host, OriginRobots
from nephila.scheduler.politeness.robots_cache import RobotsCache

UNREACHABLE = frozenset({"dns", "connect", "tls"})
"""Error classes that any fetch of the host would meet as well."""


def origin_of(url: str, host_key: str) -> str:
    """ "https://host:port" of a URL on a host; userinfo does not belong to an origin."""
    return url[: url.index("://") + 3] + host_key


def robots_request(origin: str, host: Host) -> FetchRequest:
    """The request for an origin's robots.txt. It belongs to no job: its answer serves all of them."""
    url = origin + "/robots.txt"
    return FetchRequest(
        "", parse_url(url).fingerprint, url, host.key, FetchKind.ROBOTS, fetch_no=1, attempt=host.robots_tries + 1
    )


def from_outcome(outcome: FetchOutcome, origin: str, now_utc: float, config: SchedulerConfig) -> RobotsTxt:
    """What the answer says, with the instant until which it is believed."""
    policy = robots.policy_for(outcome.status, outcome.reason)
    ttl = config.robots_ttl_s if policy in ("rules", "allow") else config.robots_retry_s
    body = outcome.body if policy == "rules" else b""
    return RobotsTxt(origin, outcome.host, outcome.status, body, now_utc, now_utc + ttl, outcome.reason)


def believe(text: RobotsTxt, now: float, now_utc: float, cache: RobotsCache) -> OriginRobots:
    """The working form of a logged robots.txt; its rules are in the cache."""
    if text.reason in UNREACHABLE or text.reason == "address":
        policy = "failed"
    else:
        policy = robots.policy_for(text.status, text.reason)
    rules = cache.take(text.body) if policy == "rules" else None
    remaining = min(text.expires_at - now_utc, max(text.expires_at - text.fetched_at, 0.0))
    return OriginRobots(policy, rules, now + remaining, msgspec.structs.replace(text, body=b""))


def logged(known: OriginRobots) -> RobotsTxt:
    """The form to be kept, with the bytes of the file."""
    return known.text if known.rules is None else msgspec.structs.replace(known.text, body=known.rules.body)


def crawl_delay_s(host: Host, agent: str, config: SchedulerConfig) -> float:
    """The longest Crawl-delay of the host's origins, capped."""
    delays = [r.rules.crawl_delay_s(agent) or 0.0 for r in host.robots.values() if r.rules is not None]
    return min(max(delays, default=0.0), config.crawl_delay_max_s)
