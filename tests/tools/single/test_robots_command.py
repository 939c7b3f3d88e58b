"""`nephila robots check`: verdicts, the line that decides, batches."""

from __future__ import annotations

import json

import pytest

RULES = "User-agent: *\nDisallow: /private\nCrawl-delay: 2\n\nUser-agent: foobot\nDisallow: /\n"


@pytest.fixture
def file(tmp_path):
    """A robots.txt on disk."""
    path = tmp_path / "robots.txt"
    path.write_text(RULES)
    return str(path)


def ask(nephila, **question: object) -> dict:
    """One line of a batch."""
    ran = nephila("robots", "check", "--batch", stdin=json.dumps(question).encode())
    assert ran.code == 0
    return json.loads(ran.out)


def test_the_deciding_line_is_named(nephila, file):
    """Both verdicts are answers: exit code 0."""
    ran = nephila("robots", "check", "--file", file, "--url", "https://a.test/private/x")
    assert ran.code == 0
    assert ran.out == "verdict:     denied\nbecause:     line 2: Disallow: /private\ncrawl delay: 2 s\n"
    assert "no rule for nephila matches" in nephila("robots", "check", "--file", file, "--url", "/").out


def test_quiet_makes_the_verdict_the_exit_code(nephila, file):
    """For scripts."""
    assert nephila("robots", "check", "--file", file, "--url", "/", "--quiet") == (0, "", "")
    assert nephila("robots", "check", "--file", file, "--url", "/private", "--quiet") == (1, "", "")


def test_json_holds_verdict_line_and_delay(nephila, file):
    """The same facts, for programs."""
    ran = nephila("robots", "check", "--file", file, "--url", "/private", "--json")
    assert json.loads(ran.out) == {
        "url": "/private",
        "allowed": False,
        "line": 2,
        "rule": "Disallow: /private",
        "crawl_delay_s": 2.0,
    }


def test_standard_input_may_be_the_file(nephila):
    """`curl … | nephila robots check --file - …`."""
    ran = nephila(
        "robots", "check", "--file", "-", "--url", "/", "--agent", "FooBot/1.0", "--json", stdin=RULES.encode()
    )
    assert json.loads(ran.out)["allowed"] is False


def test_a_batch_sorts_urls_into_allow_and_deny(nephila, file):
    """By text or by file, URLs or paths, in their order and spelling."""
    urls = ["http://a.test/x", "http://a.test/private?q", "/private", "/", "http://a.test"]
    wanted = {"allow": [urls[0], urls[3], urls[4]], "deny": urls[1:3], "crawl_delay_s": 2.0}
    assert ask(nephila, robots=RULES, agent="nephila", urls=urls) == wanted
    assert ask(nephila, file=file, agent="nephila", urls=urls) == wanted


@pytest.mark.parametrize("agent", ["foobot", "FooBot/2.1", "Mozilla/5.0 (compatible; FooBot/2.1; +http://a.test)"])
def test_an_agent_may_be_a_full_user_agent(nephila, agent):
    """Its product token counts."""
    assert ask(nephila, robots=RULES, agent=agent, urls=["/"]) == {"allow": [], "deny": ["/"], "crawl_delay_s": None}


def test_a_url_is_also_judged_as_it_would_be_fetched(nephila):
    """Dots lead nowhere; a rule for the spelling itself holds as well."""
    rules = "User-agent: *\nDisallow: /private\nDisallow: /search\\?\n"
    urls = ["http://a.test/x/../private", "http://a.test/search\\?", "http://a.test/x/..", "/search\\?"]
    assert ask(nephila, robots=rules, urls=urls)["allow"] == [urls[2]]


def test_a_bad_line_has_an_error_of_its_own(nephila, tmp_path):
    """A missing file, missing fields, no JSON: the next line is answered."""
    missing = str(tmp_path / "none")
    rows = [json.dumps({"file": missing, "urls": []}), "{}", "nonsense", json.dumps({"robots": "", "urls": ["/"]})]
    ran = nephila("robots", "check", "--batch", stdin="\n".join(rows).encode())
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert answers[0]["error"] == f"{missing}: No such file or directory"
    assert "missing" in answers[1]["error"]
    assert "not a line of JSON" in answers[2]["error"]
    assert answers[3]["allow"] == ["/"]


def test_mistakes_are_explained(nephila, tmp_path):
    """Usage is 2, a file that cannot be read is 1."""
    assert nephila("robots", "check").code == 2
    assert nephila("robots", "check", "--batch", "--url", "/").code == 2
    ran = nephila("robots", "check", "--file", str(tmp_path / "none"), "--url", "/")
    assert (ran.code, ran.err) == (1, f"nephila: cannot read {tmp_path / 'none'}: No such file or directory\n")
