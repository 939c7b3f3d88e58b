"""Five hundred CrawlJobs of ten teams: what kubectl, the operator and the API need for them."""

from __future__ import annotations

import json
import statistics
import time

from tests.cluster.console import token
from tests.cluster.release import Release, job
from tests.cluster.web import Web

JOBS = 500
PAGES_OF_A_JOB = 4
QUIET_S = 60.0
APPLY_S, CORES, LIST_MS = 60.0, 0.1, 200.0
"""Bounds on a quiet machine."""
LISTS = """
import json, sys, time, urllib.request
base, token, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
request = urllib.request.Request(base + "/api/v1/jobs", headers={"Authorization": "Bearer " + token})
times = []
for _ in range(count):
    began = time.perf_counter()
    answer = json.load(urllib.request.urlopen(request, timeout=60))
    times.append(time.perf_counter() - began)
print(json.dumps([times, len(answer["jobs"])]))
"""


def many(release: Release, web: Web) -> None:
    """On the laptop chart. The bounds are those of a quiet machine: the load stands beside each figure."""
    release.install()
    web.open()
    documents = [_document(number, web) for number in range(JOBS)]
    began = time.monotonic()
    release.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    applied = time.monotonic() - began
    release.step(f"kubectl apply of {JOBS} CrawlJobs", began, load())
    release.rule(f"kubectl apply takes at most {APPLY_S:.0f} s", float(applied <= APPLY_S), 1, f"{applied:.1f} s")
    accepted = release.until(lambda: _accepted(release) == JOBS, 600)
    release.step("kubectl apply, to the last job that is accepted", began, load())
    release.rule("all jobs are accepted", float(accepted), 1)
    _listed(release, "while they crawl")
    release.wait_rows(JOBS * PAGES_OF_A_JOB, release.options.limit)
    release.step("kubectl apply, to the last row", began, load())
    before, since = cpu_s(release, "operator"), time.monotonic()
    time.sleep(QUIET_S)
    cores = (cpu_s(release, "operator") - before) / (time.monotonic() - since)
    release.rule(f"the operator needs at most {CORES} cores", float(cores <= CORES), 1, f"{cores:.3f}; {load()}")
    _listed(release, "when they are done")
    began = time.monotonic()
    release.kubectl("delete", "crawljobs", "--all", f"--timeout={release.limit(300)}", limit_s=310)
    release.step(f"kubectl delete of {JOBS} CrawlJobs", began, load())


def _document(number: int, web: Web) -> dict[str, object]:
    host, page = web.names[number % len(web.names)], number // len(web.names)
    # A page in the upper half of the tree of its host, so PAGES_OF_A_JOB pages lie below it.
    spec = job([f"http://{host}/{page}"], max_pages=PAGES_OF_A_JOB, owner=f"team-{number % 10}")
    spec["scope"]["mode"] = "host"
    return {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": f"job-{number:03}"}, "spec": spec}


def _accepted(release: Release) -> int:
    path = '{range .items[*]}{.status.conditions[?(@.type=="Accepted")].status}{"\\n"}{end}'
    return release.get("crawljobs", path).split().count("True")


def _listed(release: Release, when: str) -> None:
    """Times of the list of all jobs over HTTP, from a pod."""
    base = f"http://{release.component('api')}:9100"
    words = ["exec", "pod/site", "--", "python3", "-c", LISTS, base, token(release), "10"]
    times, jobs = json.loads(release.kubectl(*words))
    median = 1000 * statistics.median(times)
    note = f"{jobs} jobs in {median:.0f} ms (longest {1000 * max(times):.0f} ms); {load()}"
    release.rule(f"the list of jobs takes at most {LIST_MS:.0f} ms {when}", float(median <= LIST_MS), 1, note)


def cpu_s(release: Release, component: str) -> float:
    """Seconds of CPU of the first pod of a component."""
    pod = release.kubectl("get", "pods", "-l", release.selector(component), "-o", "jsonpath={.items[0].metadata.name}")
    path = f"/api/v1/namespaces/{release.namespace}/pods/{pod}:9100/proxy/metrics"
    lines = release.kubectl("get", "--raw", path).splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("process_cpu_seconds_total "))


def load() -> str:
    """The load of this machine, for figures that depend on it."""
    with open("/proc/loadavg") as file:
        return f"load {file.read().split()[0]}"
