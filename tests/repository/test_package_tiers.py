"""Packages stand in tiers: an engine of one package does not import the commands of another."""

from __future__ import annotations

from functools import cache

import grimp
import pytest

from tools.import_arrows import PACKAGES
from tools.package_tiers import read_tiers, tier_of, upward_imports

TIERS = read_tiers()
MODULES = sorted(name for name in TIERS if "." in name)


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, cache_dir=None)


def test_no_module_imports_a_higher_tier() -> None:
    assert upward_imports(_graph(), TIERS) == []


def test_each_package_has_a_tier() -> None:
    assert set(PACKAGES) <= TIERS.keys()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_with_a_tier_of_its_own_exists_and_needs_it(name: str) -> None:
    assert name in _graph().modules
    without = {other: tier for other, tier in TIERS.items() if other != name}
    assert upward_imports(_graph(), without)


def test_the_longest_name_counts() -> None:
    tiers = {"a": 0, "a.b": 2}
    assert [tier_of(name, tiers) for name in ("a", "a.c", "a.b", "a.b.c", "a.bc")] == [0, 0, 2, 2, 0]


def test_a_module_without_a_tier_is_an_error() -> None:
    with pytest.raises(KeyError):
        tier_of("b.c", {"a": 0})
