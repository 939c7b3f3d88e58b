"""The rule studio: a page in a frame, what a person points at, and the rule that comes of it.

The frame is the page of a stranger, in one of two forms. Styled: the page as it looks, in a frame without origin whose
policy allows one script, the console's own, by its hash; the script tells the studio which element was clicked. Plain:
texts alone, without any script; a click is a link that replaces the whole page by `…/pick/N`. Browsers send no cookie
from a frame without origin. Files of the styled page therefore have addresses that only its markup names, and `picked`
answers anyone who has the frame's mark with a page that leads on from here, and then the cookie comes along.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Final

import msgspec
from markupsafe import Markup, escape
from nephila.kernel.documents.browser_schema import Step as BrowserStep
from nephila.kernel.runtime.errors import UserError
from nephila_control import job_types, studio_types
from nephila_control.access.caller import Caller
from nephila_control.access.roles import Role
from nephila_control.api import Control, NotFound
from nephila_rules.studio.draft import Draft, DraftField, Source
from starlette.responses import HTMLResponse, PlainTextResponse, Response

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
_STATIC: Final = files("nephila_console") / "static"
_STYLED_STYLE: Final = (_STATIC / "studio_frame.css").read_text("utf-8")
_SCRIPT: Final = (_STATIC / "studio_frame.js").read_text("utf-8")
_NO_WAY_OUT: Final = "form-action 'none'; base-uri 'none'; frame-ancestors 'self'; "


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


FRAME_POLICY: Final = (
    f"default-src 'none'; style-src {_hash(STYLE)}; {_NO_WAY_OUT}sandbox allow-top-navigation-by-user-activation"
)
STYLED_POLICY: Final = (
    f"default-src 'none'; script-src {_hash(_SCRIPT)}; style-src 'self' 'unsafe-inline'; img-src 'self'; "
    f"font-src 'self'; {_NO_WAY_OUT}sandbox allow-scripts"
)
FILE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
FRAME: Final = Caller("frame of the studio", Role.EDITOR)
"""The caller for files of a styled page: their addresses are the secret that its markup alone has."""
FILE_S: Final = 600
"""Seconds for which a browser keeps a file: each click shows the page again."""
TYPES: Final = ("text", "price", "number", "integer", "date", "url", "bool", "json")
_KINDS: Final = {"page": "only this page", "pages": "pages like this", "folder": "this folder", "site": "whole site"}
_STEPS: Final = ("wider", "items", "page", "learn", "suggested")


async def start(view: View) -> Response:
    """GET /console/studio?url=…&rule=…"""
    url, rule = view.field("url").strip(), view.field("rule")[:253]
    if not url and not rule:
        return await _start(view)
    try:
        return await _opened(view, url, "stored")
    except UserError as error:
        # The screen says why the page cannot be opened and offers those that can: links of other screens lead here.
        return await _start(view, problem=str(error), url=url)


async def _start(view: View, status: int = 200, *, problem: str = "", url: str = "") -> Response:
    search = view.field("q").strip()[:500]
    stored = await view.control.list_studio_pages(studio_types.ListStudioPages(search=search))
    return view.render(
        "studio_start.html",
        status,
        stored=stored,
        search=search,
        problem=problem,
        url=url,
        rule=view.field("rule")[:253],
    )


async def fetch(view: View) -> Response:
    """POST /console/studio: a page from the web."""
    url = view.form.get("url", "").strip()
    try:
        return await _opened(view, url, "rendered" if view.form.get("rendered") else "web")
    except UserError as error:
        return await _start(view, 400, problem=str(error), url=url)


async def _opened(view: View, url: str, source: str) -> Response:
    job, rule = view.field("job")[:1000], (view.form.get("rule") or view.field("rule"))[:253]
    request = studio_types.OpenStudioPage(url=url, rule=rule, job=job, source=source)  # type: ignore[arg-type]
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
        plain_frame=path("studio", f"{state}~{view.seal.mark(state)}", "frame", plain=1) + _place(draft),
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
    draft = draft_of(state)
    plain = draft.plain or bool(view.field("plain"))
    request = studio_types.StudioFrameOf(
        draft=studio_types.document_of(draft), links=bool(view.field("links")), styled=not plain
    )
    answer = await view.control.studio_frame(request)
    note = "" if answer.whole else Markup("<p><b>{}</b></p>").format(_("The page is longer; the rest is not shown."))
    title = Markup('<meta charset="utf-8"><meta name="robots" content="noindex"><title>{}</title>').format(
        _("The page")
    )
    # The markup is the API's own: it has no text of the page that is not escaped.
    if plain:
        html = Markup('<!doctype html><html lang="{}">{}').format(language.get(), title)
        text = f"{html}<style>{STYLE}</style><body>{answer.html}{note}"
    else:
        head = f"<head>{title}<style>{_STYLED_STYLE}</style><script>{_SCRIPT}</script>"
        text = answer.html.replace("<head>", head, 1) + note
    headers = {
        _POLICY: FRAME_POLICY if plain else STYLED_POLICY,
        "x-frame-options": "SAMEORIGIN",
        "referrer-policy": "no-referrer",
    }
    return HTMLResponse(text.encode("utf-8", "replace"), headers=headers)


async def file(view: View, control: Control) -> Response:
    """GET /console/studio/file/PAGE/N, without a session: a style sheet, picture or font of a styled page."""
    parameters = view.request.path_params
    request = studio_types.GetStudioFile(page=parameters["page"][:64], number=min(parameters["number"], 1_000_000))
    try:
        ready = await control.studio_file(request)
    except UserError as error:
        return PlainTextResponse(f"{error}\n", 404, headers={_POLICY: FILE_POLICY})
    headers = {
        _POLICY: FILE_POLICY,
        # The frame has no origin; a font is loaded with CORS.
        "cross-origin-resource-policy": "cross-origin",
        "access-control-allow-origin": "*",
        "referrer-policy": "no-referrer",
        "cache-control": f"private, max-age={FILE_S}",
    }
    return Response(ready.body, media_type=ready.content_type, headers=headers)


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
