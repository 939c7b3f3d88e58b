"""Writes values.schema.json, the list of keys and the table of the README from the annotated values.yaml of the chart.

    python -m tools.chart_values [--check]

A comment line `# --` describes the key below it; `# @enum a, b` names its values; `# @default service` takes the
description of resources. Maps are closed (a typo is an error), except maps that are empty or `requests`, `limits`,
`resources` by default. Keys under `config` are the fields of the service's settings.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import yaml
from nephila.downloader.config import DownloaderConfig
from nephila.downloader.dns.resolvers import RESOLVERS
from nephila.downloader.http.fetchers import FETCHERS
from nephila.kernel.runtime.config import secret_fields, section_class
from nephila.parser.config import ParserConfig
from nephila.scheduler.config import SchedulerConfig
from nephila.storage.config import StorageConfig
from nephila.storage.outputs import FORMATS
from nephila_cluster.kafka.config import MECHANISMS, PROTOCOLS, KafkaConfig
from nephila_cluster.operator.config import OperatorConfig
from nephila_control.config import ControlConfig
from nephila_proxies.selection import NAMES

from tools.images import IMAGES

CHART = Path(__file__).parents[1] / "charts" / "nephila"
CONFIGS: dict[str, type[msgspec.Struct]] = {
    "kafka": KafkaConfig,
    "scheduler": SchedulerConfig,
    "downloader": DownloaderConfig,
    "parser": ParserConfig,
    "storage": StorageConfig,
    "api": ControlConfig,
    "operator": OperatorConfig,
}
SERVICES = ("scheduler", "downloader", "browser", "parser", "storage", "api", "operator")
PLACED = ("topics", "backup", "kafka.dev", "database.dev")
"""Sections of pods that are no service."""
FREE = ("requests", "limits")
OPEN = ("resources", "podSecurityContext")
"""Sections whose parts a user may take away."""
BEGIN, END = "<!-- values -->", "<!-- end of values -->"
QUANTITY = r"([0-9]+|[0-9]+\.[0-9]+)([mkKMGTPE]|[KMGTPE]i)?"
"""An amount of Kubernetes: 500m, 2Gi."""
SIZE = r"([0-9]+|[0-9]+\.[0-9]+)([kMGTPE]|[KMGTPE]i)?"
NAME = r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
"""The name of an object."""
LABEL = r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?"
CIDR = r"([0-9]{1,3}\.){3}[0-9]{1,3}/[0-9]{1,2}|[0-9a-fA-F:]+/[0-9]{1,3}"
DURATION = r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+"
BACKUP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z"
"""The name of a backup: its time."""
HOST = r"(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
ADDRESS = r"[A-Za-z0-9.-]+:[0-9]{1,5}|\[[0-9a-fA-F:]+\]:[0-9]{1,5}"


def text(pattern: str, empty: bool = True) -> dict[str, Any]:
    """A text that matches all of an expression; `empty`: or has no character."""
    return {"type": "string", "pattern": f"^({pattern})$" if not empty else f"^({pattern})?$"}


LABELS: dict[str, Any] = {"type": "object", "additionalProperties": text(LABEL)}
TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
MAPS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
NAMED: dict[str, Any] = {
    "type": "array",
    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}},
}
PORTS: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}}
AMOUNTS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"anyOf": [text(QUANTITY, empty=False), {"type": "number", "minimum": 0}]},
}
CONTEXT: dict[str, Any] = {"type": "object"}
"""A security context of Kubernetes, which checks it."""
BY_NAME: dict[str, dict[str, Any]] = {
    "requests": AMOUNTS,
    "limits": AMOUNTS,
    "labels": LABELS,
    "commonLabels": LABELS,
    "nodeSelector": LABELS,
    "annotations": TEXTS,
    "commonAnnotations": TEXTS,
    "storageClass": text(NAME),
    "existingSecret": text(NAME),
    "existingClaim": text(NAME),
    "configMap": text(NAME),
    "serviceAccountName": text(NAME),
    "priorityClassName": text(NAME),
    "storage": text(SIZE),
    "size": text(SIZE),
    "interval": text(DURATION, empty=False),
    "period": text(DURATION, empty=False),
    "peers": MAPS,
    "ports": PORTS,
    "tolerations": MAPS,
    "extraEgress": MAPS,
    "extraEnvFrom": MAPS,
    "extraEnv": NAMED,
    "extraVolumes": NAMED,
    "extraVolumeMounts": NAMED,
    "imagePullSecrets": NAMED,
    "topologySpreadConstraints": {
        "type": "array",
        "items": {"type": "object", "required": ["maxSkew", "topologyKey", "whenUnsatisfiable"]},
    },
    "runAsUser": {"minimum": 1},
    "podSecurityContext": CONTEXT,
    "shmSize": text(SIZE, empty=False),
    "host": text(HOST),
    "hostnames": {"type": "array", "items": text(HOST, empty=False)},
    "parentRefs": NAMED,
    "secretName": text(NAME),
    "className": text(NAME),
    "from": text(BACKUP),
    "replicas": {"minimum": 0},
    "minReplicas": {"minimum": 1},
    "maxReplicas": {"minimum": 1},
    "targetCPUUtilizationPercentage": {"minimum": 1, "maximum": 1000},
    "hostsPerReplica": {"minimum": 1},
    "lagPerReplica": {"minimum": 1},
    "pollingInterval": {"minimum": 1},
    "stabilizationSeconds": {"minimum": 0, "maximum": 3600},
    "terminationGracePeriodSeconds": {"minimum": 1},
}
"""What holds for a value of this name, wherever it stands."""
PLACEMENT: dict[str, Any] = {
    "nodeSelector": LABELS,
    "tolerations": MAPS,
    "affinity": {"type": "object"},
    "priorityClassName": {"type": "string"},
    "schedulerName": {"type": "string"},
    "runtimeClassName": {"type": "string"},
}
OWN: dict[str, Any] = {
    "image": {"type": "string", "pattern": r"^(\S+[:@]\S+)?$"},
    "podSecurityContext": CONTEXT,
    "securityContext": CONTEXT,
}
"""Keys of a section of pods: its image, its security contexts."""
POD_KEYS: dict[str, Any] = PLACEMENT | {
    "labels": LABELS,
    "annotations": TEXTS,
    "logLevel": {"type": "string", "enum": ["debug", "info", "warning", "error"]},
    "topologySpreadConstraints": MAPS,
    "extraEnv": NAMED,
    "extraEnvFrom": MAPS,
    "extraVolumes": NAMED,
    "extraVolumeMounts": NAMED,
}
"""Keys of `pod` that a service may repeat in its own section."""
MODES: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {"enum": ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"]},
}
CONFIG_WORDS: dict[str, dict[str, Any]] = {
    "prefix": text(r"[A-Za-z0-9._-]+"),
    "security_protocol": {"enum": list(PROTOCOLS)},
    "sasl_mechanism": {"enum": ["", *MECHANISMS]},
    "formats": {"type": "array", "items": {"enum": list(FORMATS)}},
    "http.fetcher": {"enum": list(FETCHERS)},
    "dns.resolver": {"enum": list(RESOLVERS)},
    "proxies.names": {"enum": list(NAMES)},
}
"""Settings of a service, by path, whose words the structs do not list."""
BOUNDS: dict[str, dict[str, Any]] = {
    "crawler.partitions": {"enum": [1 << n for n in range(13)]},
    "crawler.perAddress": {"minimum": 1},
    "crawler.addressGapSeconds": {"minimum": 0},
    "nameOverride": text(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?"),
    "fullnameOverride": text(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?"),
    "image.repository": text(r"[a-z0-9]([a-z0-9.:/_-]*[a-z0-9])?", empty=False),
    "image.digests": {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: text("sha256:[0-9a-f]{64}", empty=False) for name in (*IMAGES, "browser")},
    },
    "image.tag": text(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"),
    "crawler.networks": {"type": "array", "items": text(rf"({CIDR})=[0-9]+(/[0-9]+(\.[0-9]+)?)?", empty=False)},
    "networkPolicy.deniedNetworks": {"type": "array", "items": text(CIDR, empty=False)},
    "networkPolicy.dns": MAPS,
    "networkPolicy.controlFrom": MAPS,
    "operator.namespaces": {"type": "array", "items": text(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", empty=False)},
    "backup.schedule": text(r"(\S+\s+){4}\S+|@[a-z]+", empty=False),
    "backup.keep": {"minimum": 1},
    "backup.persistence.size": text(SIZE, empty=False),
    "backup.persistence.accessModes": MODES,
    "kafka.external.bootstrap": text(rf"({ADDRESS})( *, *({ADDRESS}))*"),
    "database.external.existingSecretKey": text(r"[A-Za-z0-9_.-]+", empty=False),
    "blobStore.url": text(r"s3://[a-z0-9][a-z0-9.-]*(/.*)?"),
    "blobStore.persistence.size": text(SIZE, empty=False),
    "kafka.strimzi.storage": text(SIZE, empty=False),
    "blobStore.persistence.accessModes": MODES,
    "api.replicas": {"minimum": 1},
    "crawler.drainSeconds": {"minimum": 1, "maximum": 600},
    "downloader.replicas": {"minimum": 0},
    "parser.replicas": {"minimum": 0},
    "kafka.strimzi.replicas": {"minimum": 1},
}


def comments(text: str) -> dict[str, tuple[str, list[str]]]:
    """Path of a key → its description and its enum. Block style only, two spaces a level."""
    found: dict[str, tuple[str, list[str]]] = {}
    path: list[str] = []
    description, enum = "", []
    for line in text.splitlines():
        if note := re.match(r"\s*# -- (.*)", line):
            description = note[1]
        elif note := re.match(r"\s*# @enum (.*)", line):
            enum = [value.strip().strip('"') for value in note[1].split(",")]
        elif key := re.match(r"( *)([A-Za-z]\w*):", line):
            path[len(key[1]) // 2 :] = [key[2]]
            found[".".join(path)] = (description, enum)
            description, enum = "", []
        elif not line.strip().startswith("#"):
            description, enum = "", []
    return found


def schema_of(path: str, value: Any, notes: dict[str, tuple[str, list[str]]]) -> dict[str, Any]:
    """The JSON Schema of one value, from its default and its comments."""
    description, enum = notes.get(path, ("", []))
    found: dict[str, Any] = {"description": description} if description else {}
    name = path.rpartition(".")[2]
    if path == "browser.config":
        return {"$ref": "#/properties/downloader/properties/config"}
    if path.endswith(".config"):
        return found | config_schema(CONFIGS[path.split(".")[0]])
    if enum:
        return found | {"type": "string", "enum": enum}
    rule = BY_NAME.get(name, {}) | BOUNDS.get(path, {})
    if not isinstance(value, dict) or not value or rule.get("type") == "object":  # no section of that name
        found |= rule
    if "type" in found:
        return found
    if isinstance(value, dict):
        found["type"] = "object"
        if value and name not in FREE:
            found["properties"] = {
                key: schema_of(f"{path}.{key}".lstrip("."), one, notes) for key, one in value.items()
            }
            found["additionalProperties"] = False
        if path in SERVICES:
            found["properties"] = POD_KEYS | OWN | found["properties"]
        if path in PLACED:
            found["properties"] = PLACEMENT | OWN | found["properties"]
        return found
    if isinstance(value, list):
        return found | {"type": "array"}
    if isinstance(value, bool):
        return found | {"type": "boolean"}
    if isinstance(value, int):
        return found | {"type": "integer"}
    if isinstance(value, float):
        return found | {"type": "number"}
    return found | {"type": "string"}


def config_schema(struct: type[msgspec.Struct], above: str = "") -> dict[str, Any]:
    """The settings of a service, or of one section; the chart gives those that are required. Secrets are left out: they
    would be readable in a ConfigMap."""
    sections = {field.name: section_class(field.type) for field in msgspec.structs.fields(struct)}
    (schema,), components = msgspec.json.schema_components(
        [struct], schema_hook=_path_schema, ref_template="#/$defs/{name}"
    )
    body = components.get(struct.__name__, schema)
    properties = {
        key: (
            config_schema(section, f"{above}{key}.")
            if (section := sections[key])
            else _at_least_0(one) | CONFIG_WORDS.get(above + key, {})
        )
        for key, one in body["properties"].items()
        if key not in secret_fields(struct)
    }
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _at_least_0(schema: dict[str, Any]) -> dict[str, Any]:
    """A number of a setting is a time, a size or a count."""
    counts = schema.get("type") in ("integer", "number") and schema.get("default", -1) >= 0
    return {"minimum": 0, **schema} if counts else schema


def _path_schema(kind: type[Any]) -> dict[str, Any]:
    if kind is Path:
        return {"type": "string"}
    raise NotImplementedError


def rows(path: str, value: Any, notes: dict[str, tuple[str, list[str]]]) -> list[str]:
    """Lines of the README's table."""
    if isinstance(value, dict) and value and path.rpartition(".")[2] not in FREE:
        return [line for key, one in value.items() for line in rows(f"{path}.{key}".lstrip("."), one, notes)]
    description, enum = notes.get(path, ("", []))
    if enum:
        description = f"{description} One of {', '.join(f'`{one or chr(34) * 2}`' for one in enum)}."
    default = json.dumps(value).replace("|", "\\|")
    if len(default) > 60:
        default = "see values.yaml"
    return [f"| `{path}` | `{default}` | {description} |"]


