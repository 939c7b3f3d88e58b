"""The evaluation by schemes is made for the first job that has some."""

from __future__ import annotations

from collections import Counter

import pytest
from nephila.kernel import messages as m
from nephila.kernel.documents.scheme_schema import Schemes
from nephila.storage.evaluation import JobEvaluation

from tests.jobs import crawl_job


class Recorder:
    """An evaluation that notes what it is told."""

    def __init__(self) -> None:
        self.results: Counter[str] = Counter(same=2)
        self.due = True
        self.calls: list[tuple[str, int]] = []

    def update_job(self, job: m.CrawlJob) -> None:
        self.calls.append((job.uid, job.generation))

    def update_rule(self, rule: m.ParseRule) -> None:
        self.calls.append((rule.name, rule.version))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def test_jobs_without_schemes_make_none(recorder: Recorder) -> None:
    evaluation = JobEvaluation(lambda: recorder)
    evaluation.update_job(crawl_job(uid="plain"))
    evaluation.update_job(m.CrawlJob(uid="gone", deleted=True))
    assert (evaluation.loaded, evaluation.due, evaluation.results) == (None, False, Counter())


def test_rules_before_the_first_schemes_reach_it(recorder: Recorder) -> None:
    """The newest version of each; afterwards rules and jobs come as they are."""
    evaluation = JobEvaluation(lambda: recorder)
    for version in (1, 2):
        evaluation.update_rule(m.ParseRule(name="shop", version=version))
    evaluation.update_job(crawl_job(uid="news", generation=3, schemes=Schemes([])))
    evaluation.update_rule(m.ParseRule(name="shop", version=4))
    evaluation.update_job(crawl_job(uid="plain", generation=1))
    assert recorder.calls == [("shop", 2), ("news", 3), ("shop", 4), ("plain", 1)]
    assert (evaluation.due, evaluation.results) == (True, Counter(same=2))
