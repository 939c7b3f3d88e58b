"""Both implementations against the golden vectors of the core (golden.py)."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest

from .conftest import core_only
from .golden import PAGES, PATH, all_of, essentials, identity, structures, urls

GOLDEN: dict[str, Any] = json.loads(PATH.read_text("utf-8"))


def test_the_vectors_are_those_of_the_inputs() -> None:
    """No input without a vector, no vector without an input."""
    assert list(GOLDEN["urls"]) == urls()
    assert set(GOLDEN["pages"]) == set(GOLDEN["core"]) == set(PAGES)


def test_identity(core: ModuleType) -> None:
    """Host key, canonical URL and fingerprint decide where a URL is stored: they are equal in both, always."""
    assert {url: identity(core, url) for url in GOLDEN["urls"]} == GOLDEN["urls"]


@pytest.mark.parametrize("name", PAGES)
def test_page(core: ModuleType, name: str) -> None:
    """Title, links and directives."""
    assert essentials(core, PAGES[name]) == GOLDEN["pages"][name]


@core_only
@pytest.mark.parametrize("name", PAGES)
def test_page_of_the_core(core: ModuleType, name: str) -> None:
    """Text, main text and every flag."""
    assert all_of(core, PAGES[name]) == GOLDEN["core"][name]


@core_only
def test_structures_of_the_core(core: ModuleType) -> None:
    """Blocks, marks, cells and links of a thousand pages of any markup, read one after the other by one thread."""
    assert structures(core) == GOLDEN["structures"]
