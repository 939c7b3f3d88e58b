"""What a committed position says of its member, and what the next one makes of it."""

from __future__ import annotations

import pytest
from nephila.kernel.bus.poison import MAX_CRASHES
from nephila_cluster.kafka.consumer.commit_metadata import (
    CRASHES_TO_ISOLATE,
    HELD,
    CommitMetadata,
    encode_metadata,
    parse_metadata,
)


def test_who_lets_go_leaves_no_suspicion():
    """Opened, worked on, left: as often as you like."""
    metadata = CommitMetadata()
    for _ in range(5):
        metadata = metadata.opened()
        assert metadata.held
        assert not metadata.needs_isolation
        metadata = parse_metadata(encode_metadata(HELD.released()))


def test_ends_at_one_position_make_it_suspicious():
    """One is chance; a position that has moved since begins anew."""
    metadata = CommitMetadata().opened()
    ends = 0
    while not metadata.needs_isolation:
        metadata = parse_metadata(encode_metadata(metadata)).opened()
        ends += 1
    assert ends == CRASHES_TO_ISOLATE
    assert not HELD.opened().needs_isolation


def test_a_message_is_guilty_after_ends_while_it_was_alone():
    """Only the one that was tried; the one after it begins at none."""
    metadata = CommitMetadata(True, CRASHES_TO_ISOLATE)
    for solo_crashes in range(MAX_CRASHES):
        trying = metadata.probing(7, 3)
        assert trying.solo_crashes == solo_crashes
        metadata = parse_metadata(encode_metadata(trying)).opened()
    assert metadata.probing(7, 3).solo_crashes == MAX_CRASHES
    assert metadata.probing(7, 4).solo_crashes == metadata.probing(8, 3).solo_crashes == 0


def test_a_hand_over_in_the_middle_of_a_trial_counts_for_nothing():
    """The member lives; what it knew goes on."""
    metadata = CommitMetadata(True, CRASHES_TO_ISOLATE).probing(7, 3).released().opened()
    assert (metadata.crashes, metadata.solo_crashes, metadata.of(7, 3).solo_crashes) == (CRASHES_TO_ISOLATE, 0, 0)


def test_a_kill_between_two_trials_is_not_counted_against_the_suspect():
    """A member that starts, and ends before it delivers anything, tells nothing about the message."""
    metadata = CommitMetadata(True, CRASHES_TO_ISOLATE).probing(7, 3).opened()
    for _ in range(8):
        metadata = parse_metadata(encode_metadata(metadata)).opened()
    assert metadata.of(7, 3).solo_crashes == 1


def test_an_end_without_any_message_clears_the_suspect():
    """Members end without it, so it was not the cause."""
    metadata = CommitMetadata(True, CRASHES_TO_ISOLATE).probing(7, 3).opened()
    cleared = parse_metadata(encode_metadata(metadata.of(7, 3).waiting())).opened()
    assert cleared == HELD


def test_a_hand_over_in_the_wait_clears_nothing():
    """The member lives, so nothing is known."""
    metadata = CommitMetadata(True, CRASHES_TO_ISOLATE).probing(7, 3).opened()
    assert metadata.of(7, 3).waiting().released().opened().opened().of(7, 3).solo_crashes == 1


@pytest.mark.parametrize("text", [None, "", "checkpoint", "{", "[1]", '{"held": 3}', "\ud800"])
def test_what_others_write_beside_a_position_says_nothing(text):
    """Another program's words are no crash."""
    assert parse_metadata(text) == CommitMetadata()


def test_a_note_is_short():
    """A broker takes 4,096 bytes."""
    assert len(encode_metadata(CommitMetadata(True, 10**6, 2**62, 10**6, solo_crashes=10**6))) < 200


def test_a_member_that_was_removed_and_lives_has_not_crashed():
    """Its partition was not released, and the next owner counts a crash: it is taken back."""
    held = CommitMetadata(held=True, crashes=1)
    assert held.opened().crashes == 2
    assert held.opened().pardoned() == held
    assert held.opened().pardoned(5) == HELD
    tried = HELD.probing(7, 0)
    assert tried.opened() == CommitMetadata(True, 1, 7, 0, solo_crashes=1)
    assert tried.opened().pardoned() == CommitMetadata(True, 0, 7, 0)
