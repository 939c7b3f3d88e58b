"""Each alert in both directions over two releases in two namespaces, by promtool: the faulty one alone has it.

A healthy run has no alert, not even a pending one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.test_alerts import ALERTS, RULES, promtool

MINUTES = 60
HEALTHY = {
    'nephila_api_backup_failed{%s,pod="a-0"}': "0",
    'nephila_program_ready{%s,pod="s-0"}': "1",
    'nephila_program_unready{%s,pod="s-0",reason="waiting"}': "1x2 0",
    'nephila_scheduler_job_pages_stale{%s,pod="s-0",crawl="news"}': "40",
    'nephila_scheduler_job_pages_watched{%s,pod="s-0",crawl="news"}': "1000",
    'nephila_webhooks_failing_seconds{%s,pod="w-0",webhook="news"}': "0",
    'nephila_sites_fault_seconds{%s,pod="h-0",directory="news"}': "30",
    'nephila_scheduler_hosts_ready{%s,pod="s-0"}': "5",
    'nephila_scheduler_partitions{%s,pod="s-0"}': "64",
    'nephila_scheduler_early_fetches_total{%s,pod="s-0"}': "0",
    'nephila_scheduler_failures_total{%s,pod="s-0",reason="http_429"}': "0+1",
    'nephila_scheduler_urls_outstanding{%s,pod="s-0"}': "50",
    'nephila_scheduler_outstanding_limit{%s,pod="s-0"}': "100",
    'nephila_scheduler_emissions_held_total{%s,pod="s-0"}': "0",
    'nephila_scheduler_snapshot_age_seconds{%s,pod="s-0"}': "0+60",
    'nephila_scheduler_frontier_log_bytes{%s,pod="s-0"}': "1e8",
    'nephila_scheduler_disk_free_bytes{%s,pod="s-0"}': "9e10",
    'nephila_storage_disk_free_bytes{%s,pod="t-0"}': "9e10",
    'nephila_storage_rows{%s,pod="t-0",outcome="stored"}': "0+600",
    'nephila_downloader_fetches_total{%s,pod="d-0",result="fetched"}': "0+600",
    'nephila_parser_pages_failed_total{%s,pod="p-0"}': "0",
    'nephila_parser_rule_degraded{%s,pod="p-0",rule="shop"}': "0",
    'nephila_bus_dead_letters_total{%s,pod="p-0",topic="pages",reason="child"}': "0",
    'nephila_bus_oldest_unacked_seconds{%s,pod="p-0",group="parser",topic="pages"}': "3",
}
"""Series → its values over an hour, of a crawl that is well: a start that waits for two minutes, some answers 429."""
FAULTS: dict[str, dict[str, str]] = {
    "NephilaCrawlStalled": {
        "nephila_downloader_fetches_total": "600",
        "nephila_scheduler_failures_total": "5",
        "nephila_storage_rows": "7",
    },
    "NephilaNoScheduler": {"nephila_scheduler_partitions": "0"},
    "NephilaMemberUnready": {"nephila_program_unready": "1"},
    "NephilaPolitenessBreach": {"nephila_scheduler_early_fetches_total": "0x45 1"},
    "NephilaHostsRefuse": {"nephila_scheduler_failures_total": "0+90"},
    "NephilaBackupFailed": {"nephila_api_backup_failed": "1"},
    "NephilaDeadLetters": {"nephila_bus_dead_letters_total": "0x45 1"},
    "NephilaPagesFail": {"nephila_parser_pages_failed_total": "0+1"},
    "NephilaRuleDegraded": {"nephila_parser_rule_degraded": "1"},
    "NephilaLagOld": {"nephila_bus_oldest_unacked_seconds": "1000"},
    "NephilaStorageSlow": {"nephila_scheduler_urls_outstanding": "95", "nephila_storage_rows": "7"},
    "NephilaPublicationsHeld": {"nephila_scheduler_emissions_held_total": "0+120"},
    "NephilaSnapshotsOld": {"nephila_scheduler_snapshot_age_seconds": "30000+60"},
    "NephilaFreshnessMissed": {"nephila_scheduler_job_pages_stale": "60"},
    "NephilaWebhookFails": {"nephila_webhooks_failing_seconds": "3000+60"},
    "NephilaListFails": {"nephila_sites_fault_seconds": "3000+60"},
    "NephilaDiskFull": {"nephila_storage_disk_free_bytes": "4e9"},
}
"""Alert → the series that make it. Each alone: no other alert may follow."""
RELEASES = ('namespace="a",release="web"', 'namespace="b",release="blue"')


def over(values: str) -> str:
    """For the whole hour: the last step is repeated."""
    *before, last = values.split()
    return " ".join([*before, f"{last}x{MINUTES}"])


def series(release: str, faults: dict[str, str]) -> list[dict[str, str]]:
    """The input of one release; a fault without values is a series that is not scraped."""
    found = {name % release: faults.get(name.partition("{")[0], values) for name, values in HEALTHY.items()}
    return [{"series": name, "values": over(values)} for name, values in found.items() if values]


def judge(folder: Path, tests: list[dict[str, Any]]) -> None:
    """Run promtool on these."""
    cases = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}
    (folder / "cases.yaml").write_text(yaml.safe_dump(cases))
    done = promtool("test", "rules", str(folder / "cases.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def case(name: str, inputs: list[dict[str, str]], expression: str, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """An expression at several instants, with the same answer."""
    asked = [{"expr": expression, "eval_time": f"{at}m", "exp_samples": samples} for at in (50, 55)]
    return {"name": name, "interval": "1m", "input_series": inputs, "promql_expr_test": asked}


def test_a_healthy_run_has_no_alert_not_even_a_pending_one(tmp_path) -> None:
    inputs = [one for release in RELEASES for one in series(release, {})]
    asked = [{"expr": "ALERTS", "eval_time": f"{at}m", "exp_samples": []} for at in range(4, MINUTES, 4)]
    judge(tmp_path, [{"name": "healthy", "interval": "1m", "input_series": inputs, "promql_expr_test": asked}])


def test_each_alert_is_of_the_faulty_release_alone(tmp_path) -> None:
    assert FAULTS.keys() == {rule["alert"] for rule in RULES}
    tests = []
    for alert, faults in FAULTS.items():
        for faulty, healthy in (RELEASES, RELEASES[::-1]):
            inputs = [*series(faulty, faults), *series(healthy, {})]
            expression = "count by (alertname, alertstate, namespace, release) (ALERTS)"
            namespace, release = (part.split('"')[1] for part in faulty.split(","))
            labels = f'{{alertname="{alert}",alertstate="firing",namespace="{namespace}",release="{release}"}}'
            tests.append(case(f"{alert} {namespace}", inputs, expression, [{"labels": labels, "value": 1}]))
    judge(tmp_path, tests)


def test_schedulers_of_one_release_that_are_not_scraped(tmp_path) -> None:
    """Those of the other release are: the alert names the first."""
    inputs = [*series(RELEASES[0], {"nephila_scheduler_partitions": ""}), *series(RELEASES[1], {})]
    labels = '{namespace="a",release="web"}'
    expression = 'count by (namespace, release) (ALERTS{alertname="NephilaNoScheduler",alertstate="firing"})'
    judge(tmp_path, [case("not scraped", inputs, expression, [{"labels": labels, "value": 1}])])


@pytest.mark.parametrize("alert", FAULTS)
def test_every_alert_names_its_release(alert: str) -> None:
    (rule,) = [rule for rule in RULES if rule["alert"] == alert]
    assert "by (namespace, release" in rule["expr"]
