"""Labels as CSV: written for people who label in a spreadsheet, and read again as a whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from nephila.kernel.runtime.errors import UserError
from nephila.storage.read.tabular import FORMULA

from nephila_harvest.audit.sampling import Candidate
from nephila_harvest.audit.store import Drawn, Label

COLUMNS = ("number", "stratum", "url", "rule", "ordinal", "verdict", "reason")
VERDICTS = ("right", "wrong")


def write(stream: IO[str], drawn: Iterable[Drawn]) -> None:
    """Write the rows of a sample. A cell that a spreadsheet would read as a formula gets a leading '."""
    out = csv.writer(stream)
    out.writerow(COLUMNS)
    for row in drawn:
        verdict, reason = (row.label.verdict, row.label.reason) if row.label else ("", "")
        ordinal = row.candidate.ordinal if row.candidate.ordinal >= 0 else ""
        cells = (row.number, row.stratum, row.candidate.url, row.candidate.rule, ordinal, verdict, reason)
        out.writerow([f"'{cell}" if str(cell).startswith(FORMULA) else cell for cell in cells])


def read(path: Path, drawn: Sequence[Drawn], person: str, at: str) -> list[tuple[Candidate, Label]]:
    """The labels of a file; rows without verdict are skipped. Raises `UserError` with line and reason for a wrong
    column, an unknown verdict and a number or URL that is not in the sample; then no label of the file counts."""
    by_number = {row.number: row for row in drawn}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            missing = {"number", "url", "verdict"} - set(rows.fieldnames or ())
            if missing:
                raise UserError(f"{path}:1: no column {', '.join(sorted(missing))}; columns are {', '.join(COLUMNS)}")
            return [
                (labelled.candidate, Label(verdict, _unquoted((row.get("reason") or "").strip()), person, at))
                for row in rows
                if (verdict := (row["verdict"] or "").strip().lower())
                and (labelled := _drawn(row, verdict, by_number, f"{path}:{rows.line_num}"))
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"cannot read {path}: {error}") from None


def _unquoted(cell: str) -> str:
    """The text of a cell that `write` has kept from being a formula."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell


def _drawn(row: dict[str, str], verdict: str, by_number: dict[int, Drawn], where: str) -> Drawn:
    if verdict not in VERDICTS:
        raise UserError(f"{where}: verdict {verdict[:40]!r} is none of {', '.join(VERDICTS)}")
    number = (row["number"] or "").strip()
    row_of_sample = by_number.get(int(number)) if number.isdecimal() else None
    if row_of_sample is None:
        raise UserError(f"{where}: the sample has no number {number[:40]!r}")
    if row["url"].lstrip("'") != row_of_sample.candidate.url.lstrip("'"):
        raise UserError(
            f"{where}: number {number} of the sample is {row_of_sample.candidate.url}, not {row['url'][:200]}"
        )
    return row_of_sample
