"""Bytes that declare nothing, or the wrong thing, are still read as what they are."""

from __future__ import annotations

import threading
import time

import pytest
from nephila.kernel import messages as m
from nephila.native import sniff_encoding
from nephila.parser.page import charset
from nephila.parser.page.charset import detect, encoding_of, encoding_of_text

from tests.parser.parser_room import Room

PROSE = {
    "shift_jis": "東京都は新しい道路の建設を決定したと発表した。これはテストです。",
    "euc-jp": "文字コードの自動判定を試験するために書かれています。",
    "gb18030": "新闻报道说政府决定建设新的道路，我们去公园散步吧。",
    "big5": "新聞報導說政府決定建設新的道路，我們去公園散步吧。",
    "euc-kr": "정부는 새로운 도로를 건설하기로 결정했다고 밝혔다.",
    "windows-1251": "Правительство приняло решение о строительстве новой дороги, сообщает агентство.",
    "koi8-r": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "windows-1253": "Η κυβέρνηση αποφάσισε να κατασκευάσει νέο δρόμο",
    "windows-1255": "הממשלה החליטה לבנות כביש חדש בין הערים",
    "windows-1256": "قررت الحكومة بناء طريق جديد يربط بين المدن",
    "windows-874": "รัฐบาลตัดสินใจสร้างถนนสายใหม่เชื่อมต่อเมือง",
    "windows-1252": "Où est l’élève qui a été reçu à l’école, déjà ?",
    "utf-8": "Größe und Fuß — naïve",
}
CODECS = {"windows-874": "cp874", "shift_jis": "cp932", "euc-kr": "cp949"}


def page(text: str, encoding: str, lang: str = "") -> bytes:
    """A page that does not say how it is encoded."""
    attribute = f' lang="{lang}"' if lang else ""
    html = f"<html{attribute}><head><title>{text}</title><script>var x = 1;</script></head><body><p>{text}</p></body>"
    return html.encode(CODECS.get(encoding, encoding))


def undecided(body: bytes, charset: str | None) -> str:
    """A sniff that found nothing declared."""
    return ""


@pytest.mark.parametrize("encoding", PROSE)
@pytest.mark.parametrize("times", [1, 200])
def test_undeclared_text_is_detected(encoding: str, times: int) -> None:
    """One sentence is enough, and a long page decode the same answer."""
    assert encoding_of(page((PROSE[encoding] + " ") * times, encoding), "", undecided) == encoding


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso-8859-2", "Zażółć gęślą jaźń, rząd podjął decyzję o budowie dróg między miastami"),
        ("iso-8859-5", "Правительство приняло решение о строительстве новой дороги, сообщает агентство."),
        ("iso-8859-6", "قررت الحكومة بناء طريق جديد يربط بين المدن الكبرى في البلاد"),
        ("iso-8859-7", "Η κυβέρνηση αποφάσισε να κατασκευάσει νέο δρόμο. Άλλα έργα θα γίνουν στην Άρτα"),
        ("ibm866", "Правительство приняло решение о строительстве новой дороги, сообщает агентство."),
        ("koi8-u", "Уряд ухвалив рішення про будівництво нової дороги, її відкриють цієї осені"),
        ("iso-2022-jp", "東京都は新しい道路の建設を決定したと発表した。"),
    ],
)
def test_encodings_that_few_pages_have(encoding: str, text: str) -> None:
    """They read as they were written, by the sniff of the native core as well."""
    body = page(text, {"ibm866": "cp866", "iso-2022-jp": "iso2022_jp"}.get(encoding, encoding))
    assert encoding_of(body, "", sniff_encoding) == encoding


@pytest.mark.parametrize(
    ("encoding", "codec", "text"),
    [
        ("macintosh", "mac-roman", "Après avoir été élu, le président a annoncé que les députés étaient présents."),
        ("macintosh", "mac-roman", "„Wir müssen früher aufstehen“, sagte er."),
        ("x-mac-cyrillic", "mac-cyrillic", "Приложение F. GNU General Public License, Version 2, June 1991"),
        ("windows-1251", "cp1251", "Приложение F. GNU General Public License, Version 2, June 1991"),
        ("x-mac-cyrillic", "mac-cyrillic", "абільший бюджет щоб забезпечити собі максимум прибутків від переходів"),
        ("windows-1250", "cp1250", "Ştergeţi fişierul şi închideţi fereastra"),
        ("windows-1257", "cp1257", "Įdiegti programą, kad galėtumėte skaityti žinutes"),
        ("windows-1252", "cp1252", "Cosa è GNU/Linux? GNU/Linux è un sistema operativo"),
        ("windows-1252", "cp1252", "Chapter 3. What’s in “the box”?"),
    ],
)
def test_short_texts(encoding: str, codec: str, text: str) -> None:
    """A sentence, a line that is mostly English, and letters of old Macintoshes."""
    assert detect(page(text, codec)) == encoding


