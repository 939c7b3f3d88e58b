"""The seeds of a run: those of the command line or the job first, then those of files, read lazily.

A pipe may deliver nothing for an hour, and a file may have a million lines.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from nephila.kernel.bus.contract import Bus, Receipt
from nephila.kernel.documents.job_document import lists_of, spec_of, urls_of
from nephila.kernel.messages import CrawlJob, Outlinks, Seed
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.seeds import STDIN, link_urls, read_seed_links
from nephila.kernel.topics import SEEDS
from nephila.kernel.url_credentials import is_redacted
from nephila.programs.crawl.plan import Plan
from nephila.programs.read_ahead import read_ahead

BATCH = 1000
"""Seeds between two turns of the loop, so that a file of a million does not hold up the first fetch."""
AHEAD = 16
"""Packed seeds that are read ahead, a thousand each."""
UNCONFIRMED = 16 * BATCH
"""Seeds that no log has yet: a file of millions is read as fast as groups admit it, and stays out of memory."""

Refused = list[tuple[str, str]]
"""(seed, why it is not crawled)."""


def seeds_of(plan: Plan, refused: Refused) -> Iterator[Seed | Outlinks]:
    """The seeds of a plan. Raises `UsageError` for a file that cannot be read, before anything is created.

    If the frontier has the seeds of earlier runs, a file that is gone is reported in `refused`, and standard input is
    not read.
    """
    run = plan.run
    if not plan.has_seeds:
        return _opened(all_seeds(plan.job, plan.files, run.seed_file, refused), plan)
    return itertools.chain(
        _own(plan.job, has_seeds=True),
        *(_again(plan.job.uid, name, refused, complete=run.seeds_read) for name in (*plan.files, run.seed_file)),
    )


def all_seeds(job: CrawlJob, files: Sequence[str], seed_file: str, refused: Refused) -> Iterator[Seed | Outlinks]:
    """The seeds of a job that begins. Lines that are not URLs are added to `refused`."""
    yield from _own(job, has_seeds=False)
    for name in filter(None, (*files, seed_file)):
        yield from _read(job.uid, name, refused)


def singly(seeds: Iterator[Seed | Outlinks]) -> Iterator[Seed]:
    """Seeds one by one."""
    for seed in seeds:
        if isinstance(seed, Outlinks):
            yield from (Seed(seed.job, url, "file") for url in link_urls(seed))
        else:
            yield seed


def _own(job: CrawlJob, *, has_seeds: bool) -> Iterator[Seed]:
    """The seeds that the job's spec has."""
    spec = spec_of(job)
    for url in urls_of(spec):
        if not is_redacted(url):
            yield Seed(job.uid, url)
        elif not has_seeds:
            raise UsageError(f"{url}: give this URL again with its user and password; run.json keeps no secrets")
    for kind, url in lists_of(spec):
        yield Seed(job.uid, url, kind)


def _again(uid: str, name: str, refused: Refused, *, complete: bool) -> Iterator[Seed | Outlinks]:
    """The seeds of a file whose seeds an earlier run has read, all of them if `complete`."""
    if name == STDIN and not complete:
        refused.append(
            ("standard input", "it may not have been read to its end; if so give it again: --resume --seeds -")
        )
    elif name not in ("", STDIN):
        try:
            yield from _read(uid, name, refused)
        except UsageError as error:
            refused.append((name, str(error)))


def _read(uid: str, name: str, refused: Refused) -> Iterator[Seed | Outlinks]:
    for links in read_seed_links(name, lambda line, reason: refused.append((line, reason))):
        if isinstance(links, str):
            yield Seed(uid, links, "file")
        else:
            links.job = uid
            yield links


def _opened(seeds: Iterator[Seed | Outlinks], plan: Plan) -> Iterator[Seed | Outlinks]:
    """The seeds with the first one read, after a look at each file."""
    files = [*((name, "the seeds ") for name in plan.files), (plan.run.seed_file, "--seeds ")]
    for name, option in files:
        if name in ("", STDIN):
            continue
        try:
            Path(name).open("rb").close()
        except OSError as error:
            raise UsageError(f"cannot read {option}{name}: {error.strerror}") from None
    return itertools.chain([next(seeds)], seeds)


async def publish(seeds: Iterator[Seed | Outlinks], bus: Bus, add: Callable[[Outlinks], Receipt]) -> None:
    """Publish seeds, and hand packed ones to `add`, as they are read; return when logs have all of them. Up to
    `UNCONFIRMED` of them wait for a log."""
    unconfirmed: deque[tuple[Receipt, int]] = deque()
    waiting = number = 0
    async for seed in read_ahead(seeds, AHEAD):
        if isinstance(seed, Outlinks):
            receipt, count = add(seed), len(seed.fingerprints) // 16
        else:
            receipt, count = bus.publish(SEEDS, 0, seed), 1
        number += count
        if not receipt.done:
            unconfirmed.append((receipt, count))
            waiting += count
        while waiting > UNCONFIRMED:
            oldest, count = unconfirmed.popleft()
            await oldest
            waiting -= count
        if number >= BATCH:
            number = 0
            await asyncio.sleep(0)
    for receipt, _ in unconfirmed:
        await receipt
