"""Bad values raise at the call; a crawl that stores nothing reports why."""

from __future__ import annotations

import math
from pathlib import Path

import nephila
import pytest

START = "http://a.test/"


@pytest.mark.parametrize(
    "bad",
    [
        {"delay": "soon"},
        {"delay": math.nan},
        {"max_pages": -1},
        {"max_pages": "many"},
        {"scope": ["host"]},
        {"scope": "hots"},
        {"format": ["jsonl"]},
        {"include": 5},
        {"include": [b"x"]},
        {"include": ["("]},
        {"main_text": "best"},
        {"sitemap": "yes"},
        {"header": ["no colon"]},
        {"host_map": {"a": "b"}},
        {"cookies": "/no/such/jar"},
        {"retries": -1},
        {"timeout": "-1s"},
        {"rate": "fast"},
        {"rate": 2, "delay": 1},
        {"user": "ann"},
        {"accept": "nonsense"},
        {"ahead": "many"},
        {"ahead": 0},
        {"on_page": "page"},
        {"max_page": 5},
    ],
    ids=str,
)
def test_a_bad_value_raises_at_the_call(tmp_path, bad):
    with pytest.raises(nephila.UsageError):
        nephila.crawl(START, out=tmp_path / "o", **bad)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("seeds", [[["http://a.test/"]], [b"http://a.test/"], [None], []], ids=str)
def test_seeds_are_texts(seeds):
    with pytest.raises(nephila.UsageError):
        nephila.crawl(*seeds)


def test_the_error_names_the_option_and_the_remedy():
    with pytest.raises(nephila.UsageError, match="delay: 'soon' is no duration like 500ms"):
        nephila.crawl(START, delay="soon")
    with pytest.raises(nephila.UsageError, match="there is no option 'max_page'; did you mean 'max_pages'"):
        nephila.crawl(START, max_page=1)


def test_texts_with_units_are_values_as_on_the_command_line(web, options):
    pages = list(nephila.crawl(START, **{**options, "delay": "1ms", "max_pages": "0.003k"}, timeout="1m"))
    assert len(pages) == 3


def test_cookies_of_a_file_are_sent(web, options, tmp_path):
    jar = tmp_path / "jar"
    jar.write_text("# Netscape HTTP Cookie File\na.test\tFALSE\t/\tFALSE\t0\tname\tvalue\n")
    list(nephila.crawl(START, cookies=Path(jar), max_pages=1, **options))
    assert web.requests[-1].headers["Cookie"] == "name=value"


def test_a_user_is_sent_to_the_hosts_of_the_seeds(web, options):
    list(nephila.crawl(START, user="ann:x", max_pages=1, **options))
    assert web.requests[-1].headers["Authorization"] == "Basic YW5uOng="


def test_a_page_over_the_limit_is_not_stored(options):
    crawl = nephila.crawl(START, max_page_bytes=10, max_depth=0, **options)
    assert list(crawl) == []
    assert crawl.end.reasons == {"failed(too_large)": 1}


def test_the_main_text_is_chosen(options):
    (page,) = nephila.crawl(START, main_text="none", max_depth=0, **options)
    assert page.text == ""


def test_a_crawl_that_stores_nothing_says_why(options):
    crawl = nephila.crawl("http://a.test/private/x", **options)
    assert list(crawl) == []
    assert crawl.end.problem == "no page was stored: denied(robots)"


def test_a_seed_that_is_refused_is_named(options):
    crawl = nephila.crawl("http://a.test/", exclude=["a.test"], **options)
    assert list(crawl) == []
    assert crawl.end.problem.startswith("no page was stored: ")
    assert crawl.end.refused_seeds or crawl.end.reasons


def test_a_crawl_that_stores_a_page_has_no_problem(options):
    crawl = nephila.crawl(START, max_pages=1, **options)
    assert len(list(crawl)) == 1
    assert crawl.end.problem == ""
