"""Connections to Kafka and the database: settings that the services accept, secrets as files, warnings."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from nephila.kernel.runtime.config import load
from nephila_cluster.kafka.config import KafkaConfig, checked

from tests.chart.test_chart import CHART, OPERATORS, helm, named, objects, pods, system_of, template

EXTERNAL = "kafka.mode=external,kafka.external.bootstrap=kafka.test:9094"
TLS = "kafka.external.tls.enabled=true,kafka.external.tls.existingSecret=ca"
LOGIN = "kafka.external.sasl.username=crawler,kafka.external.sasl.existingSecret=login"
DATABASE = "database.mode=external,database.external.existingSecret=db"
PRODUCTION = ("-f", str(CHART / "examples" / "production.yaml"))


def kafka_of(found: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> KafkaConfig:
    """The section kafka, checked as a service does; files of secrets are replaced by one that exists."""
    path = tmp_path / "secret"
    path.write_text("secret")
    values = {
        key: str(path) if key in ("sasl_password_file", "sasl_oauth_client_secret_file") else value
        for key, value in system_of(found)["kafka"].items()
    }
    return checked(load(KafkaConfig, values, "system.yaml"), "system.yaml")


def mounted(spec: dict[str, Any]) -> dict[str, str]:
    """Folder to secret of one pod."""
    volumes = {one["name"]: one["secret"]["secretName"] for one in spec["volumes"] if "secret" in one}
    mounts = spec["containers"][0]["volumeMounts"]
    return {one["mountPath"]: volumes[one["name"]] for one in mounts if one["name"] in volumes}


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        (EXTERNAL, {"security_protocol": "PLAINTEXT"}),
        (f"{EXTERNAL},{TLS}", {"security_protocol": "SSL", "ssl_ca_file": "/etc/nephila-kafka-ca/ca.crt"}),
        (f"{EXTERNAL},kafka.external.tls.enabled=true", {"security_protocol": "SSL", "ssl_ca_file": ""}),
        (
            f"{EXTERNAL},{TLS},kafka.external.tls.clientCertificate=true,kafka.external.tls.checkHostname=false",
            {"ssl_key_file": "/etc/nephila-kafka-ca/tls.key", "ssl_check_hostname": False},
        ),
        (
            f"{EXTERNAL},{TLS},{LOGIN},kafka.external.sasl.mechanism=SCRAM-SHA-512",
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "crawler"},
        ),
        (f"{EXTERNAL},{LOGIN},kafka.external.sasl.mechanism=PLAIN", {"security_protocol": "SASL_PLAINTEXT"}),
        (
            f"{EXTERNAL},{TLS},{LOGIN},kafka.external.sasl.mechanism=OAUTHBEARER",
            {"sasl_oauth_token_file": "/etc/nephila-kafka-login/token"},
        ),
        (
            f"{EXTERNAL},{TLS},{LOGIN},kafka.external.sasl.mechanism=OAUTHBEARER,"
            "kafka.external.sasl.tokenUrl=https://id.test/token,kafka.external.sasl.scope=kafka",
            {"sasl_oauth_client_id": "crawler", "sasl_oauth_scope": "kafka"},
        ),
        ("kafka.mode=strimzi", {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "web-nephila"}),
        (
            "kafka.mode=strimzi,kafka.strimzi.authentication=tls",
            {"security_protocol": "SSL", "ssl_key_file": "/etc/nephila-kafka-login/user.key"},
        ),
    ],
)
def test_services_accept_the_settings_of_a_connection(
    settings: str, wanted: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """And every file that they name is in a secret mounted wherever the settings file is."""
    found = objects("--set", settings)
    config = kafka_of(found, monkeypatch, tmp_path)
    assert {key: getattr(config, key) for key in wanted} == wanted
    files = [value for key, value in system_of(found)["kafka"].items() if key.endswith("_file")]
    for name, spec in pods(found):
        if any(one["mountPath"] == "/etc/nephila" for one in spec["containers"][0]["volumeMounts"]):
            assert {value.rpartition("/")[0] for value in files} <= set(mounted(spec)), name


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (f"{EXTERNAL},kafka.external.sasl.mechanism=PLAIN", "kafka.external.sasl.existingSecret is required"),
        (f"{EXTERNAL},kafka.external.sasl.mechanism=GSSAPI", "/kafka/external/sasl/mechanism"),
        (f"{EXTERNAL},kafka.external.tls.existingSecret=ca", "no effect without kafka.external.tls.enabled"),
        (f"{EXTERNAL},kafka.external.tls.enabled=true,kafka.external.tls.clientCertificate=true", "existingSecret"),
        (f"{DATABASE},database.external.tls.mode=verify-full", "database.external.tls.existingSecret is required"),
        ("kafka.config.sasl_password=secret", "sasl_password"),
        ("storage.config.store=postgresql://a:b@c/d", "store"),
        (
            f"{EXTERNAL},{LOGIN},kafka.external.sasl.mechanism=OAUTHBEARER,parser.keda.enabled=true",
            "keda cannot read kafka.external.sasl's token",
        ),
    ],
)
def test_a_connection_without_its_secret_is_refused(settings: str, says: str) -> None:
    """A secret in the values, too: it would be readable in a ConfigMap."""
    done = template("--set", settings)
    assert done.returncode != 0
    assert says in done.stderr


def test_the_database_has_its_url_and_certificates_from_files() -> None:
    """No variable holds a password."""
    found = objects(*PRODUCTION)
    spec = named(found, "Deployment", "web-nephila-storage")["spec"]["template"]["spec"]
    environment = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
    assert environment["NEPHILA_STORAGE__STORE_FILE"] == "/etc/nephila-database/url"
    assert (environment["PGSSLMODE"], environment["PGSSLROOTCERT"]) == (
        "verify-full",
        "/etc/nephila-database-tls/ca.crt",
    )
    folders = mounted(spec)
    assert (folders["/etc/nephila-database"], folders["/etc/nephila-database-tls"]) == ("nephila-db", "nephila-db-ca")
    for name, pod in pods(found):
        for one in pod["containers"][0].get("env", []):
            assert "secretKeyRef" not in one.get("valueFrom", {}), (name, one["name"])


def test_the_api_reads_the_database_of_the_rows() -> None:
    """Changes are requests to the API; its policy lets it reach the server of the release."""
    spec = named(objects(*PRODUCTION), "Deployment", "web-nephila-api")["spec"]["template"]["spec"]
    environment = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
    assert environment["NEPHILA_API__STORE_FILE"] == "/etc/nephila-database/url"
    assert mounted(spec)["/etc/nephila-database"] == "nephila-db"
    found = objects("--set", "networkPolicy.enabled=true")
    spec = named(found, "Deployment", "web-nephila-api")["spec"]["template"]["spec"]
    environment = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
    assert environment["NEPHILA_API__STORE"] == "postgresql://nephila@web-nephila-postgres/nephila"
    egress = named(found, "NetworkPolicy", "web-nephila-api")["spec"]["egress"]
    assert [{"port": 5432, "protocol": "TCP"}] in [one["ports"] for one in egress]


def test_keda_logs_in_as_the_services_do() -> None:
    """The user from the ConfigMap, the password and the authority from the same secrets."""
    found = objects(*PRODUCTION)
    trigger = named(found, "ScaledObject", "web-nephila-parser")["spec"]["triggers"][0]
    assert (trigger["metadata"]["tls"], trigger["metadata"]["sasl"]) == ("enable", "scram_sha512")
    spec = named(found, "TriggerAuthentication", trigger["authenticationRef"]["name"])["spec"]
    assert {one["parameter"]: (one["name"], one["key"]) for one in spec["secretTargetRef"]} == {
        "ca": ("nephila-kafka-ca", "ca.crt"),
        "password": ("nephila-kafka-login", "password"),
    }
    (user,) = spec["configMapTargetRef"]
    assert named(found, "ConfigMap", user["name"])["data"][user["key"]] == "nephila"


def test_strimzi_creates_the_user_that_the_services_mount() -> None:
    """Its secret has the name of the KafkaUser; there is no plaintext listener."""
    found = objects("--set", "kafka.mode=strimzi")
    user = named(found, "KafkaUser", "web-nephila")
    assert user["metadata"]["labels"]["strimzi.io/cluster"] == "web-nephila"
    (listener,) = named(found, "Kafka", "web-nephila")["spec"]["kafka"]["listeners"]
    assert listener["tls"]
    assert listener["authentication"] == user["spec"]["authentication"] == {"type": "scram-sha-512"}
    assert system_of(found)["bootstrap"].endswith(f":{listener['port']}")
    spec = named(found, "Deployment", "web-nephila-parser")["spec"]["template"]["spec"]
    assert mounted(spec)["/etc/nephila-kafka-login"] == "web-nephila"


Render = Callable[..., str]


@pytest.fixture
def notes(tmp_path: Path) -> Render:
    """NOTES.txt for these values; `helm template` renders it as an object of a copy of the chart."""
    chart = tmp_path / "nephila"
    shutil.copytree(CHART, chart)
    (chart / "templates" / "NOTES.txt").rename(chart / "notes.txt")
    (chart / "templates" / "notes.yaml").write_text('notes: {{ tpl (.Files.Get "notes.txt") . | quote }}')

    def render(*arguments: str) -> str:
        command = [helm(), "template", "web", str(chart), "--show-only=templates/notes.yaml", *OPERATORS, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return " ".join(yaml.safe_load(done.stdout)["notes"].split())

    return render


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (EXTERNAL, "kafka.external.tls.enabled is false: pages and jobs cross the network in plaintext"),
        (EXTERNAL, "kafka.external has no login"),
        (f"{EXTERNAL},{LOGIN},kafka.external.sasl.mechanism=PLAIN", "pages and jobs, and the login, cross the network"),
        (DATABASE, "database.external.tls.mode is not set"),
    ],
)
def test_notes_warn_of_plaintext(notes: Callable[..., str], settings: str, says: str) -> None:
    """A secured system has no such warning."""
    assert says in notes("--set", settings)
    assert says not in notes(*PRODUCTION)
