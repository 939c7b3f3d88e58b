"""Values of options: the same texts and limits for a command line and a call; what they set in the services."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from nephila.cli.main import main
from nephila.kernel.documents.field_types import parse_count, parse_rate, parse_size
from nephila.kernel.runtime.errors import UsageError
from nephila.programs.headers import basic_auth, redacted_user
from nephila.programs.option_table import defaults, table
from nephila.programs.option_values import read
from nephila.programs.service_configs import make_configs


def value(name, given):
    return read(*table()[name], given)


@pytest.mark.parametrize(
    ("text", "number"),
    [("250", 250), ("10k", 10_000), ("1e6", 1_000_000), ("1.5M", 1_500_000), ("2G", 2 * 10**9), ("-1", -1), (" 7 ", 7)],
)
def test_a_count_has_units_and_exponents(text, number):
    assert parse_count(text) == number


@pytest.mark.parametrize(
    "text", ["", "k", "1.5", "1e-1", "ten", "1 000", "1,000", "0x10", "٣", "1kB", "nan", "inf", "1T"]
)
def test_what_is_no_count_is_refused(text):
    with pytest.raises(ValueError, match="whole number"):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("500", 500), ("500KB", 500_000), ("10M", 10**7), ("2MiB", 2 << 20), ("1k", 1000), ("1e6", 10**6)],
)
def test_a_size_has_units_of_bytes(text, number):
    assert parse_size(text) == number


@pytest.mark.parametrize(("text", "rate"), [("2", 2), ("2/s", 2), ("30/min", 0.5), ("90/h", 0.025), ("0.5", 0.5)])
def test_a_rate_is_a_count_per_time(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["0", "", "/s", "-1", "2/d", "1e3", "nan", "0/h"])
def test_what_is_no_rate_is_refused(text):
    with pytest.raises(ValueError, match="no rate like"):
        parse_rate(text)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("delay", "500ms", 0.5),
        ("delay", 2, 2.0),
        ("max_pages", "10k", 10_000),
        ("max_pages", 5.0, 5),
        ("max_page_bytes", "2MiB", 2 << 20),
        ("include", "/docs", ["/docs"]),
        ("include", ("/a", "/b"), ["/a", "/b"]),
        ("header", {"A": "b"}, ["A: b"]),
        ("cookies", Path("/x/jar"), "/x/jar"),
        ("rate", 2, "2"),
        ("workers", None, None),
    ],
)
def test_a_value_becomes_what_a_run_keeps(name, given, kept):
    assert value(name, given) == kept
    assert type(value(name, given)) is type(kept)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        *(("delay", bad) for bad in (-1, math.nan, math.inf, True, None, "fast", [1], 1e12)),
        *(("max_pages", bad) for bad in (-1, 1.5, math.nan, math.inf, True, None, "many", [5], 10**13)),
        *(("max_depth", bad) for bad in (-2, "deep")),
        *(("scope", bad) for bad in (["host"], None, 1, b"host")),
        *(("format", bad) for bad in (["jsonl"], {"jsonl"})),
        *(("include", bad) for bad in (5, [5], None, b"x", [b"x"], ["/a", None])),
        *(("sitemap", bad) for bad in ("yes", 1, None)),
        ("rate", True),
    ],
)
def test_a_value_of_a_wrong_kind_is_refused(name, given):
    with pytest.raises(ValueError, match=r"is n(o|either|ot)\b"):
        value(name, given)


def test_each_default_is_a_valid_value():
    for name, (kind, option) in table().items():
        given = defaults()[name]
        assert read(kind, option, given) == given


@pytest.mark.parametrize(
    "option", ["--max-pages", "--max-depth", "--host-pages", "--host-bytes", "--concurrency", "--retries"]
)
@pytest.mark.parametrize("text", ["many", "-5", "1.5", "1e30", ""])
def test_what_is_no_count_is_refused_on_a_command_line(option, text, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["crawl", "http://a.test/", f"{option}={text}"]) == 2
    assert option in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# ---- effects


def configs(tmp_path, **options):
    given = {**defaults(), **options}
    return make_configs(given, tmp_path, ("sqlite",), seeds=["http://a.test/"])


def test_retries_are_tries_after_the_first(tmp_path, monkeypatch):
    assert configs(tmp_path, retries=0).scheduler.tries == 1
    assert configs(tmp_path, retries=4).scheduler.tries == 5
    monkeypatch.setenv("NEPHILA_SCHEDULER__TRIES", "7")
    assert configs(tmp_path).scheduler.tries == 7


def test_a_timeout_bounds_each_part_of_a_fetch_and_stays_below_the_lease(tmp_path):
    short, long = configs(tmp_path, timeout=5.0), configs(tmp_path, timeout=300.0)
    assert short.downloader.http.connect_timeout_s == short.downloader.http.total_timeout_s == 5
    assert short.scheduler.lease_s == configs(tmp_path).scheduler.lease_s
    assert (long.downloader.http.connect_timeout_s, long.downloader.http.headers_timeout_s) == (10, 300)
    assert long.scheduler.lease_s > long.downloader.http.total_timeout_s == 300


def test_accepted_types_replace_the_default_and_html_stays(tmp_path):
    from nephila.downloader.http.request import media_filter

    def wanted(**options):
        downloader = configs(tmp_path, **options).downloader
        return media_filter(downloader.http.accept, downloader.http.refuse)

    accepts = wanted(accept="pdf, image/*")
    assert [accepts(one) for one in ("text/html", "application/pdf", "image/png", "application/json")] == [
        True,
        True,
        True,
        False,
    ]
    rejects = wanted(reject="*.pdf json")
    assert [rejects(one) for one in ("text/html", "application/pdf", "image/png", "application/json")] == [
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize("option", ["accept", "reject"])
@pytest.mark.parametrize("word", ["nonsense", "a/b/c", "/", "p,df9"])
def test_what_is_no_content_type_is_refused(tmp_path, option, word):
    with pytest.raises(UsageError, match=f"--{option} .* is no content type"):
        configs(tmp_path, **{option: word})


def test_a_user_goes_to_the_hosts_of_the_seeds_only(tmp_path):
    headers = configs(tmp_path, user="ann:s3c:ret").downloader.http.headers
    assert headers == (
        "a.test Authorization: Basic YW5uOnMzYzpyZXQ=",
        "www.a.test Authorization: Basic YW5uOnMzYzpyZXQ=",
    )


def test_a_user_is_read_from_a_file_too(tmp_path):
    (tmp_path / "secret").write_text("ann:x\n")
    assert basic_auth(f"@{tmp_path}/secret", ["http://a.test/"])[0].endswith("YW5uOng=")
    assert redacted_user(f"@{tmp_path}/secret") == f"@{tmp_path}/secret"


def test_of_a_typed_user_the_name_is_kept_and_asked_for_again():
    assert redacted_user("ann:secret") == "ann"
    with pytest.raises(UsageError, match="--user ann: give NAME:PASSWORD"):
        basic_auth("ann", ["http://a.test/"])


def test_a_user_without_a_host_to_go_to_is_refused():
    with pytest.raises(UsageError, match="hosts of the seeds"):
        basic_auth("ann:x", [])
