"""SCHEDULER of Scrapy: the requests of a spider are in a frontier of Nephila, which several processes may share.

Life of a request: `enqueue_request` writes it into the frontier; `next_request` leases it, when the pace of its host
allows; the end of its download reports its status, from which the pace follows; when the spider and the pipelines are
done with it, it has ended. A process that is killed gives its leases back, so each request is processed at least once.

Requests that cannot be serialised, and those of other schemes than http, stay in the memory of the process.
"""

from __future__ import annotations

import logging
import pickle
import secrets
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any, Final

from nephila.kernel.net.robots import product_token
from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.request import request_from_dict

from nephila_doors.scrapy import protocol
from nephila_doors.scrapy.connection import Connection
from nephila_doors.scrapy.identity import DupeFilter, page_url, variant_of
from nephila_doors.scrapy.robots import RobotsFetcher
from nephila_doors.scrapy.wakeup import WakeUp

log = logging.getLogger(__name__)
MIDDLE: Final = 128
"""Priority of requests with Scrapy's priority 0; the frontier has 0 to 255."""


class Scheduler(BaseScheduler):
    """Settings are in docs/scrapy.md."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.df: BaseDupeFilter = build_from_crawler(filter_class(crawler.settings), crawler)
        """A filter of the user is asked before the frontier."""
        self._leased: dict[Request, _Leased] = {}
        self._memory: deque[Request] = deque()
        self._starts: Counter[tuple[str, str]] = Counter()
        self._quiet_until = 0.0
        """The frontier has nothing to fetch before this monotonic instant, unless something changes."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Scheduler:
        return cls(crawler)

    # ---- life

    def open(self, spider: Spider) -> Any:
        """Joins the frontier. Raises `UserError`."""
        self.spider = spider
        settings = self.crawler.settings
        self._obeys_robots = settings.getbool("ROBOTSTXT_OBEY")
        named = settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"]
        agent = product_token(named) if self._obeys_robots else ""
        hello = protocol.Hello(protocol.VERSION, spider.name, job_spec(settings), agent)
        self._connection = Connection(directory_of(settings, spider), hello)
        self._wake = WakeUp(self.crawler)
        self._robots = RobotsFetcher(self.crawler, self._connection, self._on_robots)
        connect = self.crawler.signals.connect
        connect(self._on_response, signals.response_downloaded)
        connect(self._on_left, signals.request_left_downloader)
        return self.df.open()

    def close(self, reason: str) -> Any:
        """Reports ended requests, and leaves when the frontier is durable."""
        self._wake.cancel()
        self._report_done(everything=True)
        self._connection.call(protocol.Settle(), protocol.Settled)
        self._connection.close()
        return self.df.close(reason)

    # ---- what the engine asks

    def enqueue_request(self, request: Request) -> bool:
        """Returns False for a request that the frontier has seen."""
        own = not isinstance(self.df, DupeFilter)
        if own and not request.dont_filter and self.df.request_seen(request):
            self.df.log(request, self.spider)
            return False
        data = self._serialised(request)
        if data is None:
            self._memory.append(request)
            self._count("enqueued/memory")
            return True
        message = protocol.Enqueue(
            page_url(request),
            self._variant(request),
            min(max(MIDDLE + request.priority, 0), 255),
            request.meta.get("depth", 0),
            data,
        )
        answer = self._connection.call(message, protocol.Queued)
        if answer.error:  # no URL of the web: data:, file:, ftp:
            self._memory.append(request)
            self._count("enqueued/memory")
            return True
        if not answer.new:
            self.df.log(request, self.spider)
            return False
        self._count("enqueued/frontier")
        self._changed()
        return True

    def next_request(self) -> Request | None:
        self._report_done()
        if self._memory:
            self._count("dequeued/memory")
            return self._memory.popleft()
        while time.monotonic() >= self._quiet_until:
            answer = self._connection.ask()
            if isinstance(answer, protocol.Nothing):
                self._quiet_until = time.monotonic() + answer.wait_s
            elif answer.robots:
                self._robots.fetch(answer)
            else:
                self._count("dequeued/frontier")
                return self._request(answer)
        self._wake.at(self._quiet_until)
        return None

    def has_pending_requests(self) -> bool:
        """True also while other processes hold requests of the spider, or a robots.txt is fetched."""
        self._report_done()
        if self._memory or self._robots.busy:
            return True
        counts = self._connection.call(protocol.CountRequests(), protocol.Counts)
        return bool(counts.queued or counts.elsewhere)

    def __len__(self) -> int:
        return len(self._memory) + self._connection.call(protocol.CountRequests(), protocol.Counts).queued

    # ---- requests as bytes

    def _serialised(self, request: Request) -> bytes | None:
        try:
            return pickle.dumps(request.to_dict(spider=self.spider), protocol=4)
        except Exception as error:  # pickle raises what the objects raise
            if not self.crawler.stats.get_value("scheduler/unserializable"):
                log.warning(
                    "Unable to serialize request: %s - reason: %s - it stays in memory, without durability and pace; "
                    "further ones are counted alone",
                    request,
                    error,
                )
            self._count("unserializable")
            return None

    def _request(self, lease: protocol.Lease) -> Request:
        request = request_from_dict(pickle.loads(lease.data), spider=self.spider)
        if self._obeys_robots:  # the frontier has done so, once for all processes
            request.meta["dont_obey_robotstxt"] = True
        self._leased[request] = _Leased(lease)
        return request

    def _variant(self, request: Request) -> str:
        """Distinguishes a request with dont_filter from those of the same URL before it. A start request has the same
        variant in each run, so that a spider that continues does not repeat it."""
        variant = variant_of(request)
        if not request.dont_filter:
            return variant
        meta = request.meta
        if not meta.get("is_start_request") or meta.get("depth") or {"retry_times", "redirect_times"} & meta.keys():
            return f"{variant}:{secrets.token_hex(8)}"
        key = (page_url(request), variant)
        self._starts[key] += 1
        return variant if self._starts[key] == 1 else f"{variant}:{self._starts[key]}"

    # ---- ends of downloads and requests

    def _on_response(self, response: Response, request: Request) -> None:
        leased = self._leased.get(request)
        if leased is not None:
            leased.response(response)

    def _on_robots(self) -> None:
        self._changed()
        self._wake.at(0.0)

    def _on_left(self, request: Request) -> None:
        leased = self._leased.get(request)
        if leased is not None and not leased.reported:
            self._connection.tell(leased.fetched())
            self._changed()

    def _report_done(self, *, everything: bool = False) -> None:
        slot = getattr(self.crawler.engine, "_slot", None)
        in_progress = getattr(slot, "inprogress", ())
        if not isinstance(in_progress, set):  # before the start of the engine
            in_progress = self._leased
        ended = [request for request in self._leased if request not in in_progress]
        if ended:
            keys = [self._leased.pop(request).lease.url_key for request in ended]
            self._connection.tell(protocol.Done(keys))
            self._changed()

    def _changed(self) -> None:
        self._quiet_until = 0.0

    def _count(self, name: str) -> None:
        self.crawler.stats.inc_value(f"scheduler/{name}")
        if "/" in name:
            self.crawler.stats.inc_value(f"scheduler/{name.partition('/')[0]}")


