"""Two releases of an earlier version in two namespaces, upgraded one by one while both crawl."""

from __future__ import annotations

import argparse
import time

from tests.cluster.release import Release, job
from tests.cluster.sections import earlier_chart, finish, start
from tests.cluster.web import Web


def teams(release: Release, web: Web) -> None:
    """The first upgrade brings the CRDs, which the earlier operator of the second release has to bear."""
    options = release.options
    another = Release(options, f"{release.namespace}-b", "news")
    pairs = ((release, web), (another, Web(another, options.hosts, options.pages)))
    with earlier_chart(options.earlier) as chart:
        for one, _ in pairs:
            began = time.monotonic()
            one.install(*_earlier_images(options), chart=chart)
            one.step(f"helm install --wait of the chart of {options.earlier}: {one.name}", began)
    crawls = [start(*pair) for pair in pairs]
    for (one, _), role in zip(pairs, ("first", "second"), strict=True):
        began = time.monotonic()
        one.install()
        one.step(f"helm upgrade --wait to the chart of this tree, {role} release", began)
        if one is release:
            _second_is_served(another)
    for pair, crawl in zip(pairs, crawls, strict=True):
        finish(*pair, crawl)
    release.broken += another.broken
    another.uninstall()
    another.delete_namespace()


def _earlier_images(options: argparse.Namespace) -> list[str]:
    return [f"image.tag={options.earlier_tag}"] if options.earlier_tag else []


def _second_is_served(release: Release) -> None:
    """An earlier operator under later CRDs takes a new job and a changed one."""
    began = time.monotonic()
    release.apply("CrawlJob", "later", job(["http://h01/0"], max_pages=1))
    release.patch("crawljob/show", {"scope": {"maxDepth": 99}})
    names = ("crawljob/later", "crawljob/show")

    def served(name: str) -> bool:
        seen = release.get(name, "{.metadata.generation} {.status.observedGeneration}").split()
        return len(seen) == 2 and len(set(seen)) == 1 and release.condition(name, "Accepted").startswith("True")

    accepted = release.until(lambda: all(served(name) for name in names), 60)
    conditions = ", ".join(f"{name}: {release.condition(name, 'Accepted')}" for name in names)
    release.step("a new job and a changed one under the later CRDs", began, conditions)
    release.rule("an earlier operator serves both", float(accepted), 1)
    release.kubectl("delete", "crawljob/later", f"--timeout={release.limit(60)}")
