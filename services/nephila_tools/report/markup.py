"""Pieces of HTML for the report.

Invariant: text from the web passes `text` or `link`: it cannot end a tag, open a script or change the direction.
Nothing here makes a browser send a request by itself.
"""

from __future__ import annotations

import html
import time
from collections.abc import Iterable, Sequence
from typing import Final

from nephila.cli.terminal import sanitize

SHOWN_URL: Final = 140
"""Characters of a URL that are shown; its link is whole."""


def text(value: object, limit: int = 200) -> str:
    """Text from the web: one line, without control and direction characters, escaped."""
    return html.escape(sanitize(str(value), limit), quote=True)


def link(url: str, label: str = "") -> str:
    """A URL to follow by hand; one that is not http(s) is only shown."""
    label_html = f"<bdi>{text(label or url, SHOWN_URL)}</bdi>"
    if not url.startswith(("http://", "https://")):
        return f"<span class=url>{label_html}</span>"
    return f'<a class=url href="{text(url, 10_000)}" rel="noreferrer noopener nofollow">{label_html}</a>'


def instant(seconds: float, *, date: bool = True) -> str:
    """A point in time, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S" if date else "%H:%M:%S", time.gmtime(seconds)) if seconds else "unknown"


def section(title: str, body: str, lead: str = "", kind: str = "") -> str:
    """A part of the report under its heading."""
    lead_html = f"<p class=lead>{lead}</p>" if lead else ""
    return f'<section class="{kind}"><h2>{title}</h2>{lead_html}{body}</section>'


def bars(rows: Sequence[tuple[str, float, str]], kind: str = "stored") -> str:
    """(label, value, value in words), each with a bar in proportion; labels are escaped by the caller."""
    most = max((value for _, value, _ in rows), default=0) or 1
    lines = (
        f'<tr><th scope=row>{label}</th><td class=track><span class="bar {kind}"'
        f' style="width:{100 * value / most:.2f}%"></span></td><td class=num>{words}</td></tr>'
        for label, value, words in rows
    )
    return f"<table class=bars>{''.join(lines)}</table>"


def table(heads: Iterable[tuple[str, str]], rows: Iterable[Iterable[str]]) -> str:
    """Cells are HTML; a head is (words, class of its column)."""
    heads = list(heads)
    top = "".join(f'<th scope=col class="{kind}">{words}</th>' for words, kind in heads)
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{cell}</td>' for cell, (_, kind) in zip(row, heads, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table class=list><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
