"""`nephila rules induce`: from pages to a rule that passes its tests; bad examples are one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nephila.cli.main import main


def stored(folder: Path, number: int, name: str, price: str) -> Path:
    """A page in a file."""
    file = folder / f"{number}.html"
    file.write_text(
        f"<!-- url: http://shop.test/p/{number} --><title>{name}</title><h1>{name}</h1><b class=price>{price}</b>"
    )
    return file


def test_a_rule_is_made_and_passes_its_tests(tmp_path, capsys):
    """From one page and its values; other pages are compared."""
    pages = [stored(tmp_path, number, f"Thing {number}", f"${number}.50") for number in range(1, 5)]
    rule = tmp_path / "rules" / "shop"
    words = [str(pages[0]), "title=Thing 1", "price=$1.50", "--pages", str(tmp_path), "--out", str(rule)]
    assert main(["rules", "induce", *words]) == 0
    said = capsys.readouterr()
    assert "price: css: .price, on 3 of 3 other pages" in said.err
    assert said.out.split() == [str(rule / name) for name in ("rule.yaml", "page.html", "items.json")]
    assert json.loads((rule / "items.json").read_text()) == [
        {"title": "Thing 1", "price": {"amount": 1.5, "currency": "USD"}}
    ]
    assert main(["rules", "test", str(rule)]) == 0
    assert main(["rules", "try", str(pages[3]), "--rules", str(rule), "--json"]) == 0
    assert '"Thing 4"' in capsys.readouterr().out


def test_examples_in_a_file(tmp_path, capsys):
    """Two pages; the second has no price."""
    stored(tmp_path, 1, "A", "$1.00")
    stored(tmp_path, 2, "B", "")
    file = tmp_path / "examples.yaml"
    file.write_text(
        "- {page: 1.html, fields: {title: A, price: $1.00}}\n- {page: 2.html, fields: {title: B, price: }}\n"
    )
    assert main(["rules", "induce", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["missing"] == []
    assert found["fields"]["price"][0]["selector"] == "css: .price"
    assert "url: '^http://shop\\.test/p/\\d+(?:\\?.*)?$'" in found["rule"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "has no examples"),
        ("- {page: 1.html}", "1:3: an example has to be a map with the keys page and fields"),
        ("- {page: 1.html, fields: {}}", "1:26: fields has to be a map"),
        ("- {page: 1.html, fields: {a: {b: c}}}", "1:30: a has to be a text, a number or a list"),
        ("- {page: none.html, fields: {a: b}}", "none.html"),
    ],
)
def test_bad_examples_are_one_line(text, said, tmp_path, capsys):
    stored(tmp_path, 1, "A", "$1.00")
    (tmp_path / "e.yaml").write_text(text)
    assert main(["rules", "induce", str(tmp_path / "e.yaml")]) in (1, 2)
    found = capsys.readouterr().err
    assert said in found
    assert len(found.splitlines()) == 1


def test_a_value_that_is_not_there_is_named(tmp_path, capsys):
    """The others are made into a rule; the exit code tells."""
    page = stored(tmp_path, 1, "A", "$1.00")
    assert main(["rules", "induce", str(page), "title=A", "price=$2.00"]) == 1
    said = capsys.readouterr()
    assert "price: no selector gives the named values" in said.err
    assert "title:" in said.out


@pytest.mark.parametrize(("words", "said"), [([], "which values?"), (["price"], "'price' is no value of a field")])
def test_values_are_pairs(words, said, tmp_path, capsys):
    assert main(["rules", "induce", str(stored(tmp_path, 1, "A", "1")), *words]) == 2
    assert said in capsys.readouterr().err
