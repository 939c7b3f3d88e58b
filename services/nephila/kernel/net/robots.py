"""robots.txt: what a site asks of crawlers (RFC 9309), read as Google's open-source parser reads it. Pure.

Longest match wins, Allow wins a tie, `*` and a final `$` are special, groups of one agent are merged, misspelt keys are
understood. Beyond that parser, the RFC's comparison of percent-encoded octets (2.2.2) is made as well: a URL is allowed
only where both readings allow it, so a difference between them is always on the polite side.

Reading and matching are in the native core (`native.RobotsRules`): reading is O(bytes), a decision O(length of the
path) and as much again for each rule with a star inside that could win.
"""

from __future__ import annotations

import re
import zlib
from typing import Literal, NamedTuple

from nephila.native import RobotsRules, robots_rule, robots_sitemaps

_PACKED_FROM = 16 * 1024
"""Bodies from this size are kept compressed: beside its rules a body is needed only for sitemaps and for `explain`."""

_COMPATIBLE = re.compile(r"compatible;\s*([A-Za-z_-]+)")
_FIRST = re.compile(r"([A-Za-z_-]+)")
DEFAULT_NAME = "nephila"
"""The name for robots.txt of a crawler whose User-Agent holds none."""

Policy = Literal["rules", "allow", "disallow"]


class Verdict(NamedTuple):
    """May a path be fetched, and which line says so (0 and "" when none does)."""

    allowed: bool
    line: int
    rule: str


class Robots:
    """A robots.txt: its bytes, and the rules of each agent that has asked."""

    __slots__ = ("_agents", "_body", "_packed")

    def __init__(self, body: bytes) -> None:
        self._packed = len(body) >= _PACKED_FROM
        self._body = zlib.compress(body, 1) if self._packed else body
        self._agents: dict[str, RobotsRules] = {}

    @property
    def body(self) -> bytes:
        """The file as fetched. Unpacked at each call where it is large."""
        return zlib.decompress(self._body) if self._packed else self._body

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """Addresses of sitemaps, as written, each once; they belong to no group. Read anew at each call."""
        return tuple(dict.fromkeys(value.decode("utf-8", "replace") for value in robots_sitemaps(self.body)))

    def decide(self, agent: str, path_query: str) -> Verdict:
        """What the file says of a path (with its query, as in a request) for an agent's product token, and where.

        A full User-Agent is cut to its token. /robots.txt is a path like any other here: whoever fetches it for its
        rules does not ask. O(bytes) for the text of the line; `allowed` does without.
        """
        line = self._line(agent, path_query)
        text = robots_rule(self.body, abs(line)).decode("latin-1") if line else ""
        return Verdict(line >= 0, abs(line), text)

    def allowed(self, agent: str, path_query: str) -> bool:
        """The verdict alone."""
        return self._line(agent, path_query) >= 0

    def _line(self, agent: str, path_query: str) -> int:
        return self.rules(agent).decide(path_query.encode("utf-8", "replace"))

    def crawl_delay_s(self, agent: str) -> float | None:
        """Seconds of the Crawl-delay that holds for an agent; None where there is none. Not capped."""
        return self.rules(agent).crawl_delay_s

    def rules(self, agent: str) -> RobotsRules:
        """The rules that hold for an agent; read when it first asks."""
        rules = self._agents.get(agent)
        if rules is None:
            rules = self._agents[agent] = RobotsRules(self.body, agent.encode("utf-8", "replace"))
        return rules

    @property
    def size_bytes(self) -> int:
        """Memory that the bytes and the rules take."""
        return len(self._body) + sum(rules.size_bytes for rules in self._agents.values())


def product_token(user_agent: str) -> str:
    """The name under which robots.txt addresses a crawler with this User-Agent (RFC 9309, 2.2.1).

    That of the first product, or of the one after "compatible;" where a crawler calls itself Mozilla as browsers do.
    """
    found = _COMPATIBLE.search(user_agent) or _FIRST.match(user_agent)
    token = found[1].lower() if found else ""
    return token if token not in ("", "mozilla") else DEFAULT_NAME


def parse(body: bytes) -> Robots:
    """A robots.txt from its octets (not text: lines and escapes are octets); never fails."""
    return Robots(body)


def policy_for(status: int, reason: str = "") -> Policy:
    """What the answer to a robots.txt request means (RFC 9309 2.3.1).

    2xx: its rules. 4xx and a redirect that leads nowhere: no rules, everything allowed. 5xx, 429 (a server that asks
    for less is not unavailable, and Google reads it so) and no answer at all: everything disallowed for now.
    """
    if 200 <= status < 300:
        return "rules" if not reason else "disallow"
    if 300 <= status < 500 and status != 429 and (not reason or reason.startswith("http_") or reason == "bad_redirect"):
        return "allow"
    return "disallow"
