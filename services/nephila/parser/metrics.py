"""Metrics of the parser: what each parser counts, and what its judge of rules finds.

In one program the judge is one for all parsers; over a broker each parser has its own.
"""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric, Value
from nephila.parser.rule_engine import RuleJudge
from nephila.parser.service import Parser

PAGE_METRICS: tuple[Metric[Parser], ...] = (
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
        "parse_seconds",
        "Time of the event loop for a page, its publication included. A rise: longer pages, or slower rules.",
        lambda p: p.parse_s.value(),
        histogram=True,
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
        "degraded_pages_total",
        "Pages read by a degraded rule. A rise: their rows are marked; mend the rule.",
        lambda p: p.rules.degraded_pages,
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

JUDGE_METRICS: tuple[Metric[RuleJudge], ...] = (
    Metric(
        "rule_degraded",
        "1 for a degraded rule (its site has changed) among the rules that are judged here; its rows are marked.",
        lambda judge: {name: bool(rule.since) for name, rule in judge.rules.items()},
        label="rule",
    ),
    Metric(
        "rule_fill_rate",
        "Share of a rule's last pages that had items, for the rules that are judged here. A fall: the site changes.",
        lambda judge: {name: rule.fill_rate for name, rule in judge.rules.items()},
        label="rule",
    ),
    Metric(
        "rule_alarms_total",
        "Alarms: times that a rule was found degraded here; a rise means that a site has changed.",
        lambda judge: judge.alarms,
        counter=True,
    ),
)


def _of_parser(metric: Metric[RuleJudge]) -> Metric[Parser]:
    """The metric of the parser's own judge, if it has one."""

    def read(parser: Parser) -> Value:
        if parser.judge is not None:
            return metric.read(parser.judge)
        return {} if metric.label else 0

    return Metric(metric.name, metric.help, read, metric.label, metric.counter, metric.histogram)


METRICS: tuple[Metric[Parser], ...] = (*PAGE_METRICS, *map(_of_parser, JUDGE_METRICS))
