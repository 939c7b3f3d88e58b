"""Writes the Grafana dashboards of the chart: a table of panels per dashboard, one query each.

    python -m tools.dashboards [--check]

Queries use only metrics of the services' metrics.py (a test compares them). `$namespace` selects one release.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from grafana_foundation_sdk.builders import prometheus, stat, timeseries
from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import DataSourceRef

FOLDER = Path(__file__).parents[1] / "charts" / "nephila" / "dashboards"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
HERE = '{namespace="$namespace"}'
REFUSED = '{namespace="$namespace",reason=~"http_429|http_403|robots"}'


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph: its title, query, unit of Grafana, legend, and what a reader learns."""

    title: str
    query: str
    unit: str = "short"
    legend: str = ""
    text: str = ""
    number: bool = False


def rate(metric: str, by: str = "") -> str:
    """The sum of a counter's rate, by a label."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{HERE}[$__rate_interval]))"


def total(metric: str, by: str = "") -> str:
    """The sum of a gauge."""
    return f"sum{f' by ({by})' if by else ''} ({metric}{HERE})"


DNS_HITS = rate("nephila_downloader_dns_hits_total")
DNS_LOOKUPS = rate("nephila_downloader_dns_lookups_total")
DNS_SECONDS = rate("nephila_downloader_dns_lookup_seconds_total")
PAGES = rate("nephila_parser_pages_parsed_total")
DASHBOARDS: dict[str, tuple[str, dict[str, tuple[Panel, ...]]]] = {
    "throughput": (
        "Nephila / Throughput",
        {
            "Now": (
                Panel("Pages per second", PAGES, "reqps", number=True),
                Panel(
                    "Pages per minute and downloader",
                    f"60 * {PAGES} / count(nephila_downloader_requests_in_flight{HERE})",
                    number=True,
                ),
                Panel("URLs queued", total("nephila_scheduler_urls_queued"), number=True),
                Panel("Fetches in flight", total("nephila_scheduler_fetches_in_flight"), number=True),
            ),
            "Rate, errors, duration": (
                Panel("Fetches by result", rate("nephila_downloader_fetches_total", "result"), "reqps", "{{result}}"),
                Panel("Pages parsed by pod", rate("nephila_parser_pages_parsed_total", "pod"), "reqps", "{{pod}}"),
                Panel("Failures by reason", rate("nephila_scheduler_failures_total", "reason"), "reqps", "{{reason}}"),
                Panel("Bytes received", rate("nephila_downloader_wire_bytes_total"), "Bps"),
                Panel(
                    "URLs ended by outcome", total("nephila_scheduler_urls_ended", "outcome"), "short", "{{outcome}}"
                ),
                Panel("CPU by pod", rate("process_cpu_seconds_total", "pod"), "percentunit", "{{pod}}"),
                Panel("Memory by pod", total("process_resident_memory_bytes", "pod"), "bytes", "{{pod}}"),
                Panel(
                    "Pages that failed in the parser",
                    rate("nephila_parser_pages_failed_total"),
                    "reqps",
                    text="Any rise is a fault.",
                ),
            ),
            "DNS": (
                Panel("Names in the cache", total("nephila_downloader_dns_names", "pod"), "short", "{{pod}}"),
                Panel("Answers from the cache", f"{DNS_HITS} / ({DNS_HITS} + {DNS_LOOKUPS})", "percentunit"),
                Panel("Mean time of a look-up", f"{DNS_SECONDS} / {DNS_LOOKUPS}", "s"),
                Panel("Look-ups that failed", rate("nephila_downloader_dns_failures_total"), "ops"),
                Panel("Refreshes in the background", rate("nephila_downloader_dns_refreshes_total"), "ops"),
                Panel("Stale answers served", rate("nephila_downloader_dns_stale_served_total"), "ops"),
            ),
            "Storage": (
                Panel(
                    "URLs without receipt",
                    total("nephila_scheduler_urls_outstanding"),
                    text="At the limit, the parser or storage is the bottleneck.",
                ),
                Panel("Limit of URLs without receipt", total("nephila_scheduler_outstanding_limit")),
                Panel(
                    "Records buffered",
                    total("nephila_storage_records_buffered"),
                    text="A rise: the database is the limit.",
                ),
                Panel("Rows by outcome", total("nephila_storage_rows", "outcome"), "short", "{{outcome}}"),
            ),
        },
    ),
    "frontier": (
        "Nephila / Frontier and politeness",
        {
            "Hosts and URLs": (
                Panel("URLs queued by scheduler", total("nephila_scheduler_urls_queued", "pod"), "short", "{{pod}}"),
                Panel("Hosts", total("nephila_scheduler_hosts", "pod"), "short", "{{pod}}"),
                Panel("Hosts ready to fetch", total("nephila_scheduler_hosts_ready", "pod"), "short", "{{pod}}"),
                Panel("URLs of ready hosts", total("nephila_scheduler_urls_ready", "pod"), "short", "{{pod}}"),
                Panel("Longest wait of a ready host", f"max(nephila_scheduler_oldest_ready_seconds{HERE})", "s"),
                Panel("Active hosts in memory", total("nephila_scheduler_hosts_hot", "pod"), "short", "{{pod}}"),
                Panel("Jobs", f"max(nephila_scheduler_jobs{HERE})"),
            ),
            "Partitions": (
                Panel(
                    "Partitions by scheduler",
                    total("nephila_scheduler_partitions", "pod"),
                    "short",
                    "{{pod}}",
                    "Movement of the ring.",
                ),
                Panel("Commits per second", rate("nephila_scheduler_commits_total", "pod"), "ops", "{{pod}}"),
                Panel(
                    "Log since the last snapshot",
                    total("nephila_scheduler_frontier_log_bytes", "pod"),
                    "bytes",
                    "{{pod}}",
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
            "Politeness": (
                Panel(
                    "Requests sent to downloaders", rate("nephila_scheduler_requests_total", "pod"), "reqps", "{{pod}}"
                ),
                Panel("Shared addresses held", total("nephila_scheduler_addresses_held", "pod"), "short", "{{pod}}"),
                Panel(
                    "Address announcements", rate("nephila_scheduler_address_entries_total", "pod"), "ops", "{{pod}}"
                ),
                Panel(
                    "Refusals (429, 403, robots)",
                    rate("nephila_scheduler_failures_total", "reason").replace(HERE, REFUSED),
                    "reqps",
                    "{{reason}}",
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
}
"""File name → title, rows of panels."""


def build(name: str) -> str:
    """One dashboard as JSON."""
    title, rows = DASHBOARDS[name]
    board = Dashboard(title).uid(f"nephila-{name}").tags(["nephila"]).refresh("10s").time("now-1h", "now").readonly()
    board = board.with_variable(_source()).with_variable(
        QueryVariable("namespace")
        .label("Namespace")
        .datasource(SOURCE)
        .query("label_values(nephila_scheduler_partitions, namespace)")
    )
    for heading, panels in rows.items():
        board = board.with_row(Row(heading))
        for panel in panels:
            board = board.with_panel(_stat(panel) if panel.number else _graph(panel))
    return JSONEncoder(sort_keys=True, indent=1).encode(board.build()) + "\n"


def _source() -> DatasourceVariable:
    return DatasourceVariable("datasource").label("Data source").type("prometheus")


def _query(panel: Panel) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(panel.query).legend_format(panel.legend or panel.title).range()


def _stat(panel: Panel) -> stat.Panel:
    return (
        stat.Panel().title(panel.title).datasource(SOURCE).unit(panel.unit).span(6).height(4).with_target(_query(panel))
    )


def _graph(panel: Panel) -> timeseries.Panel:
    legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM).show_legend(True)
    return (
        timeseries.Panel()
        .title(panel.title)
        .description(panel.text)
        .datasource(SOURCE)
        .unit(panel.unit)
        .min(0)
        .span(8)
        .height(8)
        .legend(legend)
        .with_target(_query(panel))
    )


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
