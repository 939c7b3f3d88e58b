"""The operations on sites and their directories, over the file that `nephila sites` reads and writes.

Invariants: a request is one transaction of the file, so the API and the command give the same state; the document of a
site is its desired state, and `nephila sites run` makes the jobs follow. A caller limited to tenants sees and changes
the sites whose own `tenant`, and that of each directory, is one of theirs; the site `default` belongs to no tenant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from nephila.kernel.documents.job_document import JobDocument
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.storage.rows import iso
from nephila_harvest.sites import resolve
from nephila_harvest.sites.planner import DirectoryPlan, DirectoryProgress, plan_of
from nephila_harvest.sites.site_documents import DEFAULT, SiteDocument, Sites, distinct, from_json, merged
from nephila_harvest.sites.store import AppliedSite, SiteEdit, SiteStore, effects, open_store, without
from nephila_harvest.sites.verdicts import EFFECTS, ListState

from nephila_control import api, requests, site_types
from nephila_control.part import OperationPart

T = TypeVar("T")
DAY_S: Final = 86_400
Decision = Callable[[Sites], SiteEdit]
"""The change that a request makes to the present sites. Raises `UserError`."""


class SiteOperations(OperationPart):
    async def list_directories(self, request: requests.Empty) -> site_types.DirectoryList:
        now = self._backend.clock.now()
        rows: list[site_types.Directory] = await self._read(lambda store: directories(store, self._own, now), [])
        return site_types.DirectoryList(directories=rows)

    async def list_sites(self, request: requests.Empty) -> site_types.SiteList:
        sites = await self._read(SiteStore.sites, Sites({}))
        return site_types.SiteList(sites=[_site(site) for site in self._visible(sites).values()])

    async def get_site(self, request: site_types.SiteName) -> site_types.Site:
        sites = await self._read(SiteStore.sites, Sites({}))
        return _site(self._known(sites, request.name))

    async def apply_sites(self, request: site_types.ApplySites) -> site_types.SitesApplied:
        return site_types.SitesApplied(sites=await self._change(self._decision(request)))

    async def preview_sites(self, request: site_types.ApplySites) -> site_types.SitesApplied:
        self._backend.check_change()
        decide = await self._checked(self._decision(request))
        changes: list[AppliedSite] = await self._read(lambda store: _effects(store, decide), [])
        if not self._path.is_file():
            nothing = Sites({})
            changes = effects(nothing, decide(nothing), set())
        return site_types.SitesApplied(sites=self._answers(changes))

    def _decision(self, request: site_types.ApplySites) -> Decision:
        new = distinct(from_json(content, f"sites[{number}]") for number, content in enumerate(request.sites))
        names = {site.name for site in new}
        if both := sorted(names.intersection(request.delete)):
            raise UsageError(f"delete: the site {both[0]!r} is also in sites; name it in one of them")

        def decide(present: Sites) -> SiteEdit:
            for name, etag in request.etags.items():
                site = present.sites.get(name)
                _check_etag(name, site.etag if site is not None else "", etag)
            visible = self._visible(present)
            deleted = [self._known(present, name).name for name in dict.fromkeys(request.delete)]
            others = [name for name in visible if name not in {*names, *deleted}] if request.prune else []
            return SiteEdit(new, [*deleted, *others])

        return decide

    async def delete_site(self, request: site_types.DeleteSite) -> site_types.SiteChange:

        def decide(present: Sites) -> SiteEdit:
            site = self._known(present, request.name)
            _check_etag(site.name, site.etag, request.etag or site.etag)
            return SiteEdit([], [site.name])

        return (await self._change(decide))[0]

    async def apply_directory(self, request: site_types.ApplyDirectory) -> site_types.SiteChange:

        def decide(present: Sites) -> SiteEdit:
            site = self._known(present, request.site)
            _check_etag(site.name, site.etag, request.etag or site.etag)
            spec = dict(site.content["spec"])
            parts, name = spec.get("directories", []), request.directory.get("name")
            at = next((number for number, part in enumerate(parts) if part["name"] == name), len(parts))
            spec["directories"] = [*parts[:at], request.directory, *parts[at + 1 :]]
            return SiteEdit([from_json({**site.content, "spec": spec}, f"site {site.name}")], [])

        return (await self._change(decide))[0]

    async def delete_directory(self, request: site_types.DeleteDirectory) -> site_types.SiteChange:

        def decide(present: Sites) -> SiteEdit:
            site = self._known(present, request.site)
            _check_etag(site.name, site.etag, request.etag or site.etag)
            if all(directory.name != request.name for directory in site.directories):
                raise api.NotFound(f"site {site.name!r} has no directory {request.name!r}")
            return without(present, [f"{site.name}.{request.name}"])

        return (await self._change(decide))[0]

    # ---- parts

    async def _change(self, decide: Decision) -> list[site_types.SiteChange]:
        """Makes a change, and returns one answer for each site."""
        self._backend.check_change()
        if not self._path.is_file():
            decide(Sites({}))  # a request that is refused creates no file
        checked = await self._checked(decide)
        changes = await asyncio.to_thread(_with_store, self._path, lambda store: store.edit(checked))
        return self._answers(changes)

    async def _checked(self, decide: Decision) -> Decision:
        """Limits a change to the tenants of the caller. Raises `UserError` for a job that they may not have."""
        own = self._own
        if own is None:
            return decide
        present = await self._read(SiteStore.sites, Sites({}))
        for document in await asyncio.to_thread(_jobs, present, decide, own):
            self._backend.check_job(document)
        return lambda present: _within(present, decide, own)

    def _answers(self, changes: Iterable[AppliedSite]) -> list[site_types.SiteChange]:
        jobs = self._backend.jobs()
        return [change_answer(change, jobs) for change in changes]

    @property
    def _own(self) -> Collection[str] | None:
        """Tenants of a limited caller; None is no limit."""
        return self._backend.tenants if self._backend.own_jobs is not None else None

    @property
    def _path(self) -> Path:
        path = self._backend.sites_file
        if path is None:
            raise api.NotFound("this API has no sites; nephila sites list --sites FILE shows the verdicts on lists")
        return path

    def _visible(self, sites: Sites) -> dict[str, SiteDocument]:
        own = self._own
        return {name: site for name, site in sites.sites.items() if own is None or _is_own(sites, site, own)}

    def _known(self, sites: Sites, name: str) -> SiteDocument:
        site = self._visible(sites).get(name)
        if site is None:
            raise api.NotFound(f"there is no site {name!r}")
        return site

    async def _read(self, work: Callable[[SiteStore], T], without_file: T) -> T:
        path = self._path
        if not path.is_file():
            return without_file
        return await asyncio.to_thread(_with_store, path, work)


def directories(store: SiteStore, own: Collection[str] | None, now: float) -> list[site_types.Directory]:
    """Sorted by score, the highest first. `own` limits the result to these tenants."""
    sites, progress, runs, lists = store.sites(), store.progress(), store.last_runs(), store.lists()
    first_day = int(now // DAY_S) - site_types.DAYS + 1
    news_at, by_day = store.last_news(), store.news_by_day(first_day * DAY_S)
    rows = []
    for name, values in resolve.by_score(sites).items():
        if own is not None and not _is_own(sites, sites.directories[name][0], own):
            continue
        last = runs.get(name)
        rows.append(
            site_types.Directory(
                name=name,
                frequency=values["frequency"].value,
                score=values["score"].value,
                paused=values["paused"].value,
                **{text: values[text].value for text in resolve.TEXTS if text in values},
                last_run=iso(last.started_at) if last is not None else "",
                ended=last.ended_by if last is not None else "",
                why=last.why if last is not None else "",
                new_pages=last.new_pages if last is not None else 0,
                recorded=last.recorded if last is not None else 0,
                left_out=last.left_out if last is not None else 0,
                next_run=_next_run(plan_of(sites, name), progress.get(name)),
                news_at=iso(news_at.get(name, 0.0)),
                days=_days(by_day.get(name, {}), first_day),
                lists=[list_answer(entry) for entry in lists.get(name, ())],
            )
        )
    return rows


def _days(news: Mapping[int, int], first: int) -> list[int]:
    return [news.get(day, 0) for day in range(first, first + site_types.DAYS)]


def _effects(store: SiteStore, decide: Decision) -> list[AppliedSite]:
    present = store.sites()
    return effects(present, decide(present), {run.name for run in store.open_runs()})


def _next_run(plan: DirectoryPlan, progress: DirectoryProgress | None) -> str:
    if plan.paused:
        return "paused"
    return iso(plan.opens_at(progress.state.next_at)) if progress is not None else ""


def change_answer(change: AppliedSite, jobs: Collection[str] = ()) -> site_types.SiteChange:
    """`jobs` are the names of the jobs of the program."""
    return site_types.SiteChange(**change._asdict(), jobs=[name for name in change.removed if name in jobs])


def list_answer(state: ListState) -> site_types.ListState:
    return site_types.ListState(
        **{**state._asdict(), "since": iso(state.since)},
        fault=state.is_fault,
        words=EFFECTS[state.verdict].words,
        proposal=state.proposal,
    )


def list_line(state: site_types.ListState) -> str:
    if not state.fault:
        links = f", {state.links:,} links" if state.links else ""
        return f"{state.url}: {state.words}{links}"
    cause = f" ({state.reason}{f', status {state.status}' if state.status else ''})" if state.reason else ""
    to = f" to {state.target}" if state.target else ""
    return f"{state.url}: {state.words}{cause}{to}, since {state.since}: {state.proposal}"


def _site(site: SiteDocument) -> site_types.Site:
    return site_types.Site(name=site.name, etag=site.etag, document=site.content)


def _with_store(path: Path, work: Callable[[SiteStore], T]) -> T:
    with open_store(path, create=True) as store:
        return work(store)


def _check_etag(name: str, present: str, etag: str) -> None:
    """Raise `UserError` for a site that was changed since its etag was read."""
    if present == etag:
        return
    if not etag:
        raise UserError(f"site {name!r} exists already, with the etag {present}; read it and send this etag")
    if not present:
        raise UserError(f"site {name!r} was deleted since it was read with the etag {etag}")
    raise UserError(f"site {name!r} was changed since it was read: its etag is {present}, not {etag}; read it again")


# ---- callers limited to tenants


def _is_own(sites: Sites, site: SiteDocument, own: Collection[str]) -> bool:
    """Checks the tenant of the site and that of each directory."""
    if site.name == DEFAULT:
        return False
    tenants = (sites.value(site, part, "tenant") for part in (None, *site.directories))
    return all(leaf is not None and leaf[0].value in own for leaf in tenants)


def _within(present: Sites, decide: Decision, own: Collection[str]) -> SiteEdit:
    """Limits a change to the tenants of the caller. Raises `UserError` for a foreign site, in a line that does not name
    it."""
    edit = decide(present)
    for site in edit.sites:
        before = present.sites.get(site.name)
        if site.name == DEFAULT or (before is not None and not _is_own(present, before, own)):
            raise UserError(f"{site.location}: the name {site.name!r} is taken; choose another one")
    visible = {name: site for name, site in present.sites.items() if _is_own(present, site, own)}
    inherited = {site.inherits for site in visible.values()}
    for site in edit.sites:
        if site.inherits and site.inherits not in {*visible, *inherited, *(other.name for other in edit.sites)}:
            raise UsageError(f"{site.location}: spec.inherits: there is no site {site.inherits!r}")
    for site in list(visible.values()):
        visible |= {above.name: above for above in present.chain(site)}
    if DEFAULT in present.sites:
        visible[DEFAULT] = present.sites[DEFAULT]
    after = merged(visible, edit.sites, edit.deleted)
    for site in edit.sites:
        if not _is_own(after, site, own):
            tenants = " or ".join(sorted(own))
            raise UsageError(f"{site.location}: the tenant of the site and of each directory has to be {tenants}")
    try:
        everything = merged(present.sites, edit.sites, edit.deleted)
    except UsageError:
        names = ", ".join(site.name for site in edit.sites)
        raise UserError(f"{names}: another site has the URL prefix of one of the directories") from None
    changed = {*edit.deleted, *(site.name for site in edit.sites)}
    for site in everything.sites.values():
        heir = any(above.name in changed for above in everything.chain(site))
        if heir and site.name not in visible and site.name not in changed:
            raise UserError("a site that is not yours inherits from this one; ask the operator of the system")
    return edit


def _jobs(present: Sites, decide: Decision, own: Collection[str]) -> Iterable[JobDocument]:
    """Raises `UserError`."""
    edit = _within(present, decide, own)
    after = merged(present.sites, edit.sites, edit.deleted)
    return [resolve.job(after, f"{site.name}.{part.name}", 0.0) for site in edit.sites for part in site.directories]
