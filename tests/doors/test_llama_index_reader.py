"""LlamaIndex's reader, by its base class, in an environment of its own: the library is a quarter of a gigabyte."""

from __future__ import annotations

import json
import os
import subprocess

import nephila
import pytest

from tests.api.library_venv import environment
from tests.doors.adapter_rig import shop
from tests.e2e.web import serve

pytestmark = pytest.mark.full
READ = """
import json, sys
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document
from nephila_doors.llama_index import NephilaReader

reader = NephilaReader()
assert isinstance(reader, BaseReader)
crawled = reader.load_data("http://a.test/", allow_private=True, host_map=[sys.argv[1]], delay=0.0)
stored = reader.load_data(directory=sys.argv[2])
assert all(isinstance(one, Document) for one in crawled + stored)
rows = [[[one.id_, one.metadata["source"], one.text.splitlines()[0]] for one in found] for found in (crawled, stored)]
print(json.dumps(rows))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory):
    return environment(tmp_path_factory.mktemp("llama"), "llama-index-core>=0.12")


def test_pages_are_documents_of_llama_index(python, tmp_path):
    with serve(shop) as web:
        options = {"allow_private": True, "host_map": [web.host_map], "delay": 0.0}
        for _ in nephila.crawl("http://a.test/", out=tmp_path / "o", keep_raw=True, **options):
            pass
        command = [python, "-c", READ, web.host_map, str(tmp_path / "o")]
        found = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), timeout=120, check=False)
        assert found.returncode == 0, found.stderr[-2000:]
    crawled, stored = json.loads(found.stdout.splitlines()[-1])
    assert sorted(crawled) == sorted(stored)
    assert {line for _, _, line in crawled} == {"# Teas", "# Green tea", "# Black tea"}
