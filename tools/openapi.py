"""Writes docs/openapi.json, generated from the typed requests of the control API (`--check` compares instead)."""

from __future__ import annotations

import argparse
import importlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "openapi.json"


def text() -> str:
    """The content of the file."""
    document = importlib.import_module("nephila_control.http.openapi").document()
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the file, or with --check compare it."""
    sys.path.insert(0, str(ROOT / "services"))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when the file differs")
    if not parser.parse_args().check:
        TARGET.write_text(text())
    elif not TARGET.exists() or TARGET.read_text() != text():
        raise SystemExit(
            f"{TARGET.name} differs from the types and routes of services/nephila_control; run `make schema`"
        )


if __name__ == "__main__":
    main()
