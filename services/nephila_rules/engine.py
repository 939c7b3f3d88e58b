"""The rules of this package as the parser's port has them (`nephila.parser.rule_engine`)."""

from __future__ import annotations

from nephila.kernel.bus.contract import Bus
from nephila.kernel.runtime.clock import Clock
from nephila.parser.config import ParserConfig
from nephila.parser.sandbox.child_queue import ChildProcessQueue

from nephila_rules.execution.executor import RuleExecutor
from nephila_rules.fit.collector import RuleStatsCollector


def make_engine(bus: Bus, clock: Clock, child_queue: ChildProcessQueue, config: ParserConfig) -> RuleExecutor:
    """What applies rules to the pages of one parser."""
    health = RuleStatsCollector(bus, clock, config.partitions)
    return RuleExecutor(
        clock, child_queue, health=health, scripts=config.rule_scripts, functions_dir=config.rule_functions_dir
    )
