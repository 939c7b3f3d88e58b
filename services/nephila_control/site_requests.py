"""Requests about sites and their directories."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nephila_control.requests import Name, Request

Etag = Annotated[str, Meta(max_length=16, pattern=r"^([0-9a-f]{16})?$")]


class ApplySites(Request):
    """Create sites or change them; all of them or, where one is wrong, none."""

    sites: Annotated[list[dict[str, Any]], Meta(max_length=1000)]
    """Site documents (docs/site.schema.json). Each is the whole desired state of its site."""
    prune: bool = False
    """Delete the sites that are not in the request."""
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
    """Of the directory, without that of its site."""
    etag: Etag = ""
    """Refuse when the site has another etag; empty: delete in any case."""
