"""What may be asked of a program that runs: one JSON object in, one out. docs/jobs.md lists it.

Invariants: a request that cannot be understood or done is answered with one error line and changes nothing; the answer
to a change comes when the change is in the frontier's log, and the log is synced. The jobs there are the only truth:
nothing is kept here but what a connection has under way. Sockets are not known here. A single crawl (`once`) answers
all questions and opens quarantines; its job is what its command line says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Union

import msgspec

from nephila import __version__
from nephila.control import job_view
from nephila.control.job_view import JobFacts
from nephila.control.throughput import Rates
from nephila.kernel.bus.contract import Receipt
from nephila.kernel.documents import job_document
from nephila.kernel.fragment_routes import parse_routed
from nephila.kernel.messages import CrawlJob, ScopeMode, Seed
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.kernel.topics import JOBS, SEEDS
from nephila.native import UrlError
from nephila.parser.page import trafilatura_text
from nephila.programs.assembly import Assembly
from nephila.rulekit.watch import RuleWatcher
from nephila.scheduler.explain.explain import Explanation
from nephila.scheduler.explain.facts import Home
from nephila.storage.source import Source

MAX_JOBS = 10_000
SEED_BATCH = 1000
"""Seeds taken between two turns of the loop, so that a long list does not hold up the fetches."""
MAX_REFUSED = 100
"""Refused seeds told in one answer; beyond that their number."""


Url = Annotated[str, msgspec.Meta(max_length=100_000)]
"""The longest line of a file of seeds, in the letters of any language, as percent-encoded."""


class _Request(msgspec.Struct, tag_field="op", forbid_unknown_fields=True, kw_only=True):
    """One line from a client."""


class Apply(_Request, tag="jobs.apply"):
    """Make a job what the document says. `more`: seeds of files follow with `jobs.seeds`, then `jobs.seeded`."""

    job: Any
    more: bool = False


class Seeds(_Request, tag="jobs.seeds"):
    """More seeds of a job."""

    name: str
    urls: Annotated[list[Url], msgspec.Meta(max_length=SEED_BATCH)]


class Seeded(_Request, tag="jobs.seeded"):
    """The seeds of this connection's `apply` are all in."""

    name: str


class List(_Request, tag="jobs.list"):
    """How all jobs stand."""


class Pause(_Request, tag="jobs.pause"):
    """Hand out nothing more of a job."""

    name: str


class Resume(_Request, tag="jobs.resume"):
    """Go on with a job."""

    name: str


class Delete(_Request, tag="jobs.delete"):
    """Forget a job and its URLs; rows stay."""

    name: str


class Quarantines(_Request, tag="traps.list"):
    """Parts of hosts that a job no longer fetches from."""

    name: str


class Release(_Request, tag="traps.release"):
    """Take one of them out of quarantine."""

    name: str
    host: str
    place: str


class Explain(_Request, tag="explain"):
    """What became of a URL, in one job or in the one that knows it best."""

    url: Url
    job: str = ""


class Status(_Request, tag="status"):
    """How the program stands."""


Request = Union[Apply, Seeds, Seeded, List, Pause, Resume, Delete, Quarantines, Release, Explain, Status]  # noqa: UP007
Change = Apply | Seeds | Seeded | Pause | Resume | Delete
Session = dict[str, CrawlJob]
"""What a connection has under way: jobs that wait for their seeds, as they are to be then."""


