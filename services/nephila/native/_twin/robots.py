"""robots.txt without the Rust core: the same verdicts; each decision tries the rules from the strongest.

Reading is O(bytes), a decision O(rules × length of the path), whatever the patterns are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Google: longer lines are cut; the rest of the line is ignored.
_MAX_LINE = 2083 * 8 - 1
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\n\v\f\r"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_TOKEN = re.compile(rb"[A-Za-z_-]*")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_UNRESERVED_ESCAPE = re.compile(rb"%(?:2D|2E|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])", re.IGNORECASE)
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_RULE_BYTES = 400
_MAX_WILDS = 4096
"""Patterns with stars that are kept whole; beyond, a Disallow counts as far as its first star, an Allow not at all."""
# What decides the kind of a line is how its key begins.
_KEYS = (
    ("agent", (b"user-agent", b"useragent", b"user agent")),
    ("allow", (b"allow",)),
    ("disallow", (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw")),
    ("sitemap", (b"sitemap", b"site-map")),
    ("delay", (b"crawl-delay", b"crawldelay", b"crawl delay")),
)
_Written = tuple[bytes, bool, int]
"""Pattern, allow, line."""


class _Rule:
    """One pattern, cut at its stars."""

    __slots__ = ("anchored", "parts", "prefix", "rank")

    def __init__(self, text: bytes, anchored: bool, rank: tuple[int, bool, int]) -> None:
        self.anchored = anchored
        self.rank = rank
        self.prefix, *self.parts = text.split(b"*")

    def matches(self, path: bytes) -> bool:
        """Leftmost matches suffice: a star takes whatever lies between. O(len(path)), no backtracking."""
        if not path.startswith(self.prefix):
            return False
        parts = self.parts
        if not parts:
            return not self.anchored or len(path) == len(self.prefix)
        at = len(self.prefix)
        last = len(parts) - 1
        for number, part in enumerate(parts):
            if number == last and self.anchored:
                return len(path) - len(part) >= at and path.endswith(part)
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


class RobotsRules:
    """The rules of a robots.txt that hold for one agent: the agent's own groups if there are any, else those of `*`."""

    __slots__ = ("_rfc", "_rules", "crawl_delay_s")

    def __init__(self, body: bytes, agent: bytes) -> None:
        group = _collect(bytes(body), _token(agent))
        written, self.crawl_delay_s = group.rules, group.delay_s
        self._rules = _sorted(written)
        self._rfc: list[_Rule] | None = None
        plain = [(_decode(pattern), allow, line) for pattern, allow, line in written]
        if plain != written:
            self._rfc = _sorted(plain)

    def decide(self, path: bytes) -> int:
        """Number of the line that decides about a path with its query, negative when it forbids; 0: no line does."""
        if path[:1] != b"/":
            path = b"/" + path
        if not path.isascii():
            path = _escape(path)
        line = _find(self._rules, path)
        if line < 0 or (self._rfc is None and b"%" not in path):
            return line
        other = _find(self._rules if self._rfc is None else self._rfc, _decode(_escape(path)))
        return other if other < 0 else line

    def __len__(self) -> int:
        """How many rules are kept: each pattern once."""
        return len(self._rules)

    @property
    def scanned(self) -> int:
        """Rules that a decision may try one after the other."""
        return len(self._rules) + len(self._rfc or ())

    @property
    def size_bytes(self) -> int:
        """Memory that the rules take, about."""
        return (1 + self.scanned) * _RULE_BYTES


def _sorted(written: list[_Written]) -> list[_Rule]:
    """Longest pattern first, Allow before Disallow, then by line; each pattern once."""
    found: dict[tuple[bytes, bool], tuple[int, bool, int]] = {}
    for pattern, allow, line in written:
        text, anchored = (pattern[:-1], True) if pattern.endswith(b"$") else (pattern, False)
        if text.endswith(b"*"):
            # A star at the end takes whatever follows: the end is no anchor behind it.
            text, anchored = text.rstrip(b"*"), False
        rank = (len(pattern), allow, -line)
        found[text, anchored] = max(rank, found.get((text, anchored), rank))
    wilds = sorted((-rank[2], key) for key, rank in found.items() if b"*" in key[0])
    for _, (text, anchored) in wilds[_MAX_WILDS:]:
        rank = found.pop((text, anchored))
        if not rank[1]:
            start = (text.partition(b"*")[0], False)
            found[start] = max(rank, found.get(start, rank))
    rules = [_Rule(text, anchored, rank) for (text, anchored), rank in found.items()]
    rules.sort(key=lambda rule: rule.rank, reverse=True)
    return rules


