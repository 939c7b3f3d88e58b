"""docs/parserule.schema.json, made from the table in nephila.parser.rules.table (`--check` compares instead)."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "parserule.schema.json"


def text() -> str:
    """The file as it has to be."""
    from nephila.parser.rules.table import schema

    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file, or with --check compare it."""
    sys.path.insert(0, str(ROOT / "services"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when the file differs")
    if not parser.parse_args().check:
        TARGET.write_text(text())
    elif not TARGET.exists() or TARGET.read_text() != text():
        raise SystemExit(f"{TARGET.name} differs from nephila.parser.rules.table; run `make schema`")


if __name__ == "__main__":
    main()
