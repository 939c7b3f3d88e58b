"""`nephila service capacity`: replicas, cores, bytes and partitions that a crawl needs, each figure with its source."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from nephila.cli.options import Json
from nephila.cli.output import print_json
from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_tools.capacity.plan import CrawlVolume, PlanLine, plan, refusals

UNITS = ("", "k", "M", "G", "T", "P")


def capacity(
    pages_per_day: Annotated[float | None, typer.Option(help="Pages per day, such as 1e8.")] = None,
    pages: Annotated[float | None, typer.Option(help="Pages in all; with --days.")] = None,
    days: Annotated[float, typer.Option(help="Length of the crawl.")] = 30.0,
    page_bytes: Annotated[float, typer.Option(help="Mean size of a page.")] = 80_000,
    hosts: Annotated[float, typer.Option(help="Hosts that are crawled at the same time.")] = 100_000,
    delay: Annotated[float, typer.Option(help="Seconds between two fetches of a host.")] = 1.0,
    fetch: Annotated[float, typer.Option(help="Mean seconds of a fetch.")] = 0.5,
    urls_per_page: Annotated[float, typer.Option(help="Known URLs per fetched page.")] = 4.0,
    retention_days: Annotated[float, typer.Option(help="Days that Kafka keeps messages.")] = 7.0,
    replication: Annotated[int, typer.Option(help="Replicas of each partition in Kafka.")] = 3,
    scheduler_memory_gb: Annotated[float, typer.Option(help="Memory of one scheduler.")] = 4.0,
    databases: Annotated[int, typer.Option(help="PostgreSQL servers that share the rows.")] = 1,
    partitions: Annotated[int, typer.Option(help="Partitions of each topic; 0: as many as the members need.")] = 0,
    as_json: Json = False,
) -> None:
    """Replicas, cores, memory, disks and bandwidth for a crawl. Each line names the measurement it is computed from.

    A plan beyond a measured limit is refused: one line per limit with its source and the remedy.

    The figures are from one machine with 2 vCPU; measure your own pages before you buy hardware.
    """
    if (pages_per_day is None) == (pages is None):
        raise UsageError("give one of --pages-per-day and --pages")
    values = (pages_per_day or pages or 0, days, page_bytes, hosts, fetch, urls_per_page, retention_days)
    if min(*values, replication, scheduler_memory_gb, databases) <= 0 or min(delay, partitions) < 0:
        raise UsageError("every figure must be above 0 (--delay and --partitions may be 0)")
    target = CrawlVolume(
        pages_per_day if pages_per_day is not None else (pages or 0) / days,
        days,
        page_bytes,
        hosts,
        delay,
        fetch,
        urls_per_page,
        retention_days,
        replication,
        scheduler_memory_gb * 1e9,
        databases,
        partitions,
    )
    if refused := refusals(target):
        raise UserError("; ".join(refused))
    lines = plan(target)
    if as_json:
        entries = [dataclasses.asdict(line) for line in lines]
        print_json({"target": dataclasses.asdict(target), "plan": entries})
        return
    print(table(lines))


def table(lines: list[PlanLine]) -> str:
    """The plan as text."""
    rows = [(line.part, line.what, amount(line), line.how, line.source.rpartition("/")[2]) for line in lines]
    head = ("part", "what", "value", "calculation", "source")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    texts = []
    for row in (head, *rows):
        cells = [
            text.rjust(width) if at == 2 else text.ljust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        texts.append("  ".join(cells).rstrip())
    return "\n".join(texts)


def amount(line: PlanLine) -> str:
    """A number with its unit: 1.2 GB, 64, 0.3 cores."""
    value, step = line.value, 0
    if line.unit.startswith("B"):
        while value >= 1000 and step < len(UNITS) - 1:
            value, step = value / 1000, step + 1
    digits = 0 if value >= 100 or (value == int(value) and not step) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {UNITS[step]}{line.unit}".rstrip()
