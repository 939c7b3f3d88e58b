"""`nephila hosts --graph DIR`: the host graph as Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints

from nephila.cli.output import note
from nephila.cli.terminal import sanitize
from nephila.kernel.runtime.errors import UserError
from nephila.storage.source import Source
from nephila_stores.formats.parquet_file import require_arrow

from nephila_tools.host_graph.domains import RankedDomain, ranked_domains
from nephila_tools.host_graph.graph import HostLinks, RankedHost, host_graph
from nephila_tools.host_graph.ranks import DOMAINS

HOSTS: Final = "hosts.parquet"
EDGES: Final = "host-links.parquet"


def write_host_graph(source: Source, job: str | None, directory: Path) -> None:
    """Write the files, each at once or not at all. Raises `UserError`."""
    arrow = require_arrow()
    graph = host_graph(source, job)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write(arrow, directory / EDGES, HostLinks, graph.edges)
        _write(arrow, directory / HOSTS, RankedHost, graph.hosts)
        _write(arrow, directory / DOMAINS, RankedDomain, ranked_domains(graph.hosts, graph.edges))
    except OSError as error:
        raise UserError(f"{directory}: cannot write the graph: {error.strerror or error}") from None
    mirrors = sum(1 for host in graph.hosts if host.mirror_of)
    note(
        f"{len(graph.hosts):,} hosts and {len(graph.edges):,} links between two of them, written to {directory}/{HOSTS}"
        f", {EDGES} and {DOMAINS}" + (f"; {mirrors:,} hosts are mirrors" if mirrors else "")
    )
    for host in graph.hosts[:5]:
        note(f"{host.rank:>4}  {sanitize(host.host)}  {host.harmonic:,.1f}, {host.domains_in:,} domains link to it")


def _write(arrow: Any, path: Path, row: type[NamedTuple], rows: Sequence[tuple[Any, ...]]) -> None:
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema([(name, types[kind]) for name, kind in get_type_hints(row).items()])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [arrow.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    temporary = path.with_name(f".{path.name}.new")
    try:
        arrow.parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), temporary, compression="zstd")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
