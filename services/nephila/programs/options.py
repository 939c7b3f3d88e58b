"""The options of a crawl, each described once.

From this table come the options of `nephila crawl`, `up`, `extract` and `robots` with their --help (cli/options.py),
the keyword arguments of the Python API (`Options`), and the fields of the job and of the settings that they set. What
a field knows, the row does not repeat: default, words and bounds are those of the field.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

from nephila.kernel.outputs import OUTPUTS
from nephila.programs import option_converters as convert
from nephila.programs.option_row import DIR, FILE, SIZE, TIME, N, Option

SCOPE = "What belongs to the crawl"
LIMITS = "Limits"
POLITENESS = "Politeness"
RESULT = "Result"
OUTPUT = "What is printed"
ELSEWHERE = "Servers and systems"
CRAWL_UP = ("crawl", "up")
CRAWL_UP_EXTRACT = ("crawl", "up", "extract")
EVERY = ("crawl", "up", "extract", "robots")


Seconds = float | str
"""Of a call: a number of seconds, or a text as on the command line: "500ms", "1h30m"."""
Count = int | str
"""Of a call: a number, or a text as on the command line: "10k", "1e6"; of a size "500KB"."""


class Options(TypedDict, total=False):
    """Options of `nephila crawl` as keyword arguments. Durations are seconds, sizes are bytes; texts with units as on
    the command line are valid too."""

    scope: Annotated[str, Option("How far links are followed.", SCOPE, "job.scope.mode")]
    include: Annotated[
        Sequence[str], Option("Follow only URLs that match (RE2, repeatable).", SCOPE, "job.scope.include", "RE")
    ]
    exclude: Annotated[
        Sequence[str], Option("Never follow URLs that match (RE2, repeatable).", SCOPE, "job.scope.exclude", "RE")
    ]
    render: Annotated[
        str,
        Option(
            "Pages that a browser renders; auto: those that need it. Needs Playwright and Chromium.",
            SCOPE,
            "job.render",
        ),
    ]
    wait_for: Annotated[
        str,
        Option(
            "Rendered pages: wait for an element of this CSS selector; without it the page ends as failed(step).",
            SCOPE,
            {"job.browser.wait.selector": convert.or_present},
            "SELECTOR",
        ),
    ]
    accept: Annotated[
        str,
        Option(
            "Content types to fetch, in place of the default: pdf,json or application/pdf. HTML always: it has links.",
            SCOPE,
            {"downloader.http.accept": convert.accepted_types, "downloader.http.refuse": convert.refused_but_accepted},
            "LIST",
        ),
    ]
    reject: Annotated[
        str,
        Option(
            "Content types to leave out: pdf,zip or image/*.",
            SCOPE,
            {"downloader.http.refuse": convert.refused_too},
            "LIST",
        ),
    ]
    strategy: Annotated[str, Option("Order of the URLs of a host.", SCOPE, "job.strategy")]
    ranks: Annotated[
        str | os.PathLike[str],
        Option(
            "Domains in the order of an earlier crawl, by its graph: the DIR of nephila hosts --graph.",
            SCOPE,
            {"job.domains.ranks": convert.as_list},
            DIR,
            reader=convert.domains_by_rank,
        ),
    ]
    keywords: Annotated[
        Sequence[str],
        Option("Words that best-first prefers (repeatable).", SCOPE, {"job.keywords": convert.split_words}, "A,B"),
    ]
    sitemap: Annotated[bool, Option("Sitemaps of the seeds' hosts are seeds as well.", SCOPE, "job.sitemaps")]
    follow: Annotated[
        Sequence[str],
        Option(
            "Links in addition to anchors and frames: {words}.", SCOPE, {"job.parse.follow": convert.split_words}, "A,B"
        ),
    ]
    max_pages: Annotated[Count, Option("Most pages to store; 0 = no limit.", LIMITS, "job.scope.maxPages", N)]
    max_depth: Annotated[Count, Option("Most links from a seed; -1 = no limit.", LIMITS, "job.scope.maxDepth", N)]
    max_time: Annotated[
        Seconds, Option("Time this run may take; 0 = no limit.", LIMITS, {"plan.max_time_s": None}, TIME, default=0.0)
    ]
    max_wait: Annotated[
        Seconds,
        Option("End when all URLs left wait longer than this.", LIMITS, {"plan.max_wait_s": None}, TIME, default=600.0),
    ]
    timeout: Annotated[
        Seconds,
        Option(
            "Most time of a fetch; 0 = the limits of the settings (90s).",
            LIMITS,
            {
                "downloader.http.total_timeout_s": convert.same,
                "downloader.http.body_timeout_s": convert.same,
                "downloader.http.headers_timeout_s": convert.same,
                "downloader.http.connect_timeout_s": min,
                "downloader.http.idle_timeout_s": min,
                "scheduler.lease_s": convert.outlived,
            },
            TIME,
            default=0.0,
        ),
    ]
    retries: Annotated[
        Count | None,
        Option(
            "How often a fetch is repeated after 5xx, 429 and network errors; default: 2.",
            LIMITS,
            {"scheduler.tries": convert.tries_of_retries},
            N,
            least=0,
            most=100,
        ),
    ]
    max_page_bytes: Annotated[
        Count,
        Option("A larger page is not stored; 0 = the limit of the settings (32MiB).", LIMITS, "job.maxPageBytes", SIZE),
    ]
    host_pages: Annotated[Count, Option("Most fetches of a host; 0 = no limit.", LIMITS, "job.hostBudget.pages", N)]
    host_bytes: Annotated[Count, Option("Most bytes from a host; 0 = no limit.", LIMITS, "job.hostBudget.bytes", SIZE)]
    host_time: Annotated[
        Seconds, Option("Most time spent fetching from a host; 0 = no limit.", LIMITS, "job.hostBudget.time", TIME)
    ]
    domain_budget: Annotated[
        Count,
        Option(
            "With --scope any: most requests to a domain, in shares; 0 = no limit.", LIMITS, "job.domains.budget", N
        ),
    ]
    delay: Annotated[Seconds, Option("Time between fetches of a host.", POLITENESS, "job.politeness.delay", TIME)]
    rate: Annotated[
        str | float, Option("Most fetches of a host, as 2/s or 30/min: --delay in other words.", POLITENESS, "", "RATE")
    ]
    concurrency: Annotated[
        Count,
        Option(
            "Fetches at once, over all hosts.",
            POLITENESS,
            {"downloader.concurrency": convert.same, "scheduler.concurrency": convert.same},
            N,
            commands=CRAWL_UP,
            most=10_000,
        ),
    ]
    per_address: Annotated[
        Count | None,
        Option(
            "Fetches at once from one server address, over all hosts that it has; 0 = no limit; default: 4, and no "
            "limit with --delay 0.",
            POLITENESS,
            {"downloader.limits.per_address": convert.same, "scheduler.per_address": convert.same},
            N,
            commands=CRAWL_UP,
            most=10_000,
        ),
    ]
    user_agent: Annotated[
        str, Option("User-Agent to send.", POLITENESS, "downloader.http.user_agent", "S", commands=CRAWL_UP_EXTRACT)
    ]
    contact: Annotated[
        str,
        Option(
            "URL or mail address named in User-Agent.",
            POLITENESS,
            "downloader.http.contact",
            "S",
            commands=CRAWL_UP_EXTRACT,
        ),
    ]
    header: Annotated[
        Sequence[str] | Mapping[str, str],
        Option(
            "Extra request header, for the seeds' hosts or, as 'HOST K:V', for one; Accept-Language and the like for "
            "all.",
            POLITENESS,
            {"downloader.http.headers": None},
            "K:V|@FILE",
            commands=CRAWL_UP,
        ),
    ]
    referer: Annotated[str, Option("Referer of requests for pages.", POLITENESS, "job.referer", "URL")]
    proxy: Annotated[
        Sequence[str],
        Option(
            "Fetch through this proxy, http:// or socks5://; or 'file PATH', 'list URL' (repeatable).",
            POLITENESS,
            {"downloader.proxies.sources": convert.proxy_entries},
            "URL",
            commands=CRAWL_UP,
        ),
    ]
    user: Annotated[
        str,
        Option(
            "HTTP basic authentication, for the seeds' hosts only; run.json does not keep it.",
            POLITENESS,
            {"downloader.http.headers": None},
            "NAME:PASSWORD|@FILE",
        ),
    ]
    ignore_robots: Annotated[
        bool,
        Option(
            "Do not obey robots.txt.",
            POLITENESS,
            {"job.politeness.respectRobots": convert.negated},
            commands=("crawl", "extract"),
        ),
    ]
    allow_private: Annotated[
        bool,
        Option("Reach loopback and private addresses.", POLITENESS, "downloader.dns.allow_private", commands=EVERY),
    ]
    cookies: Annotated[
        str | os.PathLike[str],
        Option(
            "Begin with the cookies of a file (Netscape format), and keep what sites set; /dev/null: with none.",
            POLITENESS,
            {"downloader.middleware.cookies": convert.same, "job.cookies": convert.enabled},
            FILE,
        ),
    ]
    insecure: Annotated[
        bool,
        Option(
            "Accept any TLS certificate; better: --ca-file.",
            POLITENESS,
            {"downloader.http.tls_verify": convert.negated},
            commands=EVERY,
        ),
    ]
    ca_file: Annotated[
        str | os.PathLike[str],
        Option(
            "Trust the certificates of a PEM file too.", POLITENESS, "downloader.http.ca_file", FILE, commands=EVERY
        ),
    ]
    host_map: Annotated[
        Sequence[str],
        Option(
            "Resolve hosts like '*.x.test=127.0.0.1'.",
            POLITENESS,
            "downloader.dns.host_map",
            "PATTERN=ADDRESS",
            commands=EVERY,
        ),
    ]
    format: Annotated[
        str,
        Option(
            f"{', '.join(name for name, row in OUTPUTS.items() if not row.is_database)}; sqlite, or postgres with "
            "--store, is always written.",
            RESULT,
            {"job.sinks": None, "storage.formats": None},
            "LIST",
            default="sqlite",
            commands=CRAWL_UP,
        ),
    ]
    store: Annotated[
        str,
        Option(
            "Rows into PostgreSQL, postgresql://user@host/database, not DIR/nephila.db; with a password better in "
            "NEPHILA_STORAGE__STORE.",
            RESULT,
            {"storage.store": None},
            "URL",
            commands=CRAWL_UP,
        ),
    ]
    main_text: Annotated[
        str,
        Option(
            "Text of a page: density (no boilerplate), trafilatura (by this library), all visible text, or none.",
            RESULT,
            "job.parse.mainText",
        ),
    ]
    hidden_text: Annotated[
        bool,
        Option(
            "Keep text that a page hides by its own attributes (hidden, display:none, visibility:hidden).",
            RESULT,
            "parser.hidden_text",
            commands=CRAWL_UP_EXTRACT,
        ),
    ]
    near_copies: Annotated[
        str,
        Option(
            "Pages whose text is nearly that of another page of the job: store, mark in their rows, or skip.",
            RESULT,
            "job.parse.nearCopies",
        ),
    ]
    page_requisites: Annotated[
        bool,
        Option(
            "Archive the styles, pictures, scripts and fonts of stored pages as well. Needs --format warc.",
            RESULT,
            {"job.parse.requisites": convert.requisites_per_page},
        ),
    ]
    screenshot: Annotated[
        bool,
        Option(
            "Rendered pages: a picture of each, in captures/ of the directory.",
            RESULT,
            {"job.browser.capture": convert.screenshot_too},
        ),
    ]
    links: Annotated[bool, Option("Keep the links in a table.", RESULT, "job.links")]
    keep_raw: Annotated[
        bool,
        Option(
            "Keep the bodies, for nephila rules apply; as format raw.",
            RESULT,
            {"storage.formats": None},
            commands=CRAWL_UP,
        ),
    ]
    rule_scripts: Annotated[
        bool,
        Option("Run the scripts of rules, in a confined process.", RESULT, "parser.rule_scripts", commands=CRAWL_UP),
    ]
    rule_functions: Annotated[
        str | os.PathLike[str],
        Option(
            "Python files with the functions (py) of rules; read again when they change.",
            RESULT,
            "parser.rule_functions_dir",
            DIR,
            commands=CRAWL_UP,
        ),
    ]


class CommandOptions(Options, total=False):
    """All options of the table: those of the Python API and those that only the command line has."""

    workers: Annotated[
        Count | None,
        Option(
            "Processes that fetch and parse; 0 = all in one; default: automatic, at most CPU cores - 1 and 16.",
            POLITENESS,
            {"plan.workers": None},
            N,
            commands=CRAWL_UP,
            least=0,
            most=256,
        ),
    ]
    browser: Annotated[
        bool,
        Option(
            "Render pages of jobs with spec.render; without it such jobs are refused. Needs Playwright and Chromium.",
            POLITENESS,
            "",
            commands=("up",),
        ),
    ]
    middleware: Annotated[
        str,
        Option(
            "Python files that see each request, response and outcome.",
            POLITENESS,
            "downloader.middleware.directory",
            DIR,
            commands=CRAWL_UP,
        ),
    ]
    rules: Annotated[
        str, Option("Rules that make items of pages; read again when they change.", RESULT, "", DIR, commands=CRAWL_UP)
    ]
