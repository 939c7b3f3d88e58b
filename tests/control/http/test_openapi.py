"""The OpenAPI document: valid, complete, and what the server answers; schemathesis finds no other answer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from nephila_control.api import OPERATIONS
from nephila_control.declaration import PREFIX
from nephila_control.http.change_feeds import FORMATS
from nephila_control.http.openapi import document
from openapi_spec_validator import validate

ROOT = Path(__file__).parents[3]
KEY = "0123456789abcdef"
JOB = {
    "apiVersion": "nephila.dev/v1",
    "kind": "CrawlJob",
    "metadata": {"name": "news"},
    "spec": {"seeds": ["http://localhost:9/"], "paused": True},
}


def test_the_document_is_valid():
    """By a validator of OpenAPI 3.1."""
    validate(document())


def test_the_committed_document_is_that_of_the_code():
    """Written by `make schema`."""
    assert json.loads((ROOT / "docs" / "openapi.json").read_text()) == json.loads(json.dumps(document()))


def test_every_route_is_in_it():
    """With its parameters, its body and its answers."""
    paths = document()["paths"]
    for route in OPERATIONS.values():
        operation = paths[PREFIX + route.path][route.method.lower()]
        assert operation["operationId"] == route.name
        named = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        assert named == set(route.path_fields)
        assert ("requestBody" in operation) == route.has_body
        assert {"200", "400", "401", "404"} <= set(operation["responses"])


def test_the_feeds_are_in_it():
    """With the parameters of the list of changes."""
    paths = document()["paths"]
    for name, (_, kind) in FORMATS.items():
        feed = paths[f"{PREFIX}/changes/feed/{name}"]["get"]
        assert feed["parameters"] == paths[f"{PREFIX}/changes"]["get"]["parameters"]
        ((media, content),) = feed["responses"]["200"]["content"].items()
        assert media == kind.partition(";")[0]
        assert content["schema"]["type"] == ("object" if media.endswith("json") else "string")


def test_a_body_is_required_where_a_field_is():
    """Without a body the fields have their defaults."""
    paths = document()["paths"]
    assert paths[f"{PREFIX}/jobs"]["post"]["requestBody"]["required"]
    assert not paths[f"{PREFIX}/dead-letters/replay"]["post"]["requestBody"]["required"]


def test_a_field_of_the_path_is_not_in_the_body():
    """It would be refused there."""
    schemas = document()["components"]["schemas"]
    assert set(schemas["AddSeeds"]["properties"]) == {"urls", "contexts", "last", "held_generation"}


@pytest.fixture
def server(tmp_path):
    """The URL of `nephila up` with the job news; its token is KEY."""
    (tmp_path / "token").write_text(KEY)
    nephila = [sys.executable, "-m", "nephila"]
    command = [*nephila, "up", "--out", "o", "--api", "127.0.0.1:0", "--api-token-file", "token", "--workers", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        url = up.stdout.readline().rsplit(" ", 1)[1].strip()
        body = json.dumps({"job": JOB}).encode()
        with urlopen(Request(f"{url}{PREFIX}/jobs", body, {"Authorization": f"Bearer {KEY}"})):
            yield url
        up.terminate()


PARTS = {
    "any name": ("--exclude-path-regex", "/sites"),
    "of a job": ("--include-path-regex", "/jobs/.*name", "--exclude-method", "DELETE"),
    "sites": ("--include-path-regex", "/sites"),
}
"""Part of the operations → options of the program. The document of a site alone is some 4,000 cases."""


@pytest.mark.full
@pytest.mark.parametrize("part", ["any name", "of a job", "sites"])
def test_schemathesis_finds_no_other_answer(tmp_path, server, part):
    """The default checks, as a client with the token: schema-valid requests are not answered by 400, others are. Names
    are made up, and then that of a job, which is not deleted. Without `ignored_auth`: it sends a wrong token to each
    operation and takes 429 for a fault (`test_tries.py` asks each operation instead)."""
    names = '[parameters]\nname = "news"\n' if part == "of a job" else ""
    (tmp_path / "schemathesis.toml").write_text(f"[checks]\nignored_auth.enabled = false\n{names}")
    run = subprocess.run(
        [
            *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", "schemathesis.toml", "run"),
            *(f"{server}{PREFIX}/openapi.json", "--header", f"Authorization: Bearer {KEY}"),
            *("--max-examples", "10", "--seed", "1", "--phases", "examples,coverage,fuzzing"),
            *PARTS[part],
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert run.returncode == 0, run.stdout[-3000:]
