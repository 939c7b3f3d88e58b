"""`nephila service capacity` against calculations by hand, its sources, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nephila.cli.main import main
from nephila_tools.capacity import figures
from nephila_tools.capacity.figures import Figure
from nephila_tools.capacity.plan import (
    SERVICES,
    CrawlVolume,
    Size,
    cores,
    plan,
    power_of_two,
    refusals,
    row_bytes,
    topic_bytes_per_page,
)

ROOT = Path(__file__).parents[3]


def value(target: CrawlVolume, part: str, what: str) -> float:
    """A line of the plan."""
    (line,) = [line for line in plan(target) if (line.part, line.what) == (part, what)]
    return line.value


BILLION = CrawlVolume(pages_per_day=1e7, days=100)
ONE_OF_EACH = dict.fromkeys(SERVICES, 1)


def at_rate(pages_per_s: float, page_bytes: float, hosts: float = 100) -> CrawlVolume:
    """A crawl of a day at a rate."""
    return CrawlVolume(pages_per_s * 86_400, 1, page_bytes=page_bytes, hosts=hosts)


MEASURED = {
    # System: rate, bytes of a page, partitions, CPU-ms per page of all services, of the broker (docs/scale.md).
    "bench, full speed": (536.0, 79_000, 16, 1.413, 0.738),
    "small pages, full speed": (400.0, 2_500, 16, 0.78, 0.57),
    "small pages, delay 1 s": (78.0, 2_500, 16, 2.19, 2.09),
    "small pages, 256 partitions": (121.0, 2_500, 256, 2.24, 2.72),
    "small pages, 256 partitions, delay 1 s": (45.0, 2_500, 256, 4.49, 5.90),
    "chart on a cluster, 64 partitions, delay 1 s": (20.0, 2_500, 64, 10.9, None),
}


@pytest.mark.parametrize("system", MEASURED)
def test_a_measured_system_is_predicted_within_a_factor_of_one_and_a_half(system):
    """The figures of the last one are not among those that the plan was fitted to."""
    rate, page_bytes, partitions, services_ms, broker_ms = MEASURED[system]
    target = at_rate(rate, page_bytes)
    found = sum(cores(target, service, Size(partitions, ONE_OF_EACH)) for service in SERVICES) * 1e3 / rate
    assert services_ms / 1.5 < found < services_ms * 1.5
    if broker_ms:
        one = CrawlVolume(rate * 86_400, 1, page_bytes=page_bytes, hosts=100, partitions=partitions, replication=1)
        assert broker_ms / 1.5 < value(one, "kafka", "broker cores") * 0.7e3 / rate < broker_ms * 1.5


@pytest.mark.parametrize(("page_bytes", "measured"), [(4_100, 4_242), (85_893, 20_163)])
def test_rows_of_small_and_large_pages_are_predicted(page_bytes, measured):
    assert row_bytes(at_rate(1, page_bytes)) == pytest.approx(measured, rel=0.02)


def test_a_billion_pages_in_a_hundred_days_by_hand():
    """115.74 pages/s; 4·10⁹ known URLs of 17.8 bytes; 18 schedulers of 4 GB; 18 x 16 = 288 partitions, so 512;
    18 x 4 = 72 lanes, so 128."""
    assert value(BILLION, "crawl", "pages in all") == 1e9
    assert value(BILLION, "crawl", "pages per second") == pytest.approx(115.741, abs=0.001)
    assert value(BILLION, "crawl", "known URLs") == 4e9
    assert value(BILLION, "scheduler", "seen set") == pytest.approx(71.2e9)
    assert value(BILLION, "scheduler", "replicas") == 18
    assert value(BILLION, "scheduler", "memory") == pytest.approx(71.2e9 + 1e5 * 284 + 18 * 200e6)
    assert value(BILLION, "scheduler", "disk") == pytest.approx(3e9 * 144)
    assert value(BILLION, "kafka", "partitions") == 512
    assert value(BILLION, "kafka", "partition replicas") == (3 * 512 + 10 * 128) * 3
    assert value(BILLION, "database", "size") == pytest.approx(1e9 * (3_440 + 80_000 * 15_921 / 81_793))


def test_kafka_keeps_what_its_retention_says():
    """799 bytes a page, 0.3694 per byte of it, 4 x 129 in frontier; seven days, three replicas."""
    per_page = 799 + 80_000 * (17_463 + 2_786 + 12_093 - 600) / 85_893 + 516
    assert topic_bytes_per_page(BILLION) == pytest.approx(per_page)
    assert value(BILLION, "kafka", "disk of all brokers") == pytest.approx(1e7 * 7 * per_page * 3)
    short = CrawlVolume(pages_per_day=1e7, days=2)
    assert value(short, "kafka", "disk of all brokers") == pytest.approx(1e7 * 2 * per_page * 3)


def test_cores_follow_the_rate_and_the_size_of_pages():
    """11,574 pages/s and 256 partitions: batches are full, so the parser needs 0.123 ms and 6 ns per byte."""
    fast = CrawlVolume(pages_per_day=1e9, days=1, hosts=1e6)
    assert cores(fast, "parser", Size(256, {"parser": 0})) == pytest.approx(11_574.07 * (0.123e-3 + 8e4 * 6e-9))
    # 6.98 cores of 0.7, less 0.025 of each for its wake-ups.
    assert value(fast, "parser", "replicas") == 11
    large = CrawlVolume(pages_per_day=1e9, days=1, hosts=1e6, page_bytes=160_000)
    assert value(large, "parser", "replicas") == 19
    assert value(fast, "downloader", "replicas") == 7


def test_lone_messages_and_wake_ups_make_slow_crawls_dear():
    """A page of a system with few pages per partition costs more than twice one in full batches."""
    full, slow = (
        sum(cores(at_rate(rate, 2_500), service, Size(64, ONE_OF_EACH)) / rate for service in SERVICES)
        for rate in (640, 32)
    )
    assert slow > 2 * full


def test_hosts_cost_a_robots_txt_a_day():
    """10⁶ hosts over 10 days are 11.6 fetches a second, which the politest rate has to leave room for."""
    many = CrawlVolume(pages_per_day=1e6, days=10, hosts=1e6)
    assert value(many, "crawl", "robots.txt per second") == pytest.approx(1e6 / 86_400)
    assert value(many, "crawl", "pages per second that politeness allows") == pytest.approx(1e6 / 1.5 - 1e6 / 86_400)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        # 1,000 hosts at 1 s + 0.5 s give 667 fetches/s; 1,157 need 1,737 hosts.
        (CrawlVolume(1e8, 1, hosts=1000), ["politeness allows 667", "1,737 hosts are needed"]),
        (CrawlVolume(1e9, 1, hosts=1e5), ["11,574 rows/s per database", "docs/scale.md", "--databases"]),
        (CrawlVolume(1e8, 100), ["B per database are more than 20,000,000,000,000", "--databases"]),
        (CrawlVolume(1e8, 1000, databases=20), ["1,781 schedulers are more than 1,000", "--scheduler-memory-gb"]),
        (CrawlVolume(1e7, 10, partitions=32768), ["295,392 partition replicas", "several systems"]),
    ],
)
def test_a_plan_beyond_a_limit_is_refused_with_the_limit_its_source_and_the_remedy(target, words):
    text = "; ".join(refusals(target))
    for word in words:
        assert word in text


def test_a_refused_plan_is_one_line_and_no_table(capsys):
    assert main(["service", "capacity", "--pages-per-day", "1e9", "--days", "1"]) == 1
    found = capsys.readouterr()
    assert not found.out
    assert len(found.err.strip().splitlines()) == 1
    assert main(["service", "capacity", "--pages-per-day", "1e9", "--days", "1", "--databases", "3"]) == 0


def test_a_plan_within_the_limits_is_not_refused():
    assert refusals(BILLION) == []


def test_a_small_crawl_needs_one_of_each():
    """And the least number of partitions."""
    small = CrawlVolume(pages_per_day=1000, days=1)
    assert [value(small, part, "replicas") for part in ("scheduler", "downloader", "parser", "storage")] == [1] * 4
    assert value(small, "kafka", "partitions") == 64


def test_the_smallest_power_of_two():
    assert [power_of_two(count) for count in (0, 1, 2, 3, 64, 65)] == [1, 1, 2, 4, 64, 128]


def test_every_figure_names_a_file_of_this_repository():
    found = [one for one in vars(figures).values() if isinstance(one, Figure)]
    assert len(found) > 10
    for figure in found:
        assert (ROOT / figure.source).exists(), figure.source


def test_cpu_and_bytes_are_those_of_their_files():
    """A figure that was measured again has to be changed here as well."""
    services = json.loads((ROOT / figures.SERVICES).read_text())["rows"]["here"]
    assert services["database"] / 1000 == pytest.approx(figures.DATABASE_CPU_S.value)
    wire = json.loads((ROOT / figures.WIRE).read_text())["bytes_per_page"]
    topics = sum(wire[name] for name in ("requests", "outcomes", "receipts", "pages", "outlinks", "records"))
    predicted = figures.TOPIC_PAGE_BYTES.value + wire["body"] * figures.TOPIC_BYTES.value
    assert predicted == pytest.approx(topics, rel=1e-3)


def test_the_table_and_json_have_the_same_lines(capsys):
    assert main(["service", "capacity", "--pages", "1e9", "--days", "100"]) == 0
    text = capsys.readouterr().out
    assert "71.2 GB" in text
    assert "1,000,000,000 pages" in text
    assert main(["service", "capacity", "--pages-per-day", "1e7", "--days", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["plan"]) == len(text.splitlines()) - 1


@pytest.mark.parametrize(
    "words", [[], ["--pages", "1e9", "--pages-per-day", "5"], ["--pages", "-1"], ["--pages", "1", "--days", "0"]]
)
def test_what_makes_no_sense_is_one_line(capsys, words):
    assert main(["service", "capacity", *words]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
