"""`nephila service …`: the services of a system over Kafka, and what those who operate it need."""

from __future__ import annotations

import typer

from nephila.cli.lazy_group import Command, LazyGroup

RUN = "Run a service over Kafka"
CONTROL = "Control the services"

SERVICE = {
    "scheduler": Command(
        RUN,
        "nephila_cluster.commands.service:scheduler",
        "Run the scheduler over Kafka.",
    ),
    "downloader": Command(
        RUN,
        "nephila_cluster.commands.service:downloader",
        "Run a downloader over Kafka.",
    ),
    "parser": Command(
        RUN,
        "nephila_cluster.commands.service:parser",
        "Run a parser over Kafka.",
    ),
    "fetchparse": Command(
        RUN,
        "nephila_cluster.commands.service:fetchparse",
        "Run a downloader and a parser in one program over Kafka.",
    ),
    "storage": Command(
        RUN,
        "nephila_cluster.commands.service:storage",
        "Run storage over Kafka.",
    ),
    "api": Command(
        RUN,
        "nephila_cluster.commands.service:api",
        "Serve the control API of a system over Kafka.",
    ),
    "operator": Command(
        RUN,
        "nephila_cluster.operator.command:operator",
        "Serve CrawlJob and ParseRule resources of Kubernetes.",
    ),
    "members": Command(
        CONTROL,
        "nephila_cluster.commands.system:members",
        "Show the programs of a system and their states.",
    ),
    "settings": Command(
        CONTROL,
        "nephila_cluster.commands.system:settings",
        "Show or change live settings of a system, as log_level.",
    ),
    "topics": Command(
        CONTROL,
        "nephila_cluster.commands.topics:app",
        "Create and list the topics of the route on a Kafka broker.",
    ),
    "dead": Command(
        CONTROL,
        "nephila_cluster.commands.dead:app",
        "List messages that no service over Kafka could process, and publish them again.",
    ),
    "capacity": Command(
        CONTROL,
        "nephila_tools.capacity.command:capacity",
        "Compute replicas, cores, memory, disks and bandwidth for a crawl.",
    ),
}
"""In the order of --help."""


class Services(LazyGroup):
    """The commands of the table."""

    rows = SERVICE
    prefix = "service "


app = typer.Typer(cls=Services, add_completion=False, no_args_is_help=True)


@app.callback()
def service() -> None:
    """Run and control the services of a system over Kafka."""
