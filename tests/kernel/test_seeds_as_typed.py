"""Seeds as people write them: what is a URL, and what one line names of all others."""

from __future__ import annotations

from pathlib import Path

import pytest
from nephila.kernel.messages import Outlinks
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.seeds import link_urls, read_seed_links, read_seeds, seed_url

SEEDS = {
    "a.test": "http://a.test/",
    "a.test:8080/x": "http://a.test:8080/x",
    "localhost:80": "http://localhost/",
    "[::1]:8080/": "http://[::1]:8080/",
    "user:pass@a.test": "http://user:pass@a.test/",
    "user:pass@localhost/": "http://user:pass@localhost/",
    "user:pass@wiki/x": "http://user:pass@wiki/x",
    "user:pass@[::1]/": "http://user:pass@[::1]/",
    "//a.test": "",
    "HTTP://A.TEST": "http://a.test/",
    "bücher.test/ü": "http://xn--bcher-kva.test/%C3%BC",
}
REFUSED = {
    "mailto:a@b.test": "unsupported scheme 'mailto'",
    "javascript:alert(1)": "unsupported scheme 'javascript'",
    "data:text/html,x": "unsupported scheme 'data'",
    "tel:x": "unsupported scheme 'tel'",
    "ftp://a.test/": "unsupported scheme 'ftp'",
    "http:a.test/x": "did you mean http://a.test/x?",
    "https:/a.test/": "did you mean https://a.test/?",
    '"http://a.test/"': "give it without quotation marks",
    "'a.test'": "give it without quotation marks",
    "a.test:x/": "invalid port",
    "http://a.test:99999/": "invalid port",
    "http://a.test/" + "x" * 9000: "longer than 8,192 characters",
    "http://a.test/" + '"' * 3000: "longer than 8,192 characters",
    "no url": "did you mean http://example/",
}


@pytest.mark.parametrize("text", [text for text, href in SEEDS.items() if href])
def test_a_seed_is_an_absolute_url(text: str) -> None:
    assert seed_url(text) == SEEDS[text]
    assert seed_url(text, files=False) == SEEDS[text]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_what_is_no_url_is_named_with_its_remedy(text: str) -> None:
    with pytest.raises(UsageError) as error:
        seed_url(text)
    assert REFUSED[text] in str(error.value)
    assert text[:15] in str(error.value)


def test_a_seed_of_another_program_is_no_file_of_this_one(tmp_path: Path) -> None:
    """What a request names is not looked up on the disk."""
    file = tmp_path / "a.test"
    file.write_text("")
    with pytest.raises(UsageError, match="is a file"):
        seed_url(str(file))
    with pytest.raises(UsageError) as error:
        seed_url(str(file), files=False)
    assert "file" not in str(error.value).replace(str(file), "")


def test_each_bad_line_of_a_file_has_its_number(tmp_path: Path) -> None:
    """Bad lines between good ones end no message, and lines in another form are read with the thousand around them."""
    file = tmp_path / "seeds"
    lines = [f"http://a.test/{n}" for n in range(2500)]
    lines[3], lines[1700], lines[2499] = "no url", "ftp://a.test/", "a.test/typed"
    file.write_text("\n".join(lines))
    bad: list[str] = []
    read = list(read_seed_links(str(file), lambda place, reason: bad.append(place)))
    assert bad == [f"{file}, line 4", f"{file}, line 1701"]
    urls = [url for links in read for url in ([links] if isinstance(links, str) else link_urls(links))]
    assert sorted(urls) == sorted({*lines} - {"no url", "ftp://a.test/", "a.test/typed"} | {"http://a.test/typed"})
    assert [len(links.fingerprints) // 16 for links in read if isinstance(links, Outlinks)] == [1000, 1000, 497, 1]


def test_routes_and_passwords_are_read_as_text(tmp_path: Path) -> None:
    file = tmp_path / "seeds"
    file.write_text("http://a.test/#/x\nhttp://u:p@a.test/\nhttp://a.test/1\n")
    assert list(read_seeds(str(file), lambda *_: None)) == [
        "http://a.test/1",
        "http://a.test/#/x",
        "http://u:p@a.test/",
    ]


@pytest.mark.parametrize(("text", "reason"), [("", "it is empty"), ("no url\n\n", "none of its 1 lines is a URL")])
def test_a_file_without_a_url_is_an_error(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "seeds").write_text(text)
    with pytest.raises(UsageError, match=reason):
        list(read_seeds(str(tmp_path / "seeds"), lambda *_: None))
