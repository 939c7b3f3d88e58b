"""What a person types as a value: durations, directories, lists of URLs."""

from __future__ import annotations

import pytest
from nephila.cli.main import main
from nephila.kernel.documents.browser_schema import Browser, Wait
from nephila.kernel.documents.field_types import parse_seconds
from nephila.kernel.documents.job_schema import JobSpec
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.seeds import read_seeds
from nephila.programs.crawl.job_options import apply_options
from nephila.programs.crawl.plan import seed_urls
from nephila.programs.option_table import defaults


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("1s", 1), ("1h30m", 5400), ("14d", 1_209_600), ("2", 2), ("0.5", 0.5), (".5", 0.5), ("0", 0)],
)
def test_a_duration_takes_units_and_a_bare_number_is_seconds(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "nan", "inf", "-1", "-1s", "1e3", "1 h", "1h30", "s", "1w", "٣", "9" * 13, "4000d", "1_0", "\x1b[1m"],
)
@pytest.mark.parametrize("option", ["--delay", "--max-time", "--max-wait", "--host-time"])
def test_what_is_no_duration_is_refused(text, option, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["crawl", "http://a.test/", f"{option}={text}"]) == 2
    said = capsys.readouterr().err
    assert option in said
    assert "\x1b" not in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--wait-for", ".price"], "--wait-for needs a browser: add --render always, or auto"),
        (["--screenshot"], "--screenshot needs a browser"),
        (["--render", "always", "--wait-for", "a[["], "--wait-for 'a[[' is no CSS selector"),
        (["--referer", "x y"], "--referer 'x y' "),
    ],
)
def test_a_value_is_checked_as_its_field_of_the_job(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["crawl", "http://a.test/", *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_options_of_rendered_pages_are_added_to_those_of_the_job():
    """Other waits and captures of its document stay."""
    spec = JobSpec(render="always", browser=Browser(wait=Wait(until="load", time="1s"), capture=["pdf"]))
    apply_options(spec, {"wait_for": ".price", "screenshot": True})
    wait = spec.browser.wait
    assert (wait.until, wait.time, wait.selector) == ("load", "1s", ".price")
    assert spec.browser.capture == ["pdf", "screenshot"]


def test_the_defaults_of_all_options_change_nothing():
    spec = JobSpec()
    apply_options(spec, defaults())
    spec.politeness.delay = spec.host_budget.time = "0"
    wanted = JobSpec()
    wanted.politeness.delay = "0"
    assert spec == wanted


@pytest.mark.parametrize("command", [["crawl", "http://a.test/"], pytest.param(["up"], marks=pytest.mark.whole)])
@pytest.mark.parametrize("name", ["", "  ", "a\udcff", "a\nb", "\u202ea"])
def test_a_directory_has_a_name_that_can_be_told(command, name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*command, f"--out={name}"]) == 2
    assert "--out" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_line_without_an_end_is_refused():
    with pytest.raises(UsageError, match="line 1 is longer"):
        list(read_seeds("/dev/zero", lambda place, reason: None))


def test_a_long_line_costs_only_itself(tmp_path):
    skipped = []
    (tmp_path / "seeds").write_text("http://a.test/\n" + "x" * 5_000_000 + "\nhttp://b.test/")
    found = list(read_seeds(str(tmp_path / "seeds"), lambda place, reason: skipped.append(place)))
    assert found == ["http://a.test/", "http://b.test/"]
    assert len(skipped) == 1


def test_one_program_has_one_name_too(nephila, tmp_path, monkeypatch):
    """A crawl's parts are told by the environment as well."""
    monkeypatch.setenv("NEPHILA_SCHEDULER__AGENT", "otherbot")
    ran = nephila("crawl", "http://a.test/", "--out", str(tmp_path / "out"), "--user-agent", "examplebot/1")
    assert ran.code == 2
    assert "NEPHILA_SCHEDULER__AGENT is 'otherbot', but robots.txt is asked for the name in the User-Agent" in ran.err


def test_a_job_of_schemes_alone_has_no_seed_urls():
    """Its searches are seeds."""
    assert seed_urls({"spec": {"schemes": {}}}) == []
