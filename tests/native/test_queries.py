"""The query of a reference: in the encoding of its page, the path in UTF-8."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.mark.parametrize(
    ("encoding", "reference", "query"),
    [
        ("windows-1252", "/ñ?q=ñ#ñ", "/ñ?q=%F1#ñ"),
        ("", "?ñ", "?%F1"),
        ("windows-1252", "?q=€中&r=\x81", "?q=%80%26%2320013%3B&r=%81"),
        ("windows-1251", "d?a=М&b=М", "d?a=%CC&b=%CC"),
        ("iso-8859-8-i", "?א", "?%E0"),
        ("x-user-defined", "?\uf780é", "?%80%26%23233%3B"),
        ("shift_jis", "?日本表ア", "?%93%FA%96%7B%95%5C%83A"),
        ("euc-jp", "?日", "?%C6%FC"),
        ("iso-2022-jp", "?日x{é#日", "?%1B$BF|\x1b(Bx{%26%23233%3B#日"),
        ("gbk", "?中€\U0001f600", "?%D6%D0%80%26%23128512%3B"),
        ("gb18030", "?中\U0001f600", "?%D6%D0%949%FC6"),
        ("big5", "?中", "?%A4%A4"),
        ("euc-kr", "?한똠", "?%C7%D1%8Cc"),
        ("utf-8", "?ñ", "?ñ"),
        ("utf-16le", "?ñ", "?ñ"),
        ("no-such", "?ñ", "?ñ"),
        ("windows-1252", "ñ", "ñ"),
        ("windows-1252", "ñ#?ñ", "ñ#?ñ"),
        ("windows-1252", " HTTPS://a.test/?ñ ", " HTTPS://a.test/?%F1 "),
        ("windows-1252", "//a.test/a:b?ñ", "//a.test/a:b?%F1"),
        ("windows-1252", "mailto:a@b.test?subject=ñ", "mailto:a@b.test?subject=ñ"),
        ("windows-1252", "?a b'{|\\&c=%F1", "?a b'{|\\&c=%F1"),
        ("windows-1252", "?a b'{|\\&c=ñ", "?a b'{|\\&c=%F1"),
    ],
)
def test_a_query(core: ModuleType, encoding: str, reference: str, query: str) -> None:
    """Signs that are half a character are encoded where no query may have them; all others are the parser's."""
    query = query.replace("|\x1b(B", "%7C\x1b(B")
    assert core.query_in(reference, encoding) == query


@pytest.mark.parametrize(
    ("encoding", "value", "sent"),
    [
        ("utf-8", "a b*-._~ñ&=+%\r\n", "a+b*-._%7E%C3%B1%26%3D%2B%25%0D%0A"),
        ("windows-1252", "ñ中", "%F1%26%2320013%3B"),
        ("shift_jis", "本@ァ", "%96%7B%40%83%40"),
        ("iso-2022-jp", "日", "%1B%24BF%7C%1B%28B"),
        ("utf-16be", "ñ", "%C3%B1"),
        ("gbk", "€", "%80"),
    ],
)
def test_a_value_of_a_form(core: ModuleType, encoding: str, value: str, sent: str) -> None:
    """As application/x-www-form-urlencoded."""
    assert core.form_encoded(value, encoding) == sent


def test_a_lone_surrogate_is_no_reference(core: ModuleType) -> None:
    for function in (core.query_in, core.form_encoded):
        with pytest.raises(core.UrlError):
            function("?\ud800", "windows-1252")


PAGE = """<base href="/d?é"><link rel=canonical href="/c?q=é"><meta http-equiv=refresh content="0; url=/r?q=é">
<a href="/é?q=é">x</a><a href="/é?q=%E9">y</a><a href="?ж">z</a><a href="http://b.test/?&eacute;&#1078;">w</a>"""


def test_every_link_of_a_page_has_its_query_in_the_encoding_of_the_page(core: ModuleType) -> None:
    """One URL for what is written as a character and as an octet; canonical URL and fingerprint are of that URL."""
    body = PAGE.replace("ж", "&#1078;").encode("latin-1")
    found = core.page_pass(body, "http://a.test/", "iso-8859-1")
    urls, start = [], 0
    for at in range(found.link_count):
        end = int.from_bytes(found.link_ends[4 * at : 4 * at + 4], "little")
        urls.append(found.link_urls[start:end].decode())
        assert found.fingerprints[16 * at : 16 * at + 16] == core.parse_url(urls[-1]).fingerprint
        start = end
    assert (found.base, found.canonical, found.refresh) == (
        "http://a.test/d?%E9",
        "http://a.test/c?q=%E9",
        "http://a.test/r?q=%E9",
    )
    assert urls == [
        "http://a.test/r?q=%E9",
        "http://a.test/%C3%A9?q=%E9",
        "http://a.test/d?%26%231078%3B",
        "http://b.test/?%E9%26%231078%3B",
    ]
