"""The schema of a job's document, as it is published."""

from __future__ import annotations

import json
from pathlib import Path

from nephila.kernel.documents.job_schema import CrawlJob
from nephila_control.http.json_schema import json_schema

PUBLISHED = Path(__file__).parents[3] / "docs" / "crawljob.schema.json"


def test_the_published_schema_is_that_of_the_structs() -> None:
    """`make schema` writes it."""
    assert json.loads(PUBLISHED.read_text()) == json.loads(json.dumps(json_schema(CrawlJob)))
