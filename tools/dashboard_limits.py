"""The first page for an operator: which stage limits the crawl now and why, what is left, what it costs."""

from __future__ import annotations

from tools.dashboard_panels import HERE, Panel, latency, rate, total

QUEUED = total("nephila_scheduler_urls_queued")
READY = total("nephila_scheduler_hosts_ready")
WAITING = total("nephila_scheduler_hosts_waiting")
BLOCKED = total("nephila_scheduler_hosts_blocked")
FETCHES = rate("nephila_downloader_fetches_total")
PAGES = rate("nephila_parser_pages_parsed_total")
HELD = rate("nephila_scheduler_emissions_held_total")
RECEIPTS = f"{total('nephila_scheduler_urls_outstanding')} / {total('nephila_scheduler_outstanding_limit')}"
SLOTS = f"{total('nephila_downloader_requests_in_flight')} / {total('nephila_downloader_admission_limit')}"
POLITE = f"({WAITING} + {BLOCKED}) / ({WAITING} + {BLOCKED} + {READY})"
OURS = 'namespace="$namespace",pod=~"$pod"'
TENANT_FETCHES = rate("nephila_scheduler_tenant_fetches_total", "tenant")
CPU = f'sum by (pod) (rate(container_cpu_usage_seconds_total{{{OURS},container!=""}}[$__rate_interval]))'
ALL_CPU = f'sum(rate(container_cpu_usage_seconds_total{{{OURS},container!=""}}[$__rate_interval]))'
REQUESTS = f'sum by (pod) (kube_pod_container_resource_requests{{{OURS},resource="cpu"}})'
BOUNDS = f'sum by (pod) (kube_pod_container_resource_limits{{{OURS},resource="cpu"}})'
STAGE = (
    f"(({HELD}) > 1) * 0 + 4 or (({RECEIPTS}) > 0.9) * 0 + 3 or (({SLOTS}) > 0.9 and {READY} > 0) * 0 + 2"
    f" or (({QUEUED}) > 0) * 0 + 1 or vector(0)"
)
"""The first stage from the end that is at its limit: those before it wait for it."""

