"""Sums of what partitions have reported of quotas. Pure.

Several jobs may share an account, that of their site or tenant. Each of their reports has the total of the partition,
and the latest total is the largest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nephila.kernel.messages import QuotaUse
from nephila.scheduler.tenants.quotas import add


def quota_uses(
    reported: Iterable[tuple[int, Iterable[QuotaUse]]], mine: Mapping[int, Iterable[QuotaUse]]
) -> dict[int, dict[str, QuotaUse]]:
    """Partition of `mine` → account → what all other partitions have spent in the account's latest period. `mine`:
    current totals of the partitions of this scheduler; `reported`: of others, by partition."""
    latest: dict[tuple[str, int], QuotaUse] = {}
    since: dict[str, float] = {}
    for number, uses in (*reported, *mine.items()):
        for use in uses:
            since[use.account] = max(since.get(use.account, use.since), use.since)
            latest_use = latest.get((use.account, number))
            if latest_use is None or _order(use) > _order(latest_use):
                latest[use.account, number] = use
    by_partition: dict[int, dict[str, QuotaUse]] = {number: {} for number in mine}
    for (account, number), use in latest.items():
        if use.since != since[account]:
            continue
        for partition, sums in by_partition.items():
            if partition != number:
                add(sums.setdefault(account, QuotaUse(account, use.since)), use)
    return by_partition


def _order(use: QuotaUse) -> tuple[float, int, int, float]:
    return use.since, use.pages, use.bytes, use.browser_s
