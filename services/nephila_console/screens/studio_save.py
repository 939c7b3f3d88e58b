"""A rule leaves the studio as a file, with its tests, or into the running system."""

from __future__ import annotations

import io
import zipfile

from nephila.kernel.runtime.errors import UserError
from nephila_control import rule_types, studio_types
from starlette.responses import Response

from nephila_console.screens.studio_state import draft_of
from nephila_console.view import View, go
from nephila_console.words import path


async def save(view: View) -> Response:
    """GET /console/studio/STATE/save"""
    return await _save(view, "")


async def _save(view: View, problem: str) -> Response:
    draft = draft_of(view.name)
    rule = await _rule(view)
    return view.render(
        "studio_save.html",
        409 if problem else 200,
        draft=draft,
        state=view.name,
        rule=rule,
        problem=problem,
        commit=view.field("commit")[:40],
    )


async def _rule(view: View) -> studio_types.StudioRule:
    return await view.control.studio_rule(studio_types.OfDraft(draft=studio_types.document_of(draft_of(view.name))))


async def apply(view: View) -> Response:
    """POST /console/studio/STATE/save: pages are read by the rule from now on."""
    rule = await _rule(view)
    try:
        await view.control.apply_rules(rule_types.ApplyRules(rules=[rule.document]))
    except UserError as error:
        return await _save(view, str(error))
    return go(path("rules", name=rule.document["metadata"]["name"], notice="changed"))


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
