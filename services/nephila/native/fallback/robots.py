"""robots.txt by RFC 9309 as Google's parser reads it: the same verdicts as the core.

Reading is O(bytes), a decision O(rules × length of the path) for any pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_MAX_LINE = 2083 * 8 - 1
"""Google: longer lines are cut."""
_SPACE = b" \t\n\v\f\r"
_LINE_END = re.compile(rb"\r\n|\n|\r")
_TOKEN = re.compile(rb"[A-Za-z_-]*")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}|[\x80-\xff]")
_UNRESERVED_ESCAPE = re.compile(rb"%(?:2D|2E|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])", re.IGNORECASE)
_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_SPECIAL = re.compile(rb"[*$]")
_INNER_DOLLAR = re.compile(rb"\$(?=.)", re.DOTALL)
_ROBOTS_PATH = b"/robots.txt"
_RULE_BYTES = 400
_KEYS = (
    ("agent", (b"user-agent", b"useragent", b"user agent")),
    ("allow", (b"allow",)),
    ("disallow", (b"disallow", b"dissallow", b"dissalow", b"disalow", b"diasllow", b"disallaw")),
    ("sitemap", (b"sitemap", b"site-map")),
    ("delay", (b"crawl-delay", b"crawldelay", b"crawl delay")),
)
"""The beginning of the key decides the kind of a line."""
_Written = tuple[bytes, bool, int]
"""Pattern, allow, line."""


class _Rule:
    """The pattern is split at its stars."""

    __slots__ = ("anchored", "parts", "prefix", "rank")

    def __init__(self, pattern: bytes, allow: bool, line: int) -> None:
        self.rank = (len(pattern), allow, -line)
        text, self.anchored = (pattern[:-1], True) if pattern.endswith(b"$") else (pattern, False)
        if text.endswith(b"*"):
            text, self.anchored = text.rstrip(b"*"), False
        self.prefix, *self.parts = text.split(b"*")

    def matches(self, path: bytes) -> bool:
        """A star takes any bytes, so leftmost matches suffice. O(len(path)), no backtracking."""
        if not path.startswith(self.prefix):
            return False
        at, last = len(self.prefix), len(self.parts) - 1
        if last < 0:
            return not self.anchored or len(path) == at
        for number, part in enumerate(self.parts):
            if number == last and self.anchored:
                return len(path) - len(part) >= at and path.endswith(part)
            at = path.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return True


class RobotsRules:
    """The rules of a robots.txt for one agent: the groups of the agent if there are any, else those of `*`."""

    __slots__ = ("_decoded", "_rules", "crawl_delay_s")

    def __init__(self, body: bytes, agent: bytes) -> None:
        written, self.crawl_delay_s = _collect(bytes(body), _token(agent))
        self._rules = _sorted(written)
        plain = [(_decode(pattern), allow, line) for pattern, allow, line in written]
        self._decoded = self._rules if plain == written else _sorted(plain)

    def decide(self, path: bytes) -> int:
        """Line of the rule that decides about a path with its query, negative when it forbids; 0: no rule does."""
        path = _escape(path if path[:1] == b"/" else b"/" + path)
        # A rule names the characters themselves by %2A and %24 (RFC 9309 2.2.3).
        path = _SPECIAL.sub(lambda match: b"%%%02X" % match[0][0], path)
        verdict = self._verdict(path)
        # RFC 9309 2.2.2: the URI /robots.txt is always allowed.
        return 0 if verdict < 0 and _decode(path) == _ROBOTS_PATH else verdict

    def _verdict(self, path: bytes) -> int:
        """The verdict of both readings; the one that forbids wins."""
        line = _find(self._rules, path)
        decoded = _decode(path)
        if line < 0 or (self._decoded is self._rules and decoded == path):
            return line
        other = _find(self._decoded, decoded)
        return other if other < 0 else line

    def __len__(self) -> int:
        """How many rules are kept: each pattern once."""
        return len(self._rules)

    @property
    def scanned(self) -> int:
        """Rules that a decision may try."""
        return len(self._rules) + (0 if self._decoded is self._rules else len(self._decoded))

    @property
    def size_bytes(self) -> int:
        """Memory of the rules (estimate)."""
        return (1 + self.scanned) * _RULE_BYTES


def _sorted(written: list[_Written]) -> list[_Rule]:
    """Longest pattern first, Allow before Disallow, then by line; each pattern once."""
    rules: dict[tuple[bytes, ...], _Rule] = {}
    for row in sorted(written, key=lambda row: (len(row[0]), row[1], -row[2]), reverse=True):
        rule = _Rule(*row)
        rules.setdefault((rule.prefix, *rule.parts, b"$" if rule.anchored else b""), rule)
    return list(rules.values())


def _find(rules: list[_Rule], path: bytes) -> int:
    for rule in rules:
        if rule.matches(path):
            _, allow, line = rule.rank
            return -line if allow else line
    return 0


def _collect(body: bytes, token: bytes) -> tuple[list[_Written], float | None]:
    """Rules and Crawl-delay for an agent, in one pass over the lines."""
    rules: dict[bool, list[_Written]] = {True: [], False: []}
    delays: dict[bool, list[float]] = {True: [], False: []}
    """By whether the group is the agent's own (else that of `*`)."""
    ever_own = rules_follow = delay_follows = False
    group: set[bool] = set()
    delayed: set[bool] = set()
    # Crawl-delay ends no group of rules (RFC 9309, 2.2.4). It counts for the agents named since the last record.
    for line, kind, value in _entries(body):
        if kind == "agent":
            group, rules_follow = (set(), False) if rules_follow else (group, False)
            delayed, delay_follows = (set(), False) if delay_follows else (delayed, False)
            if value[:1] == b"*" and (len(value) == 1 or value[1] in _SPACE):
                group.add(False)
                delayed.add(False)
            elif token and _token(value) == token:
                ever_own = True
                group.add(True)
                delayed.add(True)
        elif kind in ("allow", "disallow"):
            delay_follows = True
            if group:
                rules_follow = True
                rules[True in group].extend(_rule(kind == "allow", value, line))
        elif kind == "delay":
            delay_follows = True
            words = value.split()
            if words and _NUMBER.fullmatch(words[0]) and 0 <= float(words[0]) < float("inf"):
                for own in delayed:
                    delays[own].append(float(words[0]))
    return rules[ever_own], max(delays[ever_own], default=None)


