"""The port of an evaluation of stored pages by changed keyword schemes, made by `nephila_harvest` for the first job
that has schemes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Protocol

from nephila.kernel import messages as m
from nephila.kernel.documents.job_document import spec_of
from nephila.kernel.runtime.clock import Clock
from nephila.kernel.runtime.extensions import extension
from nephila.storage.ledgers.contract import Ledger
from nephila.storage.rows import RowBatch


class Slice(Protocol):
    """Pages that were evaluated together."""

    @property
    def job(self) -> str: ...
    @property
    def fetches(self) -> Mapping[str, tuple[int, str]]:
        """url_key → number of the fetch and metadata of the row that was evaluated."""

    @property
    def batch(self) -> RowBatch: ...
    @property
    def lines(self) -> Sequence[tuple[str, bytes, bytes, int]]:
        """(platform, key, item, version of its rule) of each item that is new or changed, or a line that it is gone."""


class Evaluation(Protocol):
    """The jobs with schemes. The writer's thread calls all methods but `update_job` and `update_rule`."""

    results: Counter[str]
    """Pages that this process evaluated, by result."""

    @property
    def due(self) -> bool:
        """Whether pages wait for their evaluation."""

    def update_job(self, job: m.CrawlJob) -> None: ...
    def update_rule(self, rule: m.ParseRule) -> None: ...
    def stored(self, batch: RowBatch, records: Iterable[m.Record], present: Container[tuple[str, str]]) -> None:
        """Add to a batch what its pages mean for schemes, and note those that have to be evaluated again."""

    def next(self) -> Slice | None:
        """The next pages, evaluated and not yet written; None: nothing is due."""

    def is_current(self, part: Slice) -> bool:
        """Whether the rows of a slice are still those that were evaluated."""

    def committed(self, part: Slice) -> None:
        """The pages of a slice are durable."""

    def repeat(self, part: Slice) -> None:
        """Evaluate the job of a slice again: its rows have changed meanwhile."""


class JobEvaluation:
    """Makes the evaluation with the first job that has schemes, and tells it the rules that came before."""

    def __init__(self, make: Callable[[], Evaluation]) -> None:
        self._make = make
        self._rules: dict[str, m.ParseRule] = {}
        self.loaded: Evaluation | None = None

    @property
    def current(self) -> Evaluation:
        """The evaluation that has returned a slice."""
        assert self.loaded is not None
        return self.loaded

    @property
    def results(self) -> Counter[str]:
        return Counter() if self.loaded is None else self.loaded.results

    @property
    def due(self) -> bool:
        return self.loaded is not None and self.loaded.due

    def update_job(self, job: m.CrawlJob) -> None:
        if self.loaded is None and spec_of(job).schemes is not None and not job.deleted:
            evaluation = self._make()
            for rule in self._rules.values():
                evaluation.update_rule(rule)
            self._rules.clear()
            self.loaded = evaluation
        if self.loaded is not None:
            self.loaded.update_job(job)

    def update_rule(self, rule: m.ParseRule) -> None:
        if self.loaded is None:
            self._rules[rule.name] = m.ParseRule(name=rule.name, version=rule.version)
        else:
            self.loaded.update_rule(rule)

    def stored(self, batch: RowBatch, records: Iterable[m.Record], present: Container[tuple[str, str]]) -> None:
        if self.loaded is not None:
            self.loaded.stored(batch, records, present)

    def next(self) -> Slice | None:
        return None if self.loaded is None else self.loaded.next()


def make_evaluation(ledger: Ledger, writer: str, clock: Clock) -> Evaluation:
    evaluation: Evaluation = extension("scheme-evaluation")(ledger, writer, clock)
    return evaluation
