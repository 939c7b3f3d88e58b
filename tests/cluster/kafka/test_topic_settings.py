"""Settings of topics that an operator chooses: which lines are taken, which are refused."""

from __future__ import annotations

import pytest
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.topics import PAGES, SEEDS
from nephila_cluster.kafka.admin.topic_settings import chosen

TOPICS = (PAGES, SEEDS)


def test_a_later_line_wins_and_a_star_means_every_topic() -> None:
    """Spaces around key and value do not count."""
    assert chosen((), TOPICS) == {"pages": {}, "seeds": {}}
    lines = ("pages:retention.ms=1", "*:segment.ms = 5", "pages:retention.ms=2", "seeds:segment.ms=6")
    assert chosen(lines, TOPICS) == {
        "pages": {"retention.ms": "2", "segment.ms": "5"},
        "seeds": {"segment.ms": "6"},
    }


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("pages", "not of the form"),
        ("pages:retention.ms", "not of the form"),
        ("pages:=1", "not of the form"),
        ("pages:retention.ms=", "not of the form"),
        ("page:retention.ms=1", "there is no topic 'page'.*pages"),
        ("pages:cleanup.policy=delete", "cleanup.policy cannot be chosen: compacted topics"),
        ("*:message.timestamp.type=CreateTime", "cannot be chosen: members compare"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused(line: str, says: str) -> None:
    """With the line, in one line."""
    with pytest.raises(UsageError, match=says) as refused:
        chosen((line,), TOPICS)
    assert repr(line) in str(refused.value)
