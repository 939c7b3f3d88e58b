"""Entries of one template are taken together, where half of their text is taken and the page declares no subject."""

from __future__ import annotations

import pytest
from nephila.native import page_pass

from tests.native.conftest import load

PROSE = "The museum keeps looms of five centuries, and each of them can still be woven on. " * 2
ARTICLE = "<meta property=og:type content=article>"
SURE, ALMOST_NEVER = 6000, -1500


def main_text(head: str, sure: int, unlikely: int) -> str:
    """The main text of a list with so many entries of each kind."""
    names = [*(f"certain loom {n}" for n in range(sure)), *(f"unlikely loom {n}" for n in range(unlikely))]
    entries = "".join(f"<div class=loom><span>{name}</span></div>" for name in names)
    html = f"<title>Looms</title>{head}<body><p>{PROSE}</p><section>{entries}</section><p>{PROSE * 2}".encode()
    lines = page_pass(html, "http://a.test/", "utf-8").text.decode().split("\n")
    scores = [ALMOST_NEVER if line.startswith("unlikely") else SURE for line in lines]
    return str(load("rust").main_text_by(html, "utf-8", scores).decode())


@pytest.mark.parametrize(
    ("head", "sure", "unlikely", "whole"),
    [("", 5, 4, True), ("", 5, 2, False), ("", 3, 6, False), (ARTICLE, 5, 4, False)],
    ids=["half of them", "too few entries", "less than half", "an article"],
)
def test_entries_of_a_template_are_taken_together(head: str, sure: int, unlikely: int, whole: bool) -> None:
    text = main_text(head, sure, unlikely)
    assert "certain loom 0" in text
    assert ("unlikely loom 0" in text, f"unlikely loom {unlikely - 1}" in text) == (whole, whole)
