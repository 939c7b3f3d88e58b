"""Writes the Grafana dashboards of the chart: a table of panels per dashboard, one query each.

    python -m tools.dashboards [--check]

Queries of `nephila_…` use only metrics of the services' metrics.py (a test compares them). `limits` also reads those of
cAdvisor and kube-state-metrics. The variables select namespace, release and pod.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from grafana_foundation_sdk.builders import prometheus, stat, timeseries
from grafana_foundation_sdk.builders.common import GraphThresholdsStyleConfig, VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import (
    AnnotationQuery,
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
    TextBoxVariable,
    ThresholdsConfig,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import GraphTresholdsStyleMode, LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableOption,
)
from nephila.kernel.reasons.status_words import status_reason
from nephila.kernel.reasons.table import Reason

from tools.dashboard_limits import LIMITS
from tools.dashboard_panels import HERE, Panel, latency, rate, total

FOLDER = Path(__file__).parents[1] / "charts" / "nephila" / "dashboards"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
REFUSED = f'{{{HERE[1:-1]},reason=~"{"|".join(status_reason(one) for one in (429, 503, 403))}"}}'
ROBOTS = f'{{{HERE[1:-1]},reason="{Reason.ROBOTS}"}}'
DNS_HITS = rate("nephila_downloader_dns_hits_total")
DNS_LOOKUPS = rate("nephila_downloader_dns_lookups_total")
DNS_SECONDS = rate("nephila_downloader_dns_lookup_seconds_total")
PAGES = rate("nephila_parser_pages_parsed_total")
FETCHES = rate("nephila_downloader_fetches_total")
JOB = HERE.replace("}", ',crawl=~"$crawl"}')


def of_job(metric: str, by: str = "") -> str:
    """The sum of a gauge of the chosen jobs."""
    return f"sum{f' by ({by})' if by else ''} ({metric}{JOB})"


DASHBOARDS: dict[str, tuple[str, dict[str, tuple[Panel, ...]]]] = {
    "limits": LIMITS,
    "throughput": (
        "Nephila / Throughput",
        {
            "Now": (
                Panel("Pages per second", PAGES, "reqps", text="Pages parsed, all members together.", number=True),
                Panel(
                    "Pages per minute and downloader",
                    f"60 * {PAGES} / count(nephila_downloader_requests_in_flight{HERE})",
                    text="Falls with each downloader that is added once politeness is the limit.",
                    number=True,
                ),
                Panel("URLs queued", total("nephila_scheduler_urls_queued"), number=True),
                Panel("Fetches in flight", total("nephila_scheduler_fetches_in_flight"), number=True),
            ),
            "Downloader: rate, errors, duration": (
                Panel("Fetches by result", rate("nephila_downloader_fetches_total", "result"), "reqps", "{{result}}"),
                Panel("Failures by reason", rate("nephila_scheduler_failures_total", "reason"), "reqps", "{{reason}}"),
                Panel("Fetch, median", latency("nephila_downloader_fetch_seconds", 0.5), "s"),
                Panel("Fetch, 95 %", latency("nephila_downloader_fetch_seconds", 0.95), "s"),
                Panel("First byte, 95 %", latency("nephila_downloader_first_byte_seconds", 0.95), "s"),
                Panel(
                    "Failures of users' middleware",
                    rate("nephila_downloader_middleware_failures_total", "file"),
                    "ops",
                    "{{file}}",
                ),
                Panel("Admission limit", total("nephila_downloader_admission_limit", "pod"), "short", "{{pod}}"),
                Panel("Memory reserved", total("nephila_downloader_memory_reserved_bytes", "pod"), "bytes", "{{pod}}"),
                Panel("Waiting for memory", total("nephila_downloader_memory_waiting", "pod"), "short", "{{pod}}"),
                Panel("Bodies given back for memory", rate("nephila_downloader_memory_refused_total"), "ops"),
                Panel("Slots of slow hosts", total("nephila_downloader_slow_slots", "pod"), "short", "{{pod}}"),
                Panel("Requests of slow hosts given back", rate("nephila_downloader_slow_given_back_total"), "ops"),
                Panel(
                    "Headroom of the container",
                    f"min by (pod, resource) (nephila_downloader_admission_headroom_ratio{HERE})",
                    "percentunit",
                    "{{pod}} {{resource}}",
                ),
                Panel("Bytes received", rate("nephila_downloader_wire_bytes_total"), "Bps"),
                Panel(
                    "Requests in flight by pod",
                    total("nephila_downloader_requests_in_flight", "pod"),
                    "short",
                    "{{pod}}",
                ),
            ),
            "Parser: rate, errors, duration": (
                Panel("Pages parsed by pod", rate("nephila_parser_pages_parsed_total", "pod"), "reqps", "{{pod}}"),
                Panel("Pages that failed in the parser", rate("nephila_parser_pages_failed_total"), "reqps"),
                Panel("Time per page, 95 %", latency("nephila_parser_parse_seconds", 0.95), "s"),
                Panel("Pages in child processes", total("nephila_parser_pages_in_children", "pod"), "short", "{{pod}}"),
            ),
            "Storage: rate, errors, duration": (
                Panel("Rows by outcome", total("nephila_storage_rows", "outcome"), "short", "{{outcome}}"),
                Panel(
                    "Pages checked too late",
                    "sum by (crawl) (nephila_scheduler_job_pages_stale" + HERE + ")"
                    " / sum by (crawl) (nephila_scheduler_job_pages_watched" + HERE + ")",
                    "percentunit",
                    "{{crawl}}",
                    "Share of the watched pages whose last check is older than recrawl.freshness of their job.",
                ),
                Panel("Changes of pages", rate("nephila_storage_changes_total", "change"), "reqps", "{{change}}"),
                Panel(
                    "Deliveries of webhooks",
                    rate("nephila_webhooks_deliveries_total", "webhook"),
                    "reqps",
                    "{{webhook}}",
                ),
                Panel(
                    "Failed attempts of webhooks",
                    rate("nephila_webhooks_failed_attempts_total", "webhook"),
                    "reqps",
                    "{{webhook}}",
                ),
                Panel(
                    "Dead letters of webhooks",
                    rate("nephila_webhooks_dead_letters_total", "webhook"),
                    "reqps",
                    "{{webhook}}",
                ),
                Panel(
                    "Webhooks that fail",
                    "max by (webhook) (nephila_webhooks_failing_seconds" + HERE + ")",
                    "s",
                    "{{webhook}}",
                    "Time since the receiver began to fail; its changes wait.",
                ),
                Panel(
                    "Lists of directories by verdict",
                    total("nephila_sites_lists", "verdict"),
                    "short",
                    "{{verdict}}",
                    "All but new and same are faults: see nephila sites list.",
                ),
                Panel(
                    "Directories with a fault",
                    "max by (directory) (nephila_sites_fault_seconds" + HERE + ")",
                    "s",
                    "{{directory}}",
                    "Time since a list began to fail.",
                ),
                Panel(
                    "Stored pages evaluated by changed schemes",
                    rate("nephila_storage_scheme_pages_evaluated_total", "result"),
                    "reqps",
                    "{{result}}",
                ),
                Panel("Records buffered", total("nephila_storage_records_buffered", "pod"), "short", "{{pod}}"),
                Panel("Near-copies", rate("nephila_storage_near_copies_total", "action"), "short", "{{action}}"),
                Panel("Flush, 95 %", latency("nephila_storage_flush_seconds", 0.95), "s"),
                Panel("Transaction, 95 %", latency("nephila_storage_database_seconds", 0.95), "s"),
                Panel("Rows of a flush at most", total("nephila_storage_flush_rows_limit", "pod"), "short", "{{pod}}"),
                Panel("Database away for", total("nephila_storage_store_away_seconds", "pod"), "s", "{{pod}}"),
                Panel(
                    "Password of the database refused",
                    f"max by (pod) (nephila_storage_store_login_refused{HERE})",
                    "short",
                    "{{pod}}",
                ),
                Panel("URLs without receipt", total("nephila_scheduler_urls_outstanding")),
                Panel("Limit of URLs without receipt", total("nephila_scheduler_outstanding_limit")),
            ),
            "Result": (
                Panel(
                    "URLs ended by outcome", total("nephila_scheduler_urls_ended", "outcome"), "short", "{{outcome}}"
                ),
                Panel(
                    "URLs ended without a page",
                    rate("nephila_scheduler_urls_without_page_total", "reason"),
                    "ops",
                    "{{reason}}",
                ),
            ),
        },
    ),
    "frontier": (
        "Nephila / Frontier",
        {
            "Hosts": (
                Panel("Hosts ready to fetch", total("nephila_scheduler_hosts_ready", "pod"), "short", "{{pod}}"),
                Panel(
                    "Hosts waiting for their delay", total("nephila_scheduler_hosts_waiting", "pod"), "short", "{{pod}}"
                ),
                Panel("Hosts blocked", total("nephila_scheduler_hosts_blocked", "pod"), "short", "{{pod}}"),
                Panel("Hosts known", total("nephila_scheduler_hosts", "pod"), "short", "{{pod}}"),
                Panel("Active hosts in memory", total("nephila_scheduler_hosts_hot", "pod"), "short", "{{pod}}"),
                Panel("Longest wait of a ready host", f"max(nephila_scheduler_oldest_ready_seconds{HERE})", "s"),
            ),
            "URLs": (
                Panel("URLs queued by scheduler", total("nephila_scheduler_urls_queued", "pod"), "short", "{{pod}}"),
                Panel("URLs of ready hosts", total("nephila_scheduler_urls_ready", "pod"), "short", "{{pod}}"),
                Panel("Requests handed out", rate("nephila_scheduler_requests_total", "pod"), "reqps", "{{pod}}"),
                Panel("Jobs", f"max(nephila_scheduler_jobs{HERE})"),
            ),
            "Ring": (
                Panel("Partitions by scheduler", total("nephila_scheduler_partitions", "pod"), "short", "{{pod}}"),
                Panel(
                    "Partitions by member and group",
                    total("nephila_bus_partitions", "group, pod"),
                    "short",
                    "{{group}} {{pod}}",
                ),
                Panel("Rebalances", rate("nephila_bus_rebalances_total", "group"), "ops", "{{group}}"),
                Panel("Partitions gained", rate("nephila_bus_partitions_gained_total", "group"), "ops", "{{group}}"),
                Panel("Partitions lost", rate("nephila_bus_partitions_lost_total", "group"), "ops", "{{group}}"),
                Panel("Members removed", rate("nephila_bus_evictions_total", "group"), "ops", "{{group}}"),
                Panel("URLs with lost messages", rate("nephila_scheduler_lost_messages_total"), "ops"),
                Panel(
                    "Longest hand-over of the last hour",
                    "histogram_quantile(1, sum by (le, group) "
                    f"(increase(nephila_bus_handover_seconds_bucket{HERE}[1h])))",
                    "s",
                    "{{group}}",
                    "Upper bound of the slowest take-over; its hosts are not fetched meanwhile.",
                ),
            ),
            "Log and snapshots": (
                Panel("Commits per second", rate("nephila_scheduler_commits_total", "pod"), "ops", "{{pod}}"),
                Panel(
                    "Log since the last snapshot",
                    total("nephila_scheduler_frontier_log_bytes", "pod"),
                    "bytes",
                    "{{pod}}",
                ),
                Panel(
                    "Age of the oldest snapshot", total("nephila_scheduler_snapshot_age_seconds", "pod"), "s", "{{pod}}"
                ),
                Panel(
                    "Publications held back", rate("nephila_scheduler_emissions_held_total", "pod"), "ops", "{{pod}}"
                ),
                Panel(
                    "Requests with an old epoch",
                    rate("nephila_downloader_stale_requests_total", "pod"),
                    "ops",
                    "{{pod}}",
                ),
            ),
        },
    ),
    "politeness": (
        "Nephila / Politeness",
        {
            "What the sites see": (
                Panel(
                    "Highest request rate of a host",
                    f"max by (pod) (nephila_downloader_host_requests_per_second{HERE})",
                    "reqps",
                    "{{pod}}",
                ),
                Panel(
                    "Fetches before their time",
                    f"sum(increase(nephila_scheduler_early_fetches_total{HERE}[1h]))",
                    text="In the last hour. Anything but 0 is a fault of this program.",
                ),
                Panel(
                    "Refusals (429, 503, 403)",
                    rate("nephila_scheduler_failures_total", "reason").replace(HERE, REFUSED),
                    "reqps",
                    "{{reason}}",
                    "Answers by which sites ask for less. Lower the pace of the job.",
                ),
                Panel("Block pages", rate("nephila_downloader_blocked_total", "kind"), "ops", "{{kind}}"),
                Panel(
                    "URLs denied by robots.txt",
                    rate("nephila_scheduler_urls_without_page_total").replace(HERE, ROBOTS),
                    "ops",
                    text="URLs that robots.txt forbids; they are never requested.",
                ),
            ),
            "Limits": (
                Panel("Hosts waiting for their delay", total("nephila_scheduler_hosts_waiting"), "short"),
                Panel("Shared addresses held", total("nephila_scheduler_addresses_held", "pod"), "short", "{{pod}}"),
                Panel(
                    "Address announcements", rate("nephila_scheduler_address_entries_total", "pod"), "ops", "{{pod}}"
                ),
            ),
        },
    ),
    "rules": (
        "Nephila / Rules and documents",
        {
            "Rules": (
                Panel("Degraded rules", f"max by (rule) (nephila_parser_rule_degraded{HERE})", "short", "{{rule}}"),
                Panel("Fill rate", f"min by (rule) (nephila_parser_rule_fill_rate{HERE})", "percentunit", "{{rule}}"),
                Panel("Items per second", rate("nephila_parser_items_total"), "ops"),
                Panel("Pages read by a degraded rule", rate("nephila_parser_degraded_pages_total"), "ops"),
                Panel("Alarms", rate("nephila_parser_rule_alarms_total", "pod"), "ops", "{{pod}}"),
            ),
            "Child processes": (
                Panel("Pages in child processes", total("nephila_parser_pages_in_children", "pod"), "short", "{{pod}}"),
                Panel("Children replaced", rate("nephila_parser_children_replaced_total", "pod"), "ops", "{{pod}}"),
                Panel(
                    "Rules read in a child", rate("nephila_parser_rule_pages_in_child_total", "pod"), "ops", "{{pod}}"
                ),
                Panel(
                    "Rules killed at their limits",
                    rate("nephila_parser_rule_pages_failed_total", "pod"),
                    "ops",
                    "{{pod}}",
                ),
            ),
        },
    ),
    "dns": (
        "Nephila / DNS",
        {
            "Cache": (
                Panel("Names in the cache", total("nephila_downloader_dns_names", "pod"), "short", "{{pod}}"),
                Panel(
                    "Answers from the cache",
                    f"{DNS_HITS} / ({DNS_HITS} + {DNS_LOOKUPS})",
                    "percentunit",
                    text="Share of names that were found in the cache. A fall: new hosts, or a cache too small.",
                ),
                Panel("Refreshes in the background", rate("nephila_downloader_dns_refreshes_total"), "ops"),
                Panel("Stale answers served", rate("nephila_downloader_dns_stale_served_total"), "ops"),
                Panel("Names of wildcards", rate("nephila_downloader_dns_wildcard_total"), "ops"),
            ),
            "Look-ups": (
                Panel("Look-ups", DNS_LOOKUPS, "ops"),
                Panel(
                    "Mean time of a look-up",
                    f"{DNS_SECONDS} / ({DNS_LOOKUPS} > 0)",
                    "s",
                    text="Seconds per look-up that was sent. A rise: the name servers are slow.",
                ),
                Panel("Look-ups that failed", rate("nephila_downloader_dns_failures_total"), "ops"),
            ),
        },
    ),
    "browser": (
        "Nephila / Browser",
        {
            "Pages": (
                Panel("Rendered pages", rate("nephila_downloader_browser_pages_total", "pod"), "ops", "{{pod}}"),
                Panel(
                    "Mean time of a rendered page",
                    f"{rate('nephila_downloader_browser_seconds_total')}"
                    f" / ({rate('nephila_downloader_browser_pages_total')} > 0)",
                    "s",
                    text="Seconds per page in the browser. A rise: pages are slow, or the CPU is full.",
                ),
                Panel(
                    "CPU of a rendered page",
                    f"{rate('nephila_downloader_browser_cpu_seconds_total')}"
                    f" / ({rate('nephila_downloader_browser_pages_total')} > 0)",
                    "s",
                    text="CPU-seconds of the browser per page. A rise: pages cost more, so fewer fit a core.",
                ),
                Panel("Pages by lane", rate("nephila_downloader_browser_lane_total", "lane"), "ops", "{{lane}}"),
                Panel("Pages compared in both lanes", rate("nephila_downloader_browser_compared_total"), "ops"),
                Panel("Sub-requests", rate("nephila_downloader_browser_sub_requests_total"), "reqps"),
                Panel(
                    "Refused sub-requests",
                    rate("nephila_downloader_browser_blocked_total", "reason"),
                    "ops",
                    "{{reason}}",
                ),
            ),
            "Processes": (
                Panel("Browser processes", total("nephila_downloader_browser_processes", "pod"), "short", "{{pod}}"),
                Panel(
                    "Memory of browsers", total("nephila_downloader_browser_memory_bytes", "pod"), "bytes", "{{pod}}"
                ),
                Panel("Browsers started", rate("nephila_downloader_browser_launched_total"), "ops"),
                Panel(
                    "Browsers ended", rate("nephila_downloader_browser_retired_total", "reason"), "ops", "{{reason}}"
                ),
                Panel("Browser crashes", rate("nephila_downloader_browser_crashes_total"), "ops"),
            ),
        },
    ),
    "proxies": (
        "Nephila / Proxies",
        {
            "Proxies": (
                Panel("Proxies that requests may use", total("nephila_downloader_proxy_alive"), number=True),
                Panel(
                    "Requests without a proxy in the last hour",
                    f"sum(increase(nephila_downloader_proxy_none_total{HERE}[1h]))",
                    number=True,
                ),
                Panel(
                    "Bans in the last hour",
                    f"sum(increase(nephila_downloader_proxy_bans_total{HERE}[1h]))",
                    number=True,
                ),
                Panel(
                    "Evictions in the last hour",
                    f"sum(increase(nephila_downloader_proxy_evicted_total{HERE}[1h]))",
                    number=True,
                ),
                Panel("Proxies by state", total("nephila_downloader_proxy_proxies", "state"), "short", "{{state}}"),
                Panel(
                    "Requests by class", rate("nephila_downloader_proxy_requests_total", "class"), "reqps", "{{class}}"
                ),
                Panel(
                    "Proxy failures by fault",
                    rate("nephila_downloader_proxy_failures_total", "fault"),
                    "ops",
                    "{{fault}}",
                ),
                Panel("Proxies admitted again", rate("nephila_downloader_proxy_readmitted_total"), "ops"),
                Panel("Pages compared through another proxy", rate("nephila_downloader_proxy_compared_total"), "ops"),
                Panel("Pages that could not be compared", rate("nephila_downloader_proxy_unchecked_total"), "ops"),
                Panel("Pages different at each proxy", rate("nephila_downloader_proxy_undecided_total"), "ops"),
                Panel("Pages of proxies that lie", rate("nephila_downloader_proxy_retracted_total"), "ops"),
            ),
        },
    ),
    "system": (
        "Nephila / System",
        {
            "Members": (
                Panel("Members ready", f"sum(nephila_program_ready{HERE})", number=True),
                Panel("Members", f"count(nephila_program_ready{HERE})", text="Members that answer.", number=True),
                Panel(
                    "Dead letters of the last hour",
                    f"sum(increase(nephila_bus_dead_letters_total{HERE}[1h])) or vector(0)",
                    number=True,
                ),
                Panel(
                    "Releases",
                    f"count(count by (version) (nephila_build_info{HERE}))",
                    text="1 but in an upgrade.",
                    number=True,
                ),
                Panel(
                    "Unready members by reason",
                    total("nephila_program_unready", "reason, pod"),
                    "short",
                    "{{pod}} {{reason}}",
                ),
                Panel(
                    "CPU by pod", rate("process_cpu_seconds_total", "pod"), "percentunit", "{{pod}}", "Cores in use."
                ),
                Panel(
                    "Memory by pod",
                    total("process_resident_memory_bytes", "pod"),
                    "bytes",
                    "{{pod}}",
                    "Resident memory.",
                ),
                Panel(
                    "Delay of the event loop, 99 %",
                    latency("nephila_program_loop_delay_seconds", 0.99, "pod"),
                    "s",
                    "{{pod}}",
                ),
            ),
            "Bus": (
                Panel("Lag by topic", total("nephila_bus_lag_records", "group, topic"), "short", "{{group}} {{topic}}"),
                Panel(
                    "Oldest unacked record",
                    f"max by (group, topic) (nephila_bus_oldest_unacked_seconds{HERE})",
                    "s",
                    "{{group}} {{topic}}",
                ),
                Panel("Messages unacked", total("nephila_bus_unacked", "pod"), "short", "{{pod}}"),
                Panel(
                    "Dead letters",
                    rate("nephila_bus_dead_letters_total", "topic, reason"),
                    "ops",
                    "{{topic}} {{reason}}",
                ),
                Panel("Consumers replaced", rate("nephila_bus_consumers_replaced_total", "group"), "ops", "{{group}}"),
                Panel("Failed backup", f"max(nephila_api_backup_failed{HERE})"),
                Panel(
                    "Age of the newest backup",
                    f"min by (result) (nephila_api_backup_age_seconds{HERE})",
                    "s",
                    "{{result}}",
                ),
                Panel(
                    "Isolated partitions",
                    total("nephila_bus_isolated_partitions", "group, pod"),
                    "short",
                    "{{group}} {{pod}}",
                ),
            ),
            "Disks": (
                Panel("Free disk of schedulers", total("nephila_scheduler_disk_free_bytes", "pod"), "bytes", "{{pod}}"),
                Panel("Free disk of storage", total("nephila_storage_disk_free_bytes", "pod"), "bytes", "{{pod}}"),
                Panel(
                    "Size of the disk of schedulers",
                    total("nephila_scheduler_disk_size_bytes", "pod"),
                    "bytes",
                    "{{pod}}",
                ),
                Panel(
                    "Size of the disk of storage", total("nephila_storage_disk_size_bytes", "pod"), "bytes", "{{pod}}"
                ),
            ),
            "Operator": (
                Panel("Leading operators", total("nephila_operator_leader")),
                Panel("Resources", total("nephila_operator_resources", "kind"), "short", "{{kind}}"),
                Panel("Degraded resources", total("nephila_operator_resources_degraded", "kind"), "short", "{{kind}}"),
                Panel("Degraded jobs", f"max by (crawl) (nephila_api_job_degraded{HERE})", "short", "{{crawl}}"),
                Panel("Stalled resources", total("nephila_operator_resources_stalled", "kind"), "short", "{{kind}}"),
                Panel("Reconciliations", rate("nephila_operator_reconciliations_total", "result"), "ops", "{{result}}"),
                Panel("Refused files of rules", total("nephila_operator_rule_files_refused")),
            ),
        },
    ),
    "job": (
        "Nephila / Job",
        {
            "Job": (
                Panel("URLs queued", of_job("nephila_scheduler_job_urls_queued"), number=True),
                Panel("URLs between queue and receipt", of_job("nephila_scheduler_job_urls_outstanding"), number=True),
                Panel(
                    "URLs ended", of_job("nephila_scheduler_job_urls_ended"), text="All outcomes together.", number=True
                ),
                Panel(
                    "Stored",
                    of_job("nephila_scheduler_job_urls_ended").replace("}", ',outcome="stored"}'),
                    text="Pages in the table.",
                    number=True,
                ),
                Panel("Queue", of_job("nephila_scheduler_job_urls_queued", "crawl"), "short", "{{crawl}}"),
                Panel(
                    "Ended per minute",
                    f"60 * sum by (outcome) (deriv(nephila_scheduler_job_urls_ended{JOB}[2m]))",
                    "short",
                    "{{outcome}}",
                    "Slope of the counts by outcome. Flat: the job stands still, or is done.",
                ),
                Panel(
                    "Outcomes",
                    of_job("nephila_scheduler_job_urls_ended", "crawl, outcome"),
                    "short",
                    "{{crawl}} {{outcome}}",
                ),
            ),
        },
    ),
}
"""File name → title, rows of panels."""


VARIABLES = (
    ("namespace", "Namespace", "label_values(nephila_scheduler_partitions, namespace)"),
    ("release", "Release", 'label_values(nephila_scheduler_partitions{namespace="$namespace"}, release)'),
    ("pod", "Pod", 'label_values(nephila_build_info{namespace="$namespace",release=~"$release"}, pod)'),
)
ALL = VariableOption(text="All", value="$__all", selected=True)
ANNOTATIONS = (
    (
        "Scaling",
        'changes(kube_deployment_status_replicas{namespace="$namespace"}[1m]) > 0'
        ' or changes(kube_statefulset_status_replicas{namespace="$namespace"}[1m]) > 0',
        "blue",
    ),
    ("Kills", 'increase(kube_pod_container_status_restarts_total{namespace="$namespace",pod=~"$pod"}[1m]) > 0', "red"),
)
"""Marks in all graphs: title, query over kube-state-metrics, colour."""


def build(name: str) -> str:
    """One dashboard as JSON."""
    title, rows = DASHBOARDS[name]
    board = Dashboard(title).uid(f"nephila-{name}").tags(["nephila"]).refresh("10s").time("now-1h", "now").readonly()
    board = board.with_variable(_source())
    for variable, label, query in VARIABLES:
        board = board.with_variable(_variable(variable, label, query))
    if name == "job":
        query = f"label_values(nephila_scheduler_job_urls_queued{HERE}, crawl)"
        board = board.with_variable(QueryVariable("crawl").label("Job").datasource(SOURCE).query(query).multi(True))
    if name == "limits":
        board = board.with_variable(TextBoxVariable("price").label("Price of a core-hour").default_value("0.04"))
    for title, query, colour in ANNOTATIONS:
        note = AnnotationQuery().name(title).datasource(SOURCE).expr(query).icon_color(colour).enable(True)
        board = board.annotation(note)
    board = board.link(
        DashboardLink("Nephila")
        .type("dashboards")
        .tags(["nephila"])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )
    for heading, panels in rows.items():
        board = board.with_row(Row(heading))
        for panel in panels:
            board = board.with_panel(_stat(panel) if panel.number else _graph(panel))
    return JSONEncoder(sort_keys=True, indent=1).encode(board.build()) + "\n"


def _variable(name: str, label: str, query: str) -> QueryVariable:
    """All but the namespace may be all of them: a Prometheus that adds no release still has answers."""
    found = QueryVariable(name).label(label).datasource(SOURCE).query(query)
    return found if name == "namespace" else found.include_all(True).all_value(".*").multi(True).current(ALL)


def _source() -> DatasourceVariable:
    return DatasourceVariable("datasource").label("Data source").type("prometheus")


def _queries(panel: Panel) -> list[prometheus.Dataquery]:
    pairs = ((panel.query, panel.legend or panel.title), *panel.more)
    return [
        prometheus.Dataquery().expr(query).legend_format(legend).ref_id(chr(ord("A") + number)).range()
        for number, (query, legend) in enumerate(pairs)
    ]


def _thresholds(panel: Panel) -> ThresholdsConfig:
    steps = [(None, "green")]
    if panel.warn is not None and panel.alarm is not None:
        rises = panel.alarm >= panel.warn
        steps += [(panel.warn, "yellow"), (panel.alarm, "red")] if rises else []
        steps = steps if rises else [(None, "red"), (panel.alarm, "yellow"), (panel.warn, "green")]
    return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps([Threshold(value, colour) for value, colour in steps])


def _stat(panel: Panel) -> stat.Panel:
    found = (
        stat.Panel()
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .thresholds(_thresholds(panel))
        .span(6)
        .height(4)
    )
    if panel.words:
        words = {str(value): ValueMappingResult(text, colour) for value, (text, colour) in panel.words.items()}
        found = found.mappings([ValueMap(words)])
    for query in _queries(panel):
        found = found.with_target(query)
    return found


def _graph(panel: Panel) -> timeseries.Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    found = (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.description)
        .datasource(SOURCE)
        .unit(panel.unit)
        .min(0)
        .span(8)
        .height(8)
        .legend(legend)
    )
    if panel.alarm is not None:
        found = found.thresholds(_thresholds(panel))
        found = found.thresholds_style(GraphThresholdsStyleConfig().mode(GraphTresholdsStyleMode.LINE))
    for query in _queries(panel):
        found = found.with_target(query)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file differs")
    check = parser.parse_args().check
    for name in DASHBOARDS:
        path, text = FOLDER / f"{name}.json", build(name)
        if check and (not path.exists() or path.read_text() != text):
            sys.exit(f"{path.name} differs from tools/dashboards.py: run `make chart` and commit the result")
        path.write_text(text)


if __name__ == "__main__":
    main()