def test_an_english_page_with_a_japanese_line() -> None:
    """The words around its letters count as much as the language of the page."""
    english = "Then click the button, and wait until the window opens. " * 60
    assert detect(page(english + "日本語のドキュメンテーション" + english, "cp932")) == "shift_jis"


def test_vietnamese_tones_stand_behind_their_letters() -> None:
    """In windows-1258 they are characters of their own."""
    text = "Chính phu\u0309 \u0111a\u0303 quyê\u0301t \u0111i\u0323nh xây dư\u0323ng con \u0111ươ\u0300ng mơ\u0301i"
    assert encoding_of(page(text, "cp1258"), "", sniff_encoding) == "windows-1258"


def test_escapes_where_another_encoding_is_declared() -> None:
    """What says that it is UTF-8 is UTF-8, and so is ASCII with an escape that begins no Japanese."""
    japanese = page("東京都は新しい道路の建設を決定した", "iso2022_jp")
    assert encoding_of(japanese, "utf-8", sniff_encoding) == "utf-8"
    assert encoding_of(b"<meta charset=utf-8>" + japanese, "", sniff_encoding) == "utf-8"
    assert encoding_of(b"<p>\x1b[1mred\x1b[0m</p>", "", sniff_encoding) == "utf-8"


@pytest.mark.parametrize(
    ("lang", "encoding", "text"),
    [
        ("cs", "windows-1250", "Vláda rozhodla o výstavbě nové dálnice, která spojí města"),
        ("pl-PL", "windows-1250", "Zażółć gęślą jaźń, rząd podjął decyzję o budowie dróg"),
        ("hu", "windows-1250", "Árvíztűrő tükörfúrógép, a kormány döntött az új út építéséről"),
        ("tr", "windows-1254", "Hükümet yeni yolun inşasına karar verdi, güzel bir gün ışığı"),
        ("de", "windows-1252", "Müller fährt über die Straße nach Österreich, schöne Grüße"),
    ],
)
def test_latin_encodings_are_told_apart(lang: str, encoding: str, text: str) -> None:
    """They differ in a handful of letters, with a lang attribute and without."""
    assert detect(page(text, encoding)) == encoding
    assert detect(page(text, encoding, lang)) == encoding


def test_without_a_language_symbols_inside_words_tell() -> None:
    """Polish read as Western would put ¹ and ³ into words; Czech would not and stays with the web's default."""
    assert detect(page("Zażółć gęślą jaźń, rząd podjął decyzję o budowie dróg", "windows-1250")) == "windows-1250"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"", "windows-1252"),
        (b"plain ascii", "windows-1252"),
        (b"\x00\x01\x02", "windows-1252"),
        ("price 5 €".encode("cp1252"), "windows-1252"),
        ("it’s “quoted”".encode("cp1252"), "windows-1252"),
        ("日本語".encode("iso2022_jp"), "iso-2022-jp"),
        (("x" + "ü" * 200_000).encode(), "utf-8"),
        (("Größe " * 50).encode() + b"\xe9", "utf-8"),
    ],
)
def test_little_to_go_by(body: bytes, encoding: str) -> None:
    """Nothing, a currency sign, an escape sequence, one broken byte: the web's default or the obvious."""
    assert detect(body) == encoding


def test_declaration_goes_before_the_look() -> None:
    """What the sniff says is not doubted: it is WHATWG's answer."""
    assert encoding_of(page(PROSE["koi8-r"], "koi8-r"), "", lambda body, charset: "windows-1251") == "windows-1251"


def test_sniff_gets_the_headers_charset_or_none() -> None:
    """An empty header field is no declaration."""
    seen: list[str | None] = []

    def sniff(body: bytes, charset: str | None) -> str:
        seen.append(charset)
        return "utf-8"

    encoding_of(b"", "", sniff)
    encoding_of(b"", "koi8-r", sniff)
    assert seen == [None, "koi8-r"]


