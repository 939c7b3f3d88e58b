"""Freeze what a release writes, for all that come after it: python -m tests.releases.freeze VERSION [COMMIT]

The release's own program, out of the history, crawls a little web and is killed in the middle of it, twice: as `crawl`
and as `up` with two jobs; and it writes a record of every message. What is left lies in tests/data/releases/VERSION and
is never made again. The descriptors of its messages become proto/baseline.binpb, which the next release may not break.
Refuses a version that is there.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.e2e.program import Program, job
from tests.releases.past import DATA, FORMATS, ROOT, SEED, Release, crawl, environment, git, releases, site, unpack_tree

JOBS = job("plain", seeds=[SEED], scope={"mode": "any"}) + job(
    "watched", seeds=[SEED], scope={"mode": "any"}, recrawl={"every": "1h"}, keywords=["page", "words"]
)
"""Between them all that a frontier packs by itself: novelty of path patterns, states of what is fetched again."""
END = "frontier_commit_after:45"
"""Where the run is killed: there are snapshots, a log behind the last, and a part of the site still to do."""


def main() -> int:
    """The command line."""
    options = argparse.ArgumentParser(prog="tests.releases.freeze", description="Freeze what a release writes.")
    options.add_argument("version")
    options.add_argument("commit", nargs="?", default="HEAD")
    args = options.parse_args()
    if any(release.version == args.version for release in releases()):
        print(f"{args.version} is frozen already; what a release wrote does not change", file=sys.stderr)
        return 2
    commit = git("rev-parse", "--verify", f"{args.commit}^{{commit}}").stdout.decode().strip()
    if not commit:
        print(f"no commit {args.commit} in this history", file=sys.stderr)
        return 2
    freeze(Release(args.version, commit))
    with (DATA / "RELEASES").open("a") as table:
        table.write(f"{args.version}  {commit}\n")
    print(f"{args.version} is {commit[:10]}; commit tests/data/releases and proto/baseline.binpb")
    return 0


def freeze(release: Release) -> None:
    """Write everything but the row of the table."""
    release.data.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = unpack_tree(release.commit, folder / "tree")
        for what, make in (("crawl", killed_crawl), ("up", killed_up)):
            (folder / what).mkdir()
            make(folder / what, tree)
            pack(folder / what / "o", release.data / f"{what}.tar.xz")
        (release.data / "records.json").write_text(records(tree))
    baseline(release.commit)


def killed_crawl(cwd: Path, tree: Path | None, formats: str = FORMATS) -> None:
    """A crawl that dies with a part of its rows written."""
    with site() as web:
        done = crawl(web, SEED, cwd=cwd, tree=tree, formats=formats, NEPHILA_FAILPOINT=END)
    assert done.returncode == -signal.SIGKILL, done.stderr


def killed_up(cwd: Path, tree: Path | None) -> None:
    """The jobs, in a program that dies with a part of its rows written."""
    with site() as web:
        program = up(cwd, web.host_map, tree, NEPHILA_FAILPOINT=END)
        program.apply(JOBS)
        out, err = program.process.communicate(timeout=120)
    assert program.process.returncode == -signal.SIGKILL, out + err


def up(cwd: Path, host_map: str, tree: Path | None = None, **env: str) -> Program:
    """`nephila up` of a tree."""
    return Program(cwd, "--host-map", host_map, **environment(tree, **env))


def pack(folder: Path, archive: Path) -> None:
    """A directory as it was left; what a process leaves beside its data is not part of it."""
    with tarfile.open(archive, "w:xz") as tar:
        tar.add(
            folder, "o", filter=lambda entry: None if entry.name.endswith(("control.sock", ".lock", "-shm")) else entry
        )


def records(tree: Path | None = None) -> str:
    """What samples.py of this directory says with a tree."""
    script = Path(__file__).with_name("samples.py")
    done = subprocess.run([sys.executable, script], env=environment(tree), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is not None
    return done.stdout


def baseline(commit: str) -> None:
    """The descriptors of the release's messages, as `buf breaking` wants them."""
    with tempfile.TemporaryDirectory() as name:
        archive = git("archive", commit, "proto", "buf.yaml").stdout
        subprocess.run(["tar", "x", "-C", name], input=archive, check=True)
        buf, target = Path(sys.executable).with_name("buf"), ROOT / "proto" / "baseline.binpb"
        subprocess.run([buf, "build", "--exclude-source-info", "-o", target], cwd=name, check=True)


if __name__ == "__main__":
    sys.exit(main())
