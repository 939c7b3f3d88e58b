"""What a frontier is given in one program, and over a broker."""

from __future__ import annotations

from typing import Any

from nephila.scheduler.frontier.frontier import PartitionSlice
from nephila.scheduler.frontier.restart_policy import RestartPolicy


def deployed(one: PartitionSlice | None) -> dict[str, Any]:
    """Arguments of `Frontier`: the slice of a broker's partition, or None for one program."""
    if one is None:
        return {}
    return {
        "partition_slice": one,
        "restart": RestartPolicy.LEASES_CONTINUE,
        "page_quota": 0,
    }
