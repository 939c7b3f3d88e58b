"""A search over stored rows: the same pages from nephila.db and from PostgreSQL."""

from __future__ import annotations

import sqlite3

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UsageError, UserError
from nephila.native import page_pass
from nephila_stores.search import search
from nephila_stores.search.search import make_index

from tests.storage.storage_rig import record, running

PAGES = {
    "zh": ("http://zh.test/a", "清华", "我在北京大学学习。图书馆很大,2026年"),
    "ja": ("http://ja.test/a", "首都", "東京都は日本の首都です。ｶﾀｶﾅもカタカナ"),
    "th": ("http://th.test/a", "เมือง", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย"),
    "ko": ("http://ko.test/a", "서울", "우리는 서울에서 만나요"),
    "fox": ("http://www.en.test/animals/fox", "The fox", "The quick brown fox jumps over the lazy dog in New York."),
    "dog": ("http://en.test/dog?x=1", "Dogs and cats", "A dog sees the brown door. A fox is away; quickly."),
    "accents": ("http://de.test/a", "Straßen", "Ein Café in Zürich, naïve Straße. Ёлка. Ελλάδα ΣΊΣΥΦΟΣ"),
}


async def store_pages(directory, store=""):
    """The pages above, one fetch each, a day apart, and a failed URL."""
    async with running(directory, store=store) as rig:
        for number, (url, title, text) in enumerate(PAGES.values()):
            at = 1_800_000_000 + 86_400 * 20 * number
            rig.send(record(number, url=url, title=title, text=text.encode(), fetched_at=at))
        rig.send(record(99, url="http://en.test/gone", outcome=m.Outcome.FAILED, reason="http_404", sha256=b"",
                        title="fox", text=b""))  # fmt: skip
        await rig.storage.flush()
    return store or directory


@pytest.fixture
async def source(database_url, tmp_path):
    """Rows in a directory and on a server."""
    return await store_pages(tmp_path, database_url)


def read(source):
    """Bring the index up to date."""
    return list(make_index(source))


def names(source, text, **options):
    """Names of the pages that a search finds."""
    read(source)
    by_url = {url: name for name, (url, _, _) in PAGES.items()}
    return {by_url[hit.url] for hit in search.search(source, text, **options).hits}


SEARCHES = [
    ("fox", {"fox", "dog"}),
    ("FOX lazy", {"fox"}),
    ('"brown fox"', {"fox"}),
    ('"fox brown"', set()),
    ("fox -lazy", {"dog"}),
    ('fox -"brown fox"', {"dog"}),
    ("title:fox", {"fox"}),
    ('title:"dogs and"', {"dog"}),
    ("url:animals", {"fox"}),
    ("quick", {"fox"}),
    ("quick*", {"fox", "dog"}),
    ("fox host:en.test", {"fox", "dog"}),
    ("fox host:www.en.test", {"fox"}),
    ("host:test dog host:elsewhere.test", {"fox", "dog"}),
    ("fox host:n.test", set()),
    ("a since:2027-01-16 until:2027-02-04", {"ja"}),
    ("a until:2027-01", {"zh"}),
    ("a since:2027", {"zh", "ja", "th", "ko", "dog", "accents"}),
    ("a until:2026", set()),
    ("北京", {"zh"}),
    ("大学", {"zh"}),
    ("京大", {"zh"}),
    ("学", {"zh"}),
    ("习", {"zh"}),
    ("北京图书馆", set()),
    ("北京 图书馆", {"zh"}),
    ("title:清华", {"zh"}),
    ("日本", {"ja"}),
    ("本", {"ja"}),
    ("カタカナ", {"ja"}),
    ("เมืองหลวง", {"th"}),
    ("ไทย", {"th"}),
    ("서울", {"ko"}),
    ("2026", {"zh"}),
    ("cafe ZURICH", {"accents"}),
    ("strasse елка ελλαδα σισυφος", {"accents"}),
    ("x'); DROP TABLE search --x", set()),
    ("fox & | ! <-> :* \\ ' ( )", {"fox", "dog"}),
    ("NEAR OR AND", set()),
]


async def test_a_search_finds_the_pages_with_its_words(source):
    """In each script; the marks of the databases' own languages mean nothing."""
    assert {text: names(source, text) for text, _ in SEARCHES} == dict(SEARCHES)


async def test_a_word_is_found_in_each_way_to_write_it(tmp_path):
    """Soft hyphens and marks apart, in the page or in the search: the row has the one form of text."""
    page = "<title>Ge&shy;schich&shy;te</title><p>Das Mit&shy;tel&shy;al&shy;ter im Cafe&#769; Zu&#x308;rich&nbsp;West"
    passed = page_pass(page.encode(), "http://de.test/shy", "utf-8")
    async with running(tmp_path) as rig:
        rig.send(record(0, url="http://de.test/shy", title=passed.title, text=passed.text))
        await rig.storage.flush()
    read(tmp_path)
    texts = ["mittelalter", "Mit\u00adtel\u00adal\u00adter", "café", "cafe\u0301", "zürich", '"Zu\u0308rich West"',
             "title:geschichte", "title:Ge\u00adschich\u00adte"]  # fmt: skip
    assert {text for text in texts if not search.search(tmp_path, text).hits} == set()


async def test_a_passage_has_the_words_and_the_text_as_it_was_written(source):
    """Nothing of the index, which is folded."""
    read(source)
    hit = search.search(source, 'cafe "naive straße"').hits[0]
    assert [(one.text, one.hit) for one in hit.passage][:4] == [
        ("Ein ", False), ("Café", True), (" in Zürich, ", False), ("naïve Straße", True)]  # fmt: skip
    (title,) = search.search(source, "title:清华").hits
    assert [one for one in title.title if one.hit] == [("清华", True)]


async def test_a_word_in_the_title_counts_more(source):
    """The page about it is before the one that names it."""
    read(source)
    assert [hit.url for hit in search.search(source, "fox").hits] == [PAGES["fox"][0], PAGES["dog"][0]]
    assert [hit.url for hit in search.search(source, "fox", skip=1).hits] == [PAGES["dog"][0]]
    assert search.search(source, "fox", jobs=["another"]).hits == []


async def test_a_page_is_found_by_its_present_text(source, tmp_path):
    """After a change, and after a fetch that changed nothing."""
    assert names(source, "lazy") == {"fox"}
    store = source if isinstance(source, str) else ""
    async with running(tmp_path, store=store) as rig:
        url, title, _ = PAGES["fox"]
        rig.send(record(4, 2, url=url, title=title, text=b"The slow fox.", sha256=b"2" * 32))
        url, title, text = PAGES["dog"]
        rig.send(record(5, 2, url=url, title=title, text=text.encode()))
        await rig.storage.flush()
    assert (names(source, "lazy"), names(source, "slow")) == (set(), {"fox"})
    assert names(source, "away") == {"dog"}
    assert search.search(source, "fox").total == 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"fox', "not closed"),
        ("-fox", "no word to look for"),
        ("host:en.test", "no word to look for"),
        ("...", "no word to look for"),
        ("lang:de", "lang: is no field"),
        ("title:", "title: has no word"),
        ("host:a/b fox", "is no host"),
        ("-host:en.test fox", "cannot leave a host out"),
        ("since:yesterday fox", "is no day"),
        ("since:2026-02-30 fox", "is no day"),
        ("since:2027 until:2026 fox", "is after"),
        ("f* x", "at least 2 characters"),
        (" ".join(f"w{n}" for n in range(40)), "too long"),
    ],
)
def test_a_search_that_cannot_be_meant_is_one_clear_line(tmp_path, text, problem):
    """Before a file is opened."""
    with pytest.raises(UsageError, match=problem) as error:
        search.search(tmp_path, text)
    assert "\n" not in str(error.value)


