"""Seeds of a file are admitted as seeds one by one are: the same queues, log, seen set and scope."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from nephila.kernel.documents.job_schema import Scope
from nephila.kernel.messages import Outlinks
from nephila.native import parse_url, seed_links
from nephila.scheduler.engine.admission import add_seed
from nephila.scheduler.engine.seed_admission import add_seeds
from nephila.scheduler.jobs.queue_entry import unpacked_rows

from tests.scheduler.engine.outcome_rig import JOB, OutcomeRig


def packed(urls: list[str]) -> Outlinks:
    *columns, _, _, _ = seed_links("\n".join(urls).encode(), 0)
    return Outlinks(JOB, b"", "", 0, *columns)


def one_by_one(rig: OutcomeRig, urls: list[str]) -> list[tuple[str, str]]:
    job, refused = rig.frontier.jobs[JOB], []
    for url in urls:
        parts = parse_url(url)
        reason = add_seed(rig.frontier, job, parts.host_key, parts.path_query, parts.href, parts.fingerprint)
        refused += [(parts.href, reason)] if reason else []
    return refused


def state(rig: OutcomeRig) -> list[Any]:
    """What admission has changed, without the order of the anchors of a file."""
    frontier, job = rig.frontier, rig.frontier.jobs[JOB]
    store = frontier.store
    queues = {store.name(host): (store.items(host, job.number), store.ready_at(host)) for host in store.ids()}
    commits = frontier.pending.commits()
    rows = [(c.partition, sorted(map(msgspec.structs.astuple, unpacked_rows(c.queued)))) for c in commits]
    anchors = sorted(anchor.place for commit in commits for anchor in commit.anchors)
    return [queues, rows, anchors, job.scope.anchors, job.redirect_anchors, len(job.seen), job.queue.length]


@pytest.mark.parametrize("strategy", ["bfs", "dfs"])
@pytest.mark.parametrize(
    "scope",
    [
        Scope(mode="host"),
        Scope(mode="domain"),
        Scope(mode="any"),
        Scope(mode="prefix"),
        Scope(mode="host", exclude=["/3"]),
        Scope(mode="host", include=["/3"]),
    ],
    ids=["host", "domain", "any", "prefix", "exclude", "include"],
)
def test_a_file_of_seeds_is_admitted_as_its_seeds_are(scope: Scope, strategy: str) -> None:
    """Twice over, with URLs that are there already, and links of pages in between."""
    rng = random.Random(7)
    packed_rig, single_rig = OutcomeRig(), OutcomeRig()
    for rig in (packed_rig, single_rig):
        rig.job(scope=scope, strategy=strategy)
        rig.frontier.pending.commits()
    for _ in range(4):
        drawn = [
            f"http://{rng.choice(['', 'www.', 'x.'])}h{rng.randrange(9)}.test/{rng.randrange(9)}" for _ in range(60)
        ]
        urls = list(dict.fromkeys(drawn))
        refused = add_seeds(packed_rig.frontier, packed_rig.frontier.jobs[JOB], packed(urls))
        assert refused == one_by_one(single_rig, urls)
        assert state(packed_rig) == state(single_rig)
        packed_rig.check()


def test_a_refused_link_that_is_a_seed_of_a_file_is_admitted() -> None:
    """The scope has its anchor then, and links that were refused are judged again."""
    rig, wider = OutcomeRig(), []
    rig.frontier.on_wider = wider.append
    rig.job("http://a.test/")
    job = rig.frontier.jobs[JOB]
    job.refused.reject(parse_url("http://b.test/").fingerprint, 10)
    wider.clear()
    assert add_seeds(rig.frontier, job, packed(["http://b.test/"])) == []
    assert (wider, rig.frontier.store.find("b.test") >= 0) == ([JOB], True)
    rig.check()
