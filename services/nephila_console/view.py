"""A view joins a request, its session and the control API, so that a screen is one function from a view to an
answer."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, get_args
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from nephila import __version__
from nephila_control.access.guard import allowed
from nephila_control.api import Control
from nephila_control.capability_types import Capability, CapabilityName
from nephila_control.screen_types import SeriesRange
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from nephila_console import figures, plots, sparklines, words
from nephila_console.capability_cache import SCREENS, Lacking
from nephila_console.gate import Seal
from nephila_console.messages import LANGUAGES, language, translate, translate_count
from nephila_console.sessions import Session

RANGES = get_args(SeriesRange)
"""Times of curves, the shortest first; the empty one is the time since the start."""
NAVIGATION = (
    ("Run", (("", "Overview"), ("jobs", "Jobs"), ("sites", "Sites"), ("hosts", "Hosts"))),
    ("Data", (("items", "Items"), ("pages", "Pages"), ("audit", "Audit"))),
    ("Extract", (("studio", "Studio"), ("rules", "Rules"))),
    ("Operate", (("system", "System"),)),
)
"""Groups of the rail: name, and screens by the part of their path and their name."""
KEYS = {
    "": "o",
    "jobs": "j",
    "sites": "s",
    "hosts": "h",
    "items": "i",
    "pages": "p",
    "audit": "a",
    "studio": "t",
    "rules": "r",
    "system": "y",
}
"""Screen → the key that opens it after g."""


@cache
def environment() -> Environment:
    """Templates escape every value. An unknown name in a template is an error."""
    templates = Environment(
        loader=PackageLoader("nephila_console"),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.install_gettext_callables(translate, translate_count, newstyle=True)  # type: ignore[attr-defined]
    for name in ("clean", "rate", "when", "host", "cell", "cause"):
        templates.filters[name] = getattr(words, name)
    # A word of the API in the language of the request. `_()` would read a % in it as a place for a value.
    templates.filters["word"] = translate
    templates.filters |= {"count": figures.count, "size": partial(figures.size, bytes_word="B"), "span": figures.span}
    templates.globals |= {
        "path": words.path,
        "share": figures.share,
        "followable": words.followable,
        "plots": plots,
        "sparklines": sparklines,
        "seconds_now": time.time,
        "navigation": NAVIGATION,
        "keys": KEYS,
        "version": __version__,
        "languages": LANGUAGES,
    }
    return templates


class View:
    def __init__(
        self,
        request: Request,
        control: Control,
        session: Session | None,
        form: Mapping[str, str],
        seal: Seal,
        access_problem: str = "",
        lacking: Lacking | None = None,
    ) -> None:
        """`access_problem` is the reason why the access file of the server is not used. `lacking` has what does not
        work in the program."""
        self.request = request
        self.control = control
        self.session = session
        self.form = form
        self.seal = seal
        self.access_problem = access_problem
        self.lacking = lacking or {}
        self.began = time.perf_counter()

    def field(self, name: str, default: str = "") -> str:
        return str(self.request.query_params.get(name, default))[:100_000]

    def number(self, name: str) -> int:
        """Returns a query parameter as a whole number; 0 without one."""
        text = self.field(name)
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0

    @property
    def range(self) -> SeriesRange:
        """Time of the curves on this screen; empty is the time since the start."""
        name = self.field("range")
        return name if name in RANGES else ""  # type: ignore[return-value]

    @property
    def name(self) -> str:
        return str(self.request.path_params["name"])

    def may(self, operation: str) -> bool:
        """Returns whether this session may use an operation; a screen leaves out other operations."""
        return self.session is not None and allowed(self.session.caller, operation)

    def lacks(self, capability: CapabilityName) -> Capability | None:
        """Returns the reason and the remedy of a capability that does not work; None for one that works."""
        return self.lacking.get(capability)

    def screen_lacks(self, screen: str) -> Capability | None:
        """`screen` is the first part of its path."""
        return self.lacking.get(SCREENS.get(screen, ""))

    def _way(self, *parts: str, **query: Any) -> str:
        """Returns the address of a screen; empty for one that has nothing to show here."""
        return "" if self.screen_lacks(parts[0]) is not None else words.path(*parts, **query)

    def _here(self, **changed: str) -> str:
        """Returns the address of this screen with other fields; an empty one is left out."""
        fields = {**dict(self.request.query_params), **changed}
        query = urlencode({name: value for name, value in fields.items() if value}, errors="replace")
        return self.request.url.path + (f"?{query}" if query else "")

    def render(self, template: str, code: int = 200, /, **values: Any) -> Response:
        """Renders a template. `Server-Timing` has the time since the request began."""
        text = (
            environment()
            .get_template(template)
            .render(
                csrf=self.session.csrf if self.session is not None else "",
                inside=self.session is not None,
                may=self.may,
                lacks=self.lacks,
                screen_lacks=self.screen_lacks,
                way=self._way,
                who=self.session.caller if self.session is not None else None,
                here=self.request.url.path.removeprefix(words.BASE).strip("/").partition("/")[0],
                address=str(self.request.url.path) + (f"?{self.request.url.query}" if self.request.url.query else ""),
                lang=language.get(),
                with_fields=self._here,
                range=self.range,
                ranges=RANGES,
                now=time.time(),
                notice=self.field("notice"),
                **values,
            )
        )
        passed_ms = (time.perf_counter() - self.began) * 1000
        # A lone surrogate, which no encoding has, is shown as a question mark.
        return HTMLResponse(text.encode("utf-8", "replace"), code, {"server-timing": f"app;dur={passed_ms:.1f}"})


def go(address: str) -> Response:
    """Redirects after a change, so that a reload does not repeat the change."""
    return RedirectResponse(address, 303)
