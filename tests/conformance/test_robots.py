"""robots.txt against third-party data: Google's verdicts on 2,142 real files, and crawler-commons' test files."""

from __future__ import annotations

import gzip
import json
import tarfile

import pytest
from nephila.kernel.net.robots import Robots, parse

from tests.acceptance import locate

pytestmark = pytest.mark.conformance


def test_google_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    """Never looser than Google's parser; stricter only where the RFC's reading of escapes forbids."""
    folder = locate("robots")
    files: dict[str, Robots] = {}
    with tarfile.open(folder / "robots-corpus.tar.gz") as archive:
        for member in archive:
            handle = archive.extractfile(member)
            if handle is not None:
                files[member.name.rpartition("/")[2]] = parse(handle.read())
    verdicts = equal = 0
    looser, stricter = [], []
    with gzip.open(folder / "google-verdicts.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            for expected, paths in ((True, row["allow"]), (False, row["deny"])):
                for path in paths:
                    if path == "/robots.txt":  # always allowed by the RFC, which Google's parser leaves to its caller
                        continue
                    robots = files[row["file"]]
                    verdicts += 1
                    if robots.allowed(row["agent"], path) is expected:
                        equal += 1
                    else:
                        rule = robots.decide(row["agent"], path).rule
                        (stricter if expected else looser).append((row["file"], row["agent"], path, rule))
    with capsys.disabled():
        print(f"\nrobots: {equal} of {verdicts} verdicts equal Google's ({equal / verdicts:.3%}); ", end="")
        print(f"{len(stricter)} stricter, {len(looser)} looser")
        for file, agent, path, rule in stricter:
            if agent == "Googlebot":
                print(f"  stricter (escape in another spelling): {file} {path} by {rule!r}")
    assert looser == []
    assert equal / verdicts > 0.999
    assert all("%" in path for _, _, path, _ in stricter)


COMMONS = {
    "rfc9309-example-simple-robots.txt": [
        ("anybot", "/a.gif", False),
        ("anybot", "/example/x", False),
        ("anybot", "/publications/x", True),
        ("foobot", "/", False),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/a.gif", True),
        ("quxbot", "/example/x", True),
    ],
    "rfc9309-example-longest-match-robots.txt": [
        ("foobot", "/example/page/", True),
        ("foobot", "/example/page/disallowed.gif", False),
    ],
    "rfc9309-example-rule-group-merging.txt": [
        ("ExampleBot", "/foo", False),
        ("ExampleBot", "/bar", False),
        ("ExampleBot", "/baz", False),
        ("BazBot", "/foo", True),
        ("BazBot", "/baz", False),
        ("other", "/baz", True),
    ],
    "crawl-delay-group-merging.txt": [
        ("mybot", "/private/", False),
        ("yourbot", "/private/", False),
        ("yourbot", "/login/", False),
        ("other", "/private/", True),
    ],
    "extensions-group-merging.txt": [
        ("mybot", "/private/", False),
        ("yourbot", "/private/", False),
        ("yourbot", "/login/", False),
        ("other", "/llms.txt", True),
        ("other", "/x", False),
    ],
    "merge-rules.txt": [
        ("wget", "/foo/bar", True),
        ("wget", "/tmp/bar", False),  # noqa: S108
        ("wget", "/ckh/bar", True),
        ("curl", "/", False),
        ("other", "/foo/bar", False),
    ],
    "precedence-of-rules.txt": [
        ("testy", "/foo", False),
        ("testy", "/foo/bar", True),
        ("testy", "/foo/bob", False),
        ("wget", "/foo", True),
        ("wget", "/index.html", True),
        ("wget", "/x", False),
    ],
    "directive-typos-robots.txt": [
        ("bot1", "/dissalow/", False),
        ("bot2", "/useragent/", False),
        ("bot4", "/useragent-no-colon/", False),
    ],
    "format-errors-robots.txt": [
        ("bot1", "/whitespace-before-colon/", False),
        ("bot1", "/no-colon/", False),
        ("bot2", "/no-colon-useragent/", False),
        ("bot3", "/whitespace-before-colon", True),
        ("bot3", "/x", False),
    ],
    "malformed-path.txt": [
        ("anybot", "/wiki/Wikipedia_talk:Mediation_Committee/", False),
        ("anybot", "/wiki/Wikipedia_talk%3Mediation_Committee/x", False),
    ],
    "many-user-agents.txt": [("Wget", "/", False), ("mj12bot", "/", True)],
    "wildcards.txt": [("anybot", "/gp/cart", False), ("anybot", "/fish", True)],
}


@pytest.mark.parametrize("name", COMMONS)
def test_crawler_commons_files(name: str) -> None:
    """Files another project tests with, where what is right is beyond doubt."""
    path = locate("crawler-commons") / "src/test/resources/robots" / name
    robots = parse(path.read_bytes())
    for agent, url, expected in COMMONS[name]:
        assert robots.allowed(agent, url) is expected, (agent, url)


def test_crawler_commons_delays() -> None:
    """A Crawl-delay belongs to the agents it stands under, whatever the groups of rules become."""
    path = locate("crawler-commons") / "src/test/resources/robots" / "crawl-delay-group-merging.txt"
    robots = parse(path.read_bytes())
    assert [robots.crawl_delay_s(agent) for agent in ("mybot", "yourbot", "other")] == [10.0, None, 30.0]
