"""The judge passes a polite crawl and names what is wrong with every other one. Synthetic logs: no server, no clock."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.web import judge as judging
from benchmarks.web.evidence import Case, Request, Row, normalised
from benchmarks.web.generate import build

SITE = build(pages=30, hosts=3, kinds=("robots", "redirect", "trap"))
MANIFEST = SITE.manifest()


def polite_case() -> Case:
    """A crawl that keeps every rule, as log and table."""
    requests: list[Request] = []
    rows: list[Row] = []
    clock = 0.0
    for name, host in MANIFEST["hosts"].items():
        pages = [p for p in MANIFEST["pages"] if p["host"] == name and p["accept"] != ["none"]]
        conn, address = len(rows) + 1, f"127.0.1.{len(requests) % 50 + 1}"
        gap = max(1.0, host["crawl_delay_s"])
        paths = (
            [] if host["forbidden"] else [*host["robots_paths"], *(p["path"] for p in pages if not p.get("disallowed"))]
        )
        for path in paths:
            requests.append(Request(name, path, clock, clock + 0.05, conn=conn, address=address))
            clock += 0.05 + gap
        rows += [Row("job", p["url"], f"{i}{name}", p["accept"][0]) for i, p in enumerate(pages)]
    closed = {r.conn: r.end for r in requests}
    return Case(MANIFEST, requests, closed, rows)


def broken(case: Case) -> set[str]:
    """The names of the checks that found something."""
    fresh = Case(case.manifest, case.requests, case.closed, case.rows, case.delay_s, case.concurrency)
    return {name for name, finding in judging.judge(fresh).items() if finding.violations}


def ordinary(case: Case) -> list[Request]:
    """The requests of one ordinary host, robots.txt first."""
    return next(rs for host, rs in case.by_host.items() if case.hosts[host]["kind"] == "ordinary" and len(rs) > 4)


def move(case: Case, request: Request, **changes: object) -> None:
    """Change one request of the log."""
    case.requests[case.requests.index(request)] = replace(request, **changes)  # type: ignore[arg-type]


def test_polite_crawl_passes() -> None:
    """A crawl that keeps every rule is clean."""
    assert broken(polite_case()) == set()


def too_fast(case: Case) -> None:
    """The second page comes half a second early."""
    _, first, second, *_ = ordinary(case)
    move(case, second, start=first.end + 0.5, end=first.end + 0.55)


def too_parallel(case: Case) -> None:
    """Two requests of a host overlap, on two connections and at two addresses."""
    _, first, second, *_ = ordinary(case)
    move(case, second, start=first.start, conn=10**6, address="127.0.9.9")
    case.closed[10**6] = second.end


def idle_second_connection(case: Case) -> None:
    """A second connection is opened while the first stays open; requests do not overlap."""
    requests = ordinary(case)
    move(case, requests[2], conn=10**6)
    case.closed[10**6] = requests[2].end


def on_one_address(case: Case, gap_s: float, took_s: float, count: int) -> None:
    """The last requests of some hosts go to one address, in this rhythm, long after everything else."""
    last = [requests[-1] for requests in case.by_host.values() if len(requests) > 2][:count]
    assert len(last) == count
    for number, request in enumerate(last):
        start = 1e6 + number * gap_s
        move(case, request, address="127.0.9.9", start=start, end=start + took_s)


def address_crowded(case: Case) -> None:
    """Five hosts of one address are asked a quarter of a second apart, and every answer takes long."""
    on_one_address(case, 0.25, 9.0, 5)


def address_hurried(case: Case) -> None:
    """Two hosts of one address are asked within a fifth of a second."""
    on_one_address(case, 0.2, 0.1, 2)


def crawl_delay_ignored(case: Case) -> None:
    """One second where robots.txt asks for more."""
    host = next(h for h, d in case.hosts.items() if d["crawl_delay_s"] > 1)
    before, after = case.by_host[host][1:3]
    move(case, after, start=before.end + 1.0, end=before.end + 1.05)


def no_robots(case: Case) -> None:
    """A host whose robots.txt is never asked for."""
    case.requests.remove(ordinary(case)[0])


def robots_late(case: Case) -> None:
    """A page before the end of robots.txt."""
    rules = ordinary(case)[0]
    move(case, rules, end=ordinary(case)[1].start + 0.01)


def disallowed(case: Case) -> None:
    """A forbidden path is requested."""
    page = next(p for p in MANIFEST["pages"] if p.get("disallowed") and not case.hosts[p["host"]]["disallow_all"])
    case.requests.append(Request(page["host"], page["path"], 1e6, 1e6 + 1, conn=10**6))


def shut_host(case: Case) -> None:
    """A page of a host whose robots.txt answers 500."""
    host = next(h for h, d in case.hosts.items() if d["disallow_all"])
    case.requests.append(Request(host, "/anything", 1e6, 1e6 + 1, conn=10**6))


def retry_after_ignored(case: Case) -> None:
    """Asked again one second after a 429 that said ten."""
    _, first, *_ = ordinary(case)
    move(case, first, status=429, retry_after_s=10.0)
    case.requests.append(replace(first, start=1e6, end=1e6 + 1))


def unlinked(case: Case) -> None:
    """A URL that only a comment holds."""
    case.requests.append(Request(ordinary(case)[0].host, "/never/comment", 1e6, 1e6 + 1, conn=10**6))


def trapped(case: Case) -> None:
    """More of an endless calendar than the depth allows."""
    trap = next(o for o in MANIFEST["open"] if o["prefix"] == "/calendar/")
    times = [1e6 + 2 * i for i in range(trap["max_requests"] + 1)]
    case.requests += [Request(trap["host"], f"/calendar/{t:.0f}/1", t, t + 0.1, conn=10**6) for t in times]


def flooded(case: Case) -> None:
    """A body read far beyond its limit."""
    move(case, ordinary(case)[1], bytes=1 << 30)


def never_fetched(case: Case) -> None:
    """A page that is due was not requested, but has its row."""
    case.requests.remove(ordinary(case)[-1])


def lost_row(case: Case) -> None:
    """A page that was fetched has no row."""
    assert case.rows
    case.rows.pop(3)


def doubled_row(case: Case) -> None:
    """A page has a second row under another spelling and key."""
    assert case.rows
    row = case.rows[3]
    case.rows.append(replace(row, url=f"{row.url}?utm_source=x#y", url_key="other"))


def wrong_outcome(case: Case) -> None:
    """A denied page is called stored."""
    assert case.rows
    at = next(i for i, row in enumerate(case.rows) if row.ending == "denied(robots)")
    case.rows[at] = replace(case.rows[at], ending="stored")


def invented_row(case: Case) -> None:
    """A row for a URL that no page has."""
    assert case.rows
    case.rows.append(Row("job", "http://s01.web.test:8089/never", "k", "stored"))


Sin = Callable[[Case], None]
SINS: list[tuple[Sin, set[str]]] = [
    (too_fast, {"no gap below the delay"}),
    (too_parallel, {"one request at a time per host", "one connection at a time per host", "no gap below the delay"}),
    (idle_second_connection, {"one connection at a time per host"}),
    (address_crowded, {"connections per address"}),
    (address_hurried, {"no gap below the address's"}),
    (crawl_delay_ignored, {"no gap below the delay"}),
    (no_robots, {"robots.txt first"}),
    (robots_late, {"robots.txt first", "one request at a time per host", "no gap below the delay"}),
    (disallowed, {"no disallowed path"}),
    (shut_host, {"no disallowed path", "nothing out of scope or unlinked"}),
    (retry_after_ignored, {"Retry-After kept"}),
    (unlinked, {"nothing out of scope or unlinked"}),
    (trapped, {"traps bounded"}),
    (flooded, {"floods cut"}),
    (never_fetched, {"every page requested", "every row in its outcome"}),
    (lost_row, {"no row lost"}),
    (doubled_row, {"no row twice"}),
    (wrong_outcome, {"every row in its outcome"}),
    (invented_row, {"every row in its outcome"}),
]


@pytest.mark.parametrize(("sin", "rules"), SINS, ids=[sin.__name__ for sin, _ in SINS])
def test_each_sin_is_named(sin: Sin, rules: set[str]) -> None:
    """A crawl with one thing wrong breaks just the rules that speak of it."""
    case = polite_case()
    sin(case)
    assert broken(case) == rules


def test_two_connections_may_be_allowed() -> None:
    """With --concurrency 2 two requests at once are no violation, three are."""
    case = polite_case()
    too_parallel(case)
    case.concurrency = 2
    assert broken(case) == set()
    move(case, ordinary(case)[3], start=0.0, conn=10**7)
    assert "one request at a time per host" in broken(case)


def test_the_pace_of_addresses() -> None:
    """Four at once, a quarter of a second apart, are polite; other limits may be named, and a crawl without delay, as a
    log without addresses, is not judged by them."""
    case = polite_case()
    on_one_address(case, 0.25, 0.9, 5)
    assert broken(case) == set()

    def verdicts(**changes: object) -> list[str]:
        names = ("connections per address", "no gap below the address's")
        fresh = replace(case, **changes)  # type: ignore[arg-type]
        found = [judging.judge(fresh)[name] for name in names]
        return ["skip" if f.skipped else "FAIL" if f.violations else "ok" for f in found]

    assert verdicts(per_address=3) == ["FAIL", "ok"]
    assert verdicts(address_gap_s=0.3) == ["ok", "FAIL"]
    assert verdicts(per_address=0, address_gap_s=0.0) == ["skip", "skip"]
    assert verdicts(delay_s=0.0) == ["skip", "skip"]
    assert verdicts(requests=[replace(r, address="") for r in case.requests]) == ["skip", "skip"]


@pytest.mark.parametrize(("late_s", "rules"), [(0.02, {"no gap below the address's"}), (0.04, set())])
def test_a_server_that_stood_still_is_not_held_against_the_crawl(late_s: float, rules: set[str]) -> None:
    """The first of two requests came earlier than the server read it."""
    case = polite_case()
    on_one_address(case, 0.2, 0.1, 2)
    move(case, next(r for r in case.requests if r.address == "127.0.9.9"), late_s=late_s)
    assert broken(case) == rules


def test_wrong_title_is_seen() -> None:
    """A stored row whose title is another page's is wrong."""
    case = polite_case()
    page = next(p for p in MANIFEST["pages"] if p["kind"] == "ordinary")
    manifest = {**MANIFEST, "pages": [{**p, "title": "Right"} if p is page else p for p in MANIFEST["pages"]]}
    assert case.rows
    rows = [replace(row, title="Wrong") if row.url == page["url"] else row for row in case.rows]
    assert broken(Case(manifest, case.requests, case.closed, rows)) == {"every row in its outcome"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.test/x?b=2&a=1#f", "http://A.test/x?a=1&b=2"),
        ("http://u:p@a.test:80/x?utm_source=q", "http://a.test:80/x"),
        ("http://a.test/b c", "http://a.test/b%20c"),
        ("http://bücher.test/", "http://xn--bcher-kva.test"),
    ],
)
def test_spellings_of_one_page_are_one(one: str, other: str) -> None:
    """The judge compares pages, not spellings."""
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("log", "manifest", "complaint"),
    [
        (None, MANIFEST, "No such file"),
        ("", MANIFEST, "no request in it"),
        ("not json\nat all\n", MANIFEST, "line 1: not a line of the bench server"),
        ('{"event":"request"}\n{}\n', MANIFEST, "line 1"),
        ("{}", {"version": 2}, "not the manifest of a bench web"),
    ],
)
def test_unusable_input_is_one_line(
    log: str | None, manifest: object, complaint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be judged ends with exit code 2 and one line that says why."""
    if log is not None:
        (tmp_path / "log").write_text(log or "")
    if "version" in str(manifest) and log == "{}":
        (tmp_path / "log").write_text(json.dumps(log_line()) + "\n")
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert judging.main(["--log", str(tmp_path / "log"), "--manifest", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_a_torn_last_line_is_forgiven(tmp_path: Path) -> None:
    """A server that was killed leaves half a line; the rest is still judged."""
    (tmp_path / "log").write_text(json.dumps(log_line()) + '\n{"event":"requ')
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    assert judging.main(["--log", str(tmp_path / "log"), "--manifest", str(tmp_path)]) == 1


@pytest.mark.parametrize("make", [None, b"no database", b""])
def test_unusable_database(make: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing, foreign or empty database is named, not judged as lost rows."""
    (tmp_path / "log").write_text(json.dumps(log_line()) + "\n")
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    if make is not None:
        (tmp_path / "nephila.db").write_bytes(make)
    assert judging.main(["--log", str(tmp_path / "log"), "--manifest", str(tmp_path), "--db", str(tmp_path)]) == 2
    assert "database" in capsys.readouterr().err


def log_line() -> dict[str, object]:
    """One finished request as the server writes it."""
    return {
        "event": "request",
        "host": "s01.web.test",
        "path": "/",
        "t_start": 1.0,
        "t_end": 1.1,
        "status": 200,
        "bytes": 10,
        "conn": 1,
        "aborted": False,
    }
