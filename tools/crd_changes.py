"""What a later schema of a custom resource refuses that an earlier one accepts.

    python -m tools.crd_changes TAG        lines PATH: CHANGE for the CRDs of this tree against those of a tag

Releases of several versions share the CRDs, so within the versions of docs/versions.md#custom-resources a schema only
gets wider. The comparison is by keywords: a longer list of words, a new optional key or a wider bound is wider; every
other difference of what is checked counts as narrower, also where it only looks like one.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).parents[1]
FILES: Final = ROOT / "charts" / "nephila" / "charts" / "nephila-crds" / "files"
LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")
UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
SAME: Final = ("type", "format", "pattern", "exclusiveMinimum", "x-kubernetes-int-or-string", "anyOf")
OPAQUE: Final = "x-kubernetes-preserve-unknown-fields"
Schema = Mapping[str, Any]


def narrower(earlier: Schema, later: Schema, path: str = "") -> Iterator[str]:
    """A line for each change by which `later` refuses, drops or fills in what `earlier` did not."""
    where = path or "the document"
    if later.get(OPAQUE) and not later.get("properties"):
        return
    if earlier.get(OPAQUE) and not later.get(OPAQUE):
        yield f"{where}: no longer kept as it is"
    for word in SAME:
        if word in later and earlier.get(word) != later[word]:
            yield f"{where}: {word} was {earlier.get(word)}, is {later[word]}"
    for word in LOWER:
        if later.get(word, 0) > earlier.get(word, 0):
            yield f"{where}: {word} was {earlier.get(word)}, is {later[word]}"
    for word in UPPER:
        if word in later and later[word] < earlier.get(word, float("inf")):
            yield f"{where}: {word} was {earlier.get(word)}, is {later[word]}"
    if "enum" in later and (gone := set(earlier.get("enum", ["other words"])) - set(later["enum"])):
        yield f"{where}: without {', '.join(sorted(gone))}"
    if new := set(later.get("required", ())) - set(earlier.get("required", ())):
        yield f"{where}: {', '.join(sorted(new))} is required"
    rules = {rule["rule"] for rule in earlier.get("x-kubernetes-validations", ())}
    for rule in later.get("x-kubernetes-validations", ()):
        if rule["rule"] not in rules:
            yield f"{where}: a new condition, {rule['message']}"
    if "default" in later and later.get("default") != earlier.get("default"):
        yield f"{where}: {later['default']!r} is filled in"
    for name, schema in earlier.get("properties", {}).items():
        below = f"{path}.{name}"
        if name not in later.get("properties", {}):
            yield f"{below}: is gone"
        else:
            yield from narrower(schema, later["properties"][name], below)
    for name, schema in later.get("properties", {}).items():
        if name not in earlier.get("properties", {}):
            yield from _defaults(schema, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(later.get(word), dict) and isinstance(earlier.get(word), dict):
            yield from narrower(earlier[word], later[word], f"{path}[]")


def _defaults(schema: Schema, path: str) -> Iterator[str]:
    """The API server writes a default into documents that an earlier operator reads, and refuses as unknown."""
    if "default" in schema:
        yield f"{path}: {schema['default']!r} is filled in"
    for name, below in schema.get("properties", {}).items():
        yield from _defaults(below, f"{path}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from _defaults(schema[word], f"{path}[]")


def schema_of(crd: Mapping[str, Any]) -> Schema:
    """The schema of the one version of a CRD."""
    (version,) = crd["spec"]["versions"]
    schema: Schema = version["schema"]["openAPIV3Schema"]
    return schema


def since(tag: str) -> list[str]:
    """The changes of all CRDs since a tag of this repository. Raises `CalledProcessError` when it has none of them."""
    lines = []
    for path in sorted(FILES.glob("*.yaml")):
        command = ["git", "show", f"{tag}:{path.relative_to(ROOT)}"]
        text = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        earlier, later = (schema_of(yaml.safe_load(content)) for content in (text, path.read_text()))
        lines += [f"{path.stem}{line}" for line in narrower(earlier, later)]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tag")
    lines = since(parser.parse_args().tag)
    print("\n".join(lines) or "wider or the same")
    return bool(lines)


if __name__ == "__main__":
    raise SystemExit(main())
