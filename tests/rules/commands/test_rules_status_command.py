"""`nephila rules status` of a directory has what the API of a running program has."""

from __future__ import annotations

import json

import msgspec
from nephila.cli.main import main
from nephila.kernel.messages import FieldStats, RuleStats, RuleVerdict
from nephila_control.requests import Empty
from nephila_control.rules import RuleOperations
from nephila_rules import health
from nephila_rules.fit.health import ITEMS, RuleHealth, encode


class Backend:
    """A program that has judged some rules."""

    def __init__(self, *verdicts: RuleVerdict) -> None:
        self._verdicts = verdicts

    def verdicts(self):
        return self._verdicts


def verdict_of(name: str, price: float) -> RuleVerdict:
    learned = RuleHealth()
    for number in range(40):
        fields = [FieldStats(ITEMS, 5, 5.0), FieldStats("title", 5, 5.0), FieldStats("price", 5, 5 * price)]
        learned.add(RuleStats(name, 1, 5, fields), float(number))
    return RuleVerdict(name, 1, pages=learned.pages, fill_rate=learned.fill_rate, state=encode(learned))


async def test_a_directory_has_the_shares_of_single_fields(tmp_path, capsys):
    verdicts = [verdict_of("shop", 0.5), verdict_of("zoo", 1.0)]
    health.save(tmp_path, verdicts)
    assert main(["rules", "status", "--json", "--out", str(tmp_path)]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    operations = RuleOperations.__new__(RuleOperations)
    operations._backend = Backend(*verdicts)
    answer = (await operations.rule_health(Empty())).rules
    assert printed == msgspec.to_builtins(answer)
    assert [(field["name"], field["now"]) for field in printed[0]["fields"]] == [("title", 1.0), ("price", 0.5)]
