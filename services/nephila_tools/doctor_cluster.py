"""`nephila doctor --cluster`: what is wrong with a release on Kubernetes, one line each."""

from __future__ import annotations

import asyncio
import time

import typer
from nephila.cli.output import print_json
from nephila.cli.terminal import sanitize
from nephila_cluster.kubernetes.diagnosis import findings
from nephila_cluster.kubernetes.login import log_in
from nephila_cluster.kubernetes.release import read_release


def doctor_cluster(context: str, namespace: str, release: str, *, json: bool) -> None:
    """Print the findings. Exit code 1 when one of them fails. Raises `UserError`."""
    login = log_in(context)
    state = asyncio.run(read_release(login, namespace or login.namespace, release))
    lines = findings(state, time.time())
    sound = all(finding.state != "fail" for finding in lines)
    if json:
        print_json({"sound": sound, "namespace": state.namespace, "release": state.name, "findings": lines})
    else:
        width = max((len(finding.object) for finding in lines), default=0)
        for finding in lines:
            remedy = f" → {sanitize(finding.remedy)}" if finding.remedy else ""
            typer.echo(f"{finding.state}  {sanitize(finding.object):<{width}}  {sanitize(finding.found)}{remedy}")
        pods = len(state.objects["pods"])
        verdict = "has no fault" if sound else "has faults"
        typer.echo(f"release {state.name or '(gone)'} in namespace {state.namespace} {verdict}: {pods} pods checked")
    if not sound:
        raise typer.Exit(1)
