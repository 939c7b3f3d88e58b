"""The login at the API server: kubeconfigs with a token, a certificate or a login program, and the service account."""

from __future__ import annotations

import json

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila_cluster.kubernetes import login
from nephila_cluster.kubernetes.login import log_in

from tests.kubernetes_reads import Reads, exec_user


@pytest.fixture
def reads(monkeypatch) -> Reads:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    found = Reads()
    found.port = 1
    return found


def test_a_token_of_a_kubeconfig(tmp_path, monkeypatch, reads) -> None:
    monkeypatch.setenv("KUBECONFIG", str(reads.kubeconfig(tmp_path, {"token": "secret"})))
    found = log_in()
    assert (found.server, found.namespace) == ("http://127.0.0.1:1", "crawl")
    assert found.headers == {"Authorization": "Bearer secret"}
    assert found.tls() is False


def test_a_login_program_is_run(tmp_path, monkeypatch, reads) -> None:
    """As aws, gke-gcloud-auth-plugin and kubelogin: the kubeconfig of a managed cluster has no token."""
    monkeypatch.setenv("KUBECONFIG", str(reads.kubeconfig(tmp_path, exec_user(tmp_path, "fresh"))))
    assert log_in().headers == {"Authorization": "Bearer fresh"}
    assert (tmp_path / "calls").read_text() == "called\n"
    exec_user(tmp_path, "later")
    assert log_in().headers == {"Authorization": "Bearer later"}


def test_another_context_is_chosen(tmp_path, monkeypatch, reads) -> None:
    path = reads.kubeconfig(tmp_path, {"token": "secret"})
    content = json.loads(path.read_text())
    content["contexts"].append({"name": "other", "context": {"cluster": "t", "user": "t", "namespace": "elsewhere"}})
    path.write_text(json.dumps(content))
    monkeypatch.setenv("KUBECONFIG", str(path))
    assert log_in("other").namespace == "elsewhere"
    with pytest.raises(UserError, match=r"the kubeconfig cannot be used: .*absent"):
        log_in("absent")


@pytest.mark.parametrize("text", ["{", "clusters: 1\n", "current-context: t\ncontexts: []\nclusters: []\nusers: []\n"])
def test_a_damaged_kubeconfig_is_one_line(tmp_path, monkeypatch, reads, text) -> None:
    (tmp_path / "kubeconfig").write_text(text)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    with pytest.raises(UserError, match=r"^the kubeconfig cannot be used: [^\n]+$"):
        log_in()


def test_the_service_account_of_a_pod_comes_first(tmp_path, monkeypatch, reads) -> None:
    """Its token is read at each login, since the kubelet replaces it."""
    from kubernetes.config import incluster_config

    for name, text in (("token", "of the pod"), ("ca.crt", "certificate"), ("namespace", "mine")):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(login, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("KUBECONFIG", str(reads.kubeconfig(tmp_path)))
    found = log_in()
    assert (found.server, found.namespace) == ("https://10.0.0.1:443", "mine")
    assert found.headers == {"Authorization": "Bearer of the pod"}
    assert found.ca_path == str(tmp_path / "ca.crt")
