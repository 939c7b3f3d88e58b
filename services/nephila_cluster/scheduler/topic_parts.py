"""The parts of a partition over a broker: a topic, its fence, stored snapshots, leases that outlive a member."""

from __future__ import annotations

import math

import msgspec
from nephila.kernel.bus.contract import LogBus
from nephila.kernel.runtime.clock import Clock
from nephila.native import HostStore
from nephila.scheduler.config import SchedulerConfig
from nephila.scheduler.frontier.frontier import Frontier, FrontierCounters, PartitionSlice
from nephila.scheduler.frontier.restart_policy import RestartPolicy
from nephila.scheduler.jobs.seen import new_seen
from nephila.scheduler.partition.address_table import PartitionView
from nephila.scheduler.partition.ports import Build, OwnerEvents, Parts
from nephila.scheduler.politeness.lead import Lead

from nephila_cluster.scheduler.addresses.shared_pace import SharedAddressQueue
from nephila_cluster.scheduler.fencing import EpochFence
from nephila_cluster.scheduler.snapshot_store import SnapshotStore
from nephila_cluster.scheduler.stored_snapshots import StoredSnapshots
from nephila_cluster.scheduler.topic_log import TopicLog

SHARES = 16
"""A partition may keep 1/SHARES of the scheduler's limit of hosts in memory."""
LEAST_HOT_HOSTS = 256


def topic_parts(
    config: SchedulerConfig,
    store: SnapshotStore,
    bus: LogBus,
    clock: Clock,
    address_queue: SharedAddressQueue,
    lead: Lead,
) -> Build:
    """Builds the parts of the partition of a snapshot store. `lead`: of all partitions of this scheduler."""
    directory = str(store.directory)
    own = msgspec.structs.replace(
        config,
        partitions=1,
        directory=directory,
        hot_hosts=max(config.hot_hosts // SHARES, LEAST_HOT_HOSTS),
        hot_robots_bytes=config.hot_robots_bytes // SHARES,
    )

    def build(owner: OwnerEvents, counters: FrontierCounters) -> Parts:
        frontier = Frontier(
            own,
            HostStore(directory),
            lambda number: new_seen(directory, number),
            partition_slice=PartitionSlice(store.partition, store.layout.count, store.layout.base),
            restart=RestartPolicy.LEASES_CONTINUE,
            addresses=PartitionView(address_queue, owner.wake),
            consumed_until=-math.inf,
            on_anchors=owner.note_anchors,
            counters=counters,
            page_quota=0,
            lead=lead,
        )
        topic = TopicLog(store.partition, bus)
        fence = EpochFence(store.partition, bus, clock, owner.wake, owner.fail)
        return Parts(frontier, topic, fence, StoredSnapshots(own, store, topic, bus, clock, owner))

    return build
