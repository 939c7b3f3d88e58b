"""What the evaluation of the stored pages by changed schemes has added and removed: the report of storage, from the
rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.storage.ledgers import scheme_pages
from nephila.storage.ledgers.read_connection import ReadConnection

from nephila_harvest.schemes.evaluation import Doubt, EvaluationReport, combined
from nephila_harvest.schemes.scheme_items import SchemeEvaluator

REMEDIES: Final[Mapping[Doubt, str]] = {
    Doubt.OLDER_RULE: "their fields are those of an earlier rule of the platform; to read them by the present rule, "
    "fetch them again, or, with bodies that --keep-raw stored, nephila rules apply --from DIR",
}
"""What each doubt means, and what removes it."""


def report(rows: ReadConnection, job: str) -> EvaluationReport | None:
    """The report of all writers; None before the first evaluation."""
    return combined([msgspec.json.decode(data, type=EvaluationReport) for data in scheme_pages.reports(rows, job)])


def is_of(evaluated: EvaluationReport, state: Schemes, rules: Mapping[str, int]) -> bool:
    """Whether a report is that of these schemes and rules of content pages."""
    same = all(rules.get(name, version) == version for name, version in evaluated.rules.items())
    return same and evaluated.version == SchemeEvaluator(state.schemes).version
