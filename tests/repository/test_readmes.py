"""READMEs of the services name every folder, and no file that is gone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tools.import_arrows import LAYERS, layers, readmes, with_layers

ROOT = Path(__file__).parents[2]
SERVICES = PurePosixPath("services")
GIT = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
FILES = [PurePosixPath(name) for name in GIT if (ROOT / name).is_file()]
PATHS = {*FILES, *(folder for file in FILES for folder in file.parents)}
READMES = [file for file in FILES if file.name == "README.md" and file.is_relative_to(SERVICES)]


def ends(path: PurePosixPath) -> Iterator[PurePosixPath]:
    """`a/b/c.py` → `c.py`, `b/c.py`, `a/b/c.py`."""
    return (PurePosixPath(*path.parts[at:]) for at in range(len(path.parts)))


def words(readme: PurePosixPath) -> set[str]:
    """Names in back quotes that may be those of a file or folder."""
    return set(re.findall(r"`([a-z_][\w.-]*(?:/[\w.-]+)*/?)`", (ROOT / readme).read_text()))


def named(readme: PurePosixPath) -> set[PurePosixPath]:
    """Folders below a README that it names, by themselves or by a file that only they have."""
    below = [path for path in PATHS if path != readme.parent and path.is_relative_to(readme.parent)]
    by_end: dict[PurePosixPath, list[PurePosixPath]] = {}
    for path in below:
        for end in ends(path.relative_to(readme.parent)):
            by_end.setdefault(end, []).append(path)
    found: set[PurePosixPath] = set()
    for word in words(readme):
        paths = by_end.get(PurePosixPath(word), [])
        if len(paths) == 1 or not any(path.suffix for path in paths):
            found |= {folder for path in paths for folder in (path, *path.parents)}
    return found


def test_each_folder_is_named_in_the_readme_above_it():
    """Folders with Python files and without a README of their own."""
    folders = {file.parent for file in FILES if file.suffix == ".py" and file.is_relative_to(SERVICES)}
    nearest = {folder: max(one.parent for one in READMES if folder.is_relative_to(one.parent)) for folder in folders}
    known = {readme.parent: named(readme) for readme in READMES}
    missing = [str(one) for one, above in nearest.items() if one != above and one not in known[above]]
    assert sorted(missing) == []


def test_each_path_that_a_readme_names_exists():
    """Sources and folders, by the end of their path."""
    known = {end for path in PATHS for end in ends(path)}
    gone = [
        f"{readme}: {word}"
        for readme in READMES
        for word in words(readme)
        if re.search(r"\.(py|rs|proto)$|/$", word) and PurePosixPath(word) not in known
    ]
    assert gone == []


def test_each_service_has_a_readme_with_its_settings_and_what_a_restart_loses():
    """Folders with settings of their own: those of the core, and those of the packages beside it."""
    services = [
        file.parent
        for file in FILES
        if file.name == "config.py"
        and file.parent.parent in (SERVICES, SERVICES / "nephila", SERVICES / "nephila_cluster")
        and file.parent.name != "kafka"
    ]
    assert len(services) >= 6
    for service in services:
        text = (ROOT / service / "README.md").read_text().lower()
        assert "`config.py`" in text, service
        assert "what a restart loses" in text, service


def test_layers_of_readmes_are_those_of_the_import_contracts():
    """`python tools/import_arrows.py --layers` writes them."""
    assert [path for path in readmes() if with_layers(path.read_text()) != path.read_text()] == []
    places = {place[2] for path in readmes() for place in LAYERS.finditer(path.read_text())}
    assert places == set(layers())


def test_each_package_and_each_crate_has_a_readme():
    """One screen: why it exists, which choice, where to start."""
    above = (SERVICES, SERVICES / "nephila")
    packages = {file.parent for file in FILES if file.name == "__init__.py" and file.parent.parent in above}
    crates = {file.parent for file in FILES if file.name == "Cargo.toml" and file.is_relative_to(SERVICES)}
    crates = {crate for crate in crates if crate.name != "fuzz"}
    assert {str(folder) for folder in packages | crates if folder / "README.md" not in PATHS} == set()