class Control:
    """Answers requests about the jobs of one assembly."""

    def __init__(
        self,
        assembly: Assembly,
        directory: Path,
        formats: Iterable[str],
        rows: Source | None = None,
        *,
        once: bool = False,
    ) -> None:
        self.rates = Rates()
        self.on_change: Callable[[], None] | None = None
        """Called when the set of jobs, or one of them, has been changed."""
        self.rules: RuleWatcher | None = None
        """The rules that this program has."""
        self._bus = assembly.bus
        self._clock = assembly.clock
        self._scheduler = assembly.scheduler
        self._home = Home(str(directory), many=not once, running=True)
        self._formats = tuple(formats)
        self._source = rows or directory
        self._started = self._clock.monotonic()
        self._decode = msgspec.json.Decoder(Request).decode

    async def answer(self, line: bytes, session: Session) -> bytes:
        """The answer to one line, with its line end. Never raises but for what nobody expected."""
        try:
            reply = {"ok": True, **await self._do(self._decode(line), session)}
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            reply = _refusal(f"not a request ({' '.join(str(error).split())[:300]})", usage=True)
        except UserError as error:
            reply = _refusal(str(error), usage=isinstance(error, UsageError))
        return msgspec.json.encode(reply) + b"\n"

    def leave(self, session: Session) -> None:
        """A connection has ended: what it left waiting for seeds goes on with those that came."""
        for name in list(session):
            self._seeded(name, session)

    def note(self) -> None:
        """Something may have ended: keep the rates."""
        self.rates.note(self._clock.monotonic(), self._totals)

    # ---- requests

    async def _do(self, request: Request, session: Session) -> dict[str, Any]:
        if isinstance(request, Change) and not self._home.many:
            raise UserError(
                f"one crawl runs here, as its command says; end it and change it with: {self._home.goes_on} "
                "(jobs that come and go: nephila up)"
            )
        match request:
            case Apply(job=content, more=more):
                return await self._apply(content, more, session)
            case Seeds(name=name, urls=urls):
                self._known(name)
                return await self._seed(name, [Seed(name, url, "file") for url in urls])
            case Seeded(name=name):
                await _taken(self._seeded(name, session))
                await self._scheduler.durable()
                return {"name": name}
            case List():
                return {"jobs": self.facts()}
            case Pause(name=name):
                return await self._set_paused(name, True)
            case Resume(name=name):
                return await self._set_paused(name, False)
            case Delete(name=name):
                # Paused as well, so that nothing is handed out while it is taken apart.
                return await self._change(_copy(self._known(name), deleted=True, paused=True), "deleted")
            case Quarantines(name=name):
                self._known(name)
                return {"name": name, "quarantines": job_view.quarantines(self._scheduler, name)}
            case Release(name=name, host=host, place=place):
                self._known(name)
                if not job_view.release(self._scheduler, name, host, place):
                    raise UserError(f"{host}{place} is not in quarantine; see nephila jobs quarantines {name}")
                await self._scheduler.durable()
                return {"name": name, "verdict": "released"}
            case Explain(url=url, job=job):
                return await self._explain(url, job)
            case Status():
                return self._status()

    async def _apply(self, content: Any, more: bool, session: Session) -> dict[str, Any]:
        document = job_document.from_json(content)
        wanted = document.job
        self._check_sinks(document)
        self._check_text(document)
        self._check_rules(document)
        known = job_view.spec(self._scheduler, wanted.uid)
        exists = known is not None and not known.deleted
        if not exists and len(job_view.specs(self._scheduler)) >= MAX_JOBS:
            raise UserError(f"there are {MAX_JOBS:,} jobs already; delete one first")
        wanted.generation = known.generation if known is not None else 0
        seeds = [Seed(wanted.uid, url, "job") for url in wanted.seeds]
        seeds += [Seed(wanted.uid, place, kind) for kind, place in document.sources if kind != "file"]
        verdict, receipts = "unchanged", []
        if wanted != known:
            verdict = "changed" if exists else "created"
            receipts = self._put(known, wanted, session, in_pieces=more or len(seeds) > SEED_BATCH)
        answer = await self._seed(wanted.uid, seeds, receipts)
        if not more:
            await _taken(self._seeded(wanted.uid, session))
        await self._scheduler.durable()
        return {**answer, "verdict": verdict, "generation": self._known(wanted.uid).generation}

    def _put(self, known: CrawlJob | None, wanted: CrawlJob, session: Session, *, in_pieces: bool) -> list[Receipt]:
        """Publish a new desired state. In another mode the scope is anchored anew, by the seeds: where these come in
        pieces the job pauses until they are in, else what is queued would look foreign and be thrown out."""
        wanted.generation += 1
        session.pop(wanted.uid, None)
        if in_pieces and known is not None and _mode(known) != _mode(wanted):
            session[wanted.uid] = wanted
            wanted = _copy(wanted, paused=True)
        receipts = [self._bus.publish(JOBS, 0, wanted)]
        self._changed()
        return receipts

    def _seeded(self, name: str, session: Session) -> list[Receipt]:
        wanted = session.pop(name, None)
        known = job_view.spec(self._scheduler, name)
        # Whoever has changed the job meanwhile has the word.
        if wanted is None or known is None or known.deleted or known.generation != wanted.generation:
            return []
        wanted.generation += 1
        receipt = self._bus.publish(JOBS, 0, wanted)
        self._changed()
        return [receipt]

    async def _seed(self, name: str, seeds: list[Seed], receipts: Iterable[Receipt] = ()) -> dict[str, Any]:
        """Publish seeds; those known are not queued again. Returns when all of it is in the log."""
        pending, refused = [*receipts], []
        for start in range(0, len(seeds), SEED_BATCH):
            job_view.take_refused(self._scheduler)
            pending += [self._bus.publish(SEEDS, 0, seed) for seed in seeds[start : start + SEED_BATCH]]
            refused += job_view.take_refused(self._scheduler)
            await _taken(pending)
            pending.clear()
        await _taken(pending)
        return {"name": name, "refused": refused[:MAX_REFUSED], "refused_count": len(refused)}

    async def _set_paused(self, name: str, paused: bool) -> dict[str, Any]:
        known = self._known(name)
        if known.paused == paused:
            return {"name": name, "verdict": "unchanged", "generation": known.generation}
        return await self._change(_copy(known, paused=paused), "paused" if paused else "resumed")

    async def _change(self, wanted: CrawlJob, verdict: str) -> dict[str, Any]:
        wanted.generation += 1
        await _taken([self._bus.publish(JOBS, 0, wanted)])
        await self._scheduler.durable()
        self._changed()
        return {"name": wanted.uid, "verdict": verdict, "generation": wanted.generation}

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def _known(self, name: str) -> CrawlJob:
        if not name:
            raise UsageError("a job has to be named")
        jobs = job_view.specs(self._scheduler)
        return jobs[job_view.choose(jobs, name)[0]]

    def _check_sinks(self, document: job_document.JobDocument) -> None:
        for sink in document.sinks:
            if sink not in self._formats and not (sink == "sqlite" and "postgres" in self._formats):
                wanted = ",".join((*self._formats, sink))
                raise UserError(
                    f"{document.place}: this program does not write {sink} (spec.sinks); "
                    f"start it with nephila up --format {wanted}"
                )

    def _check_text(self, document: job_document.JobDocument) -> None:
        if trafilatura_text.lacks_library(document.job):
            raise UserError(f"{document.place}: {trafilatura_text.MISSING}")

    def _check_rules(self, document: job_document.JobDocument) -> None:
        if self.rules is not None:
            self.rules.check()
        known = self.rules.names if self.rules is not None else ()
        for name in document.job.rules:
            if name not in known:
                where = f"in {self.rules.place}" if self.rules else "here; start it with nephila up --rules DIR"
                raise UserError(f"{document.place}: this program has no rule {name!r} (spec.rules) {where}")

    # ---- questions

    def facts(self) -> list[JobFacts]:
        """How all jobs stand, by name."""
        now = self._clock.monotonic()
        totals = self._totals()
        uids = sorted(totals)
        return [job_view.facts(self._scheduler, uid, self.rates.of(uid, now, totals[uid])) for uid in uids]

    def _totals(self) -> dict[str, int]:
        return {uid: job_view.ended_total(self._scheduler, uid) for uid in job_view.specs(self._scheduler)}

    async def _explain(self, url: str, name: str) -> dict[str, Any]:
        try:
            href = parse_routed(url).href
        except UrlError as error:
            raise UsageError(f"{url[:100]!a} is not a URL that can be crawled: {error}") from None
        rows, disk = self._source, asyncio.get_running_loop().run_in_executor
        uids = await disk(None, job_view.named, rows, job_view.specs(self._scheduler), name, href)
        if not uids:
            raise UserError("there is no job yet; see nephila jobs apply")
        told = await self._best(uids, href)
        if told.row is None and (told.kind == "seen" or (told.queued is not None and not told.queued.position)):
            # It may have ended, and got its row, between the look into the database and that into the frontier.
            told = await self._best([told.job], href)
        fetches = await disk(None, job_view.fetches, rows, told.job, href)
        told = self._told(told.job, href, told.row, fetches)
        return {"explanation": await disk(None, job_view.left_out, rows, told)}

    async def _best(self, uids: list[str], href: str) -> Explanation:
        uids = job_view.candidates(self._scheduler.frontier.jobs, uids, href)
        rows = await asyncio.get_running_loop().run_in_executor(None, self._rows, uids, href)
        return job_view.best([self._told(uid, href, rows[uid]) for uid in uids])

    def _told(
        self, uid: str, href: str, row: Mapping[str, Any] | None, fetches: Sequence[Mapping[str, Any]] = ()
    ) -> Explanation:
        if job_view.spec(self._scheduler, uid) is None:
            raise UserError(f"job {uid!r} was deleted just now")
        now = self._clock.monotonic()
        return job_view.explain(self._scheduler, uid, href, now, self._home, row, fetches)

    def _rows(self, uids: list[str], href: str) -> dict[str, dict[str, Any] | None]:
        return {uid: job_view.row(self._source, uid, href) for uid in uids}

    def _status(self) -> dict[str, Any]:
        facts = self.facts()
        return {
            "version": __version__,
            "process": os.getpid(),
            "uptime_s": round(self._clock.monotonic() - self._started, 3),
            "directory": self._home.out,
            "formats": self._formats,
            "jobs": len(facts),
            "queued": sum(job.queued for job in facts),
            "in_flight": job_view.in_flight(self._scheduler),
            "hosts_waiting": self._scheduler.hosts_waiting(),
            "rate": round(sum(job.rate for job in facts), 2),
            "errors": dict(self._scheduler.errors.most_common(20)),
        }


async def _taken(receipts: Iterable[Receipt]) -> None:
    for receipt in receipts:
        if not receipt.done:
            await receipt


def _copy(job: CrawlJob, **changed: Any) -> CrawlJob:
    """The message is shared with the services and never changed in place."""
    return msgspec.structs.replace(job, **changed)


def _mode(job: CrawlJob) -> ScopeMode:
    return job.scope.mode if job.scope else ScopeMode.UNSPECIFIED


def _refusal(text: str, *, usage: bool) -> dict[str, Any]:
    return {"ok": False, "error": text, "usage": usage}
