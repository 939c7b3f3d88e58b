"""The rows of sites: the newest run of each directory, open runs, and the progress between them."""

from __future__ import annotations

from nephila.kernel.messages import UrlState
from nephila_harvest.sites.planner import DirectoryProgress
from nephila_harvest.sites.store import DirectoryRun, RunEnd, open_store


def test_the_newest_run_of_each_directory_is_its_last(tmp_path):
    """By name; those that have not ended are open."""
    progress = DirectoryProgress(UrlState("sites", b"k" * 16), 2.5, 7.0)
    with open_store(tmp_path / "sites.db", create=True) as store:
        for name, started_at in (("a.world", 200.0), ("a.world", 100.0), ("a.asia", 150.0)):
            store.begin(DirectoryRun(name, started_at, started_at - 1.0, 1, 10, 0), progress)
        done = DirectoryRun("a.asia", 150.0, 149.0, 1, 10, 0, 180.0, RunEnd.DONE, 4)
        store.end(done, DirectoryProgress(UrlState("sites", b"k" * 16), 3.5, 4.0))
    with open_store(tmp_path / "sites.db") as store:
        found = store.last_runs()
        assert {name: (run.name, run.started_at) for name, run in found.items()} == {
            "a.world": ("a.world", 200.0),
            "a.asia": ("a.asia", 150.0),
        }
        assert found["a.asia"] == done
        assert sorted((run.name, run.started_at) for run in store.open_runs()) == [
            ("a.world", 100.0),
            ("a.world", 200.0),
        ]
        assert {name: (one.tag, one.pages) for name, one in store.progress().items()} == {
            "a.world": (2.5, 7.0),
            "a.asia": (3.5, 4.0),
        }
