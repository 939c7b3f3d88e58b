"""The groups together as the main process sees them: routes of messages, leases, budgets, reports.

This module does not depend on processes: a group has a link while its process runs. Invariant: everything that a dead
process has sent is taken before its leases pass to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from nephila.kernel.bus.contract import Delivery, Receipt, all_of
from nephila.kernel.bus.latest import Latest
from nephila.kernel.bus.local import LocalBus
from nephila.kernel.bus.pipe import protocol as p
from nephila.kernel.bus.pipe.link import UNBOUNDED, Channel
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.layout import Layout
from nephila.kernel.messages import CrawlJob, Outcome, Outlinks, QuotaUse, Seed
from nephila.kernel.net.address_limits import AddressLimits
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.errors import UserError
from nephila.kernel.topics import JOBS, OUTLINKS, RECEIPTS, RECORDS, RULE_VERDICTS, RULES, SEEDS, Topic
from nephila.native import UrlError, parse_url
from nephila.programs.groups.disk_sync import After, DiskSync, LogFiles, at_once
from nephila.programs.groups.group_member import GroupMember
from nephila.programs.groups.seed_relay import SeedRelay
from nephila.programs.outlink_router import split
from nephila.scheduler.group.address_leases import AddressLeases, Grant, Recall
from nephila.scheduler.group.page_grants import Granted
from nephila.scheduler.group.partition_logs import directory_of
from nephila.scheduler.tenants.quota_uses import quota_uses

GROUP = "groups"


class Groups:
    """Routes messages to groups, and has what they share."""

    def __init__(
        self,
        bus: LocalBus,
        clock: Clock,
        members: list[GroupMember],
        layout: Layout,
        limits: AddressLimits,
        directory: Path,
        on_report: Callable[[], None],
        on_fatal: Callable[[BaseException], None],
        *,
        on_lost: Callable[[range, frozenset[p.Key]], None] = lambda partitions, recorded: None,
        fsync: bool = False,
    ) -> None:
        """`on_report` is called when a group has reported; `on_fatal`, when seeds cannot be written down; `on_lost`,
        when the process that had these partitions is dead, with the URLs of the last rows that it has sent. `fsync`: a
        power cut may not keep the end of a page and lose its links."""
        self.members = members
        self.budgets: dict[str, Granted] = {}
        """Job → its page budget."""
        self.held = False
        self.changing = False
        """The partitions are being divided anew."""
        self._new_reports: dict[int, p.GroupReport] | None = None
        """Reports of the groups of a new division, until all have one: a part of them would be a part of the counts."""
        self.refused_seeds: list[tuple[str, str]] = []
        self._bus = bus
        self._clock = clock
        self.layout = layout
        self._owners = _owners(members)
        self._latest: dict[Topic, Latest[Any]] = {topic: Latest(topic) for topic in (RULES, RULE_VERDICTS, JOBS)}
        self._restored: dict[str, CrawlJob] = {}
        self._addresses = AddressLeases(limits)
        self._on_report = on_report
        self._on_fatal = on_fatal
        self._on_lost = on_lost
        files = LogFiles([directory_of(directory, number) for number in self._owners])
        self._after_logs: After = DiskSync(files.sync, on_fatal).after if fsync else at_once
        self._receipts: dict[int, Receipt] = {}
        """Receipts of rows that wait for the logs, by number."""
        self._receipt = 0
        self.relay = SeedRelay(
            directory,
            self.send_seed,
            self._after_logs,
            lambda sync: DiskSync(sync, on_fatal).after if fsync else at_once,
        )
        self._handlers: dict[type[Any], Callable[[GroupMember, Any], None]] = {
            p.GroupReport: self._on_group_report,
            p.PagesReturned: self._on_pages_returned,
            p.AddressWanted: self._on_address_wanted,
            p.AddressReleased: self._on_address_released,
            p.Forget: self._on_forget,
            p.Probe: self._on_probe,
            p.Probed: lambda member, control: member.deaths.suspects.probed(control.key, control.tried),
        }

    def start(self) -> None:
        """Subscribe to what goes to the groups."""
        for topic in self._latest:
            self._bus.subscribe(topic, GROUP, partial(self._on_latest, topic), credits=UNBOUNDED)
        self._bus.subscribe(SEEDS, GROUP, self._on_seed, credits=UNBOUNDED)
        self._bus.subscribe(OUTLINKS, GROUP, self._on_outlinks, credits=UNBOUNDED)
        self._bus.subscribe(RECEIPTS, GROUP, self._on_receipts, credits=UNBOUNDED)

    @property
    def idle(self) -> bool:
        return not self.changing and all(member.idle for member in self.members)

    # ---- a new division

    def divide(self, members: list[GroupMember], parts: Iterable[range]) -> None:
        """The partitions belong to these groups from now on. No process runs."""
        poison = [key for member in self.members for key in member.deaths.poison]
        moved = [
            entry for member, partitions in zip(members, parts, strict=True) for entry in member.divide(partitions)
        ]
        self.members, self._owners, self._new_reports = members, _owners(members), {}
        for entry in moved:
            self._owners[entry[1]].take_over(entry)
        for member in members:
            member.deaths.poison = {key for key in poison if self.layout.of(key[1]) in member.partitions}

    def divided(self) -> None:
        """All groups of a new division have read their logs."""
        reports, self._new_reports = self._new_reports or {}, None
        for member in self.members:
            member.take(reports[member.number])
        for uid, budget in self.budgets.items():
            budget.pages, budget.requested = self._claimed(uid), {}

    # ---- to the groups

    def _on_latest(self, topic: Topic, delivery: Delivery) -> None:
        self._latest[topic].take(delivery.message)
        if topic is JOBS:
            self._on_job(delivery.message)
        delivery.ack_after([member.send(topic, delivery.partition, delivery.message) for member in self.members])
        if topic is JOBS:
            self.relay.send_again()

    def _on_job(self, job: CrawlJob) -> None:
        self._restored.pop(job.uid, None)
        if job.deleted:
            self.budgets.pop(job.uid, None)
            return
        if job.uid not in self.budgets:
            claimed = self._claimed(job.uid)
            self.budgets[job.uid] = Granted(pages=claimed)
            for member in self.members:
                member.control(p.PagesGranted(job.uid, claimed[member.number], spent=False))
        self.budgets[job.uid].max_pages = spec_of(job).scope.max_pages

    def _claimed(self, uid: str) -> dict[int, int]:
        """Group → pages of a budget that its logs have in use."""
        return {member.number: member.jobs[uid].claimed if uid in member.jobs else 0 for member in self.members}

    def add_seeds(self, links: Outlinks) -> Receipt:
        """Send seeds of a file, packed, to the groups of their partitions; the receipt resolves when the logs have
        them."""
        receipt = self._send_links(links)
        receipt.add_done_callback(self._on_confirmed_seed)
        return receipt

    def _send_links(self, links: Outlinks) -> Receipt:
        parts = split(links, range(len(links.fingerprints) // 16), self.layout)
        return all_of([self._owners[partition].send(OUTLINKS, partition, part) for partition, part in parts])

    def _on_seed(self, delivery: Delivery) -> None:
        seed: Seed = delivery.message
        try:
            # A route is no part of what decides the partition.
            parts = parse_url(seed.url)
        except UrlError as error:
            self.refused_seeds.append((seed.url, str(error)))
            delivery.ack()
            return
        partition = self.layout.of(parts.fingerprint)
        delivery.ack_after([self._owners[partition].send(SEEDS, partition, seed)])

    def _on_outlinks(self, delivery: Delivery) -> None:
        """Links that this process adds to a page."""
        delivery.ack_after([self._send_links(delivery.message)])

    def _on_receipts(self, delivery: Delivery) -> None:
        """The links of these rows are in the logs of other partitions: they have to be on the disk first."""
        self._receipt += 1
        number, receipt = self._receipt, Receipt()
        self._receipts[number] = receipt
        delivery.ack_after([receipt])
        self._after_logs(partial(self._send_receipts, number, delivery.partition, delivery.message))

    def _send_receipts(self, number: int, partition: int, message: Any) -> None:
        resolve = self._receipts.pop(number).resolve_one
        self._owners[partition].send(RECEIPTS, partition, message).add_done_callback(resolve)

    def send_seed(self, partition: int, seed: Seed) -> Receipt:
        """Send a seed of another partition."""
        receipt = self._owners[partition].send(SEEDS, partition, seed)
        receipt.add_done_callback(self._on_confirmed_seed)
        return receipt

    def _on_confirmed_seed(self) -> None:
        """No delivery of the bus waits for such a seed, so its end may be the end of the crawl."""
        if self.idle:
            self._on_report()

    def hold(self, held: bool) -> None:
        """Dispatch nothing while a change comes in; `held=False` continues."""
        if held != self.held:
            self.held = held
            for member in self.members:
                member.control(p.Hold(held))

    # ---- from the groups

    def take(self, topic: Topic, partition: int, message: Any) -> Receipt:
        """A message of a group."""
        if topic is SEEDS:
            return self._relay(partition, message)
        if topic is OUTLINKS:
            return self._owners[partition].send(OUTLINKS, partition, message)
        if topic is RECORDS:
            self._owners[partition].deaths.recorded((message.job, message.url_key))
        return self._bus.publish(topic, partition, message)

    def _relay(self, partition: int, seed: Seed) -> Receipt:
        try:
            return self.relay.relay(partition, seed)
        except UserError as error:
            self._on_fatal(error)
            return Receipt()

    def on_control(self, member: GroupMember, control: Any) -> None:
        """A control message of a group."""
        self._handlers[type(control)](member, control)

    def begin(self, member: GroupMember, link: Channel) -> None:
        """A process of the group has read its logs: it gets rules, jobs, its pages, and what was not confirmed."""
        for topic, messages in self._latest.items():
            for message in messages.values():
                link.send(topic, 0, message)
        pages = {uid: budget.pages.get(member.number, 0) for uid, budget in self.budgets.items()}
        deaths, member.quotas_elsewhere = member.deaths, self._quotas_elsewhere().get(member.number, {})
        if member.quotas_elsewhere:
            link.send_control(p.QuotasElsewhere(list(member.quotas_elsewhere.values())))
        link.send_control(p.Begin(pages, self.held, list(deaths.suspects), list(deaths.poison)))
        for uid, budget in self.budgets.items():
            if budget.spent:
                link.send_control(p.PagesGranted(uid, 0, spent=True))
        member.join(link)

    def lost(self, member: GroupMember) -> None:
        """The process of a group is gone, and everything it sent was taken."""
        member.leave()
        self._on_lost(member.partitions, member.deaths.last_rows)
        for budget in self.budgets.values():
            budget.requested.pop(member.number, None)
        self._send_leases(self._addresses.lost(member.number, self._clock.monotonic()))

    def _on_group_report(self, member: GroupMember, report: p.GroupReport) -> None:
        self.refused_seeds += report.refused_seeds
        if self._new_reports is not None:
            self._new_reports[member.number] = report
            return
        member.take(report)
        for job in report.jobs:
            budget = self.budgets.get(job.uid)
            if budget is not None and budget.max_pages:
                budget.request(member.number, job.requested)
                self._grant(job.uid, budget)
        self._share_quotas()
        self._on_report()

    def _share_quotas(self) -> None:
        """Hand to each group what all others have spent, where that has changed."""
        for number, elsewhere in self._quotas_elsewhere().items():
            member = self.members[number]
            if member.link is not None and elsewhere != member.quotas_elsewhere:
                member.quotas_elsewhere = elsewhere
                member.control(p.QuotasElsewhere(list(elsewhere.values())))

    def _quotas_elsewhere(self) -> dict[int, dict[str, QuotaUse]]:
        """Group → what all others have spent; empty without quotas."""
        uses = {member.number: member.report.uses for member in self.members}
        return quota_uses((), uses) if any(uses.values()) else {}

    def _grant(self, uid: str, budget: Granted) -> None:
        spent = self.ended(uid)[Outcome.STORED] >= budget.max_pages
        grants = budget.grant()
        for member in self.members:
            pages = grants.get(member.number, 0)
            if pages or spent != budget.spent:
                member.control(p.PagesGranted(uid, pages, spent))
            if budget.short and budget.pages.get(member.number, 0):
                member.control(p.RecallPages(uid))
        budget.spent = spent

    def _on_pages_returned(self, member: GroupMember, control: p.PagesReturned) -> None:
        budget = self.budgets.get(control.job)
        if budget is not None:  # the job was not deleted meanwhile
            budget.return_pages(member.number, control.pages)
            self._grant(control.job, budget)

    def _on_address_wanted(self, member: GroupMember, control: p.AddressWanted) -> None:
        message = self._addresses.want(member.number, control.address)
        if message is not None:
            self._send_leases([message])

    def _on_address_released(self, member: GroupMember, control: p.AddressReleased) -> None:
        self._send_leases(self._addresses.release(control.address, control.free_at))

    def _send_leases(self, messages: list[Grant | Recall]) -> None:
        for message in messages:
            member = self.members[message.group]
            if isinstance(message, Grant):
                member.control(p.AddressGranted(message.address, message.not_before))
            else:
                member.control(p.RecallAddress(message.address))

    def _on_probe(self, member: GroupMember, control: p.Probe) -> None:
        member.deaths.suspects.probing = control.key

    def _on_forget(self, member: GroupMember, control: p.Forget) -> None:
        for other in self.members:
            other.control(control)

    # ---- views

    def ended(self, uid: str) -> Counter[Outcome]:
        """Ended URLs of a job by outcome."""
        ended: Counter[Outcome] = Counter()
        for job in self.reports(uid):
            ended.update(job.ended)
        return ended

    def job(self, uid: str) -> CrawlJob | None:
        """The present state of a job; None for a deleted one."""
        return self._latest[JOBS].get(uid) or self._restored.get(uid)

    def jobs(self) -> dict[str, CrawlJob]:
        """The present state of all jobs that are not deleted."""
        return self._restored | self._latest[JOBS]

    def restore(self, jobs: Iterable[CrawlJob]) -> None:
        """The jobs of the logs, until they are published. A crash may have left an earlier state in some logs."""
        for job in jobs:
            present = self._restored.get(job.uid)
            if present is None or job.generation > present.generation:
                self._restored[job.uid] = job

    def take_refused_seeds(self) -> list[tuple[str, str]]:
        """(URL, reason) of the seeds that were refused since the last call, as far as groups have reported."""
        refused, self.refused_seeds = self.refused_seeds, []
        return refused

    def reports(self, uid: str) -> list[p.JobReport]:
        """The reports of a job."""
        return [member.jobs[uid] for member in self.members if uid in member.jobs]

    def settled(self) -> Receipt:
        """Resolves when the groups have confirmed what was sent to them."""
        unconfirmed = [receipt for member in self.members for receipt in member.unconfirmed]
        return all_of([*unconfirmed, *self._receipts.values()])


def _owners(members: Iterable[GroupMember]) -> dict[int, GroupMember]:
    return {number: member for member in members for number in member.partitions}
