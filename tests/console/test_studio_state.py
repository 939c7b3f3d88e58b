"""The studio's state in its address: it comes back as it was; a damaged or hostile one is refused."""

from __future__ import annotations

import base64
import zlib

import msgspec
import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila_console.screens.studio_state import MAX_CHARS, changed, draft_of, state_of
from nephila_rules.studio.draft import Draft, DraftField, Pick, Source

FIELDS = tuple(
    DraftField(f"field_{number}", Source("css", f".name-{number}"), picks=(Pick("http://a.test/p/1", number),))
    for number in range(5)
)
DRAFT = Draft("http://a.test/p/1", name="shop", pattern="/p/", fields=FIELDS, active=1)


def packed(value: object) -> str:
    """A state that this program did not write."""
    return base64.urlsafe_b64encode(zlib.compress(msgspec.msgpack.encode(value))).rstrip(b"=").decode()


def test_a_draft_comes_back_and_is_short():
    """Five fields are far from the longest address."""
    assert draft_of(state_of(DRAFT)) == DRAFT
    assert len(state_of(DRAFT)) < 600


@pytest.mark.parametrize(
    "state",
    ["", "x", "é", "!" * 50, "A" * (MAX_CHARS + 1), packed({}), packed([1]), packed({"url": "http://a.test/ x"}),
     packed({"url": "http://a.test/", "mode": "fly"}), packed({"url": "http://a.test/", "name": "\x01"})],
)  # fmt: skip
def test_a_damaged_state_is_refused(state):
    """In one line."""
    with pytest.raises(UsageError, match="damaged"):
        draft_of(state)


def test_a_state_that_unpacks_to_gigabytes_is_refused():
    """It is not unpacked whole."""
    bomb = base64.urlsafe_b64encode(zlib.compress(b"\0" * (1 << 24), 9)).decode()
    assert len(bomb) < MAX_CHARS
    with pytest.raises(UsageError, match="damaged"):
        draft_of(bomb)


def test_changes_are_those_of_links_and_forms():
    """Each is checked; the draft before stays as it was."""
    assert changed(DRAFT, {"active": "3"}).field.name == "field_3"
    assert [one.name for one in changed(DRAFT, {"remove": "1"}).fields] == [f"field_{n}" for n in (0, 2, 3, 4)]
    found = changed(DRAFT, {"name": "price", "type": "price", "required": "1"}).fields[1]
    assert (found.name, found.type, found.required) == ("price", "price", True)
    take = msgspec.json.encode(Source("meta", "og:title")).decode()
    assert changed(DRAFT, {"take": take}).fields[1].take == Source("meta", "og:title")
    assert changed(DRAFT, {"page": "http://a.test/2", "active": "0", "mode": "here"}).mode == "here"


@pytest.mark.parametrize(
    "query",
    [{"name": "field_2"}, {"name": "9 x"}, {"name": "a", "type": "fly"}, {"take": "{}x"}, {"mode": "fly"},
     {"page": "a b"}],
)  # fmt: skip
def test_a_change_that_cannot_be_is_refused(query):
    """With a reason."""
    with pytest.raises(UsageError):
        changed(DRAFT, query)
