"""The vectors of docs/identity.md: fixed for key_version 2, the same for every implementation."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from nephila.native import KEY_VERSION, fallback, parse_url, partition_of

TEXT = (Path(__file__).parents[2] / "docs" / "identity.md").read_text()
ROW = re.compile(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \| `([0-9a-f]{32})` \| (\d+) \|$", re.M)
VECTORS = ROW.findall(TEXT)


def test_the_table_is_complete():
    """At least twenty vectors, of key_version 2."""
    assert KEY_VERSION == 2
    assert len(VECTORS) >= 20


@pytest.mark.parametrize("parse", [parse_url, fallback.parse_url], ids=["chosen", "fallback"])
@pytest.mark.parametrize("vector", VECTORS, ids=[v[0] for v in VECTORS])
def test_vector(parse, vector):
    """Host key, canonical URL, fingerprint and partition as written, the fingerprint as the formula says."""
    url, host_key, canonical, url_key, partition = vector
    parts = parse(url)
    assert (parts.host_key, parts.canonical) == (host_key, canonical)
    assert parts.fingerprint.hex() == url_key
    assert partition_of(parts.fingerprint, 64) == int(partition)
    md5 = [hashlib.md5(text.encode(), usedforsecurity=False).digest() for text in (host_key, canonical)]
    assert parts.fingerprint == md5[0][:4] + md5[1][:12]
