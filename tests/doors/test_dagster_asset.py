"""A crawl as an asset of Dagster, in an environment of its own: materialised, again, and without a page."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.api.library_venv import environment
from tests.doors.adapter_rig import shop
from tests.e2e.web import serve

pytestmark = pytest.mark.full
MATERIALIZE = """
import json, sys
from dagster import materialize
from nephila_doors.dagster import crawl_asset

options = {"allow_private": True, "host_map": [sys.argv[1]], "delay": 0.0}
shop = crawl_asset("http://a.test/", name="shop", out=sys.argv[2], **options)
none = crawl_asset("http://b.test/none", name="none", out=sys.argv[2] + "-none", **options)
found = []
for one in (shop, shop, none):
    result = materialize([one], raise_on_error=False)
    events = result.get_asset_materialization_events()
    facts = events[0].materialization.metadata if events else {}
    found.append([result.success, {name: value.value for name, value in facts.items()}])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory):
    return environment(tmp_path_factory.mktemp("dagster"), "dagster>=1.9")


def test_an_asset_is_crawled_and_crawled_again(python, tmp_path):
    with serve(shop) as web:
        command = [python, "-c", MATERIALIZE, web.host_map, str(tmp_path / "o")]
        settings = {**os.environ, "DAGSTER_HOME": str(tmp_path)}
        found = subprocess.run(command, capture_output=True, text=True, env=settings, timeout=200, check=False)
        assert found.returncode == 0, found.stderr[-2000:]
        first, second, none = json.loads(found.stdout.splitlines()[-1])
        assert first[0]
        assert first[1]["stored"] == 3
        assert second[1]["stored"] == 3
        assert none == [False, {}]
        assert web.paths("a.test").count("/green") == 2
        assert (tmp_path / "o" / "old").is_dir()
