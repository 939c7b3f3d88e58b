"""Configuration of the services of one program."""

from __future__ import annotations

from nephila.programs.option_table import defaults
from nephila.programs.service_configs import make_configs


def test_variables_of_services_do_not_move_the_directory(monkeypatch, tmp_path):
    """Images of the services set them; `--out` names one directory for all files of a crawl."""
    monkeypatch.setenv("NEPHILA_STORAGE__DIRECTORY", "/data")
    monkeypatch.setenv("NEPHILA_SCHEDULER__DIRECTORY", "/data")
    configs = make_configs(defaults(), tmp_path, ("sqlite",))
    assert configs.storage.directory == tmp_path
    assert configs.scheduler.directory == str(tmp_path / "frontier")
