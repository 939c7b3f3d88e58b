"""The chart: renders for every example, valid for three versions of Kubernetes, restricted pods, typos refused."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from nephila_cluster.service import settings

from tests.required import required
from tools.helm import find
from tools.install import Missing

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "nephila"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
VERSIONS = ("1.29.0", "1.32.0", "1.34.0")
OPERATORS = (
    "--kube-version=1.34.0",
    "--api-versions=monitoring.coreos.com/v1/PodMonitor",
    "--api-versions=monitoring.coreos.com/v1/PrometheusRule",
)
SERVICES = {"scheduler", "downloader", "parser", "storage"}


# Else every object parses its schema and all definitions of its Kubernetes version again.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)


@cache
def helm() -> str:
    """The path of helm."""
    with required(Missing):
        return str(find())


def template(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`helm template` with these arguments."""
    command = [helm(), "template", "web", str(CHART), "--namespace", "crawl", *OPERATORS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@cache
def objects(*arguments: str) -> list[dict[str, Any]]:
    """The objects that `helm template` renders."""
    done = template(*arguments)
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]


def pods(found: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, pod spec) of everything that starts pods."""
    for one in found:
        name = f"{one['kind']} {one['metadata']['name']}"
        if one["kind"] == "Pod":
            yield name, one["spec"]
        elif one["kind"] in ("Deployment", "StatefulSet", "Job"):
            yield name, one["spec"]["template"]["spec"]
        elif one["kind"] == "CronJob":
            yield name, one["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def named(found: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    """The one object of this kind and name."""
    return next(one for one in found if one["kind"] == kind and one["metadata"]["name"] == name)


def system_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The settings file of the services."""
    (config,) = [one for one in found if one["kind"] == "ConfigMap" and one["metadata"]["name"].endswith("-config")]
    return dict(yaml.safe_load(config["data"]["system.yaml"]))


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def test_every_example_renders_objects_that_are_valid_for_three_versions(values: Path | None) -> None:
    found = objects(*(["-f", str(values)] if values else []))
    assert {one["metadata"]["name"] for one in found} >= {f"web-nephila-{service}" for service in SERVICES}
    for one in found:
        if "." in one["apiVersion"].partition("/")[0] and not one["apiVersion"].split("/")[0].endswith("k8s.io"):
            continue  # custom resources of other operators have no schema here
        for version in VERSIONS:
            kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda path: path.stem if path else "default")
