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
    found = asyncio.run(read_release(login, namespace or login.namespace, release))
    lines = findings(found, time.time())
    sound = all(one.state != "fail" for one in lines)
    if json:
        print_json({"sound": sound, "namespace": found.namespace, "release": found.name, "findings": lines})
    else:
        width = max((len(one.object) for one in lines), default=0)
        for one in lines:
            remedy = f" → {sanitize(one.remedy)}" if one.remedy else ""
            typer.echo(f"{one.state}  {sanitize(one.object):<{width}}  {sanitize(one.found)}{remedy}")
        pods = len(found.objects["pods"])
        verdict = "has no fault" if sound else "has faults"
        typer.echo(f"release {found.name} in namespace {found.namespace} {verdict}: {pods} pods checked")
    if not sound:
        raise typer.Exit(1)
