"""--header: whom a header goes to, and what of it is written down."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.downloader.http.headers import split_header
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.headers import headers_of, redacted


def test_a_header_that_may_be_a_secret_goes_to_the_seeds_hosts() -> None:
    """With their www. twins; harmless ones and those with a host of their own are left as they are."""
    given = ["Authorization: Bearer x:y", "accept-language: de", "api.test X-Key: 1", "* X-All: 2"]
    assert headers_of(given, ["http://a.test/x", "http://www.b.test:8080/"]) == (
        "a.test Authorization: Bearer x:y",
        "www.a.test Authorization: Bearer x:y",
        "www.b.test:8080 Authorization: Bearer x:y",
        "b.test:8080 Authorization: Bearer x:y",
        "accept-language: de",
        "api.test X-Key: 1",
        "* X-All: 2",
    )


def test_without_seeds_its_host_has_to_be_said() -> None:
    """As with --seeds FILE or nephila up."""
    with pytest.raises(UsageError, match="say whom it is for") as error:
        headers_of(["X-Key: s3cret"], [])
    assert "s3cret" not in str(error.value)


def test_a_file_of_headers(tmp_path: Path) -> None:
    """Read at each start; run.json keeps its name."""
    (tmp_path / "h").write_text("# mine\nX-Key: s3cret\n\n")
    given = [f"@{tmp_path / 'h'}", "b.test X-Key: s3cret", "DNT: 1"]
    assert "a.test X-Key: s3cret" in headers_of(given, ["http://a.test/"])
    assert redacted(given) == [f"@{tmp_path / 'h'}", "b.test X-Key:", "DNT: 1"]
    with pytest.raises(UsageError, match="cannot read --header @/none"):
        headers_of(["@/none"], [])
    with pytest.raises(UsageError, match="give its value again"):
        headers_of(redacted(given), ["http://a.test/"])


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("X-A: b: c", ("", "X-A", "b: c")),
        ("a.test X-A: b", ("a.test", "X-A", "b")),
        ("a.test:8080  X-A : b", ("a.test:8080", "X-A", "b")),
        ("*.A.test X-A:b", ("*.a.test", "X-A", "b")),
        ("X-A: 8080 b: c", ("", "X-A", "8080 b: c")),
    ],
)
def test_host_name_and_value(line: str, parts: tuple[str, str, str]) -> None:
    """A host may have a port, a value may have colons."""
    assert split_header(line) == parts
