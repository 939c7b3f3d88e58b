"""Rules of robots.txt: both implementations against a model that tries every rule, and hostile files."""

from __future__ import annotations

import random
import re
from types import ModuleType

import pytest

from .conftest import core_only


def model(rules: list[tuple[str, bool]], path: str) -> int:
    """Number of the line that decides, negative when it forbids; lines begin at 2."""
    best = (0, False, 0)
    for line, (pattern, allow) in enumerate(rules, 2):
        anchored = pattern.endswith("$")
        core = pattern[:-1] if anchored else pattern
        expression = ".*".join(map(re.escape, core.split("*"))) + (r"\Z" if anchored else "")
        if pattern and re.match(expression, path):
            octets = len(core.replace("$", "%24")) + anchored  # a dollar before the end counts as its escape
            best = max(best, (octets, allow, -line))
    return -best[2] if best[1] else best[2]


def test_verdicts_equal_those_of_a_plain_model(core: ModuleType) -> None:
    """Random files of up to 40 rules over few letters, so that prefixes, ties and repetitions are frequent."""
    rng = random.Random(9309)
    for _ in range(300):
        rules = [
            ("/" + "".join(rng.choice("aab/*$") for _ in range(rng.randrange(7))), rng.random() < 0.4)
            for _ in range(rng.randrange(40))
        ]
        lines = [f"{'Allow' if allow else 'Disallow'}: {pattern}" for pattern, allow in rules]
        packed = core.RobotsRules("\n".join(("User-agent: *", *lines)).encode(), b"bot")
        for _ in range(20):
            path = "/" + "".join(rng.choice("ab/$") for _ in range(rng.randrange(9)))
            assert packed.decide(path.encode()) == model(rules, path), (rules, path)


@pytest.mark.parametrize("character", ["*", "$"])
def test_an_escaped_special_character_means_itself(core: ModuleType, character: str) -> None:
    """%2A and %24 in a rule match the character, escaped or not, and nothing else (RFC 9309 2.2.3)."""
    escape = f"%{ord(character):02x}"
    body = f"User-agent: *\nDisallow: /\nAllow: /a-{escape}.html\nDisallow: /a-{escape.upper()}.html?".encode()
    rules = core.RobotsRules(body, b"bot")
    paths = [f"/a-{character}.html", f"/a-{escape}.html", f"/a-{escape.upper()}.html"]
    assert [rules.decide(path.encode()) for path in paths] == [3, 3, 3]
    assert [rules.decide(path.encode()) for path in ("/a-x.html", "/a-.html", f"/a-{character}.html?q")] == [-2, -2, -4]


def test_a_dollar_before_the_end_is_a_character(core: ModuleType) -> None:
    """Only the last one anchors; the others equal their escape."""
    rules = core.RobotsRules(b"User-agent: *\nDisallow: /a$b$\n", b"bot")
    assert [rules.decide(path) for path in (b"/a$b", b"/a%24b", b"/a$bc", b"/a", b"/a$")] == [-2, -2, 0, 0, 0]


def test_the_rules_themselves_are_always_allowed(core: ModuleType) -> None:
    """RFC 9309 2.2.2: /robots.txt is implicitly allowed, whichever rule forbids it; other paths are not."""
    rules = core.RobotsRules(b"User-agent: *\nDisallow: /\nDisallow: /robots.txt\n", b"bot")
    assert [rules.decide(path) for path in (b"/robots.txt", b"robots.txt", b"/robots%2Etxt")] == [0, 0, 0]
    assert all(rules.decide(path) < 0 for path in (b"/robots.txt2", b"/a/robots.txt", b"/Robots.txt", b"/robots.txt?x"))


def test_an_equal_pattern_is_kept_once(core: ModuleType) -> None:
    """The Allow of two equal patterns stays, and of two equal lines the first."""
    body = b"User-agent: *\nDisallow: /a\nAllow: /a\nDisallow: /b\nDisallow: /b\nDisallow: /c*\nDisallow: /c**\n"
    rules = core.RobotsRules(body, b"bot")
    assert len(rules) == 3
    assert [rules.decide(path) for path in (b"/ax", b"/b", b"/c", b"/d")] == [3, -4, -7, 0]


def test_only_the_agents_own_rules_are_kept(core: ModuleType) -> None:
    """Thousands of rules for others take no memory."""
    others = b"".join(b"User-agent: bot%d\nDisallow: /%d\n\n" % (number, number) for number in range(2_000))
    rules = core.RobotsRules(others + b"User-agent: *\nDisallow: /y\n\nUser-agent: Own\nDisallow: /x\n", b"own/1.0")
    assert len(rules) == 1
    assert (rules.decide(b"/x"), rules.decide(b"/y")) == (-6005, 0)
    assert rules.size_bytes < 2_000


HOSTILE = {
    "prefixes": [b"/%07d" % number for number in range(26_000)],
    "nested": [b"/" + b"a" * number for number in range(950)],
    "whole paths": [b"/%06d$" % number for number in range(26_000)],
    "stars": [b"/*%06d" % number for number in range(26_000)],
    "one star each": [b"/x*%d" % number for number in range(26_000)],
    "many stars": [b"/" + b"*a" * 8_000 + b"$"] * 20,
    "only stars": [b"*" * 8_000],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_read_and_obeyed(core: ModuleType, name: str) -> None:
    """Files of 500 KB made of the worst rules: the last one of each counts, a long path is answered."""
    body = b"User-agent: *\n" + b"".join(b"Disallow: %b\n" % pattern for pattern in HOSTILE[name])
    rules = core.RobotsRules(body, b"bot")
    last = HOSTILE[name][-1].rstrip(b"$").replace(b"*", b"")
    assert rules.decide(last or b"/") < 0
    assert rules.decide(b"/" + b"ab" * 4_000) <= 0


@core_only
def test_stars_beyond_the_bound_are_read_on_the_polite_side(core: ModuleType) -> None:
    """A Disallow counts as far as its star, an Allow does not count; what came before keeps its meaning."""
    lines = [b"User-agent: *", *(b"Disallow: /a*%d$" % number for number in range(4_096))]
    rules = core.RobotsRules(b"\n".join((*lines, b"Disallow: /b*x", b"Allow: /c*x", b"Disallow: /c")), b"bot")
    assert [rules.decide(path) for path in (b"/a7", b"/a7x", b"/by", b"/cx")] == [-9, 0, -4098, -4100]


@pytest.mark.parametrize(
    ("line", "text"), [(1, b""), (3, b"Disallow: /x"), (5, b"Allow: /y"), (6, b""), (0, b""), (99, b"")]
)
def test_a_rule_as_written(core: ModuleType, line: int, text: bytes) -> None:
    """The line of a verdict as the file has it, its comment aside."""
    body = b"User-agent: *\r\n\r\nDISALOW:/x # no\rSitemap: a\nallow /y\nCrawl-delay: 2"
    assert core.robots_rule(body, line) == text
    assert core.robots_sitemaps(body) == [b"a"]
    assert core.RobotsRules(body, b"bot").crawl_delay_s == 2.0
