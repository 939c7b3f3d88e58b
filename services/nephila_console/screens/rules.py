"""Rules as a table to read: which one broke?"""

from __future__ import annotations

import asyncio

import yaml
from nephila_control import requests
from starlette.responses import Response

from nephila_console.view import View


async def rules(view: View) -> Response:
    """GET /console/rules"""
    found, health = await asyncio.gather(
        view.control.list_rules(requests.Empty()), view.control.rule_health(requests.Empty())
    )
    known = {one.rule: one for one in health.rules}
    shown = view.field("name")
    document = next((rule.document for rule in found.rules if rule.name == shown), None)
    return view.render(
        "rules.html",
        rules=found.rules,
        health=known,
        shown=shown if document is not None else "",
        text=yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=100) if document is not None else "",
    )
