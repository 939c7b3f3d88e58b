"""One request to a screen: its fields, the control API, and how a template becomes an answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from nephila import __version__
from nephila.kernel import figures
from nephila_control.access.guard import allowed
from nephila_control.api import Control
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from nephila_console import plots, words
from nephila_console.gate import Seal
from nephila_console.messages import LANGUAGES, language, translate, translate_count
from nephila_console.sessions import Session

NAVIGATION = (
    ("", "Overview"),
    ("jobs", "Jobs"),
    ("pages", "Pages"),
    ("hosts", "Hosts"),
    ("items", "Items"),
    ("audit", "Audit"),
    ("sites", "Sites"),
    ("rules", "Rules"),
    ("studio", "Studio"),
    ("system", "System"),
)
"""Screens of the rail: part of the path, and name."""


@cache
def environment() -> Environment:
    """The templates. Every value is escaped; an unknown name is an error."""
    found = Environment(
        loader=PackageLoader("nephila_console"),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.install_gettext_callables(translate, translate_count, newstyle=True)  # type: ignore[attr-defined]
    for name in ("clean", "rate", "when", "host", "cell"):
        found.filters[name] = getattr(words, name)
    # A word of the API in the language of the request. `_()` would read a % in it as a place for a value.
    found.filters["word"] = translate
    found.filters |= {"count": figures.count, "size": partial(figures.size, bytes_word="B"), "span": figures.span}
    found.globals |= {
        "path": words.path,
        "share": figures.share,
        "followable": words.followable,
        "plots": plots,
        "navigation": NAVIGATION,
        "version": __version__,
        "languages": LANGUAGES,
    }
    return found


class View:
    """A request of a session."""

    def __init__(
        self,
        request: Request,
        control: Control,
        session: Session | None,
        form: Mapping[str, str],
        seal: Seal,
        access_problem: str = "",
    ) -> None:
        """`access_problem`: why the access file of the server is not used."""
        self.request = request
        self.control = control
        self.session = session
        self.form = form
        self.seal = seal
        self.access_problem = access_problem
        self.began = time.perf_counter()

    def field(self, name: str, default: str = "") -> str:
        """A query parameter."""
        return str(self.request.query_params.get(name, default))[:100_000]

    def number(self, name: str) -> int:
        """A query parameter as a whole number; 0 for none."""
        text = self.field(name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0

    @property
    def name(self) -> str:
        """The name in the path."""
        return str(self.request.path_params["name"])

    def may(self, operation: str) -> bool:
        """Whether this session may use an operation: what it may not is left out of the screen."""
        return self.session is not None and allowed(self.session.caller, operation)

    def _in_language(self, name: str) -> str:
        """The address of this screen in another language."""
        query = urlencode({**dict(self.request.query_params), "lang": name}, errors="replace")
        return f"{self.request.url.path}?{query}"

    def render(self, template: str, code: int = 200, /, **values: Any) -> Response:
        """The answer of a template. `Server-Timing` has the time since the request began."""
        text = (
            environment()
            .get_template(template)
            .render(
                csrf=self.session.csrf if self.session is not None else "",
                inside=self.session is not None,
                may=self.may,
                who=self.session.caller if self.session is not None else None,
                here=self.request.url.path.removeprefix(words.BASE).strip("/").partition("/")[0],
                address=str(self.request.url.path) + (f"?{self.request.url.query}" if self.request.url.query else ""),
                lang=language.get(),
                in_language=self._in_language,
                now=time.time(),
                notice=self.field("notice"),
                **values,
            )
        )
        passed_ms = (time.perf_counter() - self.began) * 1000
        # A lone surrogate, which no encoding has, is shown as a question mark.
        return HTMLResponse(text.encode("utf-8", "replace"), code, {"server-timing": f"app;dur={passed_ms:.1f}"})


def go(place: str) -> Response:
    """After a change: the browser loads a screen, so that a reload does not repeat the change."""
    return RedirectResponse(place, 303)
