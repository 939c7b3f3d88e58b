"""Generated from proto/nephila/v1/jobs.proto by tools/protogen.py; do not edit."""

from __future__ import annotations

from enum import IntEnum

import msgspec



class ScopeMode(IntEnum):
    """Which hosts count as inside, relative to the seeds."""

    UNSPECIFIED = 0
    DOMAIN = 1
    PREFIX = 2
    ANY = 3


class Scope(msgspec.Struct, array_like=True, gc=False):
    """"""

    mode: ScopeMode = ScopeMode.UNSPECIFIED
    # RE2, searched in the full URL; a URL must match one of them, if there are any.
    include: list[str] = msgspec.field(default_factory=list)
    # RE2, searched in the full URL; a URL must match none.
    exclude: list[str] = msgspec.field(default_factory=list)
    # Deepest link followed from a seed (0 = seeds only); -1 means no limit.
    max_depth: int = 0
    # Stored pages at most; 0 means no limit.
    max_pages: int = 0


class Politeness(msgspec.Struct, array_like=True, gc=False):
    """"""

    # Seconds between the end of a fetch and the start of the next on the same host.
    delay_s: float = 0.0
    # Fetches at once on one host; 0 means 1.
    concurrency_per_host: int = 0
    # robots.txt, Crawl-delay and meta robots are not consulted.
    ignore_robots: bool = False


class CrawlJob(msgspec.Struct, array_like=True, gc=False):
    """The whole desired state of a crawl. Topic `jobs` (compacted by uid)."""

    uid: str = ""
    name: str = ""
    # Rises with each change of the desired state.
    generation: int = 0
    seeds: list[str] = msgspec.field(default_factory=list)
    scope: Scope | None = None
    politeness: Politeness | None = None
    # Keep the links of each page in the table `links`.
    keep_links: bool = False
    paused: bool = False
