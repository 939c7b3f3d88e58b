"""Figures of the parser."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Figure
from nephila.parser.service import Parser

FIGURES: tuple[Figure[Parser], ...] = (
    Figure("pages_parsed_total", "Pages parsed.", lambda p: p.pages, rises=True),
    Figure(
        "pages_failed_total", "Pages that could not be parsed; any rise is a fault.", lambda p: p.failed, rises=True
    ),
    Figure(
        "pages_in_children",
        "PDFs and long pages that wait for a child process or are with it; one that stays high: raise no limit, but the"
        " number of parsers.",
        lambda p: p.in_children,
    ),
    Figure(
        "children_replaced_total",
        "Child processes killed for time, memory or a crash; each page costs two of them before it is given up.",
        lambda p: p.children_replaced,
        rises=True,
    ),
    Figure(
        "rule_degraded",
        "1 for a rule whose site has changed under it, of the rules that this parser judges; its rows are marked.",
        lambda p: {} if p.judge is None else {name: bool(rule.since) for name, rule in p.judge.rules.items()},
        label="rule",
    ),
    Figure(
        "rule_fill_rate",
        "Share of a rule's last pages that had items, of the rules that this parser judges.",
        lambda p: {} if p.judge is None else {name: rule.fill_rate for name, rule in p.judge.rules.items()},
        label="rule",
    ),
    Figure("rule_alarms_total", "Rules found degraded here.", lambda p: p.judge.alarms if p.judge else 0, rises=True),
    Figure(
        "degraded_pages_total", "Pages read by a degraded rule.", lambda p: p.rule_health.degraded_pages, rises=True
    ),
    Figure("items_total", "Items that rules made of pages.", lambda p: p.rules.items, rises=True),
    Figure(
        "rule_pages_in_child_total",
        "Pages read by a rule in the child process; as many as pages: rules that are not bounded are in wide use.",
        lambda p: p.rules.pages_in_child,
        rises=True,
    ),
    Figure(
        "rule_pages_failed_total",
        "Pages whose rule was killed at its limits; a rise is a rule or a site that has to be looked at.",
        lambda p: p.rules.pages_failed,
        rises=True,
    ),
)
