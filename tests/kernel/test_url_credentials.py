"""User and password of a URL are found where they are, and nowhere else."""

from __future__ import annotations

import pytest
from nephila.kernel.url_credentials import is_redacted, redacted, without_credentials


@pytest.mark.parametrize(
    ("url", "clean"),
    [
        ("http://u:p@a.test/x?y#z", "http://a.test/x?y#z"),
        ("https://u@a.test", "https://a.test"),
        ("http://u:p%40@a.test:81/@b", "http://a.test:81/@b"),
        ("http://a@b:c@a.test/", "http://a.test/"),
        ("http://a.test/u:p@b", "http://a.test/u:p@b"),
        ("http://a.test?u:p@b", "http://a.test?u:p@b"),
        ("http://a.test/?to=http://u:p@b/", "http://a.test/?to=http://u:p@b/"),
        ("mailto:u@a.test", "mailto:u@a.test"),
        ("", ""),
    ],
)
def test_credentials_are_removed(url: str, clean: str) -> None:
    """The @ of a path or query is none of an authority."""
    assert without_credentials(url) == clean
    assert without_credentials(redacted(url)) == clean
    assert is_redacted(redacted(url)) is (url != clean)
