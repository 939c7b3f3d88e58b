"""Items of stored pages are replaced by those of another version of a rule."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_rules.item_replacement import ItemReplacement

from tests.storage.ledgers.test_item_parts import Shop, part, product
from tests.storage.storage_rig import JOB, key, record, rows


def stored(directory: Path) -> None:
    """A database with two pages, one of them with items."""
    writer = Writer(StorageConfig(directory=directory, fsync=False))
    writer.open()
    with_items = record(1, items=[b'{"n":1}'], rule="old", rule_version=1, meta='{"degraded":1,"a":2}')
    writer.commit([with_items, record(2, meta="{")], [None, None], [])
    writer.close()


def items(directory: Path) -> list[tuple[str, str, int, object]]:
    """(url_key, rule, version, item) of all items."""
    found = rows(directory, "items", "url_key, ordinal")
    return [(row["url_key"], row["rule"], row["rule_version"], json.loads(row["data"])) for row in found]


def test_items_are_replaced_together_with_the_rule_of_their_page(tmp_path: Path) -> None:
    """Those of the other page stay; notes of the parser about the old items go, and broken ones are kept."""
    stored(tmp_path)
    with ItemReplacement(tmp_path, write=True) as replacement:
        assert list(replacement.copies(key(1).hex())) == [JOB]
        assert replacement.copies(key(3).hex()) == {}
        replacement.put(JOB, key(1).hex(), "new", 7, ['{"n":2}', '{"n":3}'])
        replacement.put(JOB, key(2).hex(), "new", 7, [])
        assert replacement.of_page(JOB, key(1).hex()) == [{"n": 2}, {"n": 3}]
    assert items(tmp_path) == [(key(1).hex(), "new", 7, {"n": number}) for number in (2, 3)]
    found = {row["url_key"]: (row["rule"], row["rule_version"], row["meta"]) for row in rows(tmp_path)}
    assert found == {key(1).hex(): ("new", 7, '{"a":2}'), key(2).hex(): ("new", 7, "{")}


def test_an_error_within_a_replacement_undoes_it(tmp_path: Path) -> None:
    """The database is closed and unlocked."""
    stored(tmp_path)
    before = items(tmp_path)

    def fail() -> None:
        with ItemReplacement(tmp_path, write=True) as replacement:
            replacement.put(JOB, key(1).hex(), "new", 7, [])
            raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        fail()
    assert items(tmp_path) == before
    with ItemReplacement(tmp_path, write=True):
        pass


@pytest.mark.parametrize("write", [True, False])
def test_a_database_of_another_program_has_no_items_to_replace(tmp_path: Path, write: bool) -> None:
    """One line; nothing is changed, and no database is made where there is none."""
    with pytest.raises(UserError, match="no database at"):
        ItemReplacement(tmp_path, write=write)
    connection = sqlite3.connect(tmp_path / "nephila.db")
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = (tmp_path / "nephila.db").read_bytes()
    with pytest.raises(UserError, match="is a database of another program"), ItemReplacement(tmp_path, write=write):
        pytest.fail("was opened")
    assert (tmp_path / "nephila.db").read_bytes() == before


def test_items_that_are_put_in_place_later(tmp_path: Path) -> None:
    """Another version of a rule on the stored pages: items are completed from the parts there are, and the reverse."""
    shop = Shop(tmp_path, "")
    shop.take(product(1, "reviews"), part("reviews", 1, stars=4))
    shop.writer.close()
    first, second = product(1, "reviews"), part("reviews", 1, stars=2, more="x")
    with ItemReplacement(tmp_path, write=True) as table:
        for one in (first, second):
            data = [item.decode() for item in one.items]
            table.put(JOB, one.url_key.hex(), one.rule, 7, data)
    assert shop.items == [{"name": "n1", "stars": 2, "more": "x"}]