LIMITS = (
    "Nephila / What limits now",
    {
        "Now": (
            Panel(
                "Limiting stage",
                STAGE,
                text="broker: schedulers hold publications back. database: URLs without receipt are at their limit, so "
                "the parser or storage is too slow. capacity: hosts are ready, and all slots of the downloaders are "
                "in use; add downloaders. politeness: hosts wait for their delays; more members change nothing. "
                "idle: nothing is queued.",
                number=True,
                words={
                    0: ("idle", "blue"),
                    1: ("politeness", "green"),
                    2: ("capacity", "yellow"),
                    3: ("database", "orange"),
                    4: ("broker", "red"),
                },
            ),
            Panel("Pages per second", PAGES, "reqps", text="Pages parsed, all members together.", number=True),
            Panel(
                "Time left at this rate",
                f"{QUEUED} / {FETCHES}",
                "s",
                text="Queued URLs by the present rate of fetches. It rises while the crawl finds more than it fetches.",
                number=True,
            ),
            Panel(
                "Members that are not ready",
                f"sum(1 - nephila_program_ready{HERE})",
                text="Above 0: nephila doctor --cluster names the reasons.",
                number=True,
                warn=1,
                alarm=3,
            ),
        ),
        "Why": (
            Panel(
                "Share of hosts that wait for politeness",
                POLITE,
                "percentunit",
                text="Hosts with queued URLs whose delay, pause, address or budget is not over, of all with queued "
                "URLs. Near 100 %: politeness is the limit.",
            ),
            Panel(
                "Slots of downloaders in use",
                SLOTS,
                "percentunit",
                text="Requests in flight by the admission limit. Above 90 % while hosts are ready: capacity is the "
                "limit.",
                warn=0.9,
                alarm=1.0,
            ),
            Panel(
                "URLs without receipt, of their limit",
                RECEIPTS,
                "percentunit",
                text="Above 90 %: the parser, storage or the database is the limit.",
                warn=0.9,
                alarm=1.0,
            ),
            Panel(
                "Publications held back",
                HELD,
                "ops",
                text="Schedulers wait for heartbeats. Above 1 per second: the broker is the limit.",
                warn=0.1,
                alarm=1.0,
            ),
            Panel("Transaction of the database, 95 %", latency("nephila_storage_database_seconds", 0.95), "s"),
            Panel(
                "Delay of event loops, 95 %", latency("nephila_program_loop_delay_seconds", 0.95, "pod"), "s", "{{pod}}"
            ),
        ),
        "Hosts and queues": (
            Panel(
                "Hosts by what they wait for",
                READY,
                legend="a slot of a downloader",
                text="Hosts with queued URLs. nephila explain URL has the one host.",
                more=((WAITING, "delay or pause"), (BLOCKED, "address, budget or paused job")),
            ),
            Panel(
                "Backlog",
                QUEUED,
                legend="queued",
                text="Queued URLs, those of hosts that are ready, and URLs without receipt.",
                more=(
                    (total("nephila_scheduler_urls_ready"), "on hosts that are ready"),
                    (total("nephila_scheduler_urls_outstanding"), "without receipt"),
                ),
            ),
            Panel(
                "Longest wait of a ready host",
                f"max by (pod) (nephila_scheduler_oldest_ready_seconds{HERE})",
                "s",
                "{{pod}}",
                warn=60,
                alarm=600,
            ),
            Panel("Backlog by job", total("nephila_scheduler_job_urls_queued", "crawl"), "short", "{{crawl}}"),
            Panel(
                "Lag by topic and member",
                total("nephila_bus_lag_records", "group, topic, pod"),
                "short",
                "{{group}} {{topic}} {{pod}}",
            ),
            Panel(
                "Oldest record that is not processed",
                f"max by (group, topic) (nephila_bus_oldest_unacked_seconds{HERE})",
                "s",
                "{{group}} {{topic}}",
                warn=300,
                alarm=900,
            ),
        ),
        "CPU and cost": (
            Panel(
                "CPU beside request and limit",
                CPU,
                "short",
                "{{pod}}",
                "Cores in use by pod, with what the pod requests and its limit (cAdvisor, kube-state-metrics).",
                more=((REQUESTS, "{{pod}} requested"), (BOUNDS, "{{pod}} limit")),
            ),
            Panel(
                "CPU-seconds per 1,000 pages",
                f"1000 * {ALL_CPU} / {PAGES}",
                "s",
                text="Of the selected pods: broker and database count when they are selected.",
            ),
            Panel(
                "Cost per 1,000 pages",
                f"1000 * {ALL_CPU} / {PAGES} / 3600 * $price",
                text="CPU in use by the variable price, per core and hour. Memory, disks and traffic are not in it.",
            ),
            Panel(
                "Bytes received per 1,000 pages",
                f"1000 * {rate('nephila_downloader_wire_bytes_total')} / {PAGES}",
                "bytes",
                text="Traffic that a provider may charge for.",
            ),
        ),
        "Tenants": (
            Panel(
                "Fetches by tenant",
                TENANT_FETCHES,
                "reqps",
                "{{tenant}}",
                "Pages that the jobs of a tenant fetch. Jobs without a tenant are left out.",
            ),
            Panel(
                "Cost per hour by tenant",
                f"{TENANT_FETCHES} / on () group_left () {FETCHES} * on () group_left () ({ALL_CPU} * $price)",
                legend="{{tenant}}",
                text="CPU in use by the variable price, divided by the fetches of the tenants.",
            ),
            Panel(
                "Bytes received by tenant",
                rate("nephila_scheduler_tenant_wire_bytes_total", "tenant"),
                "Bps",
                "{{tenant}}",
                "Traffic of its pages.",
            ),
            Panel(
                "Browsers in use by tenant",
                rate("nephila_scheduler_tenant_browser_seconds_total", "tenant"),
                "short",
                "{{tenant}}",
                "Seconds in a browser per second.",
            ),
            Panel(
                "Quota of tenants in use",
                f"max by (tenant) (nephila_scheduler_tenant_quota_used_ratio{HERE})",
                "percentunit",
                "{{tenant}}",
                "Pages, bytes or browser time of the period, whichever is most. At 100 % the jobs of the tenant wait.",
                warn=0.8,
                alarm=1.0,
            ),
        ),
    },
)
