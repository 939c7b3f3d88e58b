"""Which options of Firecrawl's requests are honoured, which are refused, and what an id holds."""

from __future__ import annotations

import re

import pytest
import re2
from nephila.kernel.documents import job_document
from nephila.kernel.runtime.errors import UsageError
from nephila_doors.firecrawl import options

OF_THE_CLIENT = {
    "onlyMainContent": True,
    "mobile": False,
    "skipTlsVerification": True,
    "removeBase64Images": True,
    "fastMode": False,
    "blockAds": True,
    "maxAge": 14_400_000,
    "storeInCache": True,
    "origin": "python-sdk@4",
}
"""What the official client sends with every scrape."""


def test_what_the_official_client_always_sends_is_taken():
    assert options.scrape_options(OF_THE_CLIENT) == options.ScrapeOptions(max_age_s=14_400)
    assert options.scrape_options({"waitFor": 500, "timeout": 10**6}) == options.ScrapeOptions(
        rendered=True, timeout_s=options.MAX_TIMEOUT_S
    )


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"mobile": True}, "mobile is not supported: set the User-Agent of the program"),
        ({"actions": [{"type": "wait"}]}, "actions is not supported: steps of a browser are spec.browser.steps"),
        ({"formats": ["summary"]}, "format 'summary' is not supported: there are markdown, links"),
        ({"formats": ["screenshot"]}, "format 'screenshot' is not supported"),
        ({"formats": ["json"]}, "format json needs a schema with properties"),
        ({"formats": "markdown"}, "formats is not a list"),
        ({"maxAge": -1}, "maxAge is '-1', not a number"),
        ({"maxAge": True}, "maxAge is 'True', not a number"),
        ({"x" * 500: 1}, "x is not supported: leave it out"),
    ],
)
def test_what_would_change_the_answer_is_refused_by_name(given, line):
    with pytest.raises(UsageError, match=re.escape(line)):
        options.scrape_options(given)


def test_a_crawl_is_a_job():
    given = {
        "url": "https://a.test/docs/",
        "limit": 50,
        "maxDiscoveryDepth": 2,
        "includePaths": ["^/docs/.*", "blog"],
        "excludePaths": ["/private/"],
        "delay": 2,
        "scrapeOptions": {"formats": ["links"]},
    }
    document, wanted = options.crawl_document("crawl-x", given)
    assert wanted.formats == ("links",)
    spec = job_document.from_json(document).job
    assert spec.uid == "crawl-x"
    scope = document["spec"]["scope"]
    assert (scope["mode"], scope["maxPages"], scope["maxDepth"]) == ("prefix", 50, 2)
    include, exclude = [re2.compile(one) for one in scope["include"]], re2.compile(scope["exclude"][0])
    assert [bool(include[0].search(u)) for u in ("https://a.test/docs/x", "https://a.test/x/docs/")] == [True, False]
    assert [bool(include[1].search(u)) for u in ("https://a.test/my-blog/1", "https://blog.test/x?blog")] == [
        True,
        False,
    ]
    assert [bool(exclude.search(u)) for u in ("https://a.test/a/private/x", "https://a.test/?p=/private/")] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, "prefix"),
        ({"crawlEntireDomain": True}, "host"),
        ({"allowSubdomains": True}, "domain"),
        ({"allowExternalLinks": True, "allowSubdomains": True}, "any"),
    ],
)
def test_the_scope_of_a_crawl(given, mode):
    document, _ = options.crawl_document("c", {"url": "https://a.test/", **given})
    assert document["spec"]["scope"]["mode"] == mode


def test_an_id_holds_kind_begin_and_formats():
    made = options.id_of("batch", 1_800_000_000.25, "0123456789ab", ("markdown", "links"))
    assert options.read_id(made) == options.CrawlId("batch", 1_800_000_000.25, ("markdown", "links"))
    for other in ("", "batch-1", "news", made + "x", made.upper()):
        assert options.read_id(other) is None
