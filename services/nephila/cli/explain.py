"""`nephila explain URL`: what became of a URL in a crawl, and why; changes nothing. Asks the program that runs
in DIR where it answers (`nephila up`), else reads DIR, also while a crawl runs there."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from nephila.cli.output import print_json, print_pairs
from nephila.cli.safe import plain
from nephila.directory import Directory, Run
from nephila.kernel.errors import UserError

if TYPE_CHECKING:
    from nephila.scheduler.dispatch import Dispatcher
    from nephila.scheduler.explain import Explanation
    from nephila.scheduler.restore import Restored

RECOVERIES = 5
"""Readings of the log before giving up: a running crawl may replace its files by a snapshot meanwhile."""


def explain(
    url: Annotated[str, typer.Argument(metavar="URL", help="A URL, in any spelling.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Directory of the crawl.")] = Path("crawl-out"),
    job: Annotated[str, typer.Option(metavar="NAME", help="Ask this job only.")] = "",
    json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
) -> None:
    """Say what became of a URL in the crawl in DIR, and why: seen, scope, robots.txt, queue, pace, row."""
    from nephila.cli.client import running
    from nephila.cli.crawl import seed_url

    href = seed_url(url)
    client = running(out)
    if client is not None:
        with client:
            told = client.ask("explain", url=href, job=job)["explanation"]
        if json:
            print_json(told)
            return
        from nephila.scheduler.explain import Explanation

        answer = msgspec.convert(told, Explanation)
    else:
        answer = _explain_directory(Directory(out), href, job)
    if json:
        print_json(answer)
    else:
        _show(answer)


def _explain_directory(directory: Directory, href: str, name: str) -> Explanation:
    """The answer of the frontier as its log says, and of the database."""
    from nephila import jobview
    from nephila.scheduler.explain import explain as explain_url

    run = directory.read()
    now, utc_now = time.monotonic(), time.time()
    dispatcher, found = _recover(directory, now, utc_now)
    jobs = {uid: job for uid, job in dispatcher.frontier.jobs.items() if not job.spec.deleted}
    if not jobs:
        raise UserError(f"the crawl in {directory.path} has no job yet; ask again once it has started")
    running = _is_running(directory, run)
    return jobview.best(
        [
            explain_url(
                dispatcher,
                jobs[uid],
                href,
                now,
                attempts=found.attempts,
                row=jobview.row(directory.path, uid, href),
                running=running,
            )
            for uid in jobview.choose({uid: job.spec for uid, job in jobs.items()}, name)
        ]
    )


def _recover(directory: Directory, now: float, utc_now: float) -> tuple[Dispatcher, Restored]:
    """The frontier as its log says. Raises `UserError` when there is none or it is damaged."""
    from nephila.kernel.config import load
    from nephila.scheduler.config import SchedulerConfig
    from nephila.scheduler.dispatch import Dispatcher
    from nephila.scheduler.restore import open_frontier, restore
    from nephila.scheduler.store import CommitLog

    log = CommitLog(directory.frontier, read_only=True)
    if not log.exists:
        raise UserError(f"{directory.path} holds no crawl; name its directory with --out")
    config = load(SchedulerConfig, {"directory": str(directory.frontier)}, "environment", "scheduler")
    for _ in range(RECOVERIES):
        files = (log.segments()[:1], log.snapshots())
        dispatcher = Dispatcher(open_frontier(config, read_only=True))
        try:
            found = restore(dispatcher, log.recover(), now, utc_now)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UserError(f"cannot read {error.filename or directory.frontier}: {error.strerror}") from None
        if files == (log.segments()[:1], log.snapshots()):
            return dispatcher, found
    raise UserError(f"the log in {directory.frontier} is being rewritten all the time; ask again")


def _is_running(directory: Directory, run: Run | None) -> bool:
    """Whether the program that holds the directory is alive; asking for its lock could get in the way of one."""
    if run is None or run.state != "running":
        return False
    try:
        os.kill(int((directory.path / ".lock").read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _show(told: Explanation) -> None:
    from nephila.scheduler.explain import utc

    robots, queued, host, row = told.robots, told.queued, told.host, told.row or {}
    print_pairs(
        [
            ("url", told.url),
            ("canonical", told.canonical if told.canonical != told.url else None),
            ("host key", told.host_key),
            ("url key", told.url_key),
            ("partition", told.partition),
            ("seen", "yes" if told.seen else "no"),
            ("scope", ("inside: " if told.scope.admitted else "outside: ") + told.scope.rule),
            ("robots", _robots_line(told)),
            (
                "robots age",
                f"fetched {utc(robots.fetched_at)}{', expired' if robots.expired else ''}" if robots else None,
            ),
            (
                "queued",
                queued and f"{queued.position:,} of {queued.of:,} of its host{', at the head' if queued.head else ''}",
            ),
            ("depth", queued.depth if queued else row.get("depth")),
            ("tries", queued.attempts if queued else None),
            ("host", host and f"delay {host.delay_s:g} s, back-off {host.backoff_s:g} s, {host.queued:,} queued"),
            ("host pause", f"until {utc(host.not_before)} ({host.wait_s:.1f} s)" if host and host.wait_s else None),
            ("row", f"{row['outcome']}{'(' + row['reason'] + ')' if row['reason'] else ''}" if row else None),
            ("title", row.get("title") or None),
        ]
    )
    typer.echo(plain(told.sentence, 2000))


def _robots_line(told: Explanation) -> str:
    robots = told.robots
    if told.robots_ignored:
        return "ignored by this crawl"
    if robots is None:
        return "not fetched"
    verdict = "allowed" if robots.allowed else "denied"
    if robots.line:
        return f"{verdict} by line {robots.line}: {robots.rule}"
    return f"{verdict} ({'no rule matches' if robots.policy == 'rules' else f'status {robots.status} {robots.reason}'})"