def test_a_directory_without_rows_gets_no_index(tmp_path):
    """The error is that of every reader."""
    with pytest.raises(UserError, match="no database"):
        search.search(tmp_path, "fox")
    assert list(tmp_path.iterdir()) == []


async def test_an_index_is_made_in_steps_and_again(source, monkeypatch):
    """What is left is known after each."""
    for place in ("sqlite_index", "postgres_index"):
        monkeypatch.setattr(f"nephila_stores.search.{place}.BATCH", 3)
    assert list(make_index(source)) == [5, 2, 0]
    assert list(make_index(source, fresh=True)) == [5, 2, 0]
    assert search.search(source, "fox").behind == 0


async def test_a_search_writes_nothing(source):
    """It says how much of the crawl the index has not read."""
    found = search.search(source, "fox")
    assert (found.hits, found.behind) == ([], len(PAGES) + 1)
    read(source)
    assert search.search(source, "fox").behind == 0


async def test_an_index_of_other_rows_is_made_again(tmp_path):
    """As after --fresh, or when nephila.db was put back."""
    await store_pages(tmp_path)
    assert names(tmp_path, "fox") == {"fox", "dog"}
    (tmp_path / "nephila.db").unlink()
    async with running(tmp_path) as rig:
        rig.send(record(7, url=PAGES["zh"][0], text=b"the fox here"))
        await rig.storage.flush()
    assert names(tmp_path, "fox") == {"zh"}


async def test_old_texts_do_not_fill_the_index(tmp_path, monkeypatch):
    """Where most words are those of texts that pages no longer have, it is made again."""
    monkeypatch.setattr("nephila_stores.search.sqlite_index.CHECK_EVERY", 8)
    monkeypatch.setattr("nephila_stores.search.sqlite_index.BLOCK", 3)
    await store_pages(tmp_path)
    read(tmp_path)
    async with running(tmp_path) as rig:
        for number in range(2, 11):
            url, title, _ = PAGES["fox"]
            rig.send(record(4, number, url=url, title=title, text=b"fox %d" % number, sha256=bytes([number]) * 32))
            await rig.storage.flush()
            read(tmp_path)
    with sqlite3.connect(tmp_path / "search.db") as connection:
        assert connection.execute("SELECT last FROM position").fetchone() == (7,)
    assert names(tmp_path, "fox 10") == {"fox"}
    assert names(tmp_path, "fox") == {"fox", "dog"}


async def test_an_index_has_blocks_of_pages(source, monkeypatch):
    """All of them are searched, the newest first."""
    for place in ("sqlite_index", "postgres_index"):
        monkeypatch.setattr(f"nephila_stores.search.{place}.BLOCK", 2)
    assert {text: names(source, text) for text, _ in SEARCHES} == dict(SEARCHES)
    monkeypatch.setattr("nephila_stores.search.blocks.LONGEST_S", -1.0)
    found = search.search(source, "a")
    assert (len(found.hits), found.looked_at) == (2, 2)


async def test_the_output_makes_the_index_as_the_crawl_writes(tmp_path):
    """A search finds nothing left to read; a crawl without it makes no file."""
    async with running(tmp_path, formats=("search",)) as rig:
        rig.send(record(1, text=b"the fox"))
        await rig.storage.flush()
    with sqlite3.connect(tmp_path / "search.db") as connection:
        assert connection.execute("SELECT count(*) FROM docs").fetchone() == (1,)
