"""robots.txt: the rules of a site for crawlers (RFC 9309), parsed as Google's open-source parser does. Pure.

The longest match wins, Allow wins a tie, `*` and a final `$` are special, groups of one agent are merged, common
misspellings of keys are accepted. `%2A` and `%24` in a rule mean the characters (2.2.3); /robots.txt is always allowed.
In addition the comparison of percent-encoded octets of the RFC (2.2.2) applies: a URL is allowed only when both
readings allow it, so a difference between them is on the polite side.

Parsing and matching are in the native core (`native.RobotsRules`). Parsing is O(bytes). A decision is O(length of the
path), and as much again for each rule with an inner star that could win.
"""

from __future__ import annotations

import re
import zlib
from typing import Literal, NamedTuple

from nephila.kernel.reasons.status_words import status_of
from nephila.kernel.reasons.table import Reason
from nephila.native import RobotsRules, robots_rule, robots_sitemaps

_PACKED_FROM = 16 * 1024
"""Bodies from this size on are stored compressed: only sitemaps and `explain` need the body beside its rules."""

_COMPATIBLE = re.compile(r"compatible;\s*([A-Za-z_-]+)")
_FIRST = re.compile(r"([A-Za-z_-]+)")
_INDEX = re.compile(r"^Allow: .*/index\.htm[^/]*$")
"""A line that is the rule of a directory as well (Google)."""
DEFAULT_NAME = "nephila"
"""The robots.txt name of a crawler whose User-Agent contains none."""

Policy = Literal["rules", "allow", "disallow"]


class RobotsVerdict(NamedTuple):
    """Whether a path may be fetched, and the line that decides (0 and "" when no line does)."""

    allowed: bool
    line: int
    rule: str


class Robots:
    """A robots.txt: its bytes, and the parsed rules per agent."""

    __slots__ = ("_agents", "_body", "_packed")

    def __init__(self, body: bytes) -> None:
        self._packed = len(body) >= _PACKED_FROM
        self._body = zlib.compress(body, 1) if self._packed else body
        self._agents: dict[str, RobotsRules] = {}

    @property
    def body(self) -> bytes:
        """The file as fetched; a large one is decompressed at each call."""
        return zlib.decompress(self._body) if self._packed else self._body

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """URLs of sitemaps as written, each once; they belong to no group. Parsed at each call."""
        return tuple(dict.fromkeys(value.decode("utf-8", "replace") for value in robots_sitemaps(self.body)))

    def decide(self, agent: str, path_query: str) -> RobotsVerdict:
        """The verdict for a path (with its query, as in a request) and the product token of an agent.

        A full User-Agent is reduced to its token. O(bytes) for the text of the line; `allowed` does not need it.
        """
        line = self._line(agent, path_query)
        text = robots_rule(self.body, abs(line)).decode("utf-8", "replace") if line else ""
        if _INDEX.search(text) and path_query.endswith("/"):
            text += " (which allows its directory too)"
        return RobotsVerdict(line >= 0, abs(line), text)

    def allowed(self, agent: str, path_query: str) -> bool:
        return self._line(agent, path_query) >= 0

    def _line(self, agent: str, path_query: str) -> int:
        return self.rules(agent).decide(path_query.encode("utf-8", "replace"))

    def crawl_delay_s(self, agent: str) -> float | None:
        """Seconds of the Crawl-delay of an agent; None without one. Not capped."""
        return self.rules(agent).crawl_delay_s

    def rules(self, agent: str) -> RobotsRules:
        """The rules of an agent, parsed at its first call."""
        rules = self._agents.get(agent)
        if rules is None:
            rules = self._agents[agent] = RobotsRules(self.body, agent.encode("utf-8", "replace"))
        return rules

    @property
    def size_bytes(self) -> int:
        """Memory used by the bytes and the rules."""
        return len(self._body) + sum(rules.size_bytes for rules in self._agents.values())


def product_token(user_agent: str) -> str:
    """The name that robots.txt files use for a crawler with this User-Agent (RFC 9309, 2.2.1).

    It is the first product, or the one after "compatible;" for a crawler whose first product is Mozilla.
    """
    product = _COMPATIBLE.search(user_agent) or _FIRST.match(user_agent)
    token = product[1].lower() if product else ""
    return token if token not in ("", "mozilla") else DEFAULT_NAME


def parse(body: bytes) -> Robots:
    """A robots.txt from its octets; lines and escapes are octets, not text. Never fails."""
    return Robots(body)


def policy_for(status: int, reason: str = "") -> Policy:
    """The meaning of the response to a robots.txt request (RFC 9309 2.3.1).

    2xx: the rules of the file. 4xx and a redirect without a usable target: no rules, everything is allowed. 5xx, 429,
    no response and a redirect to several targets: everything is disallowed for now. 429 counts as an overloaded server,
    as for Google.
    """
    if 200 <= status < 300:
        return "rules" if not reason else "disallow"
    if 300 <= status < 500 and status != 429 and (not reason or status_of(reason) or reason == Reason.BAD_REDIRECT):
        return "allow"
    return "disallow"
