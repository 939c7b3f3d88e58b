"""Every query of the dashboards answered by a real Prometheus over a live crawl, with pictures, and KEDA's decision.

    make show-metrics [ARGS='--seconds 420 --hosts 400']

It starts a broker, a database, the four services and a Prometheus on this machine, crawls a web of many hosts in
waves, asks each panel's query, draws docs/dashboards/*.png, and computes from the recorded trigger how many
downloaders KEDA would run (docs/keda.png). Exit code 1: a panel without an answer.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.metrics.panels import UNANSWERED, answer, panels, unanswered
from tests.metrics.recording import NAMESPACE, Recording, Wave, recorded
from tests.metrics.web import ManyHosts
from tools import keda

DOCS = Path(__file__).parents[2] / "docs"
ANSWER_S = 0.3
CONCURRENCY = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=420, help="length of the run, roughly")
    parser.add_argument("--hosts", type=int, default=400)
    options = parser.parse_args()
    hosts = options.hosts
    # So many pages per host that the capacity of the downloader fills the time.
    pages = max(int(options.seconds * 0.6 * CONCURRENCY / ANSWER_S / hosts) - 3, 2)
    web = ManyHosts(hosts, pages, ANSWER_S)
    third = options.seconds / 3
    waves = [Wave(0, 0, hosts // 8), Wave(third / 2, hosts // 8, hosts // 2), Wave(third * 1.5, hosts // 2, hosts)]
    with (
        tempfile.TemporaryDirectory(prefix="nephila-show-") as folder,
        recorded(Path(folder), web, waves, concurrency=CONCURRENCY, interval_s=2, run_s=options.seconds) as recording,
    ):
        sys.exit(_show(recording))


def _show(recording: Recording) -> int:
    from tests.metrics.plots import draw

    found = list(panels(NAMESPACE, "20s"))
    step_s = max((recording.ended - recording.began) / 240, 2)
    for panel in found:
        answer(recording.prometheus, panel, recording.began, recording.ended, step_s)
    wrong = unanswered(found)
    for path in draw(found, recording.began, DOCS / "dashboards"):
        print(f"{path.relative_to(DOCS.parent)}: {path.stat().st_size // 1024} KB")
    print(f"{recording.pages} requests in {recording.ended - recording.began:.0f} s;", end=" ")
    print(f"{sum(panel.answered for panel in found)} of {len(found)} panels answered")
    for title, reason in UNANSWERED.items():
        print(f"empty: {title}: {reason}")
    for line in wrong:
        print("NO ANSWER", line)
    (series,) = recording.prometheus.range(
        keda.query(NAMESPACE), recording.began, recording.ended, keda.POLLING_INTERVAL_S
    )
    samples = [(at - recording.began, float(value)) for at, value in series["values"]]
    keda.write(samples, DOCS / "keda.json")
    keda.main(["--samples", str(DOCS / "keda.json"), "--plot", str(DOCS / "keda.png"), "--target", "25"])
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
