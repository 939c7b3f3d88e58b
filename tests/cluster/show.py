"""The chart on a real cluster: install, crawl, scale, kill, upgrade, back up, restore; judged by the site's log.

    python -m tests.cluster.show [--only upgrade,kills] [--keep]

Needs kubectl and helm on the PATH, a kubeconfig, and the images in the cluster (`make images ARGS='--dev --load …'`).
Each section is a release of its own. Prints one line per step with its time, then the verdict; exit code 1 when a rule
is broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tests.cluster.backup import backup
from tests.cluster.console import console
from tests.cluster.growth import growth
from tests.cluster.losses import losses
from tests.cluster.many import many
from tests.cluster.password import password
from tests.cluster.pruned import pruned
from tests.cluster.release import Release
from tests.cluster.rendered import rendered
from tests.cluster.sections import kills, releases, rules, shipped, upgrade
from tests.cluster.teams import teams
from tests.cluster.web import Web, delete_storage_class, make_storage_class
from tools.release import version

EARLIER = "HEAD"
"""Commit whose chart is installed first; from the first release on, the tag of the last one."""
SECTIONS: dict[str, Callable[[Release, Web], None]] = {
    "upgrade": upgrade,
    "kills": kills,
    "losses": losses,
    "shipped": shipped,
    "releases": releases,
    "teams": teams,
    "backup": backup,
    "growth": growth,
    "rules": rules,
    "pruned": pruned,
    "password": password,
    "many": many,
    "rendered": rendered,
    "console": console,
}
WITHOUT_VOLUMES = ("upgrade", "losses")
"""Sections on a cluster without a StorageClass."""


def run(name: str, options: argparse.Namespace) -> list[str]:
    """One section; the rules that it has broken."""
    print(f"--- {name}: {(SECTIONS[name].__doc__ or '').strip()}", flush=True)
    release = Release(options)
    if name in WITHOUT_VOLUMES:
        delete_storage_class(release)
    else:
        make_storage_class(release)
    SECTIONS[name](release, Web(release, options.hosts, options.pages))
    if not options.keep:
        release.uninstall()
        release.delete_namespace()
        delete_storage_class(release)
    return [f"{name}: {one}" for one in release.broken]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, in order (default: %(default)s)")
    parser.add_argument("--tag", default=version())
    parser.add_argument("--hosts", type=int, default=20)
    parser.add_argument("--pages", type=int, default=300, help="pages of each host")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for the rest of a crawl")
    parser.add_argument(
        "--patience", type=float, default=1, metavar="FACTOR", help="time limits are this many times as long"
    )
    parser.add_argument("--kafka-image", default=f"nephila-dev-kafka:{version()}")
    parser.add_argument("--postgres-image", default=f"nephila-dev-postgres:{version()}")
    parser.add_argument("--earlier", default=EARLIER, metavar="COMMIT", help="whose chart is upgraded")
    parser.add_argument("--earlier-tag", default="", metavar="TAG", help="of the images of the earlier chart")
    parser.add_argument("--set", action="append", default=[], help="a further value of the chart; may be repeated")
    parser.add_argument("--keep", action="store_true", help="do not uninstall")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    began = time.monotonic()
    broken = [rule for name in options.only.split(",") for rule in run(name, options)]
    print(f"{time.monotonic() - began:.0f} s; broken rules: {', '.join(broken) or 'none'}")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
