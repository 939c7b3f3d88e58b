"""Pages whose content comes by scripts, recognised without a browser."""

from __future__ import annotations

import pytest
from nephila.kernel.pages.shells import SHELL_WORDS, is_shell

SCRIPT = b"<!doctype html><div id=root></div><SCRIPT src=/app.js></script>"
WORDS = b" ".join(b"%d" % number for number in range(SHELL_WORDS))


@pytest.mark.parametrize(
    ("text", "body", "found"),
    [
        (b"", SCRIPT, True),
        (b"You need to enable JavaScript to run this app.", SCRIPT, True),
        (WORDS, SCRIPT, True),
        (WORDS + b" more", SCRIPT, False),
        (b"same " * 1000, SCRIPT, False),
        (b"Some words.", b"<!doctype html><p>Some words.", False),
        (b"", b"<p>scripts</p>", False),
    ],
)
def test_few_words_and_scripts_make_a_shell(text, body, found):
    assert is_shell(text, body) is found
