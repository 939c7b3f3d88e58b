"""robots.txt as RFC 9309 and Google's parser read it."""

from __future__ import annotations

import random
import re
import time

import pytest
from nephila.kernel.net.robots import RobotsVerdict, parse, policy_for


def allowed(text: str | bytes, path: str, agent: str = "nephila") -> bool:
    """The verdict of a file given as text."""
    return parse(text.encode() if isinstance(text, str) else text).allowed(agent, path)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("/fish", "/fish.html", True),
        ("/fish", "/Fish", False),
        ("/fish*", "/fish", True),
        ("/fish/", "/fish", False),
        ("/*.php", "/index.php?x", True),
        ("/*.php", "/windows.PHP", False),
        ("/*.php$", "/a/b.php", True),
        ("/*.php$", "/a.php?x", False),
        ("/fish*.php", "/fishheads/catfish.php?id", True),
        ("/a$b", "/a$b", True),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("*/x/", "/a/x/b", True),
        ("/**//*$", "/a//", True),
        ("/*a*a$", "/a", False),
        ("/*a*a$", "/aa", True),
        ("$", "/", False),
        ("/caf\u00e9", "/caf%C3%A9", True),
        ("/caf%c3%a9", "/caf%C3%A9", True),
        ("/caf%C3%A9", "/caf\u00e9", True),
        ("/%7ejoe", "/~joe", True),
        ("/~joe", "/%7Ejoe", True),
        ("/a%2fb", "/a/b", False),
        ("/a%2Fb", "/a%2fb", True),
    ],
)
def test_patterns(pattern: str, path: str, matches: bool) -> None:
    """Prefixes, stars, a final $, and escapes in every spelling."""
    assert allowed(f"User-agent: *\nDisallow: {pattern}", path) is not matches


def test_longest_match_wins() -> None:
    """The longest pattern decides; an Allow wins a tie."""
    text = "User-agent: *\nDisallow: /p\nAllow: /page\nDisallow: /page/secret\nAllow: /tie\nDisallow: /tie"
    assert [allowed(text, path) for path in ("/p", "/page", "/page/secret", "/tie")] == [False, True, False, True]


def test_verdict_names_its_line() -> None:
    """`explain` can show the line that decides."""
    robots = parse(b"# hello\r\nUser-agent: *\r\nDisallow: /private # comment\r\n")
    assert robots.decide("nephila", "/private/x") == RobotsVerdict(False, 3, "Disallow: /private")
    assert robots.decide("nephila", "/public") == RobotsVerdict(True, 0, "")


def test_own_group_instead_of_everyones() -> None:
    """An agent with a group of its own, even an empty one, does not obey the others."""
    text = "User-agent: *\nDisallow: /\n\nUser-agent: Nephila\nDisallow:\n"
    assert allowed(text, "/x")
    assert not allowed(text, "/x", "other")


def test_groups_of_one_agent_are_merged() -> None:
    """Groups of one agent anywhere in the file are one (RFC 9309 2.2.1)."""
    text = "User-agent: nephila\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\n"
    text += "User-agent: y\nUser-agent: NEPHILA/2.0\nDisallow: /b"
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_other_records_close_no_group() -> None:
    """Sitemap, Crawl-delay and unknown records between user-agent lines do not part them (RFC 9309 2.2.4)."""
    text = "User-agent: a\nSitemap: http://x/s\nCrawl-delay: 3\nNoindex: /z\nUser-agent: b\nDisallow: /x"
    assert not allowed(text, "/x", "a")
    assert not allowed(text, "/x", "b")


def test_tokens() -> None:
    """Agents are compared by product token, case and version aside; a token is not matched in part."""
    text = "User-agent: Nephila/1.0 (x)\nDisallow: /"
    assert not allowed(text, "/", "Nephila")
    assert not allowed(text, "/", "nephila/0.1")
    assert allowed(text, "/", "Nephila-Images")
    assert not allowed("User-agent: * anything\nDisallow: /", "/")


@pytest.mark.parametrize("key", ["disallow", "DISALLOW", "Disalow", "dissallow", "disallaw", "diasllow", "Disallowed"])
def test_misspelt_keys(key: str) -> None:
    """Frequent misspellings mean what they say."""
    assert not allowed(f"User agent: *\n{key}: /x", "/x")


def test_missing_colon() -> None:
    """Two words without a colon are a record, three are not."""
    assert not allowed("User-agent *\nDisallow /x", "/x")
    assert allowed("User-agent *\nDisallow /x y", "/x")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_line_ends(end: str) -> None:
    """CR, LF and CRLF end lines alike, and are counted alike."""
    verdict = parse(end.join(("User-agent: *", "", "Disallow: /x")).encode()).decide("a", "/x")
    assert (verdict.allowed, verdict.line) == (False, 3)


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_byte_order_mark(mark: bytes) -> None:
    """A byte order mark, even a torn one, hides no group."""
    assert not allowed(mark + b"User-agent: *\nDisallow: /", "/")


def test_rules_before_any_agent() -> None:
    """Rules without a group are ignored."""
    assert allowed("Disallow: /\nUser-agent: *\nDisallow: /x", "/y")


