"""Hidden characters: none of them is shown; joiners that are spelling stay."""

from __future__ import annotations

import re

import pytest
from nephila.kernel.pages.hidden_characters import hidden

HIDDEN = re.compile(hidden(r"\x00-\x1f"))


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("\u0dc1\u0dca\u200d\u0dbb\u0dd3", "\u0dc1\u0dca\u200d\u0dbb\u0dd3"),
        ("\u0d28\u0d4d\u200d next", "\u0d28\u0d4d\u200d next"),
        ("👩🏽\u200d💻", "👩🏽\u200d💻"),
        ("❤\ufe0f\u200d🔥", "❤\ufe0f\u200d🔥"),
        ("Auf\u200clage", "Auf\u200clage"),
        ("\u200ba\u200c \u200db\u200d.", "a b."),
        ("a\u200c\u200d\u200cb", "ab"),
        ("ش\u200d\u200dب", "ش\u200dب"),
        ("Mit\u00adtel\u202e\ufeff\x07", "Mittel"),
    ],
)
def test_joiners_stay_where_they_spell(text, visible):
    assert HIDDEN.sub("", text) == visible
