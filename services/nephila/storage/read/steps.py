"""Parts of queries that take steps in an index where a plain query reads all rows; valid for SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Final

SPAN: Final = "SELECT (SELECT min(id) FROM fetches), (SELECT max(id) FROM fetches)"
"""The first and the last fetch. SQLite looks each up in one step; of one query for both it reads all fetches."""
JOBS: Final = (
    "WITH RECURSIVE jobs(job) AS (SELECT min(job) FROM pages UNION ALL"
    " SELECT (SELECT min(p.job) FROM pages AS p WHERE p.job > jobs.job) FROM jobs WHERE jobs.job IS NOT NULL)"
)
"""Stands before a query with `OF_ANY_JOB`: all jobs with rows, one step for each."""
OF_ANY_JOB: Final = "job IN (SELECT job FROM jobs WHERE job IS NOT NULL)"
"""The key of `pages` begins with the job, so without one a URL is looked for in all rows."""
