"""The screen of rules answers which rule no longer fits its site."""

from __future__ import annotations

import asyncio

import yaml
from nephila_control import requests
from starlette.responses import Response

from nephila_console.view import View


async def rules(view: View) -> Response:
    """GET /console/rules"""
    listed, health = await asyncio.gather(
        view.control.list_rules(requests.Empty()), view.control.rule_health(requests.Empty())
    )
    by_rule = {verdict.rule: verdict for verdict in health.rules}
    name = view.field("name")
    document = next((rule.document for rule in listed.rules if rule.name == name), None)
    return view.render(
        "rules.html",
        rules=listed.rules,
        health=by_rule,
        name=name if document is not None else "",
        text=yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=100) if document is not None else "",
    )