def _rule(allow: bool, value: bytes, line: int) -> Iterator[_Written]:
    """The rules of a line; an empty pattern is none."""
    pattern = _INNER_DOLLAR.sub(b"%24", _escape(value))
    if pattern:
        yield pattern, allow, line
    slash = pattern.rfind(b"/")
    if allow and slash >= 0 and pattern.startswith(b"/index.htm", slash):
        # Google: a directory and its index page are one.
        yield pattern[: slash + 1] + b"$", True, line


def _token(agent: bytes) -> bytes:
    match = _TOKEN.match(agent)
    return match[0].lower() if match else b""


def _escape(text: bytes) -> bytes:
    """Escapes in capitals, octets above ASCII escaped."""
    return _ESCAPE.sub(lambda match: match[0].upper() if match[0][:1] == b"%" else b"%%%02X" % match[0][0], text)


def _decode(text: bytes) -> bytes:
    """Unreserved characters decoded: RFC 9309, 2.2.2; RFC 3986, 2.3."""
    return _UNRESERVED_ESCAPE.sub(lambda match: bytes((int(match[0][1:], 16),)), text)


def _entries(body: bytes) -> Iterator[tuple[int, str, bytes]]:
    """(line, kind, value) of every line that has a key."""
    for octet in b"\xef\xbb\xbf":  # a byte order mark, whole or torn
        if body[:1] != bytes((octet,)):
            break
        body = body[1:]
    for number, raw in enumerate(_LINE_END.split(body), 1):
        pair = _key_value(raw) if raw else None
        if pair is not None:
            key = pair[0].lower()
            yield number, next((kind for kind, starts in _KEYS if key.startswith(starts)), "other"), pair[1]


def _key_value(raw: bytes) -> tuple[bytes, bytes] | None:
    """Key and value of a line without its comment; the colon may be missing between exactly two words."""
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
    """The rule of a line ("Allow: /x"); empty when the line is no rule. O(bytes)."""
    for number, kind, value in _entries(bytes(body)):
        if number == line and kind in ("allow", "disallow"):
            return kind.capitalize().encode() + b": " + value
    return b""
