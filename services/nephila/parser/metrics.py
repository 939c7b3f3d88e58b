"""Metrics of the parser."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric
from nephila.parser.service import Parser

METRICS: tuple[Metric[Parser], ...] = (
    Metric(
        "pages_parsed_total",
        "Pages parsed. Flat while pages are fetched: the parser stands still.",
        lambda p: p.pages,
        counter=True,
    ),
    Metric(
        "pages_failed_total", "Pages that could not be parsed; any rise is a fault.", lambda p: p.failed, counter=True
    ),
    Metric(
        "pages_in_children",
        "Pages that wait for a child process or are read by one (PDFs, long pages, unbounded rules); if it stays high,"
        " add parsers.",
        lambda p: p.in_children,
    ),
    Metric(
        "children_replaced_total",
        "Child processes killed for time, memory or a crash; a page fails after two of them.",
        lambda p: p.children_replaced,
        counter=True,
    ),
    Metric(
        "rule_degraded",
        "1 for a degraded rule (its site has changed) among the rules that this parser judges; its rows are marked.",
        lambda p: {} if p.judge is None else {name: bool(rule.since) for name, rule in p.judge.rules.items()},
        label="rule",
    ),
    Metric(
        "rule_fill_rate",
        "Share of a rule's last pages that had items, for the rules that this parser judges. A fall: the site changes.",
        lambda p: {} if p.judge is None else {name: rule.fill_rate for name, rule in p.judge.rules.items()},
        label="rule",
    ),
    Metric(
        "rule_alarms_total",
        "Alarms: times that this parser found a rule degraded; a rise means that a site has changed.",
        lambda p: p.judge.alarms if p.judge else 0,
        counter=True,
    ),
    Metric(
        "degraded_pages_total",
        "Pages read by a degraded rule. A rise: their rows are marked; mend the rule.",
        lambda p: p.rule_health.degraded_pages,
        counter=True,
    ),
    Metric(
        "items_total", "Items that rules extracted from pages. A rise is normal.", lambda p: p.rules.items, counter=True
    ),
    Metric(
        "rule_pages_in_child_total",
        "Pages whose rule ran in the child process; as many as pages means that most rules are unbounded.",
        lambda p: p.rules.pages_in_child,
        counter=True,
    ),
    Metric(
        "rule_pages_failed_total",
        "Pages whose rule exceeded its limits in the child process; look at the rule or the site.",
        lambda p: p.rules.pages_failed,
        counter=True,
    ),
)
