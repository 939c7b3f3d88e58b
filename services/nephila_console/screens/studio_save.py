"""A rule is used: on the stored pages now, in jobs from now on, as a file with its tests, or in git.

What cannot work in this program is offered greyed, with the reason: a button that answers with an error loses a person
at the last step.
"""

from __future__ import annotations

import io
import zipfile
from typing import Final

from nephila.kernel.runtime.errors import UserError
from nephila_control import job_types, requests, rule_types, studio_types
from nephila_rules.studio.draft import Draft
from starlette.responses import Response

from nephila_console.screens.studio_state import draft_of
from nephila_console.view import View, go
from nephila_console.words import host, path

OFFERED: Final = 30
"""Jobs that a rule is offered to; others name it in their documents."""
_CHOSEN: Final = "job:"
"""Start of the name of a job's field in the form."""


async def save(view: View) -> Response:
    """GET /console/studio/STATE/save"""
    return await _save(view)


async def _save(view: View, problem: str = "", extraction: studio_types.StoredExtraction | None = None) -> Response:
    draft = draft_of(view.name)
    rule = await _rule(view)
    answer = await view.control.get_capabilities(requests.Empty())
    can = {entry.name: entry for entry in answer.capabilities}
    return view.render(
        "studio_save.html",
        409 if problem else 200,
        draft=draft,
        state=view.name,
        rule=rule,
        problem=problem,
        can=can,
        extraction=extraction,
        jobs=await _jobs(view, draft, rule) if can["rules"].works and can["change"].works else [],
        commit=view.field("commit")[:40],
    )


async def _jobs(view: View, draft: Draft, rule: studio_types.StudioRule) -> list[tuple[str, bool, bool]]:
    """Returns each offered job, whether it uses the rule, and whether it begins at the host of the page."""
    name = rule.document["metadata"]["name"]
    offered = []
    for job in (await view.control.list_jobs(job_types.ListJobs())).jobs[:OFFERED]:
        spec = (await view.control.get_job(job_types.JobName(name=job.name))).document["spec"]
        seeds = (seed if isinstance(seed, str) else seed.get("url", "") for seed in spec.get("seeds") or ())
        same_host = any(host(seed) == host(draft.url) for seed in seeds)
        offered.append((job.name, name in (spec.get("rules") or ()), same_host))
    return sorted(offered, key=lambda entry: (not entry[2], entry[0]))


async def _rule(view: View) -> studio_types.StudioRule:
    return await view.control.studio_rule(studio_types.OfDraft(draft=studio_types.document_of(draft_of(view.name))))


async def extract(view: View) -> Response:
    """POST /console/studio/STATE/extract: the stored pages are read by the rule now."""
    request = studio_types.ExtractStored(draft=studio_types.document_of(draft_of(view.name)))
    try:
        extraction = await view.control.extract_stored(request)
    except UserError as error:
        return await _save(view, str(error))
    return await _save(view, extraction=extraction)


async def apply(view: View) -> Response:
    """POST /console/studio/STATE/save: pages of the chosen jobs are read by the rule from now on."""
    rule = await _rule(view)
    name = rule.document["metadata"]["name"]
    try:
        await view.control.apply_rules(rule_types.ApplyRules(rules=[rule.document]))
        for field in view.form:
            if field.startswith(_CHOSEN):
                await _use(view, field.removeprefix(_CHOSEN), name)
    except UserError as error:
        return await _save(view, str(error))
    return go(path("rules", name=name, notice="changed"))


async def _use(view: View, job: str, rule: str) -> None:
    """Names a rule in the document of a job that does not name it yet."""
    document = (await view.control.get_job(job_types.JobName(name=job))).document
    rules = document["spec"].get("rules") or []
    if rule not in rules:
        document["spec"]["rules"] = [*rules, rule]
        await view.control.apply_job(job_types.ApplyJob(job=document))


async def commit(view: View) -> Response:
    """POST /console/studio/STATE/commit"""
    request = studio_types.CommitRule(
        draft=studio_types.document_of(draft_of(view.name)), message=view.form.get("message", "")[:2000]
    )
    try:
        made = await view.control.studio_commit(request)
    except UserError as error:
        return await _save(view, str(error))
    return go(path("studio", view.name, "save", commit=made.commit[:12] or "same"))


async def rule_file(view: View) -> Response:
    """GET /console/studio/STATE/rule.yaml"""
    rule = await _rule(view)
    return _download(rule.text.encode(), "application/yaml", "rule.yaml")


async def all_files(view: View) -> Response:
    """GET /console/studio/STATE/rule.zip: the folder that `nephila rules test` reads."""
    rule = await _rule(view)
    name = "".join(sign if sign.isalnum() or sign in "-_" else "-" for sign in rule.document["metadata"]["name"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for entry in rule.files:
            file.writestr(zipfile.ZipInfo(f"{name}/{entry.name}"), entry.text, zipfile.ZIP_DEFLATED)
    return _download(packed.getvalue(), "application/zip", f"{name}.zip")


def _download(data: bytes, kind: str, name: str) -> Response:
    return Response(data, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})
