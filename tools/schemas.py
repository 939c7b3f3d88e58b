"""Writes docs/*.schema.json, generated from the structs of job and rule documents (`--check` compares instead)."""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENTS = {
    "crawlscheme": ("nephila.kernel.documents.scheme_schema", "CrawlScheme"),
    "platform": ("nephila_harvest.schemes.platform_schema", "Platform"),
    "crawljob": ("nephila.kernel.documents.job_schema", "CrawlJob"),
    "site": ("nephila_harvest.sites.site_schema", "Site"),
    "parserule": ("nephila_rules.runtime.rule_schema", "ParseRule"),
}
"""Name of a file -> module and name of the struct."""


def text(module: str, name: str) -> str:
    """The content of a schema file."""
    json_schema = importlib.import_module("nephila_control.http.json_schema").json_schema
    schema = json_schema(getattr(importlib.import_module(module), name))
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the files, or with --check compare them."""
    sys.path.insert(0, str(ROOT / "services"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a file differs")
    check = parser.parse_args().check
    for file, document in DOCUMENTS.items():
        target = ROOT / "docs" / f"{file}.schema.json"
        if not check:
            target.write_text(text(*document))
        elif not target.exists() or target.read_text() != text(*document):
            raise SystemExit(f"{target.name} differs from {'.'.join(document)}; run `make schema`")


if __name__ == "__main__":
    main()