def test_lint_has_no_finding(values: Path | None) -> None:
    command = [
        helm(),
        "lint",
        "--strict",
        "--kube-version=1.34.0",
        str(CHART),
        *(["-f", str(values)] if values else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert not {"[INFO]", "[WARNING]"} & set(done.stdout.split())


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_every_pod_meets_the_restricted_standard(values: Path) -> None:
    for name, spec in pods(objects("-f", str(values))):
        assert spec["automountServiceAccountToken"] is False, name
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True, name
        browser = {"type": "Localhost", "localhostProfile": "seccomp-browser.json"}
        assert security["seccompProfile"] == (browser if name.endswith("-browser") else {"type": "RuntimeDefault"}), (
            name
        )
        for container in spec["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False, name
            assert own["capabilities"] == {"drop": ["ALL"]}, name
            assert container["resources"]["limits"]["memory"], name


def test_our_own_containers_have_a_read_only_root_and_a_uid_above_10000() -> None:
    for name, spec in pods(objects()):
        if "kafka" in name or "postgres" in name:
            continue
        assert spec["securityContext"]["runAsUser"] > 10_000, name
        assert all(one["securityContext"]["readOnlyRootFilesystem"] for one in spec["containers"]), name


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_every_service_has_probes_and_a_grace_period_above_its_drain(service: str) -> None:
    kind = "StatefulSet" if service == "scheduler" else "Deployment"
    spec = named(objects(), kind, f"web-nephila-{service}")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert spec["terminationGracePeriodSeconds"] == 45
    assert system_of(objects())["grace_s"] < 45


def test_a_start_may_take_five_minutes() -> None:
    """A node without a free core starts a program in minutes. A kill before its end makes all others slower."""
    for name, spec in pods(objects()):
        for probe in [one["startupProbe"] for one in spec["containers"] if "startupProbe" in one]:
            assert probe["periodSeconds"] * probe["failureThreshold"] >= 300, name


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("crawler.contct=a@example.org", "contct"),
        ("downloader.config.concurency=5", "concurency"),
        ("kafka.mode=local", "kafka.mode"),
        ("crawler.partitions=63", "crawler.partitions"),
        ("kafka.mode=external", "kafka.external.bootstrap is required"),
        ("database.mode=external", "database.external.existingSecret is required"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(setting: str, message: str) -> None:
    done = template("--set", setting)
    assert done.returncode != 0
    assert message.split(".")[-1] in done.stderr


def test_an_absent_operator_is_named() -> None:
    command = [
        helm(),
        "template",
        "web",
        str(CHART),
        "--kube-version=1.34.0",
        "--set",
        "monitoring.podMonitor.enabled=true",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "no CRD PodMonitor" in done.stderr


def test_the_control_api_has_a_token_from_a_secret() -> None:
    spec = named(objects(), "Deployment", "web-nephila-api")["spec"]["template"]["spec"]
    assert {"secretName": "web-nephila-api", "defaultMode": 0o440} in [one.get("secret") for one in spec["volumes"]]
    assert named(objects(), "Secret", "web-nephila-api")["data"]["token"]
    own = objects("--set", "api.existingSecret=mine")
    assert not [one for one in own if one["kind"] == "Secret" and one["metadata"]["name"] == "web-nephila-api"]
    off = objects("--set", "api.enabled=false,operator.enabled=false")
    assert not [one for one in off if one["metadata"]["name"] == "web-nephila-api" and one["kind"] == "Deployment"]


def test_the_access_file_of_the_control_api_is_a_secret_by_name() -> None:
    """With the way to the provider of logins, where egress is closed."""
    peers = '[{"ipBlock":{"cidr":"10.9.0.0/16"}}]'
    found = objects("--set", "api.access.existingSecret=who", "--set-json", f"networkPolicy.login.peers={peers}")
    spec = named(found, "Deployment", "web-nephila-api")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert {"name": "access", "secret": {"secretName": "who", "defaultMode": 0o440}} in spec["volumes"]
    assert {"name": "access", "mountPath": "/etc/nephila-access", "readOnly": True} in container["volumeMounts"]
    assert {"name": "NEPHILA_API__ACCESS_FILE", "value": "/etc/nephila-access/access.yaml"} in container["env"]
    rules = {one["metadata"]["name"]: one["spec"]["egress"] for one in found if one["kind"] == "NetworkPolicy"}
    login = {"to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}], "ports": [{"port": 443, "protocol": "TCP"}]}
    assert [name for name, egress in rules.items() if login in egress] == ["web-nephila-api"]
    plain = named(objects(), "Deployment", "web-nephila-api")["spec"]["template"]["spec"]
    assert "access" not in [one["name"] for one in plain["volumes"]]


def test_a_prefix_holds_for_topics_and_scalers() -> None:
    found = objects("--set", "kafka.config.prefix=prod-,parser.keda.enabled=true")
    assert system_of(found)["kafka"]["prefix"] == "prod-"
    (job,) = [one for one in found if one["kind"] == "Job"]
    assert "/etc/nephila/system.yaml" in job["spec"]["template"]["spec"]["containers"][0]["args"]
    trigger = named(found, "ScaledObject", "web-nephila-parser")["spec"]["triggers"][0]["metadata"]
    assert (trigger["topic"], trigger["consumerGroup"]) == ("prod-pages", "prod-parser")


@pytest.mark.parametrize("service", ["downloader", "parser"])
@pytest.mark.parametrize("scaler", ["autoscaling", "keda"])
def test_a_scaled_deployment_has_no_number_of_replicas(service: str, scaler: str) -> None:
    assert "replicas" in named(objects(), "Deployment", f"web-nephila-{service}")["spec"]
    found = objects("--set", f"{service}.{scaler}.enabled=true")
    assert "replicas" not in named(found, "Deployment", f"web-nephila-{service}")["spec"]
    kind = "ScaledObject" if scaler == "keda" else "HorizontalPodAutoscaler"
    assert named(found, kind, f"web-nephila-{service}")["spec"]["scaleTargetRef"]["name"] == f"web-nephila-{service}"


def policies(*arguments: str) -> dict[str, dict[str, Any]]:
    """Component → the spec of its NetworkPolicy."""
    return {
        one["metadata"]["name"].removeprefix("web-nephila-"): one["spec"]
        for one in objects(*arguments)
        if one["kind"] == "NetworkPolicy"
    }


def test_only_downloaders_reach_addresses_outside_the_cluster() -> None:
    for component, spec in policies().items():
        wide = [
            peer["ipBlock"]
            for rule in spec["egress"] or []
            for peer in rule.get("to", [])
            if "ipBlock" in peer and peer["ipBlock"]["cidr"].endswith("/0")
        ]
        denied = {block["cidr"]: set(block["except"]) for block in wide}
        assert list(denied) == (["0.0.0.0/0", "::/0"] if component == "downloader" else []), component
        if denied:
            assert {"10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16"} <= denied["0.0.0.0/0"]
            # All but 2000::/3 (private, link-local, mapped IPv4), and what embeds IPv4 addresses within it.
            assert {"::/3", "4000::/2", "8000::/1", "2002::/16", "2001::/23"} <= denied["::/0"]


def test_a_denied_network_of_either_version_is_in_its_own_block() -> None:
    settings = "networkPolicy.deniedNetworks={203.0.113.0/24,2600:1f00::/24}"
    rules = policies("--set", settings)["downloader"]["egress"]
    blocks = [peer["ipBlock"] for rule in rules for peer in rule.get("to", []) if "ipBlock" in peer]
    assert {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]} in blocks
    assert {"cidr": "::/0", "except": ["2600:1f00::/24"]} in blocks


def test_dns_is_reached_only_at_the_servers_of_the_cluster() -> None:
    own = "networkPolicy.dns[0].ipBlock.cidr=10.96.0.10/32"
    for component, spec in policies("--set", own).items():
        if component not in ("kafka", "postgres"):
            rules = [rule for rule in spec["egress"] if {"port": 53, "protocol": "UDP"} in rule.get("ports", [])]
            assert [rule["to"] for rule in rules] == [[{"ipBlock": {"cidr": "10.96.0.10/32"}}]], component
    (rule,) = [rule for rule in policies()["parser"]["egress"] if {"port": 53, "protocol": "UDP"} in rule["ports"]]
    assert {"matchLabels": {"k8s-app": "kube-dns"}} in [peer.get("podSelector") for peer in rule["to"]]


def test_the_pods_of_the_release_reach_each_other_when_metrics_are_limited_to_a_namespace() -> None:
    """The operator and `helm test` send requests to port 9100 of the API and the scheduler."""
    found = policies("--set", "networkPolicy.metricsFrom.matchLabels.name=monitoring")
    for component in ("api", "scheduler"):
        (rule,) = found[component]["ingress"]
        assert {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": "web"}}} in rule["from"]
        assert {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}} in rule["from"]


def test_the_release_has_a_test() -> None:
    (pod,) = [one for one in objects() if one["kind"] == "Pod"]
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"


def test_storage_never_has_two_members_on_one_volume() -> None:
    spec = named(objects(), "Deployment", "web-nephila-storage")["spec"]
    assert spec["strategy"]["rollingUpdate"]["maxSurge"] == 0
    done = template("--set", "storage.persistence.size=5Gi,storage.replicas=2")
    assert done.returncode != 0
    assert "one volume has one writer" in done.stderr


def test_only_the_operator_gets_rights_and_only_these() -> None:
    rights = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
    for arguments, verbs_of_rules in (
        ((), set()),
        (("--set", "rules.configMap=rules"), {"create", "update", "delete"}),
    ):
        found = [one for one in objects("--set", "crds.enabled=false", *arguments) if one["kind"] in rights]
        assert [(one["kind"], one["metadata"]["name"]) for one in found] == [
            ("Role", "web-nephila-operator"),
            ("RoleBinding", "web-nephila-operator"),
        ]
        role, binding = found
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "web-nephila-operator", "namespace": "crawl"}]
        granted = {
            (group, resource, verb)
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        resources = ("crawljobs", "parserules")
        assert granted == {
            *(("nephila.dev", one, verb) for one in resources for verb in ("get", "list", "watch", "patch")),
            *(("nephila.dev", f"{one}/status", "patch") for one in resources),
            *(("nephila.dev", "parserules", verb) for verb in verbs_of_rules),
            *(("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "update")),
            ("", "events", "create"),
        }
    off = objects("--set", "crds.enabled=false,operator.enabled=false")
    assert not [one for one in off if one["kind"] in rights]


def test_only_the_container_of_the_operator_has_the_token_of_the_api_server() -> None:
    found = objects("--set", "rules.git.repository=https://git.example/rules.git")
    pod = named(found, "Deployment", "web-nephila-operator")["spec"]["template"]["spec"]
    assert named(found, "ServiceAccount", "web-nephila-operator")["automountServiceAccountToken"] is False
    (volume,) = [one for one in pod["volumes"] if "projected" in one]
    sources = {key for source in volume["projected"]["sources"] for key in source}
    assert sources == {"serviceAccountToken", "configMap", "downwardAPI"}
    operator, sync = (
        {mount["mountPath"] for mount in one["volumeMounts"] if mount["name"] == volume["name"]}
        for one in pod["containers"]
    )
    assert operator == {"/var/run/secrets/kubernetes.io/serviceaccount"}
    assert sync == set()


def test_the_operator_needs_the_control_api() -> None:
    done = template("--set", "api.enabled=false")
    assert done.returncode != 0
    assert "operator.enabled needs api.enabled" in done.stderr


def test_rules_of_a_config_map_and_of_a_repository_are_folders_of_the_operator() -> None:
    settings = "rules.configMap=shop,rules.git.repository=https://git.example/rules.git,rules.git.path=live"
    spec = named(objects("--set", settings), "Deployment", "web-nephila-operator")["spec"]["template"]["spec"]
    operator, sync = spec["containers"]
    env = {one["name"]: one.get("value") for one in operator["env"]}
    assert env["NEPHILA_OPERATOR__RULES_FOLDERS"] == '["/rules/configmap","/rules/git/current/live"]'
    assert env["NEPHILA_OPERATOR__PRUNE_RULES"] == "false"
    assert {one["name"]: one.get("value") for one in sync["env"]}["GITSYNC_REF"] == "main"
    secret = ("--set", "rules.git.repository=git@git.example:rules.git,rules.git.existingSecret=key")
    _, sync = named(objects(*secret), "Deployment", "web-nephila-operator")["spec"]["template"]["spec"]["containers"]
    assert "GITSYNC_SSH_KEY_FILE" in [one["name"] for one in sync["env"]]


@pytest.mark.parametrize(
    "url",
    ["https://me:hunter2@git.example/r.git", "https://hunter2@git.example/r.git", "ssh://git:hunter2@git.example/r"],
)
def test_a_password_in_the_address_of_a_repository_is_refused(url: str) -> None:
    done = template("--set", f"rules.git.repository={url}")
    assert done.returncode != 0
    assert "rules.git.repository holds a password or token; put it into rules.git.existingSecret" in done.stderr
    assert "hunter2" not in done.stderr


def test_the_user_name_of_an_ssh_address_is_no_password() -> None:
    assert template("--set", "rules.git.repository=ssh://git@git.example/rules.git").returncode == 0


def test_crds_are_kept_and_can_be_left_out() -> None:
    found = [one for one in objects() if one["kind"] == "CustomResourceDefinition"]
    assert {one["metadata"]["name"] for one in found} == {"crawljobs.nephila.dev", "parserules.nephila.dev"}
    assert all(one["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for one in found)
    off = objects("--set", "crds.enabled=false")
    assert not [one for one in off if one["kind"] == "CustomResourceDefinition"]


def test_every_field_of_a_crd_has_a_type_or_is_kept_as_it_is() -> None:
    def check(schema: dict[str, Any], path: str) -> None:
        free = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string")
        assert "type" in schema or free, path
        assert not {"$ref", "oneOf", "additionalProperties"} & set(schema) or schema.get("additionalProperties"), path
        for name, below in schema.get("properties", {}).items():
            assert below.get("description") or path == "" or path.startswith(".metadata"), f"{path}.{name}"
            check(below, f"{path}.{name}")
        for key in ("items", "additionalProperties"):
            if key in schema:
                check(schema[key], f"{path}[]")

    for one in objects():
        if one["kind"] == "CustomResourceDefinition":
            (version,) = one["spec"]["versions"]
            assert version["subresources"] == {"status": {}}
            check(version["schema"]["openAPIV3Schema"], "")


def test_documents_with_secrets_name_them_only() -> None:
    text = (CHART / "charts" / "nephila-crds" / "files" / "crawljobs.yaml").read_text()
    assert "secretRef" in text
    assert "looks like a secret" in text


def test_secrets_of_others_are_only_referenced() -> None:
    production = objects("-f", str(CHART / "examples" / "production.yaml"), "--set", "api.existingSecret=token")
    assert not [one for one in production if one["kind"] == "Secret"]


def test_one_program_fetches_and_parses_where_the_topology_says_so() -> None:
    """The downloader's pods run `fetchparse`, and nothing of a parser is rendered."""
    found = objects("--set", "crawler.topology=fetchparse,parser.autoscaling.enabled=true")
    args = {name: spec["containers"][0]["args"] for name, spec in pods(found) if "downloader" in name}
    assert list(args.values()) == [["service", "fetchparse"]]
    names = {(one["kind"], one["metadata"]["name"]) for one in found if one["metadata"]["name"].endswith("-parser")}
    assert {kind for kind, _ in names} <= {"NetworkPolicy"}


def test_schedulers_are_replaced_one_after_the_other() -> None:
    """The next one waits until the one before has been ready for some time."""
    spec = named(objects("--set", "scheduler.replicas=3"), "StatefulSet", "web-nephila-scheduler")["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    assert spec["minReadySeconds"] >= 10


def test_user_agent_and_pace_are_set_once_and_reach_every_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From one key of the values each to the settings of all services, as a service reads them."""
    values = "crawler.userAgent=examplebot/2.0,crawler.perAddress=2"
    gap = ("--set-json", "crawler.addressGapSeconds=0.5", "--set", "crawler.networks={192.0.2.0/24=8}")
    found = objects("--set", values, *gap)
    path = tmp_path / "system.yaml"
    path.write_text(yaml.safe_dump(system_of(found)))
    (tmp_path / "token").write_text("x" * 32)
    monkeypatch.setenv("NEPHILA_STORAGE__STORE", "postgresql://nephila@db/nephila")
    monkeypatch.setenv("NEPHILA_STORAGE__DIRECTORY", str(tmp_path))
    monkeypatch.setenv("NEPHILA_SCHEDULER__DIRECTORY", str(tmp_path))
    read = {name: settings.read(name, str(path)).service for name in SERVICES}
    assert read["downloader"].http.user_agent == "examplebot/2.0"
    assert (read["scheduler"].agent, read["parser"].robots_agent) == ("examplebot", "examplebot")
    for limits in (read["scheduler"], read["downloader"].limits):
        assert (limits.per_address, limits.address_gap_s, limits.networks) == (2, 0.5, ("192.0.2.0/24=8",))


def test_settings_of_the_chart_join_a_section_of_the_values() -> None:
    """A section of `config` may hold other settings; what it sets itself is stronger."""
    values = "downloader.config.dns.ttl_s=60,downloader.config.middleware.cookies=/c,downloader.config.browser.pages=2"
    found = objects("--set", values, "--set", "crawler.allowPrivate=true,downloader.secrets.existingSecret=logins")
    assert system_of(found)["downloader"] == {
        "dns": {"ttl_s": 60, "allow_private": True},
        "middleware": {"cookies": "/c", "secrets": "/secrets"},
        "browser": {"pages": 2},
    }
    found = objects("--set", "downloader.config.dns.allow_private=true")
    assert system_of(found)["downloader"] == {"dns": {"allow_private": True}}
