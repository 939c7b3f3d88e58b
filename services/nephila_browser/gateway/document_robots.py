"""robots.txt for documents that a page opens by itself: frames, navigations by script.

The scheduler has decided about the document of the request, but not about the others. The downloader has no rules of
hosts, so the gateway fetches robots.txt of their origins once and stores the rules for a time (ADR 69).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from nephila.downloader.http.contract import HttpResponse
from nephila.downloader.http.target import TargetUrl
from nephila.kernel.net import robots
from nephila.kernel.runtime.clock import Clock

MAX_ORIGINS = 2000
LIFE_S = 3600.0
FAILED_LIFE_S = 60.0
"""How long rules that could not be fetched disallow an origin."""

FetchRobots = Callable[[TargetUrl], Awaitable[HttpResponse]]


class DocumentRobots:
    """Rules by origin, at most `MAX_ORIGINS`; the oldest is dropped. One fetch per origin at a time."""

    def __init__(self, user_agent: str, clock: Clock) -> None:
        self._agent = robots.product_token(user_agent)
        self._clock = clock
        self._rules: OrderedDict[str, tuple[robots.Policy, robots.Robots | None, float]] = OrderedDict()
        self._pending: dict[str, asyncio.Future[None]] = {}

    async def allowed(self, target: TargetUrl, fetch: FetchRobots) -> bool:
        """Whether a document may be fetched. `fetch` gets robots.txt, redirects followed, when no rules are stored."""
        origin = f"{target.scheme}://{target.host}:{target.port}"
        while (entry := self._fresh(origin)) is None:
            pending = self._pending.get(origin)
            if pending is not None:
                await asyncio.shield(pending)
            else:
                await self._load(origin, target, fetch)
        policy, rules, _ = entry
        if rules is None:
            return policy == "allow"
        return rules.allowed(self._agent, target.path)

    def _fresh(self, origin: str) -> tuple[robots.Policy, robots.Robots | None, float] | None:
        entry = self._rules.get(origin)
        return entry if entry is not None and self._clock.monotonic() < entry[2] else None

    async def _load(self, origin: str, target: TargetUrl, fetch: FetchRobots) -> None:
        pending = self._pending[origin] = asyncio.get_running_loop().create_future()
        try:
            response = await fetch(TargetUrl("/robots.txt", target.href))
            policy = robots.policy_for(response.status, response.reason)
            rules = robots.parse(response.body) if policy == "rules" else None
            life_s = FAILED_LIFE_S if policy == "disallow" else LIFE_S
            self._rules[origin] = (policy, rules, self._clock.monotonic() + life_s)
            self._rules.move_to_end(origin)
            if len(self._rules) > MAX_ORIGINS:
                self._rules.popitem(last=False)
        finally:
            del self._pending[origin]
            pending.set_result(None)
