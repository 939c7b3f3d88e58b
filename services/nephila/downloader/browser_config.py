"""Settings of rendered pages. The core reads a few of them, `nephila_browser` the others."""

import msgspec

from nephila.kernel.runtime.config import Positive


class BrowserConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The browser of a downloader that renders pages. Needs the package nephila_browser."""

    enabled: bool = False
    """Serve `requests.browser`: pages that a browser renders. Needs Playwright and Chromium
    (nephila browser install). Over Kafka such a member serves no other requests."""

    executable: str = ""
    """Path or name of Chromium. Empty: chromium, chromium-browser or google-chrome of PATH, or that of
    `playwright install chromium`."""

    processes: Positive = 1
    """Simultaneous browser processes; one keeps about one core busy."""

    pages: Positive = 4
    """Simultaneous pages in one browser process, each in a context of its own; waits overlap."""

    uses: int = 200
    """Pages after which a browser process is replaced, against leaks; 0 = never."""

    memory_bytes: int = 2 << 30
    """Maximum memory of a browser with its child processes, held while it runs: a page with more than its share
    (divided by `pages`) ends as failed(browser_memory), otherwise the browser is replaced; 0 = no limit."""

    timeout_s: float = 45.0
    """Maximum time of a page in a browser: load, waits, steps and captures. Shorter than `http.total_timeout_s`."""

    block: tuple[str, ...] = ("image", "font", "media")
    """Kinds of resources that a browser does not load: image, font, media. They do not change text and links."""

    captures: str = ""
    """Directory of the files that jobs capture of rendered pages (spec.browser.capture). Empty: nothing is written; a
    crawl writes to captures/ in its output directory."""

    verdicts: str = ""
    """File that stores which pages of jobs with render auto need a browser, over a restart. Empty: none; a crawl
    writes to its output directory."""

    page_bytes: int = 64 << 20
    """Maximum size of all responses of a page in a browser, on the network."""

    page_requests: int = 500
    """Maximum number of requests of a page in a browser."""

    page_parallel: Positive = 6
    """Simultaneous requests of a page in a browser: as many as browsers open to one host."""

    host_rate: float = 10.0
    """Requests per second that all pages in this program's browser send to one host, after a burst of 3 s. The pace of
    the host applies to pages; this limits what a page loads. 0 = no limit."""

    sandbox: bool = True
    """Chromium's own sandbox. Without effect for root, where Chromium has none; off where a container forbids user
    namespaces."""
