"""Pages of webs without end, made from their own URL: calendars, repeating paths, session ids, facets, redirects to
ever new places.
"""

import hashlib
from collections.abc import Callable
from typing import Any

Action = dict[str, Any]


def calendar(action: Action, target: str) -> list[str]:
    """A link to the next month."""
    parts = target.rstrip("/").split("/")
    year, month = _number(parts[-2], 2026), _number(parts[-1], 1)
    return [f"/calendar/{year + month // 12}/{month % 12 + 1:02}"]


def repeat(action: Action, target: str) -> list[str]:
    """A relative link that makes the path longer by itself."""
    return [target + "a/b/"]


def session(action: Action, target: str) -> list[str]:
    """Links to the same shop with session ids never seen before."""
    return [f"/shop/item?sid={_token(target, i)}" for i in range(action["links"])]


def facets(action: Action, target: str) -> list[str]:
    """Ever more filters in any order."""
    return [f"{target}&filter{i}={_token(target, i)[:6]}" for i in range(action["links"])]


LINKS: dict[str, Callable[[Action, str], list[str]]] = {
    "calendar": calendar,
    "repeat": repeat,
    "session": session,
    "facets": facets,
}


def page(action: Action, target: str) -> bytes:
    """A small document with the links of its kind."""
    links = "".join(
        f'<p><a href="{link.replace("&", "&amp;")}">more</a></p>' for link in LINKS[action["do"]](action, target)
    )
    return f"<!DOCTYPE html><title>Endless</title><h1>{len(target)}</h1>{links}".encode()


def next_redirect(action: Action, target: str) -> str:
    """The next of an endless row of redirects."""
    return f"{action['to']}{_number(target.rsplit('/', 1)[-1], 0) + 1}"


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.isdecimal() else otherwise


def _token(target: str, i: int) -> str:
    return hashlib.blake2b(f"{target}#{i}".encode(), digest_size=8).hexdigest()
