"""The control API over Kafka as a service of its own: `nephila service api`.

IN   jobs, job-status, rules, rule-verdicts, explain-answers, members, settings (compacted topics, read whole); HTTP
     requests below /api/v1.
OUT  jobs, seeds, rules, settings, explain-queries; the topic of each dead letter that is replayed.

It takes part in no group and holds no partition: any number of replicas may run, and one that restarts loses nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from nephila.kernel.bus.contract import Bus
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UsageError
from nephila.scheduler.tenants.tenants import tenants

from nephila_control.access.live_access import LiveAccess, read_logins
from nephila_control.cluster.backend import ClusterBackend
from nephila_control.cluster.dead_letters import KafkaDeadLetters
from nephila_control.cluster.topic_lag import KafkaTopics
from nephila_control.config import ControlConfig
from nephila_control.operations import Operations

if TYPE_CHECKING:
    from nephila_cluster.kafka.bus import KafkaBus


class ControlService:
    """Serves `control` over HTTP with `token`, as a `lifecycle.Service`."""

    def __init__(
        self,
        backend: ClusterBackend,
        token: str,
        logins: LiveAccess | None,
        console_names: tuple[str, ...] = (),
        *,
        rows: str = "",
        firecrawl: bool = False,
        console_sessions: Path | None = None,
    ) -> None:
        """`token` may do everything; an empty one counts for nothing. `rows` is the URL of the database.
        `console_names`, `console_sessions` and `firecrawl` are those of `ControlConfig`. Raises `UsageError` for
        Firecrawl's API without rows."""
        if firecrawl and not rows:
            raise UsageError("api.firecrawl needs api.store: its pages are rows of the database")
        self._backend = backend
        self.control = Operations(backend)
        self.token = token
        self.logins = logins
        self.console_names = console_names
        self.rows = rows
        self.firecrawl = firecrawl
        self.console_sessions = console_sessions

    @property
    def failed_backup(self) -> str:
        """Returns an empty string unless the newest backup of the system failed."""
        return self._backend.failed_backup

    @property
    def backup_age_s(self) -> dict[str, float]:
        """Seconds since the newest backup of the system, by its result: ok, failed. Empty: there was none."""
        age = self._backend.backup_age_s
        return {} if age is None else {"failed" if self.failed_backup else "ok": age}

    async def start(self) -> None:
        """The bus delivers once it is started."""

    async def drain(self, grace_s: float) -> None:
        """Requests under way end with the server."""

    async def close(self) -> None:
        """Jobs that wait for their seeds stay paused."""
        self._backend.close()


def build(config: ControlConfig, bus: Bus, clock: Clock) -> ControlService:
    """Raises `UsageError` if no login would be possible."""
    kafka = cast("KafkaBus", bus)
    token, logins = read_logins(config.token_file, "api.token_file", config.access_file, "api.access_file")
    letters = KafkaDeadLetters(kafka.config, kafka.claim_store)
    backend = ClusterBackend(
        kafka,
        clock,
        letters,
        KafkaTopics(kafka.config),
        place=kafka.config.bootstrap,
        rows=config.store or None,
        tenants=tenants(config.tenants, "api.tenants"),
        rules_directory=Path(config.rules_directory) if config.rules_directory else None,
    )
    return ControlService(
        backend,
        token,
        logins,
        config.console_names,
        rows=config.store,
        firecrawl=config.firecrawl,
        console_sessions=Path(config.console_sessions) if config.console_sessions else None,
    )
