"""Which of many rules is for a page."""

from __future__ import annotations

import random
from typing import Any

import pytest
from nephila_rules.runtime.match import RuleSet, holds

from tests.rules.execution.rule_rig import document, rule


def of_url(rules: RuleSet, url: str) -> list[str]:
    """Names of the rules for a URL."""
    return [found.name for found in rules.for_url(url)]


def a_rule(name: str, match: str, more: str = "") -> Any:
    """A rule with nothing but its match."""
    return rule(f"match: {match}\nfields: {{a: h1}}\n{more}", name).rule


def test_priority_then_name() -> None:
    """The documented order of rules for one page."""
    rules = RuleSet(
        [
            a_rule("c", "{url: 'a'}"),
            a_rule("b", "{url: '^http'}"),
            a_rule("z", "{url: 'a'}", "priority: 5"),
            a_rule("y", "{url: 'nothing'}", "priority: 9"),
        ]
    )
    assert of_url(rules, "http://a.test/") == ["z", "b", "c"]


def test_exclude_and_several_patterns() -> None:
    """One has to match, none may."""
    rules = RuleSet([a_rule("r", "{url: ['/a/', '/b/'], exclude: ['\\?', 'x$']}")])
    result = {path: bool(of_url(rules, f"http://a.test{path}")) for path in ("/a/", "/b/1", "/c/", "/a/?q", "/a/x")}
    assert result == {"/a/": True, "/b/1": True, "/c/": False, "/a/?q": False, "/a/x": False}


def test_content_decides_among_rules_of_one_url() -> None:
    """The first that the page has everything of; others are passed over."""
    rules = RuleSet(
        [
            a_rule("a", "{url: x, content: {css: .product}}"),
            a_rule("b", "{url: x, content: {text: 'data-v2', contentType: html}}"),
            a_rule("c", "{url: x, content: {contentType: json}}"),
        ]
    )

    def chosen(body: str) -> str | None:
        found = next((rule for rule in rules.for_url("http://x/") if holds(rule, document(body))), None)
        return found.name if found else None

    assert chosen("<p class=product>") == "a"
    assert chosen("<p data-v2>") == "b"
    assert chosen("<p>") is None


def test_the_set_says_what_each_rule_says() -> None:
    """Thousands of rules of random shapes against asking one by one."""
    choose = random.Random(7)
    hosts = [f"s{n}.test" for n in range(60)]
    shapes = (
        "^https?://{h}/{n}",
        "{h}/.*{n}$",
        "/p{n}/",
        r"^https://(www\.)?{h}/\d{{4}}/",
        "q={n}(&|$)",
        "(?i)/P{n}\\b",
    )
    made = [choose.choice(shapes).format(h=choose.choice(hosts), n=n % 50) for n in range(3000)]
    all_rules = [a_rule(f"r{n}", f"{{url: '{pattern}'}}") for n, pattern in enumerate(made)]
    rules = RuleSet(all_rules)
    for n in range(150):
        host, path = choose.choice(hosts), choose.choice(("", f"{n % 50}", f"p{n % 50}/x", "2026/x", f"?q={n % 50}"))
        url = f"https://{choose.choice(('', 'www.'))}{host}/{path}"
        assert of_url(rules, url) == sorted((one.name for one in all_rules if one.matches(url)), key=str.encode)


def test_no_rules_and_odd_urls() -> None:
    """Nothing fails."""
    assert of_url(RuleSet([]), "http://a/") == []
    rules = RuleSet([a_rule("r", "{url: '.'}")])
    assert of_url(rules, "http://a/\udc80") == []
    assert of_url(rules, "") == []
    assert len(rules) == 1


@pytest.mark.parametrize("memory", [60_000, 300_000, 1_000_000])
def test_an_automaton_without_memory_is_no_silence(monkeypatch: pytest.MonkeyPatch, memory: int) -> None:
    """Where the set cannot be made, or runs out of memory, the rules are asked one by one."""
    monkeypatch.setattr("nephila_rules.runtime.match._MEMORY", memory)
    monkeypatch.setattr("nephila_rules.runtime.match._PER_PATTERN", 0)
    made = [f"(x.{{{n % 9 + 1}}}y.*){{{n % 5 + 1}}}{n}$" for n in range(40)]
    all_rules = [a_rule(f"r{n}", f"{{url: '{pattern}'}}") for n, pattern in enumerate(made)]
    rules = RuleSet(all_rules)
    choose = random.Random(3)
    for _ in range(20):
        url = "".join(choose.choices("xyab", k=300)) + str(choose.randrange(40))
        assert of_url(rules, url) == sorted((one.name for one in all_rules if one.matches(url)), key=str.encode)
