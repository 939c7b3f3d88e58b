"""The rule studio: a page in a frame, what a person points at, and the rule that comes of it.

The frame is the page of a stranger. It has no script, no origin and no address but ours (`nephila_rules.studio`), and
its Content-Security-Policy allows nothing but its own style sheet. A click in it is a link that replaces the whole
page by `…/pick/N`. Browsers send no cookie with a link out of such a frame; `picked` therefore answers anyone who has
the frame's mark with a page that leads on from here, and then the cookie comes along.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Final

import msgspec
from markupsafe import Markup, escape
from nephila.kernel.documents.browser_schema import Step as BrowserStep
from nephila.kernel.runtime.errors import UserError
from nephila_control import job_types, studio_types
from nephila_control.api import NotFound
from nephila_rules.studio.draft import Draft, DraftField, Source
from starlette.responses import HTMLResponse, Response

from nephila_console.gate import HEADERS, Refused
from nephila_console.messages import language
from nephila_console.messages import translate as _
from nephila_console.screens.studio_state import ADDED, changed, draft_of, state_of
from nephila_console.view import View, go
from nephila_console.words import path

_POLICY: Final = "content-security-policy"
STYLE: Final = """
:root{color-scheme:light dark;--m0:#2f6fb3;--m1:#2f7d4f;--m2:#b7791f;--m3:#8a4fa8;--m4:#0f7f86;--m5:#a8456b}
body{font:15px/1.5 system-ui,sans-serif;margin:1rem;overflow-wrap:anywhere}
a{color:inherit;text-decoration:none;cursor:pointer}
a:hover,a:focus{background:#ffe89a;color:#111;outline:2px solid #c79a00}
h1{font-size:1.5rem}h2{font-size:1.25rem}h3{font-size:1.1rem}
table{border-collapse:collapse}td,th{padding:.15rem .5rem;text-align:left;vertical-align:top}
.l{border-bottom:1px solid #8888}
.i{display:inline-block;border:1px dashed #888;padding:.6rem;margin:.2rem;font-size:.85em}
.m{outline:2px solid;outline-offset:2px;border-radius:2px}
.m0{outline-color:var(--m0)}.m1{outline-color:var(--m1)}.m2{outline-color:var(--m2)}
.m3{outline-color:var(--m3)}.m4{outline-color:var(--m4)}.m5{outline-color:var(--m5)}
.yes{border-bottom:3px solid #2f7d4f}.no{border-bottom:3px solid #c2413b;opacity:.65}
"""
_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
FRAME_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'self'; sandbox allow-top-navigation-by-user-activation"
)
TYPES: Final = ("text", "price", "number", "integer", "date", "url", "bool", "json")
_KINDS: Final = {"page": "only this page", "pages": "pages like this", "folder": "this folder", "site": "whole site"}
_STEPS: Final = ("wider", "items", "page", "learn")


async def start(view: View) -> Response:
    """GET /console/studio?url=…"""
    if url := view.field("url"):
        return await _opened(view, url, "stored")
    search = view.field("q").strip()[:500]
    stored = await view.control.list_studio_pages(studio_types.ListStudioPages(search=search))
    return view.render("studio_start.html", stored=stored, search=search, problem="", url="")


async def fetch(view: View) -> Response:
    """POST /console/studio: a page from the web."""
    url = view.form.get("url", "").strip()
    try:
        return await _opened(view, url, "rendered" if view.form.get("rendered") else "web")
    except UserError as error:
        stored = await view.control.list_studio_pages(studio_types.ListStudioPages())
        return view.render("studio_start.html", 400, stored=stored, search="", problem=str(error), url=url)


async def _opened(view: View, url: str, source: str) -> Response:
    job = view.field("job")[:1000]
    request = studio_types.OpenStudioPage(url=url, job=job, source=source)  # type: ignore[arg-type]
    opened = await view.control.open_studio_page(request)
    return go(path("studio", state_of(opened.draft)))


async def show(view: View) -> Response:
    """GET /console/studio/STATE, with the change that a click or a form asks for."""
    draft = draft_of(view.name)
    query = dict(view.request.query_params)
    problem = ""
    if query.keys() - {"notice", "lang", "links"}:
        try:
            draft = await _step(view, changed(draft, query), query)
            return go(path("studio", state_of(draft), links=view.field("links")))
        except UserError as error:
            problem = str(error)
    return await _studio(view, draft, problem)


async def render(view: View) -> Response:
    """POST /console/studio/STATE: render the page again by a browser that takes the steps."""
    draft = draft_of(view.name)
    try:
        request = studio_types.RenderStudioPage(draft=studio_types.document_of(draft))
        rendered = (await view.control.render_studio_page(request)).draft
    except UserError as error:
        return await _studio(view, draft, str(error))
    return go(path("studio", state_of(rendered)))


async def _step(view: View, draft: Draft, query: dict[str, str]) -> Draft:
    kind, node = draft.mode if query.get("pick") else query.get("step", ""), view.number("pick")
    if not kind or (kind not in _STEPS and not query.get("pick")):
        return draft
    request = studio_types.StudioStep(draft=studio_types.document_of(draft), step=kind, node=node)  # type: ignore[arg-type]
    return (await view.control.studio_step(request)).draft


async def _studio(view: View, draft: Draft, problem: str) -> Response:
    try:
        seen = await view.control.studio_view(studio_types.OfDraft(draft=studio_types.document_of(draft)))
    except NotFound as error:
        if not draft.rendered:
            raise
        return view.render("studio_away.html", 404, draft=draft, state=state_of(draft), problem=problem or str(error))
    jobs = await view.control.list_jobs(job_types.ListJobs()) if view.field("links") else None
    state = state_of(draft)
    response = view.render(
        "studio.html",
        409 if problem else 200,
        draft=draft,
        seen=seen,
        state=state,
        frame=path("studio", f"{state}~{view.seal.mark(state)}", "frame", links=view.field("links")) + _place(draft),
        problem=problem or seen.problem,
        types=TYPES,
        added=ADDED,
        step_words=step_words,
        kinds=_KINDS,
        words=selector_words,
        take=selector_text,
        picked_here=_has_pick(draft.field, draft.url),
        links=view.field("links"),
        job=draft.job or (jobs.jobs[0].name if jobs is not None and jobs.jobs else ""),
    )
    response.headers[_POLICY] = f"{HEADERS[_POLICY]}; frame-src 'self'"
    return response


def _place(draft: Draft) -> str:
    """The frame scrolls to the last element that was picked on this page."""
    picks = [pick for pick in draft.field.picks if pick.url == draft.url] if draft.field is not None else []
    return f"#n{picks[-1].node}" if picks else ""


def _has_pick(field: DraftField | None, url: str) -> bool:
    return field is not None and any(pick.url == url and not pick.wrong for pick in field.picks)


async def frame(view: View) -> Response:
    """GET /console/studio/STATE~MARK/frame: the page without effect."""
    state, _sign, mark = view.name.partition("~")
    if not view.seal.holds(state, mark):
        raise Refused(404, _("There is no such screen."))
    request = studio_types.StudioFrameOf(
        draft=studio_types.document_of(draft_of(state)), links=bool(view.field("links"))
    )
    answer = await view.control.studio_frame(request)
    note = "" if answer.whole else Markup("<p><b>{}</b></p>").format(_("The page is longer; the rest is not shown."))
    # The markup is the API's own: it has no text of the page that is not escaped, and the policy allows no script.
    head = Markup(
        '<!doctype html><html lang="{}"><meta charset="utf-8"><meta name="robots" content="noindex"><title>{}'
    )
    title = head.format(language.get(), _("The page"))
    text = f"{title}</title><style>{STYLE}</style><body>{answer.html}{note}"
    headers = {_POLICY: FRAME_POLICY, "x-frame-options": "SAMEORIGIN"}
    return HTMLResponse(text, headers=headers)


def picked(view: View) -> Response:
    """GET /console/studio/STATE~MARK/pick/N, without a session: a click in the frame."""
    state, _sign, mark = view.name.partition("~")
    if not view.seal.holds(state, mark):
        raise Refused(404, _("This page of the studio is of another run of the server; reload it."))
    address = path("studio", state, pick=str(view.request.path_params["node"]))
    text = Markup('<!doctype html><meta charset="utf-8"><title>…</title><link rel="icon" href="{}"><a href="{}">{}</a>')
    text = text.format(path("static", "icon.svg"), address, _("Continue"))
    return HTMLResponse(str(text), headers={"refresh": f"0; url={address}"})


def selector_words(take: Source) -> Markup:
    """Describes a selector in words."""
    where = take.expression or take.query
    match take.source:
        case "jsonld":
            words = _("JSON-LD %(kind)s") % {"kind": take.expression}
            where = take.query
        case "itemprop":
            words = _("microdata")
        case "meta":
            words = _("metadata of the page")
        case "css" | "xpath":
            words = _("attribute %(name)s of") % {"name": take.attr} if take.attr else _("text of")
        case _:
            return Markup("{}").format(_("No selector gives these values."))
    part = Markup(" <code>{}</code>").format(take.regex) if take.regex else ""
    return escape(words) + Markup(" <code>{}</code>").format(where) + part


def step_words(step: BrowserStep) -> Markup:
    """Describes a step of the browser in words."""
    match step.action:
        case "click":
            words = _("click")
        case "more":
            words = _("click until nothing new comes, %(most)s times at most") % {"most": step.max}
        case "wait":
            words = _("wait for")
        case "scroll":
            return escape(_("scroll to the end, %(times)s times at most") % {"times": step.scroll})
        case "pause":
            return escape(_("wait %(time)s") % {"time": step.pause})
        case action:
            words = action
    return escape(words) + Markup(" <code>{}</code>").format(getattr(step, step.action))


def selector_text(take: Source) -> str:
    """Writes a selector as a field of a form."""
    return msgspec.json.encode(take).decode()
