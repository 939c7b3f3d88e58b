"""The route (`kernel/topics.py`) names who writes and who reads each topic, as the code does."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import nephila
import pytest
from nephila.kernel import topics
from nephila.kernel.topics import TOPICS, Topic, requests_topic

SERVICES = Path(nephila.__file__).parents[1]
NAMES = {name: (topic,) for name, topic in vars(topics).items() if isinstance(topic, Topic)}
NAMES[requests_topic.__name__] = (topics.REQUESTS, topics.REQUESTS_BROWSER)
WITHIN_ONE_PROGRAM = {"crawl", "groups", "main", "one", "progress", "workers"}
"""Groups that read the bus of one program, or of a program and its workers or groups of partitions."""
PASSED_ON = (
    *(
        "nephila/kernel/bus/pipe/",
        "nephila/programs/groups/",
        "nephila/programs/outlink_router.py",
        "nephila_cluster/service/fetchparse.py",
        "nephila_cluster/service/lost_requests.py",
        "nephila_cluster/service/receipt_router.py",
    ),
    *("nephila/downloader/fetch_page.py", "nephila_doors/lending/"),
)
"""Buses in front of a bus, which publish for the service behind them, the outcomes of a downloader
that crashed, the fetch of one page without a scheduler, and
the frontier that is lent to Scrapy, which has the bus of its own program."""


def topics_in(node: ast.AST, known: Mapping[str, set[Topic]]) -> set[Topic]:
    """Topics that an expression names, or the loop whose variable it is."""
    names = [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    return {topic for name in names for topic in known.get(name, NAMES.get(name, ()))}


def calls(node: ast.AST, known: Mapping[str, set[Topic]]) -> Iterator[tuple[str, list[ast.expr], set[Topic]]]:
    """Each call below a node with a topic among its first two arguments: name, arguments, topics."""
    if isinstance(node, ast.For):
        targets = [one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)]
        known = {**known, **dict.fromkeys(targets, topics_in(node.iter, {}))}
    if isinstance(node, ast.Call) and node.args:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if found := topics_in(node.args[name == "publish_after"], known):
            yield name, node.args, found
    for child in ast.iter_child_nodes(node):
        yield from calls(child, known)


def constants(tree: ast.Module) -> dict[str, str]:
    """Texts that a module gives names to, as `GROUP`."""
    pairs = [(one.targets[0], one.value) for one in tree.body if isinstance(one, ast.Assign)]
    pairs += [(one.target, one.value) for one in tree.body if isinstance(one, ast.AnnAssign) and one.value]
    single = [pair for pair in pairs if isinstance(pair[0], ast.Name)]
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            single += zip(target.elts, value.elts, strict=True)
    return {target.id: value.value for target, value in single if isinstance(value, ast.Constant)}


def part_of(path: Path) -> str:
    """The package of a file beside the core; within the core, and for the scheduler over Kafka, its service."""
    package, folder, *_ = path.parts
    if package == "nephila" or (package, folder) == ("nephila_cluster", "scheduler"):
        return folder
    return package.removeprefix("nephila_")


@pytest.fixture(scope="module")
def found() -> tuple[dict[Topic, set[str]], dict[Topic, set[str]]]:
    """Topic → packages that publish it, topic → groups that subscribe to it; by the source."""
    writers: dict[Topic, set[str]] = {topic: set() for topic in TOPICS}
    readers: dict[Topic, set[str]] = {topic: set() for topic in TOPICS}
    for path in SERVICES.glob("nephila*/**/*.py"):
        tree = ast.parse(path.read_text())
        place = path.relative_to(SERVICES)
        named = constants(tree)
        for name, arguments, those in calls(tree, {}):
            if name == "subscribe":
                group = arguments[1]
                word = group.value if isinstance(group, ast.Constant) else named[group.id]
                for topic in those if word not in WITHIN_ONE_PROGRAM else ():
                    readers[topic].add(word)
            elif name.lstrip("_") in ("publish", "publish_after", "send") and not str(place).startswith(PASSED_ON):
                for topic in those:
                    writers[topic].add(part_of(place))
    return writers, readers


def test_the_route_names_those_who_publish(found):
    """Packages, and no other."""
    assert {topic.name: set(topic.writers) for topic in TOPICS} == {topic.name: found[0][topic] for topic in TOPICS}


def test_the_route_names_those_who_subscribe(found):
    """Groups over a broker, and no other."""
    assert {topic.name: set(topic.readers) for topic in TOPICS} == {topic.name: found[1][topic] for topic in TOPICS}
