"""Seeds from the command line, a file, and standard input: none is lost, and none holds up the crawl or its end."""

from __future__ import annotations

import json
import signal
import subprocess
import threading

from tests.e2e.web import NEPHILA, crawl, page, rows, run, run_json, serve


def answer(request):
    """Every path but robots.txt is a page without links."""
    return None if request.path == "/robots.txt" else page()


def start(web, tmp_path, *words):
    """Begin a crawl whose standard input is a pipe."""
    options = ("--out", "o", "--allow-private", "--host-map", web.host_map, "--delay", "0")
    return subprocess.Popen(
        [*NEPHILA, "crawl", *words, *options],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_more_seeds_than_a_screen_holds(tmp_path):
    """As many URLs as a command line can carry."""
    with serve(answer) as web:
        crawl(web, *[f"http://a.test/{n}" for n in range(1100)], "--quiet", cwd=tmp_path)
    assert len(rows(tmp_path)) == 1100


def test_a_pipe_that_stays_open_holds_up_nothing(tmp_path):
    """What has come is fetched, and Ctrl-C ends the crawl though standard input says no more."""
    asked = threading.Event()

    def watched(request):
        if request.path == "/2":
            asked.set()
        return answer(request)

    with serve(watched) as web:
        process = start(web, tmp_path, "--seeds", "-")
        process.stdin.write(b"a.test/1\na.test/2\n")
        process.stdin.flush()
        assert asked.wait(30)
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(30) == 130
        finally:
            process.kill()
            process.stdin.close()
        assert process.stderr.read().strip() == b"ending: fetches in flight get up to 4 s; Ctrl-C again to stop at once"
        process.stdout.close()
        process.stderr.close()


def test_resume_after_standard_input(tmp_path):
    """Standard input was another program's: a resume neither waits for it nor misses it."""
    with serve(answer) as web:
        process = start(web, tmp_path, "--seeds", "-", "--max-pages", "1")
        process.communicate(b"a.test/1\na.test/2\n", timeout=30)
        assert run_json(tmp_path)["left"] == 1
        again = start(web, tmp_path, "--resume", "--max-pages", "0")
        assert again.wait(30) == 0  # its standard input is open and silent
        result = again.communicate()[0].decode()
    assert "Seed left out" not in result
    assert "Seeds redirected" not in result
    assert [url for url, *_ in rows(tmp_path)] == ["http://a.test/1", "http://a.test/2"]


def test_resume_without_the_file_of_seeds(tmp_path):
    """A file that is gone is named; the crawl goes on with what it has."""
    (tmp_path / "seeds").write_text("a.test/1\na.test/2\n")
    with serve(answer) as web:
        crawl(web, "--seeds", "seeds", "--max-pages", "1", cwd=tmp_path)
        (tmp_path / "seeds").unlink()
        done = crawl(web, "--resume", "--max-pages", "0", cwd=tmp_path)
    assert done.returncode == 0
    assert "cannot read --seeds seeds" in done.stdout
    assert len(rows(tmp_path)) == 2


def test_a_missing_file_beside_a_url(tmp_path):
    """Told before anything is made."""
    done = run("crawl", "http://a.test/", "--seeds", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "cannot read --seeds nowhere" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_lines_of_any_length(tmp_path):
    """A line longer than any URL or file name is left out like every bad line; the others are taken."""
    lines = ["a.test/1", "語" * 100, "b.test/" + "x" * 300, "a.test/" + "z" * 9000, "a.test/2"]
    (tmp_path / "seeds").write_text("\n".join(lines), encoding="utf-8")
    with serve(answer) as web:
        done = crawl(web, "--seeds", "seeds", cwd=tmp_path)
    assert [url for url, *_ in rows(tmp_path)] == [f"http://{lines[i]}" for i in (0, 4, 2)]
    assert "line 2" in done.stdout
    assert "line 4: 'a.test/zzz" in done.stdout


ODD_LINES = (
    *(b"", b"# a comment", b"no url", b"ftp://a.test/", b"mailto:a@b.test", b"http://", b"http://a.test:99999/"),
    *(b"http://a.test/" + b"y" * 100_000, b"http://a.test/" + b'"' * 8000, b"\xff\xfe", b"http://b.test/\x01\xff"),
    *(b"http://b.test/\x00\x01", b"b.test", "http://b\u00fccher.test/\u00fc".encode(), b"http://169.254.169.254/meta"),
    *(b"http://c.test/no", b"c.test/no#top", b'"http://c.test/"', b"http:c.test", b"/etc/passwd", b"http://c.test/#/1"),
)


def test_bad_lines_are_the_same_for_all_numbers_of_workers(tmp_path):
    """Each is named with its place and its remedy, and every other line is crawled: from a file and from a pipe."""
    lines = [line for n, odd in enumerate(ODD_LINES) for line in (b"http://h%d.test/" % n, odd)]
    results = []
    with serve(answer) as web:
        for workers, pipe in (("0", False), ("1", False), ("2", False), ("2", True)):
            folder = tmp_path / f"{workers}{pipe}"
            folder.mkdir()
            (folder / "seeds").write_bytes(b"\n".join(lines))
            words = ["crawl", "--allow-private", "--delay", "0", "--exclude", "/no$", "--json", "--out", "o"]
            done = subprocess.run(
                [
                    *NEPHILA,
                    *words,
                    "--host-map",
                    web.host_map,
                    "--workers",
                    workers,
                    "--seeds",
                    "-" if pipe else "seeds",
                ],
                cwd=folder,
                input=b"\n".join(lines) if pipe else None,
                capture_output=True,
                timeout=60,
            )
            refused = [
                (place.replace("standard input", "seeds"), reason)
                for place, reason in json.loads(done.stdout)["refused_seeds"]
            ]
            results.append((done.returncode, refused, rows(folder), done.stderr))
    for result in results[1:]:
        assert result == results[0]
    code, refused, crawled, _ = results[0]
    assert (code, len(refused)) == (0, 13)
    assert [place for place, _ in refused[:2]] == ["seeds, line 6", "seeds, line 8"]
    assert refused[-1] == ("http://c.test/no", "excluded by '/no$'")
    assert {f"http://h{n}.test/" for n in range(len(ODD_LINES))} < {url for url, *_ in crawled}
