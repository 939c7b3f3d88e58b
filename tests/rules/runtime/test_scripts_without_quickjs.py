"""Scripts of rules where their library is not installed: Python 3.13 and ARM have no wheel of it."""

from __future__ import annotations

import re
import sys

import pytest
from nephila.kernel.runtime.extras import install_line
from nephila_rules.runtime.scripts import PageScripts

from tests.rules.execution.rule_rig import document


def test_a_script_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quickjs", None)
    with pytest.raises(ValueError, match=re.escape(install_line("javascript"))):
        PageScripts(document("<p>1</p>")).call("(value, page) => value", 1)