@pytest.mark.parametrize(
    ("body", "charset", "content_type", "encoding"),
    [
        (b"<?xml version='1.0'?><a/>", "", "application/xml", "utf-8"),
        (b"<?xml version='1.0' encoding='GB2312'?><a/>", "", "", "gbk"),
        (b"<?xml version='1.0' encoding='GB2312'?><a/>", "utf-8", "text/xml", "utf-8"),
        (b"<?xml version='1.0' encoding='nonsense'?><a/>", "", "text/xml", "utf-8"),
        (b"<?xml version='1.0' encoding='utf-16'?><a/>", "", "text/xml", "utf-8"),
        (b"<?xml version='1.0' encoding='UTF-16LE'?><a/>", "", "", "utf-8"),
        ("<?xml version='1.0' encoding='utf-16'?><a/>".encode("utf-16-le"), "", "text/xml", "utf-16le"),
        ("<rss/>".encode("utf-16-be"), "", "text/xml", "utf-16be"),
        (b"\xef\xbb\xbfx", "koi8-r", "text/plain", "utf-8"),
        (b"<meta charset=koi8-r>", "", "text/plain", "utf-8"),
    ],
)
def test_text_that_is_not_html(body: bytes, charset: str, content_type: str, encoding: str) -> None:
    """Mark, header, XML declaration; a <meta> in plain text says nothing."""
    assert encoding_of_text(body, charset, content_type) == encoding


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("start", ["<!doctype html>", "<html>", "<?xml version='1.0'?>", "\r\n <p>"])
def test_sixteen_bits_without_a_mark(codec: str, start: str) -> None:
    """Markup with a zero beside each letter is nothing else, whatever is declared."""
    body = f"{start}<title>Größe 漢字</title>".encode(codec)
    assert encoding_of(body, "utf-8", sniff_encoding) == codec.replace("-l", "l").replace("-b", "b")


def test_a_zero_here_and_there_is_no_encoding() -> None:
    """Pages have them by mistake."""
    assert encoding_of(b"<\0p>\xc3\xbc", "utf-8", sniff_encoding) == "utf-8"
    assert encoding_of(b"\0<p>\xc3\xbc", "utf-8", sniff_encoding) == "utf-8"


HOSTILE = {
    "high bytes": bytes(range(0x80, 0x100)) * 4_000,
    "pairs": bytes(range(0xA1, 0xFF)) * 5_000,
    "accents": b"caf\xe9 cr\xe8me " * 40_000,
    "one word": b"\xe9" * 400_000,
    "open tags": b"\xe9" + b"<" * 400_000,
    "open tag": b"\xe9<" + b"a" * 400_000,
    "lang lang": b"<html" + b" lang" * 80_000 + b"\xe9",
    "html html": b"<html " * 80_000 + b"\xe9",
    "broken utf-8": (b"\xc3\xa9 " * 20 + b"\xff ") * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_body_takes_long(name: str) -> None:
    """Every step is linear in a bounded sample; the bound here is ten times what is measured, for busy machines."""
    detect(b"\xc3\xcf\xd7\xcf\xd2\xc9\xd4\xd8 \xd4\xcf")
    started = time.process_time()
    detect(HOSTILE[name])
    assert time.process_time() - started < 0.08


async def test_the_classifier_of_a_service_is_loaded_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then a page that needs it is refused, and all other pages have their encoding."""
    threads: list[int] = []
    monkeypatch.setattr(charset, "classify", lambda sample, names: threads.append(threading.get_ident()) or "koi8-r")
    classifier = charset.BackgroundClassifier()
    assert encoding_of("ż".encode(), "", sniff_encoding, classifier) == "utf-8"
    body = page(PROSE["koi8-r"], "koi8-r")
    with pytest.raises(charset.ClassifierNotLoadedError):
        encoding_of(body, "", sniff_encoding, classifier)
    await classifier.load()
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()
    assert encoding_of(body, "", sniff_encoding, classifier) == "koi8-r"


@pytest.mark.parametrize(
    ("body", "fields", "settings"),
    [
        (page(PROSE["koi8-r"], "koi8-r"), {}, {}),
        (page(PROSE["koi8-r"], "koi8-r"), {}, {"max_inline_bytes": 16}),
        (PROSE["koi8-r"].encode("koi8-r"), {"content_type": "text/plain"}, {}),
        (f"<urlset><url><loc>http://a.test/{PROSE['koi8-r']}".encode("koi8-r"), {"content_type": "text/xml"}, {}),
    ],
    ids=["in place", "in a child", "text", "list"],
)
async def test_the_first_page_without_an_encoding_waits_for_the_classifier(
    body: bytes, fields: dict[str, str], settings: dict[str, int]
) -> None:
    """It is parsed once the library is loaded, and is not lost."""
    room = await Room(sniffed="", **settings).start()
    room.send(body, **fields)
    assert not room.log
    await room.parser.drain(60.0)
    await room.parser.drain(60.0)  # a list that began in the first call
    (*_, record) = room.log
    assert isinstance(record, m.Record)
    assert record.outcome == m.Outcome.STORED
    assert not room.dead
    await room.parser.close()
