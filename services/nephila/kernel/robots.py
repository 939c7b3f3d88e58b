"""robots.txt: what a site asks of crawlers (RFC 9309), read as Google's open-source parser reads it. Pure.

Longest match wins, Allow wins a tie, `*` and a final `$` are special, groups of one agent are merged, misspelt keys are
understood. Beyond that parser, the RFC's comparison of percent-encoded octets (2.2.2) is made as well: a URL is allowed
only where both readings allow it, so a difference between them is always on the polite side.

Parsing is O(bytes); a decision is O(rules of the group × length of path) whatever the patterns are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

# Google: longer lines are cut; the rest of the line is ignored.
_MAX_LINE = 2083 * 8 - 1
_BOM = b"\xef\xbb\xbf"
_SPACE = " \t\n\v\f\r"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_TOKEN = re.compile(r"[A-Za-z_-]*")
_COMPATIBLE = re.compile(r"compatible;\s*([A-Za-z_-]+)")
DEFAULT_NAME = "nephila"
"""The name for robots.txt of a crawler whose User-Agent holds none."""
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_UNRESERVED_ESCAPE = re.compile(r"%(?:2D|2E|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])")
# What decides the kind of a line is how its key begins.
_KEYS = (
    ("agent", ("user-agent", "useragent", "user agent")),
    ("allow", ("allow",)),
    ("disallow", ("disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw")),
    ("sitemap", ("sitemap", "site-map")),
    ("delay", ("crawl-delay", "crawldelay", "crawl delay")),
)

Policy = Literal["rules", "allow", "disallow"]


class Verdict(NamedTuple):
    """May a path be fetched, and which line says so (0 and "" when none does)."""

    allowed: bool
    line: int
    rule: str


class _Rule:
    """One Allow or Disallow line, its pattern cut at the stars."""

    __slots__ = ("allow", "anchored", "line", "parts", "pattern", "prefix", "text")

    def __init__(self, allow: bool, pattern: str, line: int, text: str) -> None:
        self.allow = allow
        self.pattern = pattern
        self.line = line
        self.text = text
        self.anchored = pattern.endswith("$")
        parts = (pattern[:-1] if self.anchored else pattern).split("*")
        self.prefix = parts[0]
        self.parts = parts[1:]

    def matches(self, path: str) -> bool:
        """Leftmost matches suffice: a star takes whatever lies between. O(len(path)), no backtracking."""
        prefix = self.prefix
        if not path.startswith(prefix):
            return False
        parts = self.parts
        if not parts:
            return not self.anchored or len(path) == len(prefix)
        at = len(prefix)
        last = len(parts) - 1
        for number, part in enumerate(parts):
            if number == last and self.anchored:
                return len(path) - len(part) >= at and path.endswith(part)
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


class _Group:
    """The rules that hold for one agent, the winning one first, and the same by the RFC's reading if it differs."""

    __slots__ = ("delay_s", "rfc_rules", "rules")

    def __init__(self) -> None:
        self.rules: list[_Rule] = []
        self.rfc_rules: list[_Rule] | None = None
        self.delay_s: float | None = None

    def sort(self) -> None:
        """Longest pattern first, Allow before Disallow, then by line; sorting keeps the order of equals."""
        self.rules.sort(key=lambda rule: (-len(rule.pattern), not rule.allow))
        if any(_UNRESERVED_ESCAPE.search(rule.pattern) for rule in self.rules):
            self.rfc_rules = [_Rule(r.allow, _decode(r.pattern), r.line, r.text) for r in self.rules]
            self.rfc_rules.sort(key=lambda rule: (-len(rule.pattern), not rule.allow))


_EVERYTHING = Verdict(True, 0, "")


