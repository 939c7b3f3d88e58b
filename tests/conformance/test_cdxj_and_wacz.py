"""Indexes of WARC files and WACZ packages, against cdxj-indexer, surt, warcio and the validator of py-wacz."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from nephila.kernel import messages as m
from nephila.kernel.runtime.errors import UserError
from nephila.storage.config import StorageConfig
from nephila.storage.writer import Writer
from nephila_stores.warcs.cdxj import surt_key
from nephila_stores.warcs.warc_export import export_archive
from warcio.archiveiterator import ArchiveIterator

from tests.storage.storage_rig import page, record

SESSION = "0123456789abcdef0123456789abcdef"
URLS = {
    "http://www.Example.com/": "com,example)/",
    "https://www2.example.com:443/A/b/?B=2&a=1": "com,example)/a/b?a=1&b=2",
    "http://example.com:8080/x/": "com,example:8080)/x",
    "https://example.com:80/": "com,example:80)/",
    "http://example.com/a?": "com,example)/a",
    f"http://example.com/a;jsessionid={SESSION}": f"com,example)/a;jsessionid={SESSION}",
    f"http://example.com/a?PHPSESSID={SESSION}&z=1": "com,example)/a?z=1",
    f"http://example.com/a?z=1&sid={SESSION}&y=2": "com,example)/a?y=2&z=1",
    "http://example.com/a?CFID=1&CFTOKEN=2&c=1": "com,example)/a?c=1",
    "http://example.com/(S(4hqa0555fwsecu455xqckv45))/a.aspx": "com,example)/a.aspx",
    "http://192.168.1.1/a": "1,1,168,192)/a",
    "http://[::1]/a": "::1)/a",
    "http://bücher.de/ä b": "de,xn--bcher-kva)/%c3%a4%20b",
    "http://example.com/caf%C3%A9?X=%E2%82%AC": "com,example)/caf%c3%a9?x=%e2%82%ac",
    "http://example.com/%7Ea%2Fb": "com,example)/~a/b",
    "http://example.com/a%25b": "com,example)/a%25b",
    "http://example.com/a?x=a%2520b": "com,example)/a?x=a%20b",
    "http://example.com/a?x=%26&y=%3D": "com,example)/a?&x=&y==",
    "http://example.com/a?x=1&x=0&": "com,example)/a?&x=0&x=1",
    "http://example.com/a?a-b=1&a=2": "com,example)/a?a=2&a-b=1",
    "http://user:p@example.com/a//b/../c/./d#e": "com,example)/a/c/d",
    "http://www1.www.com/": "com,www)/",
}


def python(*arguments: str, text: str = "") -> str:
    """The output of a program of a library, in a process of its own: its warnings are not errors here."""
    done = subprocess.run([sys.executable, *arguments], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_keys_are_those_of_surt():
    """What pywb looks up."""
    theirs = python(
        "-c", "import sys, surt\nfor u in sys.stdin: print(surt.surt(u.rstrip('\\n')))", text="\n".join(URLS)
    )
    assert [surt_key(url) for url in URLS] == list(URLS.values()) == theirs.splitlines()


def opened(directory: Path, **config: object) -> Writer:
    """A writer of WARC files."""
    writer = Writer(StorageConfig(directory=directory, formats=("warc",), fsync=False, **config))
    writer.open()
    return writer


def put(writer: Writer, *numbers: int, fetch_no: int = 1, **fields: object) -> None:
    """One flush of pages with their bodies."""
    records = [record(number, fetch_no, **fields) for number in numbers]
    pages = [
        page(number, fetch_no, not_modified=one.not_modified) for number, one in zip(numbers, records, strict=True)
    ]
    writer.commit(records, pages, [])
    writer.after_commit()


def index(path: Path) -> list[str]:
    """The lines of a file, which are sorted."""
    lines = path.read_text().splitlines()
    assert lines == sorted(lines, key=str.encode)
    return lines


def theirs(*warcs: Path) -> list[str]:
    """The lines of cdxj-indexer for these files."""
    output = python("-m", "cdxj_indexer.main", "--sort", "--records", "response,revisit", *map(str, warcs))
    return output.splitlines()


def parsed(lines: list[str]) -> list[tuple[str, str, dict[str, str]]]:
    """Lines as key, time and fields."""
    return [(key, time, json.loads(fields)) for key, time, fields in (line.split(" ", 2) for line in lines)]


def test_each_file_has_its_index_and_the_export_is_one_over_all(tmp_path):
    """Over several files and a restart, with errors and revisits: the lines of cdxj-indexer, and each leads to its
    record."""
    writer = opened(tmp_path, warc_bytes=3000)
    for start in range(0, 12, 4):
        put(writer, *range(start, start + 4))
    writer.close()
    writer = opened(tmp_path, warc_bytes=3000)
    put(writer, 1, 2, fetch_no=2, status=304, not_modified=True, text=b"", sha256=b"", meta="")
    writer.close()
    warcs = sorted(tmp_path.glob("*.warc.gz"))
    assert len(warcs) > 2
    export_archive(tmp_path, tmp_path, "cdxj", tmp_path / "all.cdxj")
    lines = index(tmp_path / "all.cdxj")
    assert len(lines) == 14
    assert parsed(lines) == parsed(theirs(*warcs))
    beside = [index(warc.with_name(warc.name.replace(".warc.gz", ".cdxj"))) for warc in warcs]
    assert sorted((line for one in beside for line in one), key=str.encode) == lines
    assert sum('"mime":"warc/revisit"' in line for line in lines) == 2
    for _, time, fields in parsed(lines):
        data = (tmp_path / fields["filename"]).read_bytes()[int(fields["offset"]) :][: int(fields["length"])]
        (found,) = ArchiveIterator(io.BytesIO(data))
        assert found.rec_headers.get_header("WARC-Target-URI") == fields["url"]
        assert found.rec_headers.get_header("WARC-Date").startswith(f"{time[:4]}-{time[4:6]}-{time[6:8]}T{time[8:10]}")


def test_an_export_of_a_killed_crawl_reads_the_files(tmp_path):
    """No index was written, and the file has a torn end."""
    put(opened(tmp_path), 1, 2, 3)
    (warc,) = tmp_path.glob("*.warc.gz")
    with warc.open("ab") as file:
        file.write(b"\x1f\x8b torn")
    assert not list(tmp_path.glob("*.cdxj"))
    assert export_archive(tmp_path, tmp_path, "cdxj", tmp_path / "all.index").listed == 3


@pytest.mark.full
def test_a_package_is_valid_and_holds_the_files_as_they_are(tmp_path):
    """By the validator of py-wacz; WARC files are stored, not compressed again."""
    writer = opened(tmp_path, warc_bytes=1500)
    put(writer, 1, 2)
    put(writer, 3)
    writer.commit([record(4, outcome=m.Outcome.FAILED, reason="http_404", status=404, sha256=b"")], [page(4)], [])
    writer.close()
    assert export_archive(tmp_path, tmp_path, "wacz", None) == (3, 0)
    # The exit code is 0 in each case.
    assert "Validation succeeded" in python("-m", "wacz.main", "validate", "-f", str(tmp_path / "export.wacz"))
    with zipfile.ZipFile(tmp_path / "export.wacz") as package:
        warcs = sorted(tmp_path.glob("*.warc.gz"))
        assert [package.read(f"archive/{path.name}") for path in warcs] == [path.read_bytes() for path in warcs]
        head, *pages = map(json.loads, package.read("pages/pages.jsonl").splitlines())
        assert head["format"] == "json-pages-1.0"
        assert pages[0] == {
            "id": record(1).url_key.hex(),
            "url": record(1).url,
            "title": "Page 1",
            "ts": "2027-01-15T08:00:01Z",
        }
        names = {one["path"] for one in json.loads(package.read("datapackage.json"))["resources"]}
        assert names == {*(f"archive/{path.name}" for path in warcs), "indexes/index.cdxj", "pages/pages.jsonl"}


def test_a_package_lists_the_pages_that_it_holds(tmp_path):
    """Not a page whose answer was not archived, nor one that has a revisit record alone."""
    writer = opened(tmp_path)
    put(writer, 1)
    writer.commit([record(2), record(3)], [None, None], [])
    confirmed = page(3, 2, status=304, body=b"", not_modified=True)
    writer.commit([record(3, 2, status=304, not_modified=True)], [confirmed], [])
    writer.close()
    assert export_archive(tmp_path, tmp_path, "wacz", None) == (1, 2)
    with zipfile.ZipFile(tmp_path / "export.wacz") as package:
        _, *pages = map(json.loads, package.read("pages/pages.jsonl").splitlines())
    assert [one["url"] for one in pages] == [record(1).url]


@pytest.mark.parametrize("format", ["cdxj", "wacz"])
def test_a_crawl_without_warc_files_is_refused(tmp_path, format):
    """With the option that writes them; no file is left."""
    with pytest.raises(UserError, match="has no WARC files; crawl with --format warc"):
        export_archive(tmp_path, tmp_path, format, tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_member_has_an_extra_field_in_both_its_headers_or_in_none(tmp_path):
    """Readers that take the place of the data from the directory of the package begin at the right byte."""
    writer = opened(tmp_path)
    put(writer, 1)
    writer.close()
    export_archive(tmp_path, tmp_path, "wacz", None)
    data = (tmp_path / "export.wacz").read_bytes()
    with zipfile.ZipFile(tmp_path / "export.wacz") as package:
        for member in package.infolist():
            lengths = data[member.header_offset + 26 :][:4]
            assert struct.unpack("<HH", lengths) == (len(member.filename), len(member.extra))


def test_a_page_is_listed_by_its_url_and_not_by_its_key(tmp_path):
    """/folder and /folder/ have one key: an answer of one is none of the other."""
    writer = opened(tmp_path)
    listed, other = record(1, url="http://a.test/folder"), record(2, url="http://a.test/folder/")
    writer.commit([listed, other], [page(1, url="http://a.test/folder"), None], [])
    writer.close()
    assert surt_key(listed.url) == surt_key(other.url)
    assert export_archive(tmp_path, tmp_path, "wacz", None) == (1, 1)
