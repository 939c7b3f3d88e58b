"""The table of keys of a CrawlJob document: what may stand where, what it means in a line, what it is when left out.

Invariant: no other place knows the keys; the published schema (docs/crawljob.schema.json) is made from this table. How
a document becomes a job is said in `jobspec`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nephila.kernel.documents import cron
from nephila.kernel.documents.schema_types import (
    Choice,
    Count,
    Duration,
    Expression,
    Flag,
    Key,
    ListOf,
    Map,
    Number,
    Text,
    Url,
)
from nephila.kernel.documents.yaml import Node
from nephila.kernel.fragment_routes import ROUTE
from nephila.kernel.messages import MainText, ScopeMode, Strategy
from nephila.kernel.runtime.errors import UsageError
from nephila.native import UrlError, parse_url

API_VERSION = "nephila.dev/v1"
KIND = "CrawlJob"
DELAY = "1s"
MODES = {
    "host": ScopeMode.UNSPECIFIED,
    "domain": ScopeMode.DOMAIN,
    "prefix": ScopeMode.PREFIX,
    "any": ScopeMode.ANY,
}
STRATEGIES = {
    "bfs": Strategy.UNSPECIFIED,
    "dfs": Strategy.DFS,
    "best-first": Strategy.BEST_FIRST,
}
FOLLOW = ("canonical", "alternate", "feed", "next", "form", "script", ROUTE, "json")
REL = {"follow": False, "skip": True}
MAIN_TEXTS = {
    "density": MainText.UNSPECIFIED,
    "trafilatura": MainText.TRAFILATURA,
    "all": MainText.ALL,
    "none": MainText.NONE,
}
SINKS = ("sqlite", "postgres", "jsonl", "markdown", "warc", "raw", "parquet")
SINKS_LATER = ("s3", "kafka", "elasticsearch", "opensearch", "mongodb", "stdout")
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
NAME = Text(
    253, rf"{_LABEL}(?:\.{_LABEL})*", "a name of lower-case letters, digits, '-' and '.', as Kubernetes has them"
)


@dataclass(frozen=True)
class Schedule:
    """Five fields of cron, in UTC."""

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        text = Text(200, says="a schedule like '0 6 * * *'").read(node, path)
        try:
            return cron.Schedule(text, path).expression
        except UsageError as error:
            raise node.error(str(error)) from None

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "string", "pattern": r"^\s*(?:\S+\s+){4}\S+\s*$", "maxLength": 200}


@dataclass(frozen=True)
class HostPattern:
    """A host key, or all hosts below a name."""

    def read(self, node: Node, path: str) -> str:
        """See `Kind.read`."""
        text = Text(300, says="a host").read(node, path)
        below = "*." if text.startswith("*.") else ""
        try:
            parts = parse_url(f"http://{text.removeprefix(below)}/")
        except UrlError:
            parts = None
        if parts is None or parts.path_query != "/" or "*" in parts.host_key or "@" in text:
            raise node.error(f"{path}: {text[:60]!r} is no host like a.example, a.example:8080 or *.example.org")
        return below + parts.host_key

    def schema(self) -> dict[str, Any]:
        """See `Kind.schema`."""
        return {"type": "string", "minLength": 1, "maxLength": 300}


SEED = Map(
    {
        "url": Key(Url(), "a page to start from"),
        "file": Key(Text(4096, says="the name of a file"), "a file of URLs, one a line, beside the document"),
        "sitemap": Key(Url(), "a sitemap or an index of sitemaps, plain or gzip"),
        "feed": Key(Url(), "an RSS or Atom feed"),
    },
    only_one=True,
    short=Url(),
)
EXPRESSIONS = ListOf(Expression(), 1000)
SCOPE = Map(
    {
        "mode": Key(Choice(tuple(MODES)), "how far links are followed, seen from the seeds; host"),
        "include": Key(EXPRESSIONS, "RE2, searched in the full URL; a link must match one of them, if there are any"),
        "exclude": Key(EXPRESSIONS, "RE2, searched in the full URL; a URL must match none"),
        "maxDepth": Key(Count(-1, 10**6), "links from a seed at most; 0 = seeds only, -1 = no limit"),
        "maxPages": Key(Count(), "stored pages at most; 0 = no limit"),
    }
)
HOST = Map(
    {
        "host": Key(HostPattern(), "a host, or *.example.org for all below a name", needed=True),
        "delay": Key(Duration(), "as politeness.delay"),
        "concurrency": Key(Count(1, 1000), "as politeness.concurrencyPerHost"),
    }
)
POLITENESS = Map(
    {
        "delay": Key(Duration(), f"between the end of a fetch and the next start on the same host; {DELAY}"),
        "concurrencyPerHost": Key(Count(1, 1000), "fetches at once on one host; 1"),
        "respectRobots": Key(Flag(), "ask robots.txt and obey it; true"),
        "adaptive": Key(Flag(), "the delay grows with the time a fetch takes; false"),
        "hosts": Key(ListOf(HOST, 10_000), "other delays for single hosts; the first that matches counts"),
    }
)
RECRAWL = Map(
    {
        "min": Key(Duration(1.0), "shortest interval; between min and max it follows the page's rate of change"),
        "max": Key(Duration(1.0), "longest interval"),
        "every": Key(Duration(1.0), "a fixed interval instead"),
        "monitor": Key(Flag(), "only seeds are fetched again; the rest is fetched once, when it is new; false"),
        "goneAfter": Key(Count(1, 100), "a page answered 404 or 410 this often in a row is gone; 3"),
    }
)
HOST_BUDGET = Map(
    {
        "pages": Key(Count(), "fetches of pages; 0 = no limit"),
        "bytes": Key(Count(most=10**18), "bytes read from the wire; 0 = no limit"),
        "time": Key(Duration(), "time spent in fetches; 0 = no limit"),
        "queued": Key(Count(), "URLs held in the queue of one host; 0 = no limit"),
    }
)
TRAPS = Map(
    {
        "off": Key(Flag(), "nothing is judged to be a trap; false"),
        "capFetches": Key(Count(1, 10**9), "fetches of a prefix without new content made in any case; 100"),
        "capShare": Key(Number(1.0), "share of the host's fetches above which such a prefix is closed; 0.05"),
    }
)
PARSE = Map(
    {
        "follow": Key(
            ListOf(Choice(FOLLOW), len(FOLLOW)),
            "links beside anchors and frames: of <link> canonical, alternate (other languages), feed, next; form (GET, "
            "as it stands); script (addresses in quotes, onclick); json (of JSON documents); route (#/ and #! of "
            "single-page applications are part of a URL)",
        ),
        "nofollow": Key(Choice(tuple(REL)), "follow or skip links with rel nofollow, ugc or sponsored; follow"),
        "mainText": Key(
            Choice(tuple(MAIN_TEXTS)),
            "the text of a page: density (its subject), trafilatura (by that library, where it is installed), all "
            "(whatever is visible), none; density",
        ),
    }
)
SINK = Map(
    {
        "type": Key(Choice(SINKS, SINKS_LATER), "what is written; sqlite or postgres always is", needed=True),
        "secretRef": Key(NAME, "of postgres in a cluster: the secret with its URL; elsewhere NEPHILA_STORAGE__STORE"),
    }
)
LOGIN_FIELD = Map(
    {
        "name": Key(Text(200, says="the name of a field"), "name of the field in the form", needed=True),
        "value": Key(Text(4096), "what is sent; not for secrets, since documents are kept and shown"),
        "env": Key(
            Text(200, r"NEPHILA_SECRET(?:_[A-Z0-9]+)+", "a name like NEPHILA_SECRET_PASSWORD"),
            "environment variable of the downloader that holds it",
        ),
        "file": Key(
            Text(4096, says="the name of a file"), "file below the downloader's directory of secrets that holds it"
        ),
    }
)
LOGIN = Map(
    {
        "url": Key(Url(), "the page with the form; the login holds for all hosts of its site", needed=True),
        "fields": Key(ListOf(LOGIN_FIELD, 50, 1), "fields to fill; the others keep what the page says", needed=True),
        "check": Key(
            Expression(),
            "RE2, found in the page that answers an accepted login; left out: that page has no password field",
        ),
        "lost": Key(
            Expression(),
            "RE2, found in pages only when the session is lost; 401 and redirects to url always say so",
        ),
    }
)
SPEC = Map(
    {
        "paused": Key(Flag(), "nothing is handed out; false"),
        "seeds": Key(ListOf(SEED, 50_000, 1), "where to start: URLs, files, sitemaps, feeds", needed=True),
        "scope": Key(SCOPE, "what belongs to the job"),
        "strategy": Key(Choice(tuple(STRATEGIES)), "order of the URLs of a host; bfs"),
        "keywords": Key(ListOf(Text(200), 1000), "words and phrases that best-first looks for"),
        "politeness": Key(POLITENESS, "how hosts are treated"),
        "render": Key(Choice(("never",), ("auto", "always")), "pages in a browser; never"),
        "schedule": Key(Schedule(), "when all pages are due again: five fields of cron, in UTC"),
        "recrawl": Key(RECRAWL, "how often pages are fetched again; never"),
        "hostBudget": Key(HOST_BUDGET, "what one host may cost"),
        "traps": Key(TRAPS, "when a part of a site counts as a trap"),
        "weight": Key(Number(1000.0), "share of the fetches relative to other jobs; 1"),
        "sitemaps": Key(Flag(), "sitemaps of the seeds' hosts are seeds as well; false"),
        "links": Key(Flag(), "keep the links of each page in the table links; false"),
        "parse": Key(PARSE, "what is taken from pages"),
        "cookies": Key(Flag(), "cookies that sites set are kept and sent back to them; false, with login true"),
        "login": Key(LOGIN, "how to log in to a site before its pages are fetched"),
        "rules": Key(ListOf(NAME, 10_000), "names of ParseRules; none: generic extraction"),
        "sinks": Key(ListOf(SINK, 20), "what is written beside the database"),
    }
)
DOCUMENT = Map(
    {
        "apiVersion": Key(Choice((API_VERSION,)), API_VERSION, needed=True),
        "kind": Key(Choice((KIND,)), KIND, needed=True),
        "metadata": Key(
            Map({"name": Key(NAME, "the job's name, part of the key of its rows", needed=True)}), "the job", needed=True
        ),
        "spec": Key(SPEC, "the whole desired state", needed=True),
    }
)


def schema() -> dict[str, Any]:
    """The document as JSON Schema (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        "description": "A crawl as Nephila runs it: the whole desired state. Made by tools/schemas.py; do not edit.",
        **DOCUMENT.schema(),
    }
