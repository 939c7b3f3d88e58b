"""`nephila capacity` against calculations by hand, its sources, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nephila.cli.capacity import figures
from nephila.cli.capacity.figures import Figure
from nephila.cli.capacity.plan import CrawlVolume, cores, plan, power_of_two, topic_bytes_per_page, warnings
from nephila.cli.main import main

ROOT = Path(__file__).parents[3]


def value(target: CrawlVolume, part: str, what: str) -> float:
    """A line of the plan."""
    (line,) = [line for line in plan(target) if (line.part, line.what) == (part, what)]
    return line.value


BILLION = CrawlVolume(pages_per_day=1e7, days=100)


def test_a_billion_pages_in_a_hundred_days_by_hand():
    """115.74 pages/s; 4·10⁹ known URLs of 17.8 bytes; 18 schedulers of 4 GB; 18 x 16 = 288 partitions, so 512."""
    assert value(BILLION, "crawl", "pages in all") == 1e9
    assert value(BILLION, "crawl", "pages per second") == pytest.approx(115.741, abs=0.001)
    assert value(BILLION, "crawl", "known URLs") == 4e9
    assert value(BILLION, "scheduler", "seen set") == pytest.approx(71.2e9)
    assert value(BILLION, "scheduler", "replicas") == 18
    assert value(BILLION, "scheduler", "memory") == pytest.approx(71.2e9 + 1e5 * 284 + 18 * 200e6)
    assert value(BILLION, "scheduler", "disk") == pytest.approx(3e9 * 144)
    assert value(BILLION, "kafka", "partitions") == 512
    assert value(BILLION, "database", "size") == pytest.approx(1e9 * 80_000 * 20_163 / 85_893)


def test_kafka_keeps_what_its_retention_says():
    """16,265 bytes in pages + 14,043 in the other topics + 4 x 129 in frontier, seven days, three replicas."""
    per_page = 80_000 * 17_463 / 85_893 + 80_000 * 15_078 / 85_893 + 516
    assert topic_bytes_per_page(BILLION) == pytest.approx(per_page)
    assert value(BILLION, "kafka", "disk of all brokers") == pytest.approx(1e7 * 7 * per_page * 3)
    short = CrawlVolume(pages_per_day=1e7, days=2)
    assert value(short, "kafka", "disk of all brokers") == pytest.approx(1e7 * 2 * per_page * 3)


def test_cores_follow_the_rate_and_the_size_of_pages():
    """10⁹ pages a day are 11,574 per second; 0.635 ms each with a reserve of 30 % are 10.5 cores, twice for 160 KB."""
    fast = CrawlVolume(pages_per_day=1e9, days=1, hosts=1e6)
    assert cores(fast, figures.PARSER_CPU_S, True) == pytest.approx(11_574.07 * 0.635e-3 / 0.7, rel=1e-4)
    assert value(fast, "parser", "replicas") == 11
    large = CrawlVolume(pages_per_day=1e9, days=1, hosts=1e6, page_bytes=160_000)
    assert value(large, "parser", "replicas") == 21
    assert value(large, "scheduler", "cores") == value(fast, "scheduler", "cores")
    # 11,574 pages/s x 0.5 s = 5,787 fetches in flight; cores: 7.2.
    assert value(fast, "downloader", "replicas") == 8


def test_politeness_may_be_the_limit():
    """1,000 hosts at 1 s + 0.5 s give 667 pages/s; 1,157 need 1,737 hosts."""
    few = CrawlVolume(pages_per_day=1e8, days=1, hosts=1000)
    (line,) = warnings(few)
    assert "allows 667 pages per second" in line
    assert "1,737 hosts" in line
    assert warnings(BILLION) == []


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
    assert services["scheduler"] / 1000 == pytest.approx(figures.SCHEDULER_CPU_S.value)
    assert services["downloader"] / 1000 == pytest.approx(figures.DOWNLOADER_CPU_S.value)
    assert services["parser"] / 1000 == pytest.approx(figures.PARSER_CPU_S.value)
    assert services["storage"] / 1000 == pytest.approx(figures.STORAGE_CPU_S.value)
    wire = json.loads((ROOT / figures.WIRE).read_text())["bytes_per_page"]
    assert round(wire["pages"]) / round(wire["body"]) == pytest.approx(figures.PAGE_RECORD_BYTES.value)
    assert round(wire["database"]) / round(wire["body"]) == pytest.approx(figures.ROW_BYTES.value, rel=1e-3)


def test_the_table_and_json_have_the_same_lines(capsys):
    assert main(["capacity", "--pages", "1e9", "--days", "100"]) == 0
    text = capsys.readouterr().out
    assert "71.2 GB" in text
    assert "1,000,000,000 pages" in text
    assert main(["capacity", "--pages-per-day", "1e7", "--days", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["plan"]) == len(text.splitlines()) - 1
    assert found["warnings"] == []


@pytest.mark.parametrize(
    "words", [[], ["--pages", "1e9", "--pages-per-day", "5"], ["--pages", "-1"], ["--pages", "1", "--days", "0"]]
)
def test_what_makes_no_sense_is_one_line(capsys, words):
    assert main(["capacity", *words]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