class _Leased:
    def __init__(self, lease: protocol.Lease) -> None:
        self.lease = lease
        self.reported = False
        self._started_at = time.time()
        self._answer: dict[str, Any] = {}

    def response(self, response: Response) -> None:
        after = response.headers.get("Retry-After") or b""
        retry_after = after.decode("latin-1")
        self._answer = {"status": response.status, "retry_after": retry_after, "size_bytes": len(response.body)}

    def fetched(self) -> protocol.Fetched:
        self.reported = True
        return protocol.Fetched(self.lease.url_key, self.lease.attempt, started_at=self._started_at, **self._answer)


def filter_class(settings: BaseSettings) -> Any:
    """Returns DUPEFILTER_CLASS if the user has set it."""
    return load_object(settings["DUPEFILTER_CLASS"]) if settings.getpriority("DUPEFILTER_CLASS") else DupeFilter


def directory_of(settings: BaseSettings, spider: Spider) -> Path:
    """Returns NEPHILA_FRONTIER, else JOBDIR, else .nephila/NAME."""
    return Path(settings["NEPHILA_FRONTIER"] or settings["JOBDIR"] or f".nephila/{spider.name}")


def job_spec(settings: BaseSettings) -> dict[str, Any]:
    """Merges NEPHILA_JOB over the politeness that the settings of Scrapy imply."""
    spec = settings.getdict("NEPHILA_JOB")
    politeness: dict[str, Any] = {"respectRobots": settings.getbool("ROBOTSTXT_OBEY")}
    if settings.getpriority("DOWNLOAD_DELAY"):
        politeness["delay"] = f"{settings.getfloat('DOWNLOAD_DELAY'):g}s"
        if not settings.getfloat("DOWNLOAD_DELAY"):
            politeness["concurrencyPerHost"] = max(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1)
    return {**spec, "politeness": {**politeness, **spec.get("politeness", {})}}