@pytest.mark.parametrize(
    "body", [b"", b"\0\0\0", b"<html>User-agent: x</html>", b"\xff\xfeU\0s\0", b"User-agent:\nDisallow: /", b":::\n:"]
)
def test_rubbish(body: bytes) -> None:
    """What is no robots.txt forbids nothing and breaks nothing."""
    robots = parse(body)
    assert robots.allowed("nephila", "/x")
    assert robots.sitemaps == ()
    assert robots.crawl_delay_s("nephila") is None


def test_index_pages() -> None:
    """Allowing a directory's index page allows the directory (as Google does)."""
    text = "User-agent: *\nAllow: /d/index.html\nDisallow: /d"
    assert allowed(text, "/d/")
    assert allowed(text, "/d/index.html")
    assert not allowed(text, "/d/x")


def test_empty_disallow() -> None:
    """An empty Disallow forbids nothing."""
    assert allowed("User-agent: *\nDisallow:", "/x")


def test_escapes_are_read_on_the_polite_side() -> None:
    """Where Google's reading and the RFC's differ, the one that forbids counts."""
    text = "User-agent: *\nDisallow: /\nAllow: /%61"
    assert not allowed(text, "/a")
    assert allowed(text, "/%61")
    assert not allowed("User-agent: *\nDisallow: /a", "/%61")


def test_long_lines_are_cut() -> None:
    """A line beyond 16 KiB is cut, as Google does; the file goes on behind it."""
    text = "User-agent: *\nDisallow: /" + "x" * 20_000 + "\nDisallow: /y"
    assert not allowed(text, "/y")
    assert not allowed(text, "/" + "x" * 16_700)


def test_crawl_delay() -> None:
    """The delay of the agent's own group, else of everyone's; nonsense is none."""
    text = "User-agent: *\nCrawl-delay: 2\nDisallow:\n\nUser-agent: slow\nCrawl-delay: 7.5\nDisallow:\n\n"
    text += "User-agent: none\nDisallow: /x"
    robots = parse(text.encode())
    assert [robots.crawl_delay_s(agent) for agent in ("any", "slow", "none")] == [2.0, 7.5, None]
    text = "User-agent: *\nCrawl-delay: 1\n\nUser-agent: slow\nCrawl-delay: 100\nUser-agent: b\nDisallow: /"
    assert [parse(text.encode()).crawl_delay_s(agent) for agent in ("any", "slow", "b")] == [1.0, 100.0, None]
    for bad in ("-1", "nan", "inf", "soon", "", "\u0663"):
        assert parse(f"User-agent: *\nCrawl-delay: {bad}".encode()).crawl_delay_s("x") is None


def test_sitemaps() -> None:
    """Sitemaps belong to no group, each once, as written."""
    text = "Sitemap: http://x/a.xml\nUser-agent: *\nSITEMAP: http://x/b.xml\nsite-map: http://x/a.xml\nSitemap:\n"
    text += "Sitemap: http://x/\u00e9"
    assert parse(text.encode()).sitemaps == ("http://x/a.xml", "http://x/b.xml", "http://x/\u00e9")


@pytest.mark.parametrize(
    ("status", "reason", "policy"),
    [
        (200, "", "rules"),
        (204, "", "rules"),
        (301, "bad_redirect", "allow"),
        (302, "", "allow"),
        (401, "http_401", "allow"),
        (404, "http_404", "allow"),
        (410, "http_410", "allow"),
        (429, "http_429", "disallow"),
        (500, "http_500", "disallow"),
        (503, "http_503", "disallow"),
        (0, "dns", "disallow"),
        (0, "timeout", "disallow"),
        (0, "address", "disallow"),
        (200, "disconnected", "disallow"),
        (200, "encoding", "disallow"),
    ],
)
def test_policy(status: int, reason: str, policy: str) -> None:
    """What an answer to the robots request means (RFC 9309 2.3.1)."""
    assert policy_for(status, reason) == policy


def test_matching_equals_a_plain_model() -> None:
    """Random patterns and paths: the matcher agrees with a regular expression."""
    rng = random.Random(9309)
    for _ in range(5_000):
        pattern = "/" + "".join(rng.choice("ab*$/") for _ in range(rng.randrange(8)))
        path = "/" + "".join(rng.choice("ab$/") for _ in range(rng.randrange(8)))
        anchored = pattern.endswith("$")
        core = pattern[:-1] if anchored else pattern
        model = re.compile(".*".join(map(re.escape, core.split("*"))) + (r"\Z" if anchored else ""))
        assert allowed(f"User-agent: *\nDisallow: {pattern}", path) is not bool(model.match(path)), (pattern, path)


def test_hostile_patterns_are_linear() -> None:
    """Patterns made to backtrack cost no more than others."""
    robots = parse(b"User-agent: *\n" + b"Disallow: /" + b"*a" * 8_000 + b"$\n")
    path = "/" + "a" * 50_000 + "b"
    robots.decide("x", "/")
    before = time.process_time()
    assert robots.allowed("x", path)
    assert time.process_time() - before < 0.5
