"""The form of a login page: found by its required fields, filled in, encoded for the POST. Pure."""

from __future__ import annotations

from html import unescape
from itertools import islice
from urllib.parse import urlencode

import msgspec
import re2

MAX_FORMS = 50
MAX_TAGS = 5_000
"""Form and field tags that are read in a page."""
MAX_ATTRIBUTES = 50
MAX_FIELDS = 500
_HIDDEN = re2.compile(rb"(?is)<!--.*?-->|<script\b.*?</script")
_TAG = re2.compile(rb"""(?is)<(/?)(form|input|button|textarea|select)\b((?:"[^"]*"|'[^']*'|[^'">])*)>""")
_ATTRIBUTE = re2.compile(rb"""(?s)([^\s=/"'>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_NOT_SENT = frozenset(("submit", "button", "image", "reset", "file"))


class Form(msgspec.Struct):
    """A form of a page."""

    action: str = ""
    method: str = "get"
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    """Name and value of the fields that a browser sends without user input, and of text and password fields."""
    button: tuple[str, str] | None = None
    """The first submit button with a name; a browser sends it when Enter is pressed."""
    has_password: bool = False

    def filled(self, values: dict[str, str]) -> bytes:
        """The body of the request, as application/x-www-form-urlencoded in UTF-8."""
        sent = dict(self.fields)
        if self.button is not None and self.button[0] not in sent:
            sent[self.button[0]] = self.button[1]
        return urlencode({**sent, **values}).encode("ascii")


def forms_of(page: str) -> list[Form]:
    """Every form of a page, at most `MAX_FORMS`.

    O(page): RE2 has no slow patterns that a hostile page could use. It runs over octets, since over text it counts all
    characters again for each match.
    """
    forms: list[Form] = []
    inside = False
    for match in islice(_TAG.finditer(_HIDDEN.sub(b"", page.encode("utf-8", "replace"))), MAX_TAGS):
        closing, tag, rest = match.groups()
        tag = tag.decode().lower()
        if tag == "form":
            inside = not closing and len(forms) < MAX_FORMS
            if inside:
                found = _attributes(rest)
                forms.append(Form(found.get("action", "").strip(), found.get("method", "get").strip().lower()))
        elif inside and not closing:
            _add_field(forms[-1], tag, _attributes(rest))
    return forms


def _attributes(text: bytes) -> dict[str, str]:
    """Name → value; of attributes with one name the first counts, as in browsers."""
    found: dict[str, str] = {}
    for name, double, single, bare in (match.groups() for match in islice(_ATTRIBUTE.finditer(text), MAX_ATTRIBUTES)):
        value = double or single or bare or b""
        found.setdefault(name.decode("utf-8", "replace").lower(), unescape(value.decode("utf-8", "replace")))
    return found


def _add_field(form: Form, tag: str, found: dict[str, str]) -> None:
    name, kind = found.get("name", ""), found.get("type", "submit" if tag == "button" else "text").lower()
    form.has_password |= kind == "password"
    if not name or len(form.fields) >= MAX_FIELDS or "disabled" in found:
        return
    if kind == "submit" and form.button is None:
        form.button = (name, found.get("value", ""))
    if kind in _NOT_SENT or (kind in ("checkbox", "radio") and "checked" not in found):
        return
    form.fields.setdefault(name, found.get("value", "on" if kind in ("checkbox", "radio") else ""))


def has_password_field(page: str) -> bool:
    """Whether a page asks for a password, in a form or outside of one. O(page)."""
    return any(
        tag.lower() == b"input" and _attributes(rest).get("type", "").lower() == "password"
        for _, tag, rest in (
            match.groups() for match in _TAG.finditer(_HIDDEN.sub(b"", page.encode("utf-8", "replace")))
        )
    )


def login_form(page: str, names: list[str]) -> Form | None:
    """The form with all these fields; among several the first one with a password field."""
    found = [form for form in forms_of(page) if all(name in form.fields for name in names)]
    return next((form for form in found if form.has_password), found[0] if found else None)
