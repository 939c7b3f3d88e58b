"""The settings of a downloader: a section for each part, next to the part that reads it.

Settings that concern more than one part stand here. The sections of packages beside the core are declared in the core,
since it reads some of their fields and a worker process decodes all of them.
"""

from typing import Annotated

import msgspec

from nephila.downloader.admission.config import AdmissionConfig
from nephila.downloader.browser_config import BrowserConfig
from nephila.downloader.dns.config import DnsConfig
from nephila.downloader.http.config import HttpConfig
from nephila.downloader.limits.config import LimitsConfig
from nephila.downloader.middleware.config import MiddlewareConfig
from nephila.downloader.proxy_config import ProxyConfig
from nephila.kernel.runtime.config import Positive, section_of


class DownloaderConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of one downloader; durations in seconds, sizes in bytes."""

    concurrency: Positive = 100
    """Simultaneous fetches: as many as a slow network needs to keep one core busy."""

    window: Positive = 4096
    """Requests that are received and not yet acknowledged, the credit on `requests`. A request is acknowledged when
    its page is durable, long after the fetch, so this is far above `concurrency`."""

    move_s: float = 2.5
    """Time that fetches may take when their partition moves to another member; then they are given back. Shorter
    than drain_s of the bus (3 s), so that the outcomes are published before the other member begins."""

    admission: AdmissionConfig = AdmissionConfig()

    limits: LimitsConfig = LimitsConfig()

    http: HttpConfig = HttpConfig()

    dns: DnsConfig = DnsConfig()

    middleware: MiddlewareConfig = MiddlewareConfig()

    proxies: Annotated[ProxyConfig, section_of("proxies")] = ProxyConfig()

    browser: Annotated[BrowserConfig, section_of("browser")] = BrowserConfig()
