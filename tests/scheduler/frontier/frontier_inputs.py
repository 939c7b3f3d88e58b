"""What the state machine over the frontier draws from: jobs, answers of servers, bodies of robots.txt."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from nephila.kernel.documents.budget_schema import HostBudget
from nephila.kernel.documents.job_schema import Politeness, Recrawl, Scope, Traps
from nephila.kernel.messages import FetchResult
from nephila.scheduler.jobs.strategies import STRATEGIES

from tests.scheduler.frontier.frontier_model import URLS

uids = st.sampled_from(["a", "b", "c"])
urls = st.sampled_from(URLS)
picks = st.integers(0, 1 << 16)
specs = st.fixed_dictionaries(
    {
        "scope": st.builds(
            Scope,
            mode=st.just("any"),
            exclude=st.sampled_from([[], [], ["/2$"], ["h1", "/5"]]),
            max_depth=st.sampled_from([-1, -1, 2, 0]),
            max_pages=st.sampled_from([0, 0, 0, 3, 8]),
        ),
        "politeness": st.builds(
            Politeness,
            delay=st.sampled_from(["0", "0.5s", "2s"]),
            respect_robots=st.booleans(),
            adaptive=st.sampled_from([False, False, True]),
        ),
        "strategy": st.sampled_from(list(STRATEGIES)),
        "paused": st.sampled_from([False, False, False, True]),
        "weight": st.sampled_from([0.5, 1.0, 3.0]),
        "times": st.sampled_from(
            [
                {},
                {"recrawl": Recrawl(every="120s")},
                {"recrawl": Recrawl(min="30s", max="900s", gone_after=2)},
                {"schedule": "*/5 * * * *"},
                {"recrawl": Recrawl(every="90s", monitor=True)},
            ]
        ),
        "host_budget": st.sampled_from([None, None, HostBudget(pages=3), HostBudget(queued=2), HostBudget(pages=1)]),
        "traps": st.sampled_from([None, None, Traps(off=True)]),
    }
).map(lambda one: {name: value for name, value in one.items() if name != "times"} | one["times"])
ANSWERS: dict[str, dict[str, Any]] = {
    "ok": {"result": FetchResult.FETCHED, "status": 200},
    "same": {"result": FetchResult.NOT_MODIFIED, "status": 304},
    "moved": {"result": FetchResult.REDIRECT, "status": 301},
    "nowhere": {"result": FetchResult.REDIRECT, "status": 302, "location": "mailto:x@y.test"},
    "404": {"result": FetchResult.FAILED, "reason": "http_404", "status": 404},
    "410": {"result": FetchResult.FAILED, "reason": "http_410", "status": 410},
    "500": {"result": FetchResult.FAILED, "reason": "http_500", "status": 500},
    "429": {"result": FetchResult.FAILED, "reason": "http_429", "status": 429},
    "503": {"result": FetchResult.FAILED, "reason": "http_503", "status": 503, "retry_after_s": 20.0},
    "slow": {"result": FetchResult.FAILED, "reason": "timeout"},
    "dns": {"result": FetchResult.FAILED, "reason": "dns"},
    "given back": {"result": FetchResult.UNSPECIFIED, "reason": "busy", "started_at": 0.0},
    "expired": {"result": FetchResult.EXPIRED, "started_at": 0.0},
    "private": {"result": FetchResult.DENIED, "reason": "address", "started_at": 0.0},
    "picture": {"result": FetchResult.CONTENT_TYPE, "reason": "content_type", "status": 200},
}
BODIES = [
    b"",
    b"User-agent: *\nDisallow: /3\nDisallow: /d/3",
    b"User-agent: *\nDisallow: /\n",
    b"User-agent: *\nCrawl-delay: 3",
]
WORDS = ["allow", "rules", "disallow", "allow"]
