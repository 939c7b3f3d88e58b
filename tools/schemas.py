"""docs/*.schema.json, made from the tables of the keys of jobs and rules (`--check` compares instead)."""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLES = {"crawljob": "nephila.kernel.documents.job_schema", "parserule": "nephila.parser.rules.table"}
"""Name of a file -> the module whose `schema()` it holds."""


def text(table: str) -> str:
    """A file as it has to be."""
    return json.dumps(importlib.import_module(table).schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files, or with --check compare them."""
    sys.path.insert(0, str(ROOT / "services"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a file differs")
    check = parser.parse_args().check
    for name, table in TABLES.items():
        target = ROOT / "docs" / f"{name}.schema.json"
        if not check:
            target.write_text(text(table))
        elif not target.exists() or target.read_text() != text(table):
            raise SystemExit(f"{target.name} differs from {table}; run `make schema`")


if __name__ == "__main__":
    main()
