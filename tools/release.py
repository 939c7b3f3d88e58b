"""A release: one number in all places, the change log, then wheel, chart, bills of materials, checksums and a tag.

    python -m tools.release VERSION [--no-build] [--no-tag]      (make release VERSION=1.2.3)
    python -m tools.release --charts                             the charts alone, into dist/ (make chart-packages)
    python -m tools.release --check                              is the number the same everywhere?

It refuses a number that is not X.Y.Z or not above the last tag, a tree with changes, and an empty *Unreleased*. dist/
then holds the wheel, the charts as .tgz and .oci.tar, sbom/ and SHA256SUMS. `--key USER`, or NEPHILA_SIGNING_KEY, names
a secret key of gpg: charts then have a provenance file (.tgz.prov). Bills of materials have the Debian packages of
images of this version that were built on this machine; release.yml writes those of the published ones. A failed build
leaves the changed files and no commit: `git restore .` takes them back. Nothing is pushed.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tools.chart_archive import write
from tools.helm import find
from tools.install import Missing

ROOT = Path(__file__).parents[1]
CHARTS = ("charts/nephila", "charts/nephila/charts/nephila-crds")
NUMBER = r"\d+\.\d+\.\d+"


class Place(NamedTuple):
    """Where the number stands: a file, and what is before it."""

    path: str
    before: str
    """Expression without groups; the number follows."""
    times: int = 1


PLACES = (
    Place("pyproject.toml", r'^version = "'),
    Place("services/nephila/__init__.py", r'^__version__ = "'),
    Place("services/nephila/native/core/Cargo.toml", r'^version = "'),
    Place("services/nephila/native/core/Cargo.lock", r'name = "nephila-core"\nversion = "'),
    Place("docs/openapi.json", r'^    "version": "'),
    Place("docker/Dockerfile", r"^ARG VERSION="),
    Place("docker/Dockerfile.browser", r"^ARG VERSION="),
    Place("docker/Dockerfile.browser", r"nephila-downloader:"),
    Place("compose.yaml", r"\$\{NEPHILA_TAG:-", 8),
    Place("charts/nephila/Chart.yaml", r"^version: "),
    Place("charts/nephila/Chart.yaml", r'^appVersion: "'),
    Place("charts/nephila/charts/nephila-crds/Chart.yaml", r"^version: "),
    Place("charts/nephila/charts/nephila-crds/Chart.yaml", r'^appVersion: "'),
    Place("charts/nephila/examples/production.yaml", r'tag: "'),
    Place("charts/nephila/examples/airgapped.yaml", r'tag: "'),
)
"""All of them. tests/repository/test_release.py finds a file that has the number and is not here."""


def _found(place: Place, text: str) -> list[re.Match[str]]:
    return list(re.finditer(f"({place.before})({NUMBER})", text, re.MULTILINE))


def numbers(root: Path = ROOT) -> dict[str, set[str]]:
    """File → the numbers in it. Raises `SystemExit` where a place does not have as many as the table says."""
    found: dict[str, set[str]] = {}
    for place in PLACES:
        matches = _found(place, (root / place.path).read_text())
        if len(matches) != place.times:
            raise SystemExit(f"{place.path}: {len(matches)} times {place.before!r} with a number, not {place.times}")
        found.setdefault(place.path, set()).update(match[2] for match in matches)
    return found


def version(root: Path = ROOT) -> str:
    """The number of this tree, from pyproject.toml."""
    (number,) = {match[2] for match in _found(PLACES[0], (root / PLACES[0].path).read_text())}
    return number


def set_number(number: str, root: Path = ROOT) -> None:
    """Write the number into all places."""
    numbers(root)
    for place in PLACES:
        path = root / place.path
        path.write_text(re.sub(f"({place.before}){NUMBER}", rf"\g<1>{number}", path.read_text(), flags=re.MULTILINE))


def released(changes: str, number: str, day: str) -> str:
    """The change log with *Unreleased* as this version, and an empty *Unreleased* above. Raises `SystemExit` when there
    is nothing to release."""
    head, found, rest = changes.partition("## Unreleased\n")
    if not found or not re.split(r"(?m)^## ", rest)[0].strip():
        raise SystemExit("CHANGELOG.md: nothing stands below Unreleased")
    return f"{head}## Unreleased\n\n## {number} - {day}\n{rest}"


def checksums(folder: Path) -> str:
    """A line of SHA-256 and path per file, as `sha256sum -c` reads it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files)


def refusal(number: str, tags: list[str], status: str) -> str | None:
    """Why this number cannot be released; None when it can."""
    if not re.fullmatch(NUMBER, number):
        return f"{number}: a version is X.Y.Z"
    if status.strip():
        return "the tree has changes that are not committed"
    earlier = [tuple(map(int, tag[1:].split("."))) for tag in tags if re.fullmatch(f"v{NUMBER}", tag)]
    if earlier and tuple(map(int, number.split("."))) <= max(earlier):
        return f"{number} is not above the last release, {'.'.join(map(str, max(earlier)))}"
    return None


def _run(*words: str) -> str:
    print("+", *words, flush=True)
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def charts(key: str = "") -> list[Path]:
    """Package both charts into dist/, signed with a key of gpg if it is named. Raises `Missing` without helm."""
    dist = ROOT / "dist"
    for pattern in ("nephila-*.tgz", "nephila-*.tgz.prov", "nephila-*.oci.tar"):
        for path in dist.glob(pattern):
            path.unlink()
    for chart in CHARTS:
        _run(str(find()), "package", chart, "--destination", "dist")
    packages = sorted(dist.glob("nephila-*.tgz"))
    for package in packages:
        write(package, key)
    return packages


def build(number: str, key: str) -> None:
    """Everything that is published, into dist/."""
    _run("make", "wheels", "PGO=auto")
    charts(key)
    _run(sys.executable, "-m", "tools.sbom", "--tag", number, "--images=local")
    (ROOT / "dist" / "SHA256SUMS").write_text(checksums(ROOT / "dist"))


def main() -> int:
    """Check, or release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", nargs="?")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--no-tag", action="store_true", help="change the files, commit and tag nothing")
    parser.add_argument("--charts", action="store_true", help="package the charts, nothing else")
    parser.add_argument("--key", default=os.environ.get("NEPHILA_SIGNING_KEY", ""), help="secret key of gpg for charts")
    options = parser.parse_args()
    if options.charts:
        for package in charts(options.key):
            print(package.relative_to(ROOT))
        return 0
    if options.check:
        wrong = {path: found for path, found in numbers().items() if found != {version()}}
        print(wrong or version())
        return bool(wrong)
    if not options.version:
        parser.error("which VERSION?")
    number = options.version
    if why := refusal(number, _run("git", "tag").split(), _run("git", "status", "--porcelain")):
        sys.exit(why)
    if not options.no_build:
        try:
            find()
        except Missing as missing:
            sys.exit(f"the charts cannot be packaged: {missing}")
    log = ROOT / "CHANGELOG.md"
    text = released(log.read_text(), number, datetime.datetime.now(datetime.UTC).date().isoformat())
    set_number(number)
    log.write_text(text)
    if not options.no_build:
        build(number, options.key)
    if not options.no_tag:
        _run("git", "commit", "-a", "-m", f"Release {number}")
        _run("git", "tag", "-a", f"v{number}", "-m", f"Nephila {number}")
        print(f"tagged v{number}; publish with: git push --follow-tags, then upload dist/")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
