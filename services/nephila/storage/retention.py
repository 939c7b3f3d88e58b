"""The setting `retention`: a number of days."""

from __future__ import annotations

import re
from typing import Final

from nephila.kernel.runtime.errors import UsageError
from nephila.storage.config import StorageConfig

_DAYS: Final = re.compile(r"([1-9][0-9]{0,4})d")


def retention_days(config: StorageConfig) -> int:
    """The retention in days, 0 without one. Raises `UsageError`."""
    if (config.partition_by or config.retention) and not config.store:
        what = "partition_by" if config.partition_by else "retention"
        raise UsageError(f"storage.{what} needs a PostgreSQL database; set storage.store, or remove it")
    if not config.retention:
        return 0
    match = _DAYS.fullmatch(config.retention)
    if match is None:
        raise UsageError(f"storage.retention {config.retention!r} is no number of days; write 90d")
    if not config.partition_by:
        raise UsageError("storage.retention drops partitions; set storage.partition_by to day too, or remove it")
    return int(match[1])