class Robots:
    """A robots.txt. It is read when an agent first asks, and only that agent's rules are kept beside the bytes."""

    __slots__ = ("_agents", "_body")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._agents: dict[str, _Group] = {}

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """Addresses of sitemaps, as written, each once; they belong to no group. Read anew at each call."""
        found = (value for _, kind, value in _entries(self._body) if kind == "sitemap" and value)
        # Octets were read as Latin-1; an address is UTF-8.
        return tuple(dict.fromkeys(value.encode("latin-1").decode("utf-8", "replace") for value in found))

    def decide(self, agent: str, path_query: str) -> Verdict:
        """What the file says of a path (with its query, as in a request) for an agent's product token.

        A full User-Agent is cut to its token. /robots.txt is a path like any other here: whoever fetches it for its
        rules does not ask.
        """
        group = self._agents.get(agent)
        if group is None:
            group = self._group(agent)
        if not group.rules:
            return _EVERYTHING
        path = path_query
        if path[:1] != "/":
            path = "/" + path
        if not path.isascii():
            path = _escape(path.encode("utf-8", "replace").decode("latin-1"))
        verdict = _first(group.rules, path)
        if verdict.allowed and (group.rfc_rules is not None or "%" in path):
            other = _first(group.rfc_rules or group.rules, _decode(_escape(path)))
            if not other.allowed:
                return other
        return verdict

    def allowed(self, agent: str, path_query: str) -> bool:
        """The verdict alone."""
        return self.decide(agent, path_query).allowed

    def rules(self, agent: str) -> int:
        """How many rules hold for an agent: what a decision costs, times the length of the path."""
        return len(self._group(agent).rules)

    def crawl_delay_s(self, agent: str) -> float | None:
        """Seconds of the Crawl-delay that holds for an agent; None where there is none. Not capped."""
        return self._group(agent).delay_s

    def _group(self, agent: str) -> _Group:
        group = self._agents.get(agent)
        if group is None:
            match = _TOKEN.match(agent)
            group = self._agents[agent] = self._collect(match[0].lower() if match else "")
        return group

    def _collect(self, token: str) -> _Group:
        """One walk over the lines: the agent's own groups if there is one, else those of `*`."""
        own, everyone = _Group(), _Group()
        ever_own = in_own = in_everyone = closed = False
        # Crawl-delay, like every other record, closes no group of rules (RFC 9309 2.2.4); but it belongs to the agents
        # named since the last record, or the delay of one would reach those named before.
        named: list[_Group] = []
        delay_closed = False
        for line, kind, value in _entries(self._body):
            if kind == "agent":
                if closed:
                    in_own = in_everyone = closed = False
                if delay_closed:
                    named, delay_closed = [], False
                if value[:1] == "*" and (len(value) == 1 or value[1] in _SPACE):
                    in_everyone = True
                    named.append(everyone)
                elif token and _token(value) == token:
                    ever_own = in_own = True
                    named.append(own)
            elif kind in ("allow", "disallow"):
                delay_closed = True
                if in_own or in_everyone:
                    closed = True
                    _add(own if in_own else everyone, kind == "allow", value, line)
            elif kind == "delay":
                delay_closed = True
                for group in named:
                    _set_delay(group, value)
        found = own if ever_own else everyone
        found.sort()
        return found


def product_token(user_agent: str) -> str:
    """The name under which robots.txt addresses a crawler with this User-Agent (RFC 9309, 2.2.1).

    That of the first product, or of the one after "compatible;" where a crawler calls itself Mozilla as browsers do.
    """
    found = _COMPATIBLE.search(user_agent)
    token = found[1].lower() if found else _token(user_agent)
    return token if token not in ("", "mozilla") else DEFAULT_NAME


def _token(value: str) -> str:
    match = _TOKEN.match(value)
    return match[0].lower() if match else ""


def _add(group: _Group, allow: bool, value: str, line: int) -> None:
    pattern = _escape(value)
    text = f"{'Allow' if allow else 'Disallow'}: {value}"
    if pattern:  # an empty one matches with priority 0, which is no rule at all
        group.rules.append(_Rule(allow, pattern, line, text))
    slash = pattern.rfind("/")
    if allow and slash >= 0 and pattern.startswith("/index.htm", slash):
        # Google: a directory and its index page are one.
        group.rules.append(_Rule(True, pattern[: slash + 1] + "$", line, text))


def _set_delay(group: _Group, value: str) -> None:
    """The longest one counts when a group repeats it."""
    try:
        delay_s = float(value.split()[0]) if value.isascii() else -1.0
    except (ValueError, IndexError):
        return
    if 0 <= delay_s < float("inf"):
        group.delay_s = max(delay_s, group.delay_s or 0.0)


def _first(rules: list[_Rule], path: str) -> Verdict:
    for rule in rules:
        if path.startswith(rule.prefix) and ((not rule.parts and not rule.anchored) or rule.matches(path)):
            return Verdict(rule.allow, rule.line, rule.text)
    return _EVERYTHING


def _escape(value: str) -> str:
    """Escapes in capitals, octets above ASCII escaped; `value` holds octets as Latin-1."""
    return _ESCAPE.sub(lambda match: _escaped(match[0]), value)


def _escaped(found: str) -> str:
    return found.upper() if found[0] == "%" else f"%{ord(found):02X}"


def _decode(value: str) -> str:
    """Unreserved characters never need an escape: RFC 9309 2.2.2, RFC 3986 2.3."""
    return _UNRESERVED_ESCAPE.sub(lambda match: chr(int(match[0][1:], 16)), value)


def parse(body: bytes) -> Robots:
    """A robots.txt from its octets (not text: lines and escapes are octets); never fails."""
    return Robots(body)


def _entries(body: bytes) -> Iterator[tuple[int, str, str]]:
    """(line, kind, value) of every line that has a key."""
    for octet in _BOM:  # whole or torn
        if body[:1] != bytes((octet,)):
            break
        body = body[1:]
    for number, raw in enumerate(_LINE_END.split(body), 1):
        pair = _key_value(raw) if raw else None
        if pair is not None:
            yield number, _kind(pair[0]), pair[1]


def _kind(key: str) -> str:
    key = key.lower()
    for kind, starts in _KEYS:
        if key.startswith(starts):
            return kind
    return "other"


def _key_value(raw: bytes) -> tuple[str, str] | None:
    """Key and value of a line, "#" comments off; a colon may be missing where exactly two words stand."""
    line = raw[:_MAX_LINE].partition(b"\0")[0].partition(b"#")[0].decode("latin-1").strip(_SPACE)
    key, colon, value = line.partition(":")
    if not colon:
        words = re.split(r"[ \t]+", line)
        if len(words) != 2:
            return None
        key, value = words
    key = key.strip(_SPACE)
    return (key, value.strip(_SPACE)) if key else None


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
