"""What a committed position says of its member, and what the next one makes of it."""

from __future__ import annotations

import pytest
from nephila.kernel.bus.kafka.commit_metadata import AT_WORK, CRASHES, GUILTY, Note, read_note, written


def test_who_lets_go_leaves_no_suspicion():
    """Opened, worked on, left: as often as you like."""
    note = Note()
    for _ in range(5):
        note = note.opened()
        assert note.held
        assert not note.suspicious
        note = read_note(written(AT_WORK.left()))


def test_ends_at_one_position_make_it_suspicious():
    """One is chance; a position that has moved since begins anew."""
    note = Note().opened()
    ends = 0
    while not note.suspicious:
        note = read_note(written(note)).opened()
        ends += 1
    assert ends == CRASHES
    assert not AT_WORK.opened().suspicious


def test_a_message_is_guilty_after_ends_while_it_was_alone():
    """Only the one that was tried; the one after it begins at none."""
    note = Note(True, CRASHES)
    for deaths in range(GUILTY):
        trying = note.trying(7, 3)
        assert trying.deaths == deaths
        note = read_note(written(trying)).opened()
    assert note.trying(7, 3).deaths == GUILTY
    assert note.trying(7, 4).deaths == note.trying(8, 3).deaths == 0


def test_a_hand_over_in_the_middle_of_a_trial_counts_for_nothing():
    """The member lives; what it knew goes on."""
    note = Note(True, CRASHES).trying(7, 3).left().opened()
    assert (note.crashes, note.deaths, note.deaths_of(7, 3)) == (CRASHES, 0, 0)


@pytest.mark.parametrize("text", [None, "", "checkpoint", "{", "[1]", '{"held": 3}', "\ud800"])
def test_what_others_write_beside_a_position_says_nothing(text):
    """Another program's words are no crash."""
    assert read_note(text) == Note()


def test_a_note_is_short():
    """A broker takes 4,096 bytes."""
    assert len(written(Note(True, 10**6, 2**62, 10**6, 10**6))) < 200
