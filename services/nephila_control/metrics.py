"""Metrics of the control API over Kafka."""

from __future__ import annotations

from nephila.kernel.runtime.metrics import Metric

from nephila_control.service import ControlService

METRICS: tuple[Metric[ControlService], ...] = (
    Metric(
        "jobs",
        "Jobs by state. A rise of `new`: no scheduler reports. A rise of `limit` or `quota`: they are spent. A rise of "
        "`window`: jobs are outside of their hours.",
        lambda s: s.control.states(),
        "state",
    ),
    Metric(
        "job_degraded",
        "1 for each job that goes on with a fault, as a rule that was deleted; nephila jobs list has the cause and the "
        "remedy. The series ends when the fault does.",
        lambda s: s.control.degraded(),
        "crawl",
    ),
    Metric(
        "backup_failed",
        "1 while the newest backup of the system is one that failed; nephila status has the reason.",
        lambda s: float(bool(s.failed_backup)),
    ),
    Metric(
        "backup_age_seconds",
        "Age of the newest backup of the system, by its result: ok, failed. A rise above the interval of backups: none "
        "is made. Absent: there was none.",
        lambda s: s.backup_age_s,
        "result",
    ),
    Metric(
        "access_file_refused",
        "1 while the access file has a mistake and the one before it stays in effect; the log and the overview of the "
        "console have the line.",
        lambda s: float(s.logins is not None and bool(s.logins.problem)),
    ),
)
