"""The options of a crawl, each described once.

From this table come the options of `nephila crawl`, `up`, `extract` and `robots` with their --help (cli/options.py),
the keyword arguments of the Python API (`Options`), their defaults, and which of them a job document has as well.
"""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, TypedDict, get_args, get_origin, get_type_hints

import msgspec

from nephila.kernel.outputs import OUTPUTS

SCOPE = "What belongs to the crawl"
LIMITS = "Limits"
POLITENESS = "Politeness"
RESULT = "Result"
OUTPUT = "What is printed"
ELSEWHERE = "Servers and systems"
MAX_NUMBER = 10**12
"""Largest count: more pages than exist. A larger number is a typing error."""


class Option(msgspec.Struct, frozen=True):
    """One row of the table."""

    help: str
    metavar: str
    panel: str
    """Heading in --help."""
    default: Any = None
    commands: tuple[str, ...] = ("crawl",)
    """Commands that have the option."""
    path: str = ""
    """Where a job document has the same setting; only an option that was given overrides it. Empty: nowhere."""
    in_service: bool = False
    """A setting of the services: not allowed where services elsewhere crawl (--bootstrap)."""
    seconds: bool = False
    """A duration: 500ms, 1s, 1h30m; a number is seconds."""
    size: bool = False
    """A size: 500KB, 2MiB; a number is bytes."""
    file: bool = False
    """The name of a file or directory. It stays valid when another directory becomes the current one."""
    least: int | None = None
    most: int | None = None


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

    scope: Annotated[
        str, Option("How far links are followed.", "host|domain|prefix|any", SCOPE, default="host", path="scope.mode")
    ]
    include: Annotated[
        Sequence[str], Option("Follow only URLs that match (RE2, repeatable).", "RE", SCOPE, path="scope.include")
    ]
    exclude: Annotated[
        Sequence[str], Option("Never follow URLs that match (RE2, repeatable).", "RE", SCOPE, path="scope.exclude")
    ]
    render: Annotated[
        str,
        Option(
            "Pages that a browser renders; auto: those that need it. Needs Playwright and Chromium.",
            "never|auto|always",
            SCOPE,
            default="never",
            path="render",
        ),
    ]
    wait_for: Annotated[
        str,
        Option(
            "Rendered pages: wait for an element of this CSS selector; without it the page ends as failed(step).",
            "SELECTOR",
            SCOPE,
            default="",
            path="browser.wait.selector",
        ),
    ]
    accept: Annotated[
        str,
        Option(
            "Content types to fetch, in place of the default: pdf,json or application/pdf. HTML always: it has links.",
            "LIST",
            SCOPE,
            default="",
            in_service=True,
        ),
    ]
    reject: Annotated[
        str,
        Option("Content types to leave out: pdf,zip or image/*.", "LIST", SCOPE, default="", in_service=True),
    ]
    strategy: Annotated[
        str, Option("Order of the URLs of a host.", "bfs|dfs|best-first", SCOPE, default="bfs", path="strategy")
    ]
    keywords: Annotated[
        Sequence[str], Option("Words that best-first prefers (repeatable).", "A,B", SCOPE, path="keywords")
    ]
    sitemap: Annotated[
        bool, Option("Sitemaps of the seeds' hosts are seeds as well.", "", SCOPE, default=False, path="sitemaps")
    ]
    follow: Annotated[
        Sequence[str],
        Option(
            "Links in addition to anchors and frames: canonical, alternate, feed, next, form, script, route, json.",
            "A,B",
            SCOPE,
            path="parse.follow",
        ),
    ]
    max_pages: Annotated[
        Count,
        Option(
            "Most pages to store; 0 = no limit.",
            "N",
            LIMITS,
            default=0,
            path="scope.maxPages",
            least=0,
            most=MAX_NUMBER,
        ),
    ]
    max_depth: Annotated[
        Count,
        Option(
            "Most links from a seed; -1 = no limit.",
            "N",
            LIMITS,
            default=-1,
            path="scope.maxDepth",
            least=-1,
            most=10**6,
        ),
    ]
    max_time: Annotated[
        Seconds,
        Option("Time this run may take; 0 = no limit.", "TIME", LIMITS, default=0.0, in_service=True, seconds=True),
    ]
    max_wait: Annotated[
        Seconds,
        Option(
            "End when all URLs left wait longer than this.",
            "TIME",
            LIMITS,
            default=600.0,
            in_service=True,
            seconds=True,
        ),
    ]
    timeout: Annotated[
        Seconds,
        Option(
            "Most time of a fetch; 0 = the limits of the settings (90s).",
            "TIME",
            LIMITS,
            default=0.0,
            in_service=True,
            seconds=True,
        ),
    ]
    retries: Annotated[
        Count | None,
        Option(
            "How often a fetch is repeated after 5xx, 429 and network errors; default: 2.",
            "N",
            LIMITS,
            in_service=True,
            least=0,
            most=100,
        ),
    ]
    max_page_bytes: Annotated[
        Count,
        Option(
            "A larger page is not stored; 0 = the limit of the settings (32MiB).",
            "SIZE",
            LIMITS,
            default=0,
            path="maxPageBytes",
            size=True,
            least=0,
            most=1 << 30,
        ),
    ]
    host_pages: Annotated[
        Count,
        Option(
            "Most fetches of a host; 0 = no limit.",
            "N",
            LIMITS,
            default=0,
            path="hostBudget.pages",
            least=0,
            most=MAX_NUMBER,
        ),
    ]
    host_bytes: Annotated[
        Count,
        Option(
            "Most bytes from a host; 0 = no limit.",
            "SIZE",
            LIMITS,
            default=0,
            path="hostBudget.bytes",
            size=True,
            least=0,
            most=10**18,
        ),
    ]
    host_time: Annotated[
        Seconds,
        Option(
            "Most time spent fetching from a host; 0 = no limit.",
            "TIME",
            LIMITS,
            default=0.0,
            path="hostBudget.time",
            seconds=True,
        ),
    ]
    delay: Annotated[
        Seconds,
        Option(
            "Time between fetches of a host.", "TIME", POLITENESS, default=1.0, path="politeness.delay", seconds=True
        ),
    ]
    rate: Annotated[
        str | float,
        Option("Most fetches of a host, as 2/s or 30/min: --delay in other words.", "RATE", POLITENESS, default=""),
    ]
    concurrency: Annotated[
        Count,
        Option(
            "Fetches at once, over all hosts.",
            "N",
            POLITENESS,
            default=100,
            commands=CRAWL_UP,
            in_service=True,
            least=1,
            most=10_000,
        ),
    ]
    per_address: Annotated[
        Count | None,
        Option(
            "Fetches at once from one server address, over all hosts that it has; 0 = no limit; default: 4, and no "
            "limit with --delay 0.",
            "N",
            POLITENESS,
            commands=CRAWL_UP,
            in_service=True,
            least=0,
            most=10_000,
        ),
    ]
    user_agent: Annotated[
        str,
        Option("User-Agent to send.", "S", POLITENESS, default="", commands=CRAWL_UP_EXTRACT, in_service=True),
    ]
    contact: Annotated[
        str,
        Option(
            "URL or mail address named in User-Agent.",
            "S",
            POLITENESS,
            default="",
            commands=CRAWL_UP_EXTRACT,
            in_service=True,
        ),
    ]
    header: Annotated[
        Sequence[str] | Mapping[str, str],
        Option(
            "Extra request header, for the seeds' hosts or, as 'HOST K:V', for one; Accept-Language and the like for "
            "all.",
            "K:V|@FILE",
            POLITENESS,
            commands=CRAWL_UP,
            in_service=True,
        ),
    ]
    referer: Annotated[str, Option("Referer of requests for pages.", "URL", POLITENESS, default="", path="referer")]
    proxy: Annotated[
        Sequence[str],
        Option(
            "Fetch through this proxy, http:// or socks5://; or 'file PATH', 'list URL' (repeatable).",
            "URL",
            POLITENESS,
            commands=CRAWL_UP,
            in_service=True,
        ),
    ]
    user: Annotated[
        str,
        Option(
            "HTTP basic authentication, for the seeds' hosts only; run.json does not keep it.",
            "NAME:PASSWORD|@FILE",
            POLITENESS,
            default="",
            in_service=True,
        ),
    ]
    ignore_robots: Annotated[
        bool,
        Option(
            "Do not obey robots.txt.",
            "",
            POLITENESS,
            default=False,
            commands=("crawl", "extract"),
            path="politeness.respectRobots",
        ),
    ]
    allow_private: Annotated[
        bool,
        Option("Reach loopback and private addresses.", "", POLITENESS, default=False, commands=EVERY, in_service=True),
    ]
    cookies: Annotated[
        str | os.PathLike[str],
        Option(
            "Begin with the cookies of a file (Netscape format), and keep what sites set; /dev/null: with none.",
            "FILE",
            POLITENESS,
            default="",
            in_service=True,
            file=True,
        ),
    ]
    insecure: Annotated[
        bool,
        Option(
            "Accept any TLS certificate; better: --ca-file.",
            "",
            POLITENESS,
            default=False,
            commands=EVERY,
            in_service=True,
        ),
    ]
    ca_file: Annotated[
        str | os.PathLike[str],
        Option(
            "Trust the certificates of a PEM file too.",
            "FILE",
            POLITENESS,
            default="",
            commands=EVERY,
            in_service=True,
            file=True,
        ),
    ]
    host_map: Annotated[
        Sequence[str],
        Option(
            "Resolve hosts like '*.x.test=127.0.0.1'.", "PATTERN=ADDRESS", POLITENESS, commands=EVERY, in_service=True
        ),
    ]
    format: Annotated[
        str,
        Option(
            f"{', '.join(name for name, row in OUTPUTS.items() if not row.is_database)}; sqlite, or postgres with "
            "--store, is always written.",
            "LIST",
            RESULT,
            default="sqlite",
            commands=CRAWL_UP,
            path="sinks",
            in_service=True,
        ),
    ]
    store: Annotated[
        str,
        Option(
            "Rows into PostgreSQL, postgresql://user@host/database, not DIR/nephila.db; with a password better in "
            "NEPHILA_STORAGE__STORE.",
            "URL",
            RESULT,
            default="",
            commands=CRAWL_UP,
            in_service=True,
        ),
    ]
    main_text: Annotated[
        str,
        Option(
            "Text of a page: density (no boilerplate), trafilatura (by this library), all visible text, or none.",
            "density|trafilatura|all|none",
            RESULT,
            default="density",
            path="parse.mainText",
        ),
    ]
    hidden_text: Annotated[
        bool,
        Option(
            "Keep text that a page hides by its own attributes (hidden, display:none, visibility:hidden).",
            "",
            RESULT,
            default=False,
            commands=CRAWL_UP_EXTRACT,
            in_service=True,
        ),
    ]
    near_copies: Annotated[
        str,
        Option(
            "Pages whose text is nearly that of another page of the job: store, mark in their rows, or skip.",
            "store|mark|skip",
            RESULT,
            default="store",
            path="parse.nearCopies",
        ),
    ]
    page_requisites: Annotated[
        bool,
        Option(
            "Archive the styles, pictures, scripts and fonts of stored pages as well. Needs --format warc.",
            "",
            RESULT,
            default=False,
            path="parse.requisites",
        ),
    ]
    screenshot: Annotated[
        bool,
        Option(
            "Rendered pages: a picture of each, in captures/ of the directory.",
            "",
            RESULT,
            default=False,
            path="browser.capture",
        ),
    ]
    links: Annotated[bool, Option("Keep the links in a table.", "", RESULT, default=False, path="links")]
    keep_raw: Annotated[
        bool,
        Option(
            "Keep the bodies, for nephila rules apply; as format raw.",
            "",
            RESULT,
            default=False,
            commands=CRAWL_UP,
            in_service=True,
        ),
    ]
    rule_scripts: Annotated[
        bool,
        Option(
            "Run the scripts of rules, in a confined process.",
            "",
            RESULT,
            default=False,
            commands=CRAWL_UP,
            in_service=True,
        ),
    ]
    rule_functions: Annotated[
        str | os.PathLike[str],
        Option(
            "Python files with the functions (py) of rules; read again when they change.",
            "DIR",
            RESULT,
            default="",
            commands=CRAWL_UP,
            in_service=True,
            file=True,
        ),
    ]


