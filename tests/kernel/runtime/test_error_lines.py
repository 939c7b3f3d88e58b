"""Error lines: several faults of a file are collected, unknown words have a suggestion, remedies fit the program."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import TemporaryError, UsageError, UsageErrors, suggest, without_resume


def test_all_faults_of_a_file_are_raised_together() -> None:
    """Also those of a part that collected its own; each is there once, in order."""
    inner = UsageErrors()
    for text in ("two", "three"):
        with inner:
            raise UsageError(text)
    outer = UsageErrors()
    with outer:
        raise UsageError("one")
    with outer:
        inner.raise_all()
    with outer:
        pass
    with pytest.raises(UsageError, match=r"^one$") as caught:
        outer.raise_all()
    assert [str(error) for error in caught.value.others] == ["two", "three"]
    assert [error.others for error in caught.value.others] == [(), ()]


def test_without_a_fault_nothing_is_raised() -> None:
    """And an error of the program is not collected."""
    errors = UsageErrors()
    with errors:
        pass
    errors.raise_all()
    with pytest.raises(ValueError, match="of the program"), errors:
        raise ValueError("of the program")
    errors.raise_all()


def test_an_unknown_word_has_the_nearest_or_all_known_ones() -> None:
    """A word of a hostile length costs nothing."""
    assert suggest("dept", ["depth", "delay"]) == "did you mean 'depth'?"
    assert suggest("xyz", iter(["depth", "delay"])) == "known are depth, delay"
    assert suggest("depth" * 1_000_000, ["depth"]) == "known are depth"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("disk full; free space and run again with --resume", "disk full; free space and start it again"),
        ("it can go on with --resume", "it can start it again"),
        ("remove it: --resume then begins again", "remove it: a new start then begins again"),
        ("no broker answers", "no broker answers"),
    ],
)
def test_a_service_is_not_told_to_resume(line: str, shown: str) -> None:
    """The option belongs to a crawl; a service resumes by itself."""
    assert without_resume(line) == shown


def test_a_temporary_error_has_its_delay() -> None:
    """One second unless it says otherwise."""
    assert (TemporaryError("busy").delay_s, TemporaryError("busy", 7.5).delay_s) == (1.0, 7.5)
