"""Each alert in both directions over two releases in two namespaces, by promtool: the faulty one alone has it.

A healthy run has no alert, not even a pending one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chart.test_alerts import ALERTS, RULES, promtool

MINUTES = 90
GONE = "1x20 _"
"""A series that ends after 20 minutes."""
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
    'nephila_scheduler_urls_queued{%s,pod="s-0"}': "500",
    'nephila_scheduler_hosts_waiting{%s,pod="s-0"}': "0",
    'nephila_scheduler_hosts_blocked{%s,pod="s-0"}': "3",
    'nephila_scheduler_disk_free_bytes{%s,pod="s-0"}': "6e8-1e5",
    'nephila_scheduler_disk_size_bytes{%s,pod="s-0"}': "1e9",
    'nephila_storage_disk_free_bytes{%s,pod="t-0"}': "9e11",
    'nephila_storage_disk_size_bytes{%s,pod="t-0"}': "1e12",
    'nephila_operator_leader{%s,pod="o-0"}': "1",
    'nephila_operator_leader{%s,pod="o-1"}': "0",
    'nephila_operator_resources_stalled{%s,pod="o-0",kind="CrawlJob"}': "0",
    'nephila_operator_resources_stalled{%s,pod="o-1",kind="CrawlJob"}': "0",
    'nephila_api_jobs{%s,pod="a-0",state="running"}': "2",
    'nephila_api_job_degraded{%s,pod="a-0",crawl="news"}': "_",
    'nephila_api_jobs{%s,pod="a-0",state="paused"}': "1",
    'nephila_api_backup_age_seconds{%s,pod="a-0",result="ok"}': "80000+60",
    'kubelet_volume_stats_available_bytes{%n,persistentvolumeclaim="data-%r-nephila-kafka-0"}': "5e9-1e6",
    'kubelet_volume_stats_capacity_bytes{%n,persistentvolumeclaim="data-%r-nephila-kafka-0"}': "8e9",
    'kubelet_volume_stats_available_bytes{%n,persistentvolumeclaim="data-%r-nephila-postgres-0"}': "5e9",
    'kubelet_volume_stats_capacity_bytes{%n,persistentvolumeclaim="data-%r-nephila-postgres-0"}': "8e9",
    'kubelet_volume_stats_available_bytes{%n,persistentvolumeclaim="downloads"}': "1e6",
    'kubelet_volume_stats_capacity_bytes{%n,persistentvolumeclaim="downloads"}': "8e9",
    'kube_cronjob_status_last_successful_time{%n,cronjob="%r-nephila-backup"}': "0",
    'nephila_storage_rows{%s,pod="t-0",outcome="stored"}': "0+600",
    'nephila_storage_store_login_refused{%s,pod="t-0"}': "0",
    'nephila_downloader_fetches_total{%s,pod="d-0",result="fetched"}': "0+600",
    'nephila_parser_pages_failed_total{%s,pod="p-0"}': "0",
    'nephila_parser_rule_degraded{%s,pod="p-0",rule="shop"}': "0",
    'nephila_bus_dead_letters_total{%s,pod="p-0",topic="pages",reason="child"}': "0",
    'nephila_bus_oldest_unacked_seconds{%s,pod="p-0",group="parser",topic="pages"}': "3",
}
"""Series → its values in a crawl that is well: a start that waits for two minutes, some answers 429. `%s` is namespace
and release, `%n` the namespace, `%r` the name of the release."""
FAULTS: dict[str, dict[str, str]] = {
    "NephilaCrawlStalled": {
        "nephila_downloader_fetches_total": "600",
        "nephila_scheduler_failures_total": "5",
        "nephila_storage_rows": "7",
    },
    "NephilaNoScheduler": {"nephila_scheduler_partitions": "0"},
    "NephilaMemberUnready": {"nephila_program_unready": "1"},
    "NephilaPolitenessBreach": {"nephila_scheduler_early_fetches_total": "0x75 1"},
    "NephilaHostsRefuse": {"nephila_scheduler_failures_total": "0+90"},
    "NephilaBackupFailed": {"nephila_api_backup_failed": "1"},
    "NephilaDeadLetters": {"nephila_bus_dead_letters_total": "0x75 1"},
    "NephilaPagesFail": {"nephila_parser_pages_failed_total": "0+1"},
    "NephilaRuleDegraded": {"nephila_parser_rule_degraded": "1"},
    "NephilaLagOld": {"nephila_bus_oldest_unacked_seconds": "1000"},
    "NephilaStorageSlow": {"nephila_scheduler_urls_outstanding": "95", "nephila_storage_rows": "7"},
    "NephilaPasswordRefused": {"nephila_storage_store_login_refused": "1"},
    "NephilaPublicationsHeld": {"nephila_scheduler_emissions_held_total": "0+120"},
    "NephilaSnapshotsOld": {"nephila_scheduler_snapshot_age_seconds": "30000+60"},
    "NephilaFreshnessMissed": {"nephila_scheduler_job_pages_stale": "60"},
    "NephilaWebhookFails": {"nephila_webhooks_failing_seconds": "3000+60"},
    "NephilaListFails": {"nephila_sites_fault_seconds": "3000+60"},
    "NephilaDiskFull": {"nephila_storage_disk_free_bytes": "4e10"},
    "NephilaDiskFilling": {"nephila_storage_disk_free_bytes": "4e11-1e9"},
    "NephilaVolumeFull": {"kubelet_volume_stats_available_bytes": "5e8"},
    "NephilaVolumeFilling": {"kubelet_volume_stats_available_bytes": "3.9e9-1e7"},
    "NephilaReleaseGone": dict.fromkeys((name.partition("{")[0] for name in HEALTHY), GONE),
    "NephilaHostsBlocked": {"nephila_scheduler_hosts_ready": "0"},
    "NephilaBackupOld": {"nephila_api_backup_age_seconds": "180000+60"},
    "NephilaJobStalled": {"nephila_operator_resources_stalled": "1"},
    "NephilaJobDegraded": {"nephila_api_job_degraded": "1"},
    "NephilaNoLeader": {"nephila_operator_leader": "0"},
}
"""Alert → the series that make it. Each alone: no other alert may follow."""
RELEASES = ('namespace="a",release="web"', 'namespace="b",release="blue"')


def over(values: str) -> str:
    """For the whole time: the last step is repeated."""
    *before, last = values.split()
    return " ".join([*before, f"{last}x{MINUTES}"])


def series(release: str, faults: dict[str, str]) -> list[dict[str, str]]:
    """The input of one release; a fault without values is a series that is not scraped."""
    namespace, name_of_release = (part.split('"')[1] for part in release.split(","))
    found = {
        name.replace("%s", release)
        .replace("%n", f'namespace="{namespace}"')
        .replace("%r", name_of_release): faults.get(name.partition("{")[0], values)
        for name, values in HEALTHY.items()
    }
    return [{"series": name, "values": over(values)} for name, values in found.items() if values]


def judge(folder: Path, tests: list[dict[str, Any]]) -> None:
    """Run promtool on these."""
    cases = {"rule_files": [str(ALERTS)], "evaluation_interval": "2m", "tests": tests}
    (folder / "cases.yaml").write_text(yaml.safe_dump(cases))
    done = promtool("test", "rules", str(folder / "cases.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def case(name: str, inputs: list[dict[str, str]], expression: str, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """An expression at several instants, with the same answer."""
    asked = [{"expr": expression, "eval_time": f"{at}m", "exp_samples": samples} for at in (80, 84)]
    return {"name": name, "interval": "1m", "input_series": inputs, "promql_expr_test": asked}


def test_a_healthy_run_has_no_alert_not_even_a_pending_one(tmp_path) -> None:
    inputs = [one for release in RELEASES for one in series(release, {})]
    asked = [{"expr": "ALERTS", "eval_time": f"{at}m", "exp_samples": []} for at in range(4, MINUTES, 9)]
    judge(tmp_path, [{"name": "healthy", "interval": "1m", "input_series": inputs, "promql_expr_test": asked}])


def test_each_alert_is_of_the_faulty_release_alone(tmp_path) -> None:
    assert FAULTS.keys() == {rule["alert"] for rule in RULES}
    tests = []
    for number, (alert, faults) in enumerate(FAULTS.items()):
        faulty, healthy = RELEASES[:: 1 if number % 2 else -1]
        inputs = [*series(faulty, faults), *series(healthy, {})]
        expression = "sum by (alertname, alertstate, namespace, release) (ALERTS)"
        namespace, release = (part.split('"')[1] for part in faulty.split(","))
        labels = f'{{alertname="{alert}",alertstate="firing",namespace="{namespace}",release="{release}"}}'
        count = 2 if "kubelet_volume_stats_available_bytes" in faults and "nephila_program_ready" not in faults else 1
        tests.append(case(f"{alert} {namespace}", inputs, expression, [{"labels": labels, "value": count}]))
    judge(tmp_path, tests)


SILENT: dict[str, tuple[str, dict[str, str]]] = {
    "a crawl that has ended is not stalled": ("NephilaCrawlStalled", {"nephila_scheduler_hosts_ready": "0"}),
    "a breach ends by itself": ("NephilaPolitenessBreach", {"nephila_scheduler_early_fetches_total": "0x39 1"}),
    "a small disk with room": ("NephilaDiskFull", {"nephila_scheduler_disk_free_bytes": "3e8"}),
    "a disk that empties": ("NephilaDiskFilling", {"nephila_storage_disk_free_bytes": "1e11+1e9"}),
    "paused jobs block their hosts": (
        "NephilaHostsBlocked",
        {"nephila_scheduler_hosts_ready": "0", "nephila_api_jobs": ""},
    ),
    "hosts that wait for their delay": (
        "NephilaHostsBlocked",
        {"nephila_scheduler_hosts_ready": "0", "nephila_scheduler_hosts_waiting": "7"},
    ),
    "a release without an operator": ("NephilaNoLeader", {"nephila_operator_leader": ""}),
    "a release that never made a backup": ("NephilaBackupOld", {"nephila_api_backup_age_seconds": ""}),
    "a cluster without kubelet's metrics": ("NephilaVolumeFull", {"kubelet_volume_stats_available_bytes": ""}),
}
"""What looks like a fault and is none: the alert, and the series."""


@pytest.mark.parametrize("name", SILENT)
def test_an_alert_is_silent(tmp_path: Path, name: str) -> None:
    alert, faults = SILENT[name]
    inputs = series(RELEASES[0], faults)
    if not faults.get("nephila_api_jobs", "-"):
        inputs.append({"series": f'nephila_api_jobs{{{RELEASES[0]},pod="a-0",state="paused"}}', "values": over("1")})
    judge(tmp_path, [case(name, inputs, f'ALERTS{{alertname="{alert}"}}', [])])


@pytest.mark.parametrize(
    ("claim", "release"),
    [
        ("data-web-nephila-kafka-0", "web"),
        ("data-a-b-nephila-postgres-0", "a-b"),
        ("data-nephila-kafka-0", "nephila"),
        ("data-0-web-nephila-web-nephila-pool-2", "web"),
        ("data-0-a-b-nephila-a-b-nephila-pool-0", "a-b"),
        ("data-0-nephila-nephila-pool-0", "nephila"),
    ],
)
def test_a_volume_names_its_release(tmp_path: Path, claim: str, release: str) -> None:
    """Those of StatefulSets, and those of Strimzi, which have the names of cluster and pool."""
    labels = f'namespace="a",persistentvolumeclaim="{claim}"'
    inputs = [
        {"series": f"kubelet_volume_stats_available_bytes{{{labels}}}", "values": over("1")},
        {"series": f"kubelet_volume_stats_capacity_bytes{{{labels}}}", "values": over("100")},
        {"series": 'nephila_program_ready{namespace="a",release="x",pod="s-0"}', "values": over("1")},
    ]
    expression = 'count by (release) (ALERTS{alertname="NephilaVolumeFull",alertstate="firing"})'
    judge(tmp_path, [case(claim, inputs, expression, [{"labels": f'{{release="{release}"}}', "value": 1}])])


def test_a_backup_whose_rows_fail_is_old_by_its_cronjob(tmp_path: Path) -> None:
    """The frontier's part reports a success to the API each day."""
    ago = f"-{3 * 86400}"
    inputs = series(RELEASES[0], {"kube_cronjob_status_last_successful_time": ago})
    expression = 'count by (namespace, release) (ALERTS{alertname="NephilaBackupOld",alertstate="firing"})'
    judge(tmp_path, [case("rows", inputs, expression, [{"labels": '{namespace="a",release="web"}', "value": 1}])])


def test_an_operator_that_is_gone_leads_no_more(tmp_path: Path) -> None:
    """Its pods are not scraped, those of the services are."""
    inputs = series(RELEASES[0], {"nephila_operator_leader": GONE})
    expression = 'count by (namespace, release) (ALERTS{alertname="NephilaNoLeader",alertstate="firing"})'
    judge(tmp_path, [case("gone", inputs, expression, [{"labels": '{namespace="a",release="web"}', "value": 1}])])


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
