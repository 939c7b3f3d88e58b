"""The types of the operations on sites and their directories: requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from nephila_control.requests import Name, Request

DAYS = 14
"""Days whose news an answer counts."""
Etag = Annotated[str, Meta(max_length=16, pattern=r"^([0-9a-f]{16})?$")]


class ApplySites(Request):
    """Create sites or change them; all of them or, where one is wrong, none."""

    sites: Annotated[list[dict[str, Any]], Meta(max_length=1000)]
    """Site documents (docs/site.schema.json). Each is the whole desired state of its site."""
    prune: bool = False
    """Delete the sites that are not in the request."""
    delete: Annotated[list[Name], Meta(max_length=1000)] = msgspec.field(default_factory=list)
    """Names of sites to delete. Refused for a name that no site has."""
    etags: Annotated[dict[str, Etag], Meta(max_length=1000)] = msgspec.field(default_factory=dict)
    """Name of a site → its etag as it was read; empty: the site does not exist. The request is refused when a site has
    another etag: it was changed since. A site without an entry is changed in any case."""


class SiteName(Request):
    """One site."""

    name: Name


class DeleteSite(Request):
    """Delete a site with its directories."""

    name: Name
    etag: Etag = ""
    """Refuse when the site has another etag; empty: delete in any case."""


class ApplyDirectory(Request):
    """Create a directory of a site or change it; the other directories stay as they are."""

    site: Name
    directory: dict[str, Any]
    """An entry of spec.directories of a Site document."""
    etag: Etag = ""
    """Refuse when the site has another etag; empty: apply in any case."""


class DeleteDirectory(Request):
    """Delete a directory of a site."""

    site: Name
    name: Name
    """Name of the directory without that of its site."""
    etag: Etag = ""
    """Refuse when the site has another etag; empty: delete in any case."""


class ListState(msgspec.Struct, kw_only=True):
    """One list of a directory after a run (docs/harvest.md)."""

    url: str
    verdict: str
    fault: bool
    """True if the list was not fetched."""
    reason: str
    """Reason of the row."""
    status: int
    """Status of HTTP; 0 without an answer."""
    target: str
    """URL to which the list redirects."""
    links: int
    """Links of a fetched list."""
    since: str
    """Begin of the fault; empty without one."""
    words: str
    proposal: str
    """What the verdict means, and what to do."""


class Directory(msgspec.Struct, kw_only=True):
    """A directory of a site after its last run."""

    name: str
    """Name of the job."""
    frequency: str = ""
    score: float = 1.0
    paused: bool = False
    """True if no run begins because of the settings."""
    country: str = ""
    type: str = ""
    description: str = ""
    last_run: str
    """Begin of the last run; empty before the first."""
    ended: str
    """Reason why the run is over; empty while it runs."""
    why: str
    """Reason why the job was refused."""
    new_pages: int
    recorded: int = 0
    """Links that the run recorded and did not fetch."""
    left_out: int = 0
    """New links beyond those that are taken of a page or a level."""
    next_run: str = ""
    """Begin of the next run, or paused; empty: as soon as a program starts the runs."""
    news_at: str = ""
    """Begin of the last run with a new page or a recorded link; empty: none."""
    days: list[int] = []
    """New pages and recorded links of each of the last 14 days of UTC, the oldest first; today is the last one."""
    lists: list[ListState]
    """Lists after the last run that ended."""


class DirectoryList(msgspec.Struct, kw_only=True):
    """All directories, the highest score first."""

    directories: list[Directory]


class Site(msgspec.Struct, kw_only=True):
    """A site and its document."""

    name: str
    etag: str
    """Etag of the document; a request with it is refused once the site was changed."""
    document: dict[str, Any]


class SiteList(msgspec.Struct, kw_only=True):
    """All sites, by name."""

    sites: list[Site]


class SiteChange(msgspec.Struct, kw_only=True):
    """What a request did to a site."""

    name: str
    verdict: Literal["created", "changed", "unchanged", "deleted"]
    directories: int
    """Directories of the site; of a deleted one those that it had."""
    added: list[str]
    """Directories that are new, by the names of their jobs."""
    removed: list[str]
    """Directories that are gone. `nephila sites run` ends their runs and deletes their jobs; their rows stay."""
    running: list[str]
    """Removed directories with an open run."""
    jobs: list[str] = []
    """Removed directories whose jobs the program still has."""
    etag: str
    """Of the new document; empty: the site is deleted."""


class SitesApplied(msgspec.Struct, kw_only=True):
    """What a request did to each site."""

    sites: list[SiteChange]