class CommandOptions(Options, total=False):
    """All options of the table: those of the Python API and those that only the command line has."""

    workers: Annotated[
        Count | None,
        Option(
            "Processes that fetch and parse; 0 = all in one; default: automatic, at most CPU cores - 1.",
            "N",
            POLITENESS,
            commands=CRAWL_UP,
            in_service=True,
            least=0,
            most=256,
        ),
    ]
    browser: Annotated[
        bool,
        Option(
            "Render pages of jobs with spec.render; without it such jobs are refused. Needs Playwright and Chromium.",
            "",
            POLITENESS,
            default=False,
            commands=("up",),
        ),
    ]
    middleware: Annotated[
        str,
        Option(
            "Python files that see each request, response and outcome.",
            "DIR",
            POLITENESS,
            default="",
            commands=CRAWL_UP,
            in_service=True,
            file=True,
        ),
    ]
    rules: Annotated[
        str,
        Option(
            "Rules that make items of pages; read again when they change.",
            "DIR",
            RESULT,
            default="",
            commands=CRAWL_UP,
            file=True,
        ),
    ]


@cache
def table(command: str = "crawl") -> dict[str, tuple[Any, Option]]:
    """Option → (type, description) of a command's options, in the order of --help."""
    hints = get_type_hints(CommandOptions, include_extras=True)
    found = {name: get_args(hint) for name, hint in hints.items()}
    return {name: (kind, option) for name, (kind, option) in found.items() if command in option.commands}


def is_list(kind: Any) -> bool:
    """Whether an option may be given more than once."""
    return any(get_origin(one) is Sequence for one in (kind, *get_args(kind)))


def defaults() -> dict[str, Any]:
    """Option → default, of the options of a crawl."""
    return {name: [] if is_list(kind) else option.default for name, (kind, option) in table().items()}


IN_JOB = frozenset(name for name, (_, option) in table().items() if option.path)
"""Options that a job document has as well: only where they are given do they override it."""
IN_SERVICE = tuple(name for name, (_, option) in table().items() if option.in_service)
"""Options that are settings of the services."""
