"""`nephila doctor --cluster` against an API server: lines, exit code, rights, several releases."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.kubernetes_reads import Reads, exec_user, pod, serve_reads


@pytest.fixture
def reads(tmp_path, monkeypatch) -> Iterator[Reads]:
    """A healthy release, and a person with a login program."""
    with serve_reads() as found:
        found.token = "fresh"  # noqa: S105
        found.objects["pods"] = [pod("web-scheduler-0", "scheduler"), pod("web-parser-a", "parser")]
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        monkeypatch.setenv("KUBECONFIG", str(found.kubeconfig(tmp_path, exec_user(tmp_path, "fresh"))))
        yield found


def test_a_healthy_release_is_one_line(reads, nephila) -> None:
    done = nephila("doctor", "--cluster")
    assert (done.code, done.out) == (0, "release web in namespace crawl has no fault: 2 pods checked\n")


def test_faults_are_lines_and_the_exit_code(reads, nephila) -> None:
    reads.readyz["web-parser-a"] = "waiting: the broker at kafka:9092 does not answer"
    reads.metrics["web-scheduler-0"] = "nephila_scheduler_snapshot_age_seconds 36000\n"
    done = nephila("doctor", "--cluster", "--release", "web")
    assert done.code == 1
    assert done.out.splitlines() == [
        "fail  pod web-parser-a     not ready: waiting: the broker at kafka:9092 does not answer"
        " → docs/operations.md, Faults",
        "warn  pod web-scheduler-0  no snapshot for 10 hours → docs/operations.md#nephilasnapshotsold",
        "release web in namespace crawl has faults: 2 pods checked",
    ]
    found = json.loads(nephila("doctor", "--cluster", "--json").out)
    assert (found["sound"], [one["object"] for one in found["findings"]]) == (
        False,
        ["pod web-parser-a", "pod web-scheduler-0"],
    )


def test_missing_rights_are_named(reads, nephila) -> None:
    reads.forbidden = {"proxy", "crawljobs"}
    done = nephila("doctor", "--cluster")
    assert done.code == 0
    assert "crawljobs: not allowed: crawljobs is forbidden" in done.out
    assert "pods/proxy: not allowed to read /metrics of pods through the API server (status 403)" in done.out


def test_resources_that_wait_for_an_operator_that_is_gone_are_freed_by_one_command(reads, nephila) -> None:
    """Their finalizers keep the namespace after `helm uninstall`. While an operator runs, it removes them."""
    metadata = {"name": "news", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["nephila.dev/delete"]}
    reads.objects["crawljobs"] = [{"metadata": metadata, "status": {}}]
    reads.objects["pods"].append(pod("web-operator-a", "operator"))
    reads.forbidden = {"proxy"}
    assert "waits for an operator" not in nephila("doctor", "--cluster").out
    reads.objects["pods"][-1]["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    assert "waits for an operator" in nephila("doctor", "--cluster").out
    reads.objects["pods"] = []
    gone = nephila("doctor", "--cluster")
    assert gone.code == 1
    assert (
        "crawljob news  its deletion, and that of the namespace, waits for an operator, and none runs here" in gone.out
    )
    assert (
        "kubectl -n crawl get crawljobs,parserules -o name | xargs -I@ kubectl -n crawl patch @ --type merge -p "
        """'{"metadata":{"finalizers":null}}'"""
    ) in gone.out
    reads.objects["crawljobs"] = []
    assert "has no pod of nephila" in nephila("doctor", "--cluster").err


def test_one_of_several_releases_has_to_be_named(reads, nephila) -> None:
    reads.objects["pods"].append(pod("blue-parser-a", "parser", release="blue"))
    done = nephila("doctor", "--cluster")
    assert (done.code, "has several releases: blue, web; name one by --release" in done.err) == (2, True)
    assert nephila("doctor", "--cluster", "--release", "blue").out.endswith("no fault: 1 pods checked\n")
    absent = nephila("doctor", "--cluster", "--release", "green")
    assert (absent.code, "release green  has no pod" in absent.out) == (1, True)


def test_a_refused_login_and_an_absent_server_are_one_line(reads, nephila, tmp_path) -> None:
    reads.token = "another"  # noqa: S105
    refused = nephila("doctor", "--cluster")
    assert (refused.code, refused.err) == (1, "nephila: not allowed: Unauthorized\n")
    reads.port = 1
    reads.kubeconfig(tmp_path)
    gone = nephila("doctor", "--cluster")
    assert gone.code == 1
    assert gone.err.startswith("nephila: the API server at http://127.0.0.1:1 cannot be reached: ")


def test_its_options_need_it(nephila) -> None:
    done = nephila("doctor", "--release", "web")
    assert (done.code, done.err) == (2, "nephila: --namespace, --release and --context need --cluster\n")
