"""Single-page applications crawled through a real Chromium: routes, items by steps, captures, crashes."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType
from nephila_browser.process_tree import members_of

from tests.e2e.single_page_sites import ITEMS, PAGES, answer, text_of
from tests.e2e.web import NEPHILA, Reply, rows, run, serve
from tests.waits import wait_until

pytestmark = pytest.mark.usefixtures("chromium")

RULE = """
apiVersion: nephila.dev/v1
kind: ParseRule
metadata: {name: things}
spec:
  match: {url: '^http://(hash\\.test/#|history\\.test)/list$'}
  each: li.item
  fields: {name: b, price: {css: i, type: number}}
  steps:
    - wait: li.item
    - more: "#more"
"""


def crawl(web, *words, cwd, **env):
    """A crawl with a browser; it may take minutes on a busy machine."""
    options = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0", "--render", "always")
    return run("crawl", *words, *options, cwd=cwd, timeout=300, **env)


def browsers(parent: int) -> list[int]:
    """Process groups of browsers below a process."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and b"--user-data-dir" in (entry / "cmdline").read_bytes():
                found.append(int(fields[2]))
    return found


@pytest.mark.parametrize("kind", ["hash", "history"])
def test_every_route_of_an_application_is_a_page_with_its_own_content(tmp_path: Path, kind: str) -> None:
    """The list needs clicks until all its items are there; without a browser the pages are empty."""
    (tmp_path / "rule.yaml").write_text(RULE)
    start = f"http://{kind}.test/"
    with serve(answer) as web:
        done = crawl(web, start, "--rules", "rule.yaml", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        plain = run(
            *("crawl", start, "--out", "plain", "--allow-private", "--host-map", web.host_map, "--delay", "0"),
            cwd=tmp_path,
        )
    assert plain.returncode == 0
    place = start + ("#/" if kind == "hash" else "")
    expected = {start: "home"} | {place + name: name for name in PAGES if name != "home"} | {place + "home": "home"}
    found = {url: text for url, outcome, text in rows(tmp_path, "url, outcome, text") if outcome == "stored"}
    assert set(found) == set(expected)
    for url, name in expected.items():
        assert text_of(f"{kind}.test", name) in found[url]
    with sqlite3.connect(tmp_path / "o" / "nephila.db") as db:
        items = [json.loads(data) for (data,) in db.execute("select data from items order by ordinal")]
    assert [item["name"] for item in items] == [f"thing {number}" for number in range(ITEMS)]
    with sqlite3.connect(tmp_path / "plain" / "nephila.db") as db:
        assert db.execute("select url, text from pages").fetchall() == [(start, "")]


CAPTURES = """
apiVersion: nephila.dev/v1
kind: CrawlJob
metadata: {name: captures}
spec:
  seeds: ["http://history.test/about"]
  scope: {maxDepth: 0}
  render: always
  browser: {capture: [xhr, screenshot, pdf]}
"""


def test_captures_are_files_and_records_of_the_archive(tmp_path: Path) -> None:
    """The rendered document, the JSON that scripts fetched, a picture and a PDF; the row names their kinds."""
    (tmp_path / "job.yaml").write_text(CAPTURES)
    with serve(answer) as web:
        done = crawl(web, "job.yaml", "--format", "sqlite,warc", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ((meta,),) = rows(tmp_path, "meta")
    assert json.loads(meta)["rendered"] == "document, pdf, screenshot, xhr"
    (archive,) = (tmp_path / "o").glob("*.warc.gz")
    with archive.open("rb") as stream:
        found = {
            record.headers["WARC-Target-URI"]: record.reader.read()
            for record in ArchiveIterator(stream, record_types=WarcRecordType.resource)
        }
    url = "http://history.test/about"
    assert set(found) == {f"urn:{kind}:{url}" for kind in ("document", "screenshot", "pdf")} | {
        "http://history.test/api/page/about"
    }
    assert text_of("history.test", "about").encode() in found[f"urn:document:{url}"]
    assert found[f"urn:screenshot:{url}"].startswith(b"\x89PNG")
    assert found[f"urn:pdf:{url}"].startswith(b"%PDF")
    assert {path.suffix for path in (tmp_path / "o" / "captures").iterdir()} == {".png", ".pdf", ".jsonl"}


def test_options_wait_for_an_element_and_take_a_picture_of_each_page(tmp_path: Path) -> None:
    """--wait-for and --screenshot are the keys of spec.browser; a page without the element fails with its reason."""
    with serve(answer) as web:
        words = ("http://history.test/list", "--max-depth", "1", "--wait-for", "#items li.item b", "--screenshot")
        done = crawl(web, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ends = {url: (outcome, reason) for url, outcome, reason in rows(tmp_path)}
    assert ends["http://history.test/list"] == ("stored", "")
    assert ends["http://history.test/one"] == ("failed", "step")
    (picture,) = (tmp_path / "o" / "captures").iterdir()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_explain_shows_the_verdict_on_pages_of_a_pattern(tmp_path: Path) -> None:
    """The pages of a job with render auto, after its program has ended."""
    with serve(answer) as web:
        words = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0", "--render", "auto")
        done = run("crawl", "http://history.test/", *words, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    told = run("explain", "http://history.test/about", "--out", "o", "--json", cwd=tmp_path)
    assert json.loads(told.stdout)["lane"].startswith("browser: 5 of the last 5 pages compared needed a browser")
    assert "render:" in run("explain", "http://history.test/about", "--out", "o", cwd=tmp_path).stdout


def test_a_browser_that_is_killed_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    """kill -9 of the whole process group, twice; no process and no profile is left at the end."""

    def slow(request):
        if request.path.startswith("/api/page/"):
            name = request.path.rpartition("/")[2]
            number = 0 if name == "home" else int(name)
            links = [str(n) for n in (2 * number + 1, 2 * number + 2) if n < 24]
            time.sleep(0.2)
            content = {"title": name, "text": f"Text of {name}.", "links": links, "list": False}
            return Reply(json.dumps(content), type="application/json")
        return answer(request)

    # Chromium's socket has a path of 107 characters at most.
    profiles = Path(tempfile.mkdtemp(prefix="nb-", dir="/tmp"))
    with serve(slow) as web:
        words = ["crawl", "http://hash.test/", "--out", "o", "--allow-private", "--host-map", web.host_map]
        program = subprocess.Popen(
            [*NEPHILA, *words, "--delay", "0", "--render", "always", "--json"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(profiles)},
        )
        killed: set[int] = set()
        try:
            fetched = 3
            while len(killed) < 2 and program.poll() is None:
                wait_until(lambda: len(web.requests) > fetched or program.poll() is not None, 300.0)  # noqa: B023
                for group in browsers(program.pid):
                    if group not in killed and len(web.requests) > fetched:
                        os.killpg(group, signal.SIGKILL)
                        killed.add(group)
                        fetched = len(web.requests) + 3
            out, err = program.communicate(timeout=300)
        finally:
            program.kill()
            program.wait()
    assert program.returncode == 0, err
    assert len(killed) == 2
    expected = {"http://hash.test/"} | {f"http://hash.test/#/{number}" for number in range(1, 24)}
    assert {url for url, outcome, _ in rows(tmp_path) if outcome == "stored"} == expected, out
    assert not any(members_of(group) for group in killed)
    assert list(profiles.glob("nephila-browser-*")) == []
    shutil.rmtree(profiles)


def test_up_renders_jobs_by_option_and_refuses_them_without_it(tmp_path: Path, up) -> None:
    """The refusal is one line, when the job is applied; the option is kept for the next start."""
    job = (
        "apiVersion: nephila.dev/v1\nkind: CrawlJob\nmetadata: {name: app}\n"
        "spec: {seeds: ['http://history.test/'], render: always, politeness: {delay: '0'}, scope: {maxPages: 2}}\n"
    )
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.yaml").write_text(job)
    with serve(answer) as web:
        program = up(web, folder=tmp_path / "without")
        done = run("jobs", "apply", "-f", "job.yaml", "--out", "o", cwd=tmp_path / "without")
        assert done.returncode == 1
        assert done.stderr.strip().endswith("start it with nephila up --browser")
        assert "spec.render: always needs a browser" in done.stderr
        assert program.end() == (0, "", "")
        program = up(web, "--browser", folder=tmp_path / "with")
        assert run("jobs", "apply", "-f", "job.yaml", "--out", "o", cwd=tmp_path / "with").returncode == 0
        program.until(lambda jobs: jobs["app"]["stored"] >= 1)
        assert program.end()[0] == 0
        program = up(web, folder=tmp_path / "with")
        assert run("jobs", "apply", "-f", "job.yaml", "--out", "o", cwd=tmp_path / "with").returncode == 0
        assert program.end()[0] == 0
    metas = [meta for outcome, meta in rows(tmp_path / "with", "outcome, meta") if outcome == "stored"]
    assert metas
    assert all('"rendered"' in meta for meta in metas)


def test_links_of_a_rendered_page_have_their_query_in_the_encoding_of_the_page(tmp_path: Path) -> None:
    """The stored document is in UTF-8, the server knows its own encoding."""
    page = Reply("<meta charset=shift_jis><a href='/find?w=日'>x</a>".encode("cp932"), type="text/html")
    pages = {"/": page, "/find?w=%93%FA": Reply("<title>found</title><p>x")}
    with serve(lambda request: pages.get(request.path, Reply("no", 404))) as web:
        done = crawl(web, "http://a.test/", "--ignore-robots", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "/find?w=%93%FA" in [one.path for one in web.requests]


SHADOW = """<!doctype html><title>s</title><my-x>light</my-x><script>
customElements.define('my-x', class extends HTMLElement { constructor() { super();
this.attachShadow({mode: 'open'}).innerHTML = '<p>words in a root <a href=/in>s</a><slot></slot>' } })</script>"""


def test_open_shadow_roots_of_a_rendered_page_are_part_of_text_and_links(tmp_path: Path) -> None:
    """Also those that the document declares."""
    declared = "<div><template shadowrootmode=open><p>words that are declared<a href=/declared>d</a></template></div>"
    with serve(lambda request: Reply(SHADOW + declared) if request.path == "/" else Reply("<title>x</title>x")) as web:
        done = crawl(web, "http://a.test/", "--ignore-robots", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    texts = dict(sqlite3.connect(tmp_path / "o/nephila.db").execute("SELECT url, text FROM pages"))
    assert set(texts) == {"http://a.test/", "http://a.test/in", "http://a.test/declared"}
    assert "words in a root" in texts["http://a.test/"]
    assert "words that are declared" in texts["http://a.test/"]


MOVING = {
    "/": "<title>h</title><a href=/old>o</a><a href=/meta>m</a><a href=/push>p</a><a href=/based>b</a>",
    "/old": "<script>location.href='/dir/page/'</script>",
    "/dir/page/": "<title>target</title><a href=sub>s</a>",
    "/meta": "<meta http-equiv=refresh content='0; url=/dir2/x/'>",
    "/dir2/x/": "<title>target</title><a href=y>y</a>",
    "/push": "<p id=x></p><script>history.pushState({}, '', '/app/home/');x.innerHTML='<a href=z>z</a>'</script>",
    "/based": "<base href=own/><a href=w>w</a><script>history.pushState({}, '', '/far/off/')</script>",
}


def test_links_of_a_page_whose_scripts_change_its_url_resolve_against_the_last_one(tmp_path: Path) -> None:
    """By script, refresh or pushState within the host; the row says where the page was at the end."""
    found = {
        path: Reply("<title>found</title>x") for path in ("/dir/page/sub", "/dir2/x/y", "/app/home/z", "/far/off/own/w")
    }
    pages = {**{path: Reply(text) for path, text in MOVING.items()}, **found}
    with serve(lambda request: pages.get(request.path, Reply("no", 404))) as web:
        done = crawl(web, "http://a.test/", "--ignore-robots", cwd=tmp_path)
        requested = {one.path for one in web.requests}
    assert done.returncode == 0, done.stderr
    assert found.keys() <= requested
    assert not {"/sub", "/y", "/z", "/w", "/own/w"} & requested
    ends = {url: final for url, final in rows(tmp_path, "url, final_url") if final}
    assert ends["http://a.test/old"] == "http://a.test/dir/page/"
    assert ends["http://a.test/meta"] == "http://a.test/dir2/x/"
    assert ends["http://a.test/push"] == "http://a.test/app/home/"
    assert "http://a.test/" not in ends


def test_a_page_that_is_sent_as_an_attachment_is_a_page(tmp_path: Path) -> None:
    """The header asks a browser to save it; its text and links are those of a page."""
    saved = Reply(
        "<title>s</title><p>words<a href=/in>i</a>", headers={"Content-Disposition": "attachment; filename=a.html"}
    )
    with serve(lambda request: saved if request.path == "/" else Reply("<title>x</title>x")) as web:
        done = crawl(web, "http://a.test/", "--ignore-robots", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {url for url, outcome in rows(tmp_path, "url, outcome") if outcome == "stored"} == {
        "http://a.test/",
        "http://a.test/in",
    }


FEED = """<!doctype html><title>f</title><style>html,body{height:100%;margin:0;overflow:hidden}
#box{height:100%;overflow-y:auto}</style><div id=box><ul id=list></ul></div><script>
let count = 0;
function add() { for (let i = 0; i < 20 && count < 100; i++, count++)
  list.insertAdjacentHTML('beforeend', `<li style="height:80px">entry ${count}</li>`) }
add();
const atEnd = () => box.scrollTop + box.clientHeight > box.scrollHeight - 10;
box.addEventListener('scroll', () => { if (atEnd()) setTimeout(add, 50) });
</script>"""


def test_a_scroll_moves_the_boxes_of_a_page_until_nothing_new_comes(tmp_path: Path) -> None:
    """The page itself does not scroll: its list has a scroll bar of its own."""
    spec = {
        "seeds": ["http://a.test/"],
        "render": "always",
        "browser": {"steps": [{"scroll": 20}]},
        "politeness": {"delay": "10ms", "respectRobots": False},
    }
    job = {"apiVersion": "nephila.dev/v1", "kind": "CrawlJob", "metadata": {"name": "f"}, "spec": spec}
    (tmp_path / "job.yaml").write_text(json.dumps(job))
    with serve(lambda request: Reply(FEED)) as web:
        options = ("--out", "o", "--allow-private", "--host-map", web.host_map)
        done = run("crawl", "job.yaml", *options, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    [(text,)] = rows(tmp_path, "text")
    assert "entry 0" in text
    assert "entry 99" in text


FRAMES = {
    "/": "<title>t</title><p>outer words<iframe src=/in/frame.html></iframe><iframe id=w></iframe><script>"
    "w.contentDocument.body.innerHTML = '<p>written words'</script>",
    "/in/frame.html": "<p>inner words <a href=deep>d</a><iframe src=nested.html></iframe>",
    "/in/nested.html": "<p>nested words",
}


def test_frames_of_the_same_origin_are_part_of_text_and_links(tmp_path: Path) -> None:
    """Frames within frames, and those that a script fills; links resolve against the frame."""
    with serve(lambda request: Reply(FRAMES.get(request.path, "<title>x</title>x"))) as web:
        done = crawl(web, "http://a.test/", "--ignore-robots", cwd=tmp_path)
        requested = {one.path for one in web.requests}
    assert done.returncode == 0, done.stderr
    texts = dict(rows(tmp_path, "url, text"))
    for words in ("outer words", "inner words", "nested words", "written words"):
        assert words in texts["http://a.test/"]
    assert "/in/deep" in requested
    assert "/deep" not in requested


FRAMES_OF_SITE = {
    ("a.test", "/"): "<title>t</title><p>outer words<iframe src=http://www.a.test/in/frame.html></iframe>"
    "<iframe src=http://b.test/></iframe>",
    ("www.a.test", "/in/frame.html"): "<p>inner words <a href=deep>d</a><iframe src=http://a.test/nested></iframe>",
    ("a.test", "/nested"): "<p>nested words",
    ("b.test", "/"): "<p>foreign words",
}


def test_frames_of_the_same_site_are_part_of_text_and_links(tmp_path: Path) -> None:
    """Also of another origin, which scripts of the page cannot read; those of other sites are not."""
    with serve(lambda request: Reply(FRAMES_OF_SITE.get((request.host, request.path), "<title>x</title>x"))) as web:
        done = crawl(web, "http://a.test/", "--ignore-robots", "--scope", "any", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    texts = dict(rows(tmp_path, "url, text"))
    for words in ("outer words", "inner words", "nested words"):
        assert words in texts["http://a.test/"]
    assert "foreign words" not in texts["http://a.test/"]
    assert "http://www.a.test/in/deep" in texts


def test_a_directory_of_worker_processes_goes_on_with_a_browser(tmp_path: Path) -> None:
    """The crawl of before had two workers; one process has the partitions and the browser now."""
    start = "http://history.test/"
    with serve(answer) as web:
        words = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0", "--workers", "2")
        assert run("crawl", start, *words, cwd=tmp_path).returncode == 0
        assert (tmp_path / "o/frontier/15").is_dir()
        done = crawl(web, "--resume", "--refresh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {url: text for url, outcome, text in rows(tmp_path, "url, outcome, text") if outcome == "stored"}
    assert set(found) == {start} | {start + name for name in PAGES}
    for name in PAGES:
        assert text_of("history.test", name) in found[start + name]
    book = json.loads((tmp_path / "o/run.json").read_text())
    assert book["state"] == "finished"
