"""`nephila service operator --config F`: CrawlJob and ParseRule resources of a namespace."""

from __future__ import annotations

import logging
import os
import socket
from typing import Annotated

import msgspec
import typer
from nephila.kernel.runtime.config import load
from nephila.kernel.runtime.errors import UsageError, UserError

from nephila_cluster.operator.config import OperatorConfig

log = logging.getLogger(__name__)

Config = Annotated[
    str,
    typer.Option(
        "--config", metavar="FILE", envvar="NEPHILA_CONFIG", help="YAML file of settings; none: the environment alone."
    ),
]


class _Top(msgspec.Struct, frozen=True, kw_only=True):
    """Settings at the top of the file that the operator has as well."""

    log_level: str = "info"
    metrics_port: int = 9100
    member: str = ""


def operator(config: Config = "") -> None:
    """Serve CrawlJob and ParseRule resources of Kubernetes, by the control API. All output is JSON lines."""
    from nephila.kernel.process.process_setup import run_loop

    from nephila_cluster.service import logs
    from nephila_cluster.service.settings import check_level, section_of

    logs.configure("operator", socket.gethostname())
    try:
        where = config or "environment"
        values, section = section_of(config, "operator", _Top.__struct_fields__)
        # NEPHILA_PROGRAM__… may set fields of other programs, which share one environment.
        overrides = {name: os.environ.get(f"NEPHILA_PROGRAM__{name.upper()}") for name in _Top.__struct_fields__}
        top = load(_Top, {**values, **{name: value for name, value in overrides.items() if value is not None}}, where)
        check_level(top.log_level, where)
        settings = load(OperatorConfig, section, f"{where}: operator", "operator")
        if not settings.server:
            raise UsageError(f"{where}: operator.server is missing; set it there or NEPHILA_OPERATOR__SERVER=URL")
        logs.configure("operator", top.member or socket.gethostname(), top.log_level)
        run_loop(_run(settings, top))
    except UserError as wrong:
        log.critical("%s", wrong)
        raise typer.Exit(2 if isinstance(wrong, UsageError) else 1) from None
    except ModuleNotFoundError:
        raise  # main names the extra that has the module
    except Exception as wrong:
        log.critical("%s: %s", type(wrong).__name__, wrong, exc_info=True)
        raise typer.Exit(1) from None


async def _run(settings: OperatorConfig, top: _Top) -> None:
    from nephila.kernel.runtime.clock import SystemClock
    from nephila.kernel.runtime.metrics import MetricsCollector, exposition, registry_of
    from nephila_control.http.application import application
    from nephila_control.http.client import at_url
    from nephila_control.http.server import tcp_server
    from nephila_control.http.tokens import read_token

    from nephila_cluster.kubernetes.login import log_in
    from nephila_cluster.operator.cluster import Cluster
    from nephila_cluster.operator.metrics import METRICS
    from nephila_cluster.operator.program import Operator

    token = read_token(settings.token_file, "operator.token_file") if settings.token_file else ""
    namespace = settings.namespace or log_in().namespace
    cluster = Cluster(namespace)
    leases = Cluster(namespace, timeout_s=settings.lease_s / 3)
    program = Operator(
        settings, at_url(settings.server, token), cluster, leases, SystemClock(), top.member or socket.gethostname()
    )
    registry = registry_of([MetricsCollector("operator", program, METRICS)])

    async def metrics() -> tuple[bytes, str]:
        return exposition(registry)

    server = tcp_server(
        application(None, unready=lambda: program.unready, metrics=metrics), "", top.metrics_port, "metrics_port"
    )
    await server.open()
    try:
        await program.run()
    finally:
        await server.close()
        await cluster.close()
        await leases.close()
