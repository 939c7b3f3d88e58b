"""The operator works without the libraries that its image does not have."""

from __future__ import annotations

import subprocess
import sys

ABSENT = ("pypdfium2", "python_calamine", "jinja2", "brotli")
"""Libraries of extras that the extra `operator` does not bring."""
PROGRAM = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # an import of it fails
import nephila_cluster.operator.command, nephila_cluster.operator.program
from nephila_cluster.operator.reconcile_job import ObservedJob, reconcile_job
from nephila_cluster.operator.reconcile_rule import ObservedRule, reconcile_rule
metadata = {"name": "a", "generation": 1, "finalizers": ["nephila.dev/delete"]}
rule = {"match": {"url": "^https://a/"}, "fields": {"title": "h1", "price": {"xpath": "//b", "type": "number"}}}
print(reconcile_rule({"metadata": metadata, "spec": rule}, ObservedRule(), "").request is not None)
print(reconcile_job({"metadata": metadata, "spec": {"seeds": ["https://a/"]}}, ObservedJob(), "").request is not None)
"""


def test_the_operator_starts_without_them() -> None:
    command = [sys.executable, "-c", PROGRAM, *ABSENT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.split(), done.stderr) == (["True", "True"], "")