def required_keys(path: str, value: Any) -> list[str]:
    """Paths that a template reads without a question: all but parts of resources and security contexts."""
    if isinstance(value, dict) and value and path.rpartition(".")[2] not in (*OPEN, *FREE):
        return [line for key, one in value.items() for line in required_keys(f"{path}.{key}".lstrip("."), one)]
    return [] if path.rpartition(".")[2] in FREE else [path]


def generate() -> dict[Path, str]:
    """All files as they should be."""
    text = (CHART / "values.yaml").read_text()
    values = yaml.safe_load(text)
    notes = comments(text)
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart nephila"}
    schema: dict[str, Any] = head | schema_of("", values, notes)
    # Helm adds both: `global`, and the values of the chart in charts/.
    schema["properties"] |= {"global": {"type": "object"}, "nephila-crds": {"type": "object"}}
    readme = (CHART / "README.md").read_text()
    before, _, rest = readme.partition(BEGIN)
    _, _, tail = rest.partition(END)
    table = "\n".join(["| key | default | description |", "|---|---|---|", *rows("", values, notes)])
    return {
        CHART / "values.schema.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n",
        CHART / "files" / "values.txt": "\n".join(required_keys("", values)) + "\n",
        CHART / "README.md": f"{before}{BEGIN}\n{table}\n{END}{tail}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a file differs")
    check = parser.parse_args().check
    stale = [path for path, text in generate().items() if not path.exists() or path.read_text() != text]
    if check and stale:
        names = ", ".join(path.name for path in stale)
        sys.exit(f"charts/nephila: {names} differ from values.yaml: run `make chart` and commit the result")
    for path, text in generate().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