def _find(rules: list[_Rule], path: bytes) -> int:
    for rule in rules:
        if path.startswith(rule.prefix) and ((not rule.parts and not rule.anchored) or rule.matches(path)):
            _, allow, line = rule.rank
            return -line if allow else line
    return 0


class _Group:
    """What the lines say to one agent."""

    __slots__ = ("delay_s", "rules")

    def __init__(self) -> None:
        self.rules: list[_Written] = []
        self.delay_s: float | None = None

    def add(self, allow: bool, value: bytes, line: int) -> None:
        """An empty pattern matches with priority 0, which is no rule at all."""
        pattern = _escape(value)
        if pattern:
            self.rules.append((pattern, allow, line))
        slash = pattern.rfind(b"/")
        if allow and slash >= 0 and pattern.startswith(b"/index.htm", slash):
            # Google: a directory and its index page are one.
            self.rules.append((pattern[: slash + 1] + b"$", True, line))

    def set_delay(self, value: bytes) -> None:
        """The longest one counts when a group repeats it."""
        words = value.split()
        if words and _NUMBER.fullmatch(words[0]):
            delay_s = float(words[0])
            if 0 <= delay_s < float("inf"):
                self.delay_s = max(delay_s, self.delay_s or 0.0)


def _collect(body: bytes, token: bytes) -> _Group:
    """One walk over the lines."""
    own, everyone = _Group(), _Group()
    ever_own = in_own = in_everyone = closed = False
    # Crawl-delay, like every other record, closes no group of rules (RFC 9309 2.2.4); but it belongs to the agents
    # named since the last record, or the delay of one would reach those named before.
    named: list[_Group] = []
    delay_closed = False
    for line, kind, value in _entries(body):
        if kind == "agent":
            if closed:
                in_own = in_everyone = closed = False
            if delay_closed:
                named, delay_closed = [], False
            if value[:1] == b"*" and (len(value) == 1 or value[1] in _SPACE):
                in_everyone = True
                named.append(everyone)
            elif token and _token(value) == token:
                ever_own = in_own = True
                named.append(own)
        elif kind in ("allow", "disallow"):
            delay_closed = True
            if in_own or in_everyone:
                closed = True
                (own if in_own else everyone).add(kind == "allow", value, line)
        elif kind == "delay":
            delay_closed = True
            for group in named:
                group.set_delay(value)
    return own if ever_own else everyone


def _token(agent: bytes) -> bytes:
    match = _TOKEN.match(agent)
    return match[0].lower() if match else b""


def _escape(text: bytes) -> bytes:
    """Escapes in capitals, octets above ASCII escaped."""
    return _ESCAPE.sub(lambda match: match[0].upper() if match[0][:1] == b"%" else b"%%%02X" % match[0][0], text)


def _decode(text: bytes) -> bytes:
    """Unreserved characters never need an escape: RFC 9309 2.2.2, RFC 3986 2.3."""
    return _UNRESERVED_ESCAPE.sub(lambda match: bytes((int(match[0][1:], 16),)), text)


def _entries(body: bytes) -> Iterator[tuple[int, str, bytes]]:
    """(line, kind, value) of every line that has a key."""
    for octet in _BOM:  # whole or torn
        if body[:1] != bytes((octet,)):
            break
        body = body[1:]
    for number, raw in enumerate(_LINE_END.split(body), 1):
        pair = _key_value(raw) if raw else None
        if pair is not None:
            yield number, _kind(pair[0]), pair[1]


def _kind(key: bytes) -> str:
    key = key.lower()
    for kind, starts in _KEYS:
        if key.startswith(starts):
            return kind
    return "other"


def _key_value(raw: bytes) -> tuple[bytes, bytes] | None:
    """Key and value of a line, "#" comments off; a colon may be missing where exactly two words stand."""
    line = raw[:_MAX_LINE].partition(b"\0")[0].partition(b"#")[0].strip(_SPACE)
    key, colon, value = line.partition(b":")
    if not colon:
        words = [word for word in re.split(rb"[ \t]", line) if word]
        if len(words) != 2:
            return None
        key, value = words
    key = key.strip(_SPACE)
    return (key, value.strip(_SPACE)) if key else None


def robots_sitemaps(body: bytes) -> list[bytes]:
    """Addresses of sitemaps, as written, in their order; they belong to no group. O(bytes)."""
    return [value for _, kind, value in _entries(bytes(body)) if kind == "sitemap" and value]


def robots_rule(body: bytes, line: int) -> bytes:
    """ "Allow: /x" as a line of a robots.txt has it; empty when it is no rule. O(bytes)."""
    for number, kind, value in _entries(bytes(body)):
        if number == line and kind in ("allow", "disallow"):
            return kind.capitalize().encode() + b": " + value
    return b""
