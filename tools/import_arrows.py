"""Counts the import arrows between folders of the packages; lists circles and folders with too many files. Writes the
layers of pyproject.toml, which import-linter checks, into the READMEs that have a place for them.

python tools/import_arrows.py [--depth 2] [--list]
python tools/import_arrows.py --layers
"""

import argparse
import re
import textwrap
import tomllib
from collections import Counter
from pathlib import Path

import grimp
import nephila

SERVICES = Path(next(iter(nephila.__path__))).parent
PACKAGES = sorted(path.parent.name for path in SERVICES.glob("nephila*/__init__.py"))
MOST_FILES = 16
ROOT = Path(__file__).parents[1]
LAYERS = re.compile(r"(<!-- layers of ([\w.]+)[^\n]*-->\n).*?(<!-- end of layers -->)", re.DOTALL)
"""A place for layers in a README, by the name of the container."""


def folder_of(module: str, packages: set[str], depth: int, files: bool) -> str:
    """The folder of a module at the depth: `nephila.scheduler.jobs.scope` at 2 is `nephila.scheduler.frontier`.

    A file above the depth counts for its folder, or by itself with `files`: `service.py` builds a service from its
    folders and `config.py` is read by them, so their folder lies in a circle that no module lies in.
    """
    folder = module if files or module in packages else module.rpartition(".")[0]
    return ".".join(folder.split(".")[: depth + 1])


def arrows(graph: grimp.ImportGraph, packages: set[str], depth: int, files: bool = False) -> Counter[tuple[str, str]]:
    """How many imports lead from one folder to another."""
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        here = folder_of(module, packages, depth, files)
        for imported in graph.find_modules_directly_imported_by(module):
            there = folder_of(imported, packages, depth, files)
            if here != there:
                found[here, there] += 1
    return found


def circles(pairs: set[tuple[str, str]]) -> list[list[str]]:
    """The strongly connected sets of more than one folder (Tarjan 1972), O(folders + arrows)."""
    after: dict[str, list[str]] = {}
    for source, target in pairs:
        after.setdefault(source, []).append(target)
        after.setdefault(target, [])
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(folder: str) -> None:
        index[folder] = low[folder] = len(index)
        stack.append(folder)
        for target in after[folder]:
            if target not in index:
                visit(target)
                low[folder] = min(low[folder], low[target])
            elif target in stack:
                low[folder] = min(low[folder], index[target])
        if low[folder] == index[folder]:
            at = stack.index(folder)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for folder in sorted(after):
        if folder not in index:
            visit(folder)
    return found


def used_paths(names: str) -> list[str]:
    """`a::{b, c::{d}}` → `a::b`, `a::c::d`."""
    before, brace, inside = names.partition("{")
    if not brace:
        return [names.strip()]
    parts, depth, part = [], 0, ""
    for sign in inside.rstrip()[:-1] + ",":
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            parts, part = [*parts, part.strip()], ""
        else:
            part += sign
    return [path for part in parts if part for path in used_paths(before.strip() + part)]


def crate_arrows(source: Path) -> set[tuple[str, str]]:
    """Imports between the modules of a Rust crate, tests left out: `crate::…` and `super::…`."""
    files = {
        path.relative_to(source).with_suffix("").as_posix().removesuffix("/mod"): path for path in source.rglob("*.rs")
    }
    found = set()
    for here, path in files.items():
        text = re.sub(r"//[^\n]*", "", path.read_text().partition("#[cfg(test)]\nmod ")[0])
        used = [name for names in re.findall(r"\buse\s+([^;]+);", text) for name in used_paths(" ".join(names.split()))]
        used += re.findall(r"\b(?:crate|super)(?:::\w+)+", re.sub(r"\buse\s+[^;]+;", "", text))
        for name in used:
            first, *rest = name.split("::")
            above = here.split("/")[:-1] if first == "super" else []
            while rest and rest[0] == "super":
                rest, above = rest[1:], above[:-1]
            target = [*above, *rest] if first in ("crate", "super") else []
            while target and "/".join(target) not in files:
                target.pop()
            if target and "/".join(target) != here and here != "lib":
                found.add((here, "/".join(target)))
    return found


def layers() -> dict[str, str]:
    """Markdown of the layers inside each container, from the top, of all contracts on layers in pyproject.toml."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    texts = {}
    for contract in tool["contracts"]:
        for container in contract.get("containers", ["packages"]) if contract["type"] == "layers" else ():
            line = " > ".join(f"`{layer}`" for layer in contract["layers"])
            # A line that begins with a bar would be a row of a table: no break inside a layer.
            lines = textwrap.wrap(line.replace(" | ", "\0|\0"), 150, break_on_hyphens=False)
            texts[container] = "\n".join(lines).replace("\0", " ") + "\n"
    return texts


def with_layers(text: str) -> str:
    """The text of a README with the present layers at their places."""
    texts = layers()
    return LAYERS.sub(lambda place: place[1] + texts[place[2]] + place[3], text)


def readmes() -> list[Path]:
    """READMEs that have a place for layers."""
    return [path for path in sorted((ROOT / "services").rglob("README.md")) if LAYERS.search(path.read_text())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=3, help="packages and folders that count as one (default 3)")
    parser.add_argument("--list", action="store_true", help="print every arrow with its number of imports")
    parser.add_argument("--layers", action="store_true", help="write the layers of pyproject.toml into the READMEs")
    options = parser.parse_args()
    if options.layers:
        for readme in readmes():
            readme.write_text(with_layers(readme.read_text()))
        return
    graph = grimp.build_graph(*PACKAGES)
    root = SERVICES
    packages = {".".join(path.parent.relative_to(root).parts) for path in root.rglob("*.py")}
    found = arrows(graph, packages, options.depth)
    if options.list:
        for (source, target), count in sorted(found.items()):
            print(f"{source} -> {target}  {count}")
    print(f"{len(found)} arrows between folders at depth {options.depth}, {sum(found.values())} imports")
    for group in circles(set(arrows(graph, packages, options.depth, files=True))):
        print("circle: " + ", ".join(group))
    files = Counter(path.parent for path in root.rglob("*.py") if path.name != "__init__.py")
    for folder, count in files.most_common():
        if count > MOST_FILES:
            print(f"{count} files in {folder.relative_to(root)} (at most {MOST_FILES})")


if __name__ == "__main__":
    main()
