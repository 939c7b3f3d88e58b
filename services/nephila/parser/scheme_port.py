"""The port of keyword schemes: what makes the items of their pages, made by `nephila_harvest` for the first job that
has schemes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from nephila.kernel import messages as m


class SchemeRecords(Protocol):
    """The schemes of all jobs."""

    def update_job(self, job: m.CrawlJob) -> None:
        """Apply a job that is new, has changed or is deleted."""

    def complete(self, record: m.Record, links: Iterable[m.Outlinks] = ()) -> None:
        """Set the item and the metadata of a page of a scheme."""
