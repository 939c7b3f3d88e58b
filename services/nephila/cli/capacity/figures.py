"""The measured figures that a capacity plan is computed from, each with its source.

A figure changes when its bench is measured again; docs/operations.md shows a plan, and a test recomputes it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number."""

    value: float
    source: str


SERVICES = "benchmarks/results/20261122T030624Z-services.json"
WIRE = "benchmarks/results/20261122T185218Z-wire.json"
FRONTIER = "benchmarks/results/20261122T010824Z-frontier.json"
SEEN = "benchmarks/results/20261122T010457Z-seen.json"

PAGE_BYTES = 80_000
"""Size of the pages of all benches; CPU of downloader and parser, and bytes, are taken as proportional to it."""
SCHEDULER_CPU_S = Figure(0.225e-3, SERVICES)
DOWNLOADER_CPU_S = Figure(0.437e-3, SERVICES)
PARSER_CPU_S = Figure(0.635e-3, SERVICES)
STORAGE_CPU_S = Figure(0.117e-3, SERVICES)
BROKER_CPU_S = Figure(0.738e-3, SERVICES)
DATABASE_CPU_S = Figure(0.183e-3, SERVICES)
PAGE_RECORD_BYTES = Figure(17_463 / 85_893, WIRE)
"""Bytes in the topic pages per byte of a page (zstd)."""
OTHER_RECORD_BYTES = Figure((98 + 58 + 43 + 2_786 + 12_093) / 85_893, WIRE)
"""Bytes in all other topics but frontier, per byte of a page."""
ROW_BYTES = Figure(20_163 / 85_893, WIRE)
"""Growth of PostgreSQL per byte of a page: text, metadata, indices."""
LOG_BYTES_PER_URL = Figure(129, FRONTIER)
"""Bytes in the topic frontier per new URL."""
SEEN_BYTES_PER_URL = Figure(17.8, SEEN)
"""Memory of the seen set per known URL."""
HOST_BYTES = Figure(284, FRONTIER)
"""Memory per host: (493 MB - 31 MB program - 178 MB seen set) / 10⁶ hosts, with ten queued URLs each."""
QUEUED_BYTES = Figure(144, FRONTIER)
"""Disk of the scheduler per queued URL: 1,442 MB / 10⁷."""
SERVICE_BYTES = Figure(200e6, "benchmarks/results/20261121T114035Z-memory.json")
"""Memory of a program under load."""
PARTITIONS_PER_MEMBER = Figure(16, "docs/adr/0014-ring-with-a-memory.md")
"""Partitions per member for an even load."""
