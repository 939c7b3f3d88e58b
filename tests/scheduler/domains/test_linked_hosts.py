"""Pairs of a domain and a host are new once, until there are too many of them."""

from __future__ import annotations

from nephila.scheduler.domains.linked_hosts import LinkedHosts

from tests.links import outlinks


def first(linked: LinkedHosts, domain: str, *urls: str) -> list[int]:
    return sorted(linked.first(domain, outlinks(*urls).fingerprints).values())


def test_a_host_is_new_to_each_domain_once() -> None:
    linked = LinkedHosts(100)
    assert first(linked, "one.test", "http://a/1", "http://b/1", "http://a/2") == [1, 2]
    assert first(linked, "one.test", "http://a/3", "http://b/1") == []
    assert first(linked, "one.test", "http://a/3", "http://c/1") == [1]
    assert first(linked, "two.test", "http://a/1") == [0]
    assert first(linked, "two.test") == []


def test_pairs_beyond_the_bound_are_forgotten_with_all_others() -> None:
    linked = LinkedHosts(3)
    assert first(linked, "one.test", "http://a/", "http://b/") == [0, 1]
    assert not linked.full
    assert first(linked, "two.test", "http://a/", "http://b/") == [0, 1]
    assert linked.full
    assert first(linked, "one.test", "http://a/", "http://b/") == [0, 1]
    assert not linked.full
