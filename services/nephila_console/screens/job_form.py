"""The forms that create a job and change one: three fields, or its whole document.

A document is long and a mistake in it is dear, so the difference to the present job is shown before it is saved, and
the values that are changed most often have fields of their own beside the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml
from nephila.kernel.documents import job_document
from nephila.kernel.documents.field_types import API_VERSION
from nephila.kernel.runtime.errors import NotReadyError, UsageError, UserError
from nephila_control import job_types
from starlette.responses import Response

from nephila_console.messages import translate as _
from nephila_console.screens.attention import optional
from nephila_console.screens.job_fields import difference, fields_of, with_fields
from nephila_console.view import View, go
from nephila_console.words import path

FILE = "job"
"""Name of the form in error lines, before line and column."""


class Problem(NamedTuple):
    field: str
    line: int
    """Line of the YAML text; 0 if the line is unknown."""
    text: str


async def new(view: View) -> Response:
    """GET /console/jobs/new: three fields, or a document in YAML with form=yaml."""
    return _form(view, {"text": _EXAMPLE}, [], yaml=view.field("form") == "yaml")


async def create(view: View) -> Response:
    """POST /console/jobs"""
    if "text" in view.form:
        return await _apply_text(view, view.form["text"])
    urls, name, pages = (view.form.get(field, "").strip() for field in ("url", "name", "pages"))
    seeds = [url if "://" in url else f"https://{url}" for url in urls.split()]
    problems = []
    if not seeds:
        problems.append(Problem("url", 0, _("a job begins at a URL")))
    if pages and not (pages.isascii() and pages.isdecimal()):
        problems.append(Problem("pages", 0, _("a whole number, or nothing")))
    if problems:
        return _form(view, view.form, problems, yaml=False)
    try:
        host = urlsplit(seeds[0]).hostname or ""
    except ValueError:
        host = ""
    named = name or "".join(c if c.isalnum() and c.isascii() else "-" for c in host).strip("-")[:60]
    spec: dict[str, Any] = {"seeds": seeds}
    if pages and int(pages):
        spec["scope"] = {"maxPages": int(pages)}
    try:
        document = job_document.from_json(job_document.crawl_job(named, spec), FILE)
        return await _apply(view, document, "")
    except NotReadyError:
        raise
    except UserError as error:
        return _form(view, view.form, [_problem(fault) for fault in _all(error)], yaml=False)


async def edit(view: View) -> Response:
    """GET /console/jobs/NAME/edit"""
    detail = await view.control.get_job(job_types.JobName(name=view.name))
    values = {"text": text_of(detail.document), "generation": str(detail.status.generation)}
    return _form(view, values, [], yaml=True, name=view.name)


async def change(view: View) -> Response:
    """POST /console/jobs/NAME/edit: refused when the job was changed since the form was loaded. With the step
    `difference` nothing is changed, and the form comes back with what would change."""
    number = view.form.get("generation", "")
    generation = int(number) if number.isascii() and number.isdecimal() else 0
    text = view.form.get("text", "").replace("\r\n", "\n")
    try:
        text = with_fields(text, view.form)
    except UsageError as error:
        return _form(
            view, {"text": text, "generation": number}, [Problem("", 0, str(error))], yaml=True, name=view.name
        )
    if view.form.get("step") == "difference":
        return await _difference(view, text, generation)
    return await _apply_text(view, text, view.name, generation)


async def _difference(view: View, text: str, generation: int) -> Response:
    problems: list[Problem] = []
    try:
        _document(text, view.name)
    except UserError as error:
        problems = [_problem(fault) for fault in _all(error)]
    detail = await view.control.get_job(job_types.JobName(name=view.name))
    if detail.status.generation != generation:
        problems.append(Problem("", 0, _("the job was changed by someone else meanwhile; saving replaces that change")))
    values = {"text": text, "generation": str(detail.status.generation)}
    lines = difference(text_of(detail.document), text)
    return _form(view, values, problems, yaml=True, name=view.name, lines=lines)


async def _apply_text(view: View, text: str, name: str = "", generation: int = 0) -> Response:
    values = {"text": text, "generation": str(generation)}
    try:
        document = _document(text.replace("\r\n", "\n"), name)
        if name:
            status = (await view.control.get_job(job_types.JobName(name=name))).status
            if status.generation != generation:
                values["generation"] = str(status.generation)
                raise UserError(
                    _("the job was changed by someone else while this form was open; nothing is changed yet. "
                      "Compare your text with the job, then save again")
                )  # fmt: skip
        return await _apply(view, document, name)
    except NotReadyError as error:
        return _form(view, values, [Problem("", 0, str(error))], yaml=True, name=name, status=503)
    except UserError as error:
        return _form(view, values, [_problem(fault) for fault in _all(error)], yaml=True, name=name)


def _document(text: str, name: str) -> job_document.JobDocument:
    """Raises `UserError` for a text that is not the document of this job; without a name, of any job."""
    documents = job_document.load(text.encode("utf-8", "replace"), FILE)
    if len(documents) != 1:
        raise UsageError(_("the form takes one job; several are applied with nephila jobs apply"))
    if name and documents[0].name != name:
        raise UsageError(_("the name of a job cannot be changed; create another job"))
    if documents[0].files:
        raise UsageError(_("files of seeds are read by nephila jobs apply, not by the console"))
    return documents[0]


async def _apply(view: View, document: job_document.JobDocument, name: str) -> Response:
    if not name:
        present = await optional(view.control.get_job(job_types.JobName(name=document.name)))
        if present is not None:
            raise UserError(
                _("there is a job %(name)s already; edit it, or choose another name") % {"name": document.name}
            )
    answer = await view.control.apply_job(job_types.ApplyJob(job=document.content))
    return go(path("jobs", answer.name, notice=answer.verdict))


def _all(error: UserError) -> list[UserError]:
    return [error, *(error.others if isinstance(error, UsageError) else ())]


def _problem(error: UserError) -> Problem:
    """An error line begins with job:LINE:COLUMN: KEY: for a fault in a document."""
    location, _colon, rest = str(error).partition(": ")
    parts = location.split(":")
    line = int(parts[1]) if len(parts) == 3 and parts[0] == FILE and parts[1].isdecimal() else 0
    text = rest if line or location == FILE else str(error)
    key = text.partition(":")[0]
    field = "name" if key.startswith("metadata.name") else "url" if key.startswith("spec.seeds") else ""
    return Problem(field or ("pages" if "maxPages" in key else ""), line, text)


def _form(
    view: View,
    values: Mapping[str, str],
    problems: list[Problem],
    *,
    yaml: bool,
    name: str = "",
    status: int = 0,
    lines: Sequence[str] | None = None,
) -> Response:
    """`lines` are those of the difference to the present document; None where none was asked for."""
    return view.render(
        "job_form.html",
        status or (400 if problems else 200),
        values=values,
        problems=problems,
        yaml=yaml,
        name=name,
        lines=lines,
        fields=fields_of(values.get("text", "")) if name else [],
    )


def text_of(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=100)


_EXAMPLE = f"""apiVersion: {API_VERSION}
kind: CrawlJob
metadata:
  name: example
spec:
  seeds:
    - https://example.com/
  scope:
    maxPages: 1000
"""
