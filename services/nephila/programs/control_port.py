"""The port of control: what a program that runs offers to clients, and what it gives the control of its services.

The crawl opens its control, tells it of each turn and closes it; what is served, and how, is not its business.
`nephila_control` implements the port; without that package a crawl runs as always and cannot be asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from nephila.downloader.config import DownloaderConfig
from nephila.kernel.bus.contract import Bus
from nephila.kernel.layout import Layout
from nephila.kernel.messages import CrawlJob, JobStatus, ParseRule, RuleVerdict, StoreStatus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.extensions import extension, is_installed
from nephila.storage.config import StorageConfig

if TYPE_CHECKING:
    # The main process of groups has none of these, and does not load them.
    from nephila.downloader.service import Downloader
    from nephila.scheduler.standalone import Scheduler


class FrontierOfGroups(Protocol):
    """The frontier of a crawl by groups: what they have reported, and questions to them."""

    layout: Layout

    @property
    def errors(self) -> Counter[str]: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def wire_bytes(self) -> int: ...
    def spec(self, uid: str) -> CrawlJob | None: ...
    def jobs(self) -> Mapping[str, CrawlJob]: ...
    def status(self, job: CrawlJob) -> JobStatus:
        """What the groups have reported of a job."""

    def counts(self) -> dict[str, tuple[int, ...]]:
        """Job → URLs that are queued, in flight, stored, denied, failed and dropped."""

    def hosts_waiting(self) -> int: ...
    def hold(self, held: bool) -> None:
        """Fetch nothing while a change comes in; `held=False` continues."""

    def take_refused_seeds(self) -> list[tuple[str, str]]:
        """(URL, reason) of the seeds that were refused since the last call. Those before `durable` are complete."""

    async def durable(self) -> None:
        """Return when everything received so far survives a power cut. Raises `UserError`."""

    async def ask(self, partitions: Sequence[int] | None, question: bytes) -> list[bytes]:
        """The answers of the groups of these partitions; None: of all. Raises `NotReadyError`."""


class Parts(msgspec.Struct, frozen=True):
    """What control needs of the program it belongs to."""

    bus: Bus
    clock: Clock
    scheduler: Scheduler | None
    """None where groups have the frontier."""
    verdicts: Callable[[], Iterable[RuleVerdict]] = tuple
    """Whether rules still fit their sites."""
    processes: Callable[[], Sequence[int]] = tuple
    """Process ids of the workers."""
    pages: Callable[[], int] = int
    """Pages stored since the start of the program."""
    no_browser: str = ""
    """Why pages cannot be rendered, with the remedy; empty: they can."""
    downloader: DownloaderConfig = msgspec.field(default_factory=DownloaderConfig)
    """How the program fetches: its name, addresses that it may ask."""
    downloaders: Callable[[], Sequence[Downloader]] = tuple
    """What fetches in this process; none where groups do."""
    store: Callable[[], StoreStatus | None] = lambda: None
    """The state of the file or server of the rows; None: nothing is stored here."""
    configs: Mapping[str, msgspec.Struct] = {}
    """Service → its configuration."""
    groups: FrontierOfGroups | None = None
    """The frontier where groups have it."""


class RuleFiles(Protocol):
    """The rules of files, which the program watches."""

    path: Path
    names: tuple[str, ...]
    """Names of the rules that are published."""

    @property
    def rules(self) -> Mapping[str, ParseRule]:
        """Name → rule."""

    def start(self) -> None:
        """Publish all rules and begin to watch the files."""

    def close(self) -> None:
        """Stop watching."""

    def check(self) -> bool:
        """Read the files now; True when a rule has changed."""


class ControlAddress(Protocol):
    """Where control is served beside DIR/control.sock."""

    host: str
    port: int


class ProgramControl(Protocol):
    """The control of one crawl."""

    def note(self) -> None:
        """A turn of the scheduler has ended."""

    async def open(self) -> None:
        """Listen. Raises `UserError`."""

    async def close(self) -> None:
        """Take no further requests."""


class NoControl:
    """A crawl that cannot be asked."""

    def note(self) -> None: ...
    async def open(self) -> None: ...
    async def close(self) -> None: ...


def make_control(
    parts: Parts,
    storage: StorageConfig,
    rules: RuleFiles | None,
    address: ControlAddress | None,
    metrics: Callable[[], Awaitable[tuple[bytes, str]]],
) -> ProgramControl:
    """The control of one crawl. `metrics`: what /metrics answers, (text, content type)."""
    if not is_installed("control"):
        return NoControl()
    control: ProgramControl = extension("control")(parts, storage, rules, address, metrics)
    return control
