"""The form of a login page: found by its fields, filled in and encoded as a browser sends it. Pure.

Read are the form's controls with their default values, wherever they are (`form=`), the submit button that Enter
presses (with formaction, formmethod and formenctype), disabled fieldsets, the base of the page, and the encoding.
Names may repeat. No tree is built: it may cost a time that grows with the square of a hostile page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from itertools import islice
from typing import Any

import msgspec
import re2
from nephila.native import form_encoded, query_in

MAX_FORMS = 50
MAX_TAGS = 10_000
"""Tags of forms and fields that are read in a page."""
MAX_ATTRIBUTES = 50
MAX_FIELDS = 500
FILE = "file"
URLENCODED, MULTIPART, PLAIN = "application/x-www-form-urlencoded", "multipart/form-data", "text/plain"
_HIDDEN = re2.compile(rb"(?is)<!--.*?-->|<script\b.*?</script|<style\b.*?</style")
_TAG = re2.compile(
    rb"""(?is)<(/?)(form|input|button|textarea|select|option|optgroup|fieldset|legend|base)\b"""
    rb"""((?:"[^"]*"|'[^']*'|[^'">])*)>"""
)
_MARKUP = re2.compile(rb"(?s)<[^>]*>?")
_ATTRIBUTE = re2.compile(rb"""(?s)([^\s=/"'>]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?""")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BUTTONS = frozenset(("submit", "image"))
_NOT_SENT = frozenset(("submit", "image", "button", "reset"))
_CHECKED = frozenset(("checkbox", "radio"))


class Control(msgspec.Struct):
    """One control of a form; `values` are those that a browser sends without input of a user."""

    name: str
    kind: str
    """Type of an <input>, else the name of the element."""
    values: list[str] = msgspec.field(default_factory=list)

    @property
    def is_filled_by_people(self) -> bool:
        """Whether a person can change its value."""
        return self.kind not in ("hidden", FILE)


class Form(msgspec.Struct):
    id: str = ""
    action: str = ""
    method: str = "get"
    enctype: str = URLENCODED
    charset: str = ""
    """Of accept-charset; "" for that of the page."""
    controls: list[Control] = msgspec.field(default_factory=list)
    button: dict[str, str] | None = None
    """Attributes of the submit button that Enter presses: the first that is on."""
    has_password: bool = False

    def has(self, name: str) -> bool:
        """Whether the form has a control of this name, on or off."""
        return any(control.name == name for control in self.controls)

    def entries(self, values: dict[str, str], encoding: str) -> Iterator[tuple[str, str, str]]:
        """Name, value and kind of what is sent with these values filled in. A value goes to the last control of its
        name that a person can fill in, and a radio group has no other one."""
        filled: dict[str, Control] = {}
        for control in self.controls:
            if control.name in values:
                before = filled.get(control.name)
                if before is None or control.is_filled_by_people or not before.is_filled_by_people:
                    filled[control.name] = control
        for control in self.controls:
            of = filled.get(control.name)
            if of is control:
                yield control.name, values[control.name], control.kind
            elif of is None or "radio" not in (of.kind, control.kind):
                is_charset = control.name == "_charset_" and control.kind == "hidden"
                for value in control.values:
                    yield control.name, encoding if is_charset else value, control.kind
        button = self.button or {}
        if name := button.get("name", ""):
            if button.get("type") == "image":
                yield from ((f"{name}.x", "0", "image"), (f"{name}.y", "0", "image"))
            else:
                yield name, button.get("value", ""), "submit"


class Submission(msgspec.Struct):
    """The request that sends a form."""

    action: str
    """As written, against `LoginPage.base`; "": the URL of the page."""
    method: str
    content_type: str
    body: bytes


class LoginPage(msgspec.Struct):
    """The forms of a page, at most `MAX_FORMS`."""

    base: str = ""
    """Of <base href>, as written; "" without one."""
    encoding: str = "utf-8"
    forms: list[Form] = msgspec.field(default_factory=list)
    asks_password: bool = False
    """The page has a password field, in a form or outside of one."""

    def login_form(self, names: list[str]) -> Form | None:
        """The form with all these fields; among several the first one with a password field."""
        fitting = [form for form in self.forms if all(map(form.has, names))]
        return next((form for form in fitting if form.has_password), fitting[0] if fitting else None)

    def submission(self, form: Form, values: dict[str, str], boundary: str) -> Submission:
        """`form` with these values. `boundary` parts the fields of a multipart body."""
        button = form.button or {}
        encoding = form.charset or self.encoding
        entries = [(name, _LINE_END.sub("\r\n", value), kind) for name, value, kind in form.entries(values, encoding)]
        kind = button.get("formenctype", form.enctype).strip().lower()
        if kind == MULTIPART:
            content_type, body = f"{MULTIPART}; boundary={boundary}", _multipart(entries, encoding, boundary)
        elif kind == PLAIN:
            content_type, body = PLAIN, b"".join(_octets(f"{name}={value}\r\n", encoding) for name, value, _ in entries)
        else:
            sent = (f"{form_encoded(name, encoding)}={form_encoded(value, encoding)}" for name, value, _ in entries)
            content_type, body = URLENCODED, "&".join(sent).encode("ascii")
        action = query_in(button.get("formaction", form.action).strip(), self.encoding)
        return Submission(action, button.get("formmethod", form.method).strip().lower(), content_type, body)


def _octets(text: str, encoding: str) -> bytes:
    """The text in the encoding, with numeric references for characters that it has not."""
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(form_encoded(text, encoding).replace("+", " "))


def _multipart(entries: list[tuple[str, str, str]], encoding: str, boundary: str) -> bytes:
    parts = []
    for name, value, kind in entries:
        quoted = name.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
        of_file = '; filename=""\r\nContent-Type: application/octet-stream' if kind == FILE else ""
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{quoted}"{of_file}\r\n\r\n'
        parts.append(_octets(f"{head}{value}\r\n", encoding))
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


class _Reader:
    """The open elements while a page is read."""

    def __init__(self, page: LoginPage) -> None:
        self.page = page
        self.form: Form | None = None
        self.fieldsets: list[list[bool]] = []
        """Of each open <fieldset>: disabled, in its first legend, had one."""
        self.elsewhere: list[tuple[str, Control | None, dict[str, str]]] = []
        """Controls that name their form, and their attributes."""
        self.select: Control | None = None
        self.options: list[tuple[bool, str]] = []
        self.is_list = False
        self.group_is_off = False

    def is_off(self, of: dict[str, str]) -> bool:
        return "disabled" in of or any(off and not in_legend for off, in_legend, _ in self.fieldsets)

    def fieldset(self, closing: bool, of: dict[str, str]) -> None:
        if not closing:
            self.fieldsets.append(["disabled" in of, False, False])
        elif self.fieldsets:
            self.fieldsets.pop()

    def legend(self, closing: bool) -> None:
        if self.fieldsets:
            last = self.fieldsets[-1]
            last[1] = not closing and not last[2]
            last[2] = True

    def open_form(self, of: dict[str, str]) -> None:
        if self.form is None and len(self.page.forms) < MAX_FORMS:
            labels = of.get("accept-charset", "").replace(",", " ").split()
            self.form = Form(
                of.get("id", ""),
                of.get("action", ""),
                of.get("method", "get").strip().lower(),
                of.get("enctype", URLENCODED),
                next(filter(None, map(_known, labels)), ""),
            )
            self.page.forms.append(self.form)

    def control(self, tag: str, of: dict[str, str], text: bytes) -> None:
        kind = of.get("type", "submit" if tag == "button" else "text").strip().lower() if tag != "textarea" else tag
        self.page.asks_password |= tag == "input" and kind == "password"
        if self.is_off(of):
            return
        name, control = of.get("name", ""), None
        if name and kind not in _NOT_SENT:
            value = _text(text, keep=True) if tag == "textarea" else of.get("value", "on" if kind in _CHECKED else "")
            value = "" if kind == FILE else value
            control = Control(name, kind, [value] if kind not in _CHECKED or "checked" in of else [])
        self.put(control, {**of, "type": kind})

    def put(self, control: Control | None, of: dict[str, str]) -> None:
        """Add a control or a button to its form."""
        if "form" in of:
            self.elsewhere.append((of["form"], control, of))
        elif self.form is not None:
            _add(self.form, control, of)

    def open_select(self, of: dict[str, str]) -> None:
        self.close_select()
        self.select = Control(of.get("name", ""), "select")
        self.is_list, self.group_is_off = "multiple" in of, False
        if self.select.name and not self.is_off(of):
            self.put(self.select, {**of, "type": "select"})

    def option(self, of: dict[str, str], text: bytes) -> None:
        if self.select is not None and "disabled" not in of and not self.group_is_off:
            self.options.append(("selected" in of, of["value"] if "value" in of else _text(text, keep=False)))

    def close_select(self) -> None:
        if self.select is not None:
            chosen = [value for selected, value in self.options if selected]
            first = [value for _, value in self.options[:1]]
            self.select.values = chosen if self.is_list else chosen[-1:] or first
        self.select, self.options = None, []


def _add(form: Form, control: Control | None, of: dict[str, str]) -> None:
    if control is None:
        if of["type"] in _BUTTONS and form.button is None:
            form.button = of
    elif len(form.controls) < MAX_FIELDS:
        form.controls.append(control)
        form.has_password |= control.kind == "password"


def _known(label: str) -> str:
    import webencodings

    codec = webencodings.lookup(label)
    return str(codec.name) if codec is not None else ""


def _text(source: bytes, *, keep: bool) -> str:
    """The text of a <textarea>, or of an <option> with its white space collapsed."""
    if keep:
        text = unescape(source.decode("utf-8", "replace")).replace("\r\n", "\n")
        return text[1:] if text.startswith("\n") else text
    return " ".join(unescape(_MARKUP.sub(b"", source).decode("utf-8", "replace")).split())


def read_login_page(page: str, encoding: str = "utf-8") -> LoginPage:
    """The forms of a page that was in `encoding`.

    O(page): RE2 has no slow patterns that a hostile page could use. It runs over octets, since over text it counts all
    characters again for each match.
    """
    source = _HIDDEN.sub(b"", page.encode("utf-8", "replace"))
    login_page = LoginPage(encoding=encoding)
    reader = _Reader(login_page)
    matches: list[Any] = list(islice(_TAG.finditer(source), MAX_TAGS))
    lower, until = source.lower(), 0
    for number, match in enumerate(matches):
        if match.start() < until:
            continue  # in a <textarea>
        closing, tag, rest = match.groups()
        tag, of = tag.decode().lower(), {} if closing else _attributes(rest)
        after = matches[number + 1].start() if number + 1 < len(matches) else len(source)
        if tag == "textarea" and not closing:
            end = lower.find(b"</textarea", match.end())
            until = after = end if end >= 0 else len(source)
        _step(reader, bool(closing), tag, of, source[match.end() : after])
    reader.close_select()
    by_id = {form.id: form for form in reversed(login_page.forms) if form.id}
    for name, control, of in reader.elsewhere:
        if name in by_id:
            _add(by_id[name], control, of)
    return login_page


def _step(reader: _Reader, closing: bool, tag: str, of: dict[str, str], text: bytes) -> None:
    match tag:
        case "form" if closing:
            reader.form = None
        case "form":
            reader.open_form(of)
        case "base":
            reader.page.base = reader.page.base or of.get("href", "").strip()
        case "fieldset":
            reader.fieldset(closing, of)
        case "legend":
            reader.legend(closing)
        case "select" if closing:
            reader.close_select()
        case "select":
            reader.open_select(of)
        case "option" if not closing:
            reader.option(of, text)
        case "optgroup":
            reader.group_is_off = not closing and "disabled" in of
        case "input" | "button" | "textarea" if not closing:
            reader.control(tag, of, text)


def _attributes(text: bytes) -> dict[str, str]:
    """Name → value; of attributes with one name the first counts, as in browsers."""
    values: dict[str, str] = {}
    for name, double, single, bare in (match.groups() for match in islice(_ATTRIBUTE.finditer(text), MAX_ATTRIBUTES)):
        value = double or single or bare or b""
        values.setdefault(name.decode("utf-8", "replace").lower(), unescape(value.decode("utf-8", "replace")))
    return values
