"""The screen of audits answers how precise the result is. A person labels a sample by one key per verdict, and the
interval narrows."""

from __future__ import annotations

import msgspec
from nephila.kernel.runtime.errors import NotReadyError, UserError
from nephila_control import audit_types, requests
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.view import View, go
from nephila_console.words import path

BY = ("directory", "rule", "job")


async def samples(view: View) -> Response:
    """GET /console/audit"""
    return await _samples(view, {"size": "100", "kind": "pages", "by": "directory", "name": ""}, "", "")


async def _samples(view: View, values: dict[str, str], field: str, problem: str) -> Response:
    answer = await view.control.list_samples(requests.Empty())
    return view.render(
        "audit.html",
        400 if problem else 200,
        samples=answer.samples,
        values=values,
        by=BY,
        field=field,
        problem=problem,
    )


async def draw(view: View) -> Response:
    """POST /console/audit: draw a sample and begin with its first row."""
    values = {name: view.form.get(name, "").strip() for name in ("size", "kind", "by", "name")}
    size = int(values["size"]) if values["size"].isascii() and values["size"].isdecimal() else 0
    if not 1 <= size <= 100_000:
        return await _samples(view, values, "size", _("a whole number from 1 to 100,000"))
    content = {"sample": values["name"], "size": size, "kind": values["kind"] or "pages", "by": values["by"] or BY[0]}
    try:
        request = msgspec.convert(content, audit_types.DrawSample)
    except msgspec.ValidationError as error:
        return await _samples(view, values, "name" if "sample" in str(error) else "", str(error))
    try:
        drawn = await view.control.draw_sample(request)
    except NotReadyError:
        raise
    except UserError as error:
        return await _samples(view, values, "name" if "exists" in str(error) else "", str(error))
    return go(path("audit", drawn.name))


async def sample(view: View) -> Response:
    """GET /console/audit/NAME?number=N: one row to judge; 0: the next one without a label."""
    request = audit_types.GetSample(sample=view.name, number=min(view.number("number"), 100_000))
    detail = await view.control.get_sample(request)
    return view.render(
        "audit_sample.html",
        detail=detail,
        row=detail.row,
        left=detail.sample.drawn - detail.sample.labelled,
    )


async def label(view: View) -> Response:
    """POST /console/audit/NAME: store the verdict, then show the next row without one."""
    content = {
        "sample": view.name,
        "number": int(number) if (number := view.form.get("number", "")).isdecimal() and len(number) < 7 else 0,
        "version": view.form.get("version", ""),
        "verdict": view.form.get("verdict", ""),
        "reason": view.form.get("reason", "")[:1000],
        "person": view.session.caller.name[:200] if view.session is not None else "",
    }
    try:
        request = msgspec.convert(content, audit_types.LabelRow)
    except msgspec.ValidationError as error:
        raise UserError(str(error)) from None
    answer = await view.control.label_row(request)
    return go(path("audit", view.name, number=answer.next))
