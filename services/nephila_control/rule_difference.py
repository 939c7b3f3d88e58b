"""How a rule of a draft differs from the one in use, as lines of a unified diff. Pure."""

from __future__ import annotations

import difflib
from typing import Any

from nephila.kernel.messages import ParseRule
from nephila_rules.induction.rule_text import canonical
from nephila_rules.runtime import load


def rule_difference(current: ParseRule, proposed: ParseRule) -> list[str]:
    contents = (load.from_text(version.document).content for version in (current, proposed))
    before, after = (canonical(_short(content)).splitlines() for content in contents)
    return list(difflib.unified_diff(before, after, n=3, lineterm=""))[2:]


def _short(content: dict[str, Any]) -> dict[str, Any]:
    """Shortens a document to the form that people write: messages have lists of one URL and empty conditions."""
    match = {key: value for key, value in content["spec"]["match"].items() if value}
    if len(match["url"]) == 1:
        match["url"] = match["url"][0]
    return {**content, "spec": {**content["spec"], "match": match}}
