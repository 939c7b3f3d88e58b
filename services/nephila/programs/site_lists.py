"""The directories of a file of sites, with the verdicts on their lists, as control API and command show them."""

from __future__ import annotations

from pathlib import Path

from nephila.control import answers
from nephila.harvest.sites import resolve
from nephila.harvest.sites.store import SiteStore, open_store
from nephila.harvest.sites.verdicts import EFFECTS, ListState
from nephila.storage.rows import iso


def directories_of(path: Path) -> list[answers.Directory]:
    """The directories of a file; none without a file. Reads the disk."""
    if not path.is_file():
        return []
    with open_store(path) as store:
        return directories(store)


def directories(store: SiteStore) -> list[answers.Directory]:
    """The directories of the sites, the highest score first."""
    sites, runs, lists = store.sites(), store.last_runs(), store.lists()
    found = []
    for name, values in resolve.by_score(sites).items():
        last = runs.get(name)
        found.append(
            answers.Directory(
                name=name,
                score=values["score"].value,
                paused=values["paused"].value,
                **{text: values[text].value for text in resolve.TEXTS if text in values},
                last_run=iso(last.started_at) if last is not None else "",
                ended=last.ended_by if last is not None else "",
                why=last.why if last is not None else "",
                new_pages=last.new_pages if last is not None else 0,
                lists=[shown(one) for one in lists.get(name, ())],
            )
        )
    return found


def shown(state: ListState) -> answers.ListState:
    """A list as the API has it."""
    return answers.ListState(
        **{**state._asdict(), "since": iso(state.since)},
        fault=state.is_fault,
        words=EFFECTS[state.verdict].words,
        proposal=state.proposal,
    )
