"""Pairs of a domain and a host are new once, until there are too many of them."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.links import outlinks


def keys(*urls: str) -> bytes:
    return outlinks(*urls).fingerprints


def test_a_host_is_new_to_each_domain_once(core: ModuleType) -> None:
    linked = core.LinkedHosts(100)
    assert linked.first(1, keys("http://a/1", "http://b/1", "http://a/2")) == [0, 1]
    assert linked.first(1, keys("http://a/3", "http://b/1")) == []
    assert linked.first(1, keys("http://a/3", "http://c/1")) == [1]
    assert linked.first(2, keys("http://a/1")) == [0]
    assert linked.first(2, b"") == []
    linked.clear()
    assert linked.first(1, keys("http://a/3")) == [0]


def test_pairs_beyond_the_bound_are_forgotten_with_all_others(core: ModuleType) -> None:
    linked = core.LinkedHosts(3)
    assert linked.first(1, keys("http://a/", "http://b/")) == [0, 1]
    assert not linked.full
    assert linked.first(2, keys("http://a/", "http://b/")) == [0, 1]
    assert linked.full
    assert linked.first(1, keys("http://a/", "http://b/")) == [0, 1]
    assert not linked.full


def test_a_buffer_that_is_no_list_of_fingerprints_is_refused(core: ModuleType) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        core.LinkedHosts(3).first(1, bytes(17))
