"""Text from the web cannot take over the terminal it is shown on."""

from __future__ import annotations

import pytest
from nephila.cli.terminal import sanitize, sanitize_lines, sanitize_markup
from rich.text import Text

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;owned\x07title",
    "\x1b]8;;http://evil/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJmIC8=\x07clip",
    "\x1bP1$r\x1b\\dcs",
    "\x9b31mc1",
    "\x9d0;t\x9cc1 osc",
    "a\rb\nc\x00d\x08e",
    "x\u202egnp.exe",
    "z\u200bero\ufeff",
    "\x1b",
    "\x1b[",
    "\x1b]unterminated",
    "\ud800half",
    "tag\U000e0041",
    "[bold]no[/bold] [link=file:///etc/passwd]free[/link]",
    "ends in a backslash\\",
    "\\[red] [/]",
    "[@click=app.quit]x",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_character_survives(text):
    """Neither C0 nor C1, nor direction marks, nor lone surrogates, in one line."""
    for shown in (sanitize(text), sanitize_markup(text)):
        assert all(c.isprintable() for c in shown), ascii(shown)
        shown.encode()


@pytest.mark.parametrize("text", HOSTILE)
def test_rich_shows_what_print_shows(text):
    """Escaped markup renders as the plain text, and what follows is still markup."""
    rendered = Text.from_markup(f"[bold]{sanitize_markup(text)}[/bold]!")
    assert rendered.plain == sanitize(text) + "!"
    assert [(span.start, span.end) for span in rendered.spans] in ([(0, len(sanitize(text)))], [])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("  a\r\n\tb\u2028c ", "a b c"),
        ("x\u202egnp.exe", "xgnp.exe"),
        ("naïve 日本語 😀", "naïve 日本語 😀"),
        ("", ""),
    ],
)
def test_harmless_text_stays(text, shown):
    """Sequences go as a whole, blanks become one, letters of all scripts stay."""
    assert sanitize(text) == shown


def test_long_text_is_cut_with_an_ellipsis():
    """At the limit, and without reading all of a text that is far longer."""
    assert sanitize("a" * 200) == "a" * 200
    assert sanitize("a" * 201) == "a" * 199 + "…"
    assert len(sanitize("\x1b[1m" * 1_000_000 + "end", 10)) <= 10
    assert sanitize("abc", 2) == "a…"


def test_lines_of_a_longer_text_are_kept_apart():
    """The main text of a document keeps its lines, however long, and loses its sequences."""
    assert list(sanitize_lines("a\x1b[2J\n" + "b" * 1000)) == ["a", "b" * 1000]
    assert list(sanitize_lines("  if a:\x07\n\treturn  1")) == ["  if a:", "\treturn  1"]
