"""Where a `nephila sites` command finds the sites: in a file, by default that of a directory, or over a control API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from nephila.cli.options import DEFAULT_OUT, Out
from nephila.kernel.runtime.errors import UsageError
from nephila_control.commands.target import ControlTarget, Server, TokenFile

if TYPE_CHECKING:
    from nephila_harvest.sites.site_documents import SiteDocument
    from nephila_harvest.sites.store import SiteStore

SitesFile = Annotated[
    str, typer.Option("--sites", metavar="FILE", help="File of the sites and their runs; by default DIR/sites.db.")
]


@dataclass(frozen=True, slots=True)
class SitesTarget(ControlTarget):
    """The store of the sites: a file, by default that of a directory, or a server."""

    sites: str = ""

    @property
    def file(self) -> Path:
        """The file, where there is no server."""
        from nephila_harvest.sites import FILE

        return Path(self.sites) if self.sites else self.out / FILE


def sites_target(
    out: Out = DEFAULT_OUT, sites: SitesFile = "", server: Server = "", token_file: TokenFile = ""
) -> SitesTarget:
    """The target that the options of a command name."""
    if server and sites:
        raise UsageError("--sites and --server exclude each other: a server has its own file of sites")
    return SitesTarget(out, server=server, token_file=token_file, sites=sites)


@contextmanager
def open_sites(target: SitesTarget, *, create: bool = False) -> Iterator[SiteStore]:
    """The file of a target. Raises `UserError` where there is none and `create` is false."""
    from nephila_harvest.sites.store import open_store

    with open_store(target.file, create=create) as store:
        yield store


def all_sites(target: SitesTarget) -> Mapping[str, SiteDocument]:
    """The sites of a file or a server, by name."""
    if not target.server:
        with open_sites(target) as store:
            return store.sites().sites
    from nephila_control import requests
    from nephila_control.commands.client import call

    from nephila_harvest.sites.site_documents import from_json

    rows = call(target, lambda control: control.list_sites(requests.Empty())).sites
    return {row.name: from_json(row.document, f"site {row.name}") for row in rows}
