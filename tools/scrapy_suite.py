"""Scrapy's own tests of schedulers and duplicate filters, unchanged, over Nephila's scheduler: `make judge-scrapy`.

The sources of the installed version are fetched by pip into build/. A plugin of pytest puts our classes in the place of
Scrapy's before the tests import them, and gives each scheduler a frontier without a pause between requests of a host.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path

BUILD = Path("build/scrapy")
FILES = ("tests/test_scheduler.py", "tests/test_scheduler_base.py", "tests/test_dupefilters.py")
DO_NOT_APPLY = {
    "test_migration": "the state of Scrapy's DownloaderAwarePriorityQueue",
    "test_incompatibility": "a setting that Scrapy's DownloaderAwarePriorityQueue refuses",
    "test_logic": "request.meta download_slot: a slot here is a host",
    "test_scheduler_without_crawler": "arguments of Scrapy's own class",
}
"""Test → what it is about."""


def install() -> None:
    """Called in the process of pytest, before the tests are imported."""
    import scrapy.core.scheduler
    from nephila_doors.scrapy import scheduler as ours
    from scrapy.settings import default_settings

    number, base = itertools.count(), tempfile.mkdtemp(prefix="nephila")
    scrapy.core.scheduler.Scheduler = ours.Scheduler
    default_settings.SCHEDULER = "nephila_doors.scrapy.scheduler.Scheduler"
    default_settings.NEPHILA_JOB = {"politeness": {"delay": "0s", "concurrencyPerHost": 100}}
    ours.directory_of = lambda settings, spider: Path(settings["JOBDIR"] or f"{base}/{next(number)}")


def main() -> int:
    """The exit code of pytest."""
    release = version("scrapy")
    sources = BUILD / f"scrapy-{release}"
    if not sources.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:"]
        subprocess.run([*pip, f"scrapy=={release}", "-d", str(BUILD)], check=True)
        with tarfile.open(next(BUILD.glob(f"*-{release}.tar.gz"))) as archive:
            archive.extractall(BUILD, filter="data")
    for test, why in DO_NOT_APPLY.items():
        print(f"left out: {test}: {why}")
    (BUILD / "nephila_plugin.py").write_text("from tools.scrapy_suite import install\ninstall()\n")
    here = Path.cwd()
    path = os.pathsep.join(str(one) for one in (here / BUILD, here, here / "services"))
    left_out = " and ".join(f"not {test}" for test in DO_NOT_APPLY)
    options = ["-p", "nephila_plugin", "-p", "no:cacheprovider", "-o", "asyncio_default_fixture_loop_scope=function"]
    command = [sys.executable, "-m", "pytest", *options, "-q", "-k", left_out, *FILES]
    return subprocess.run(command, cwd=sources, env={**os.environ, "PYTHONPATH": path}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
