"""The vertices of a graph of links by rank: hosts, or domains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nephila_tools.host_graph.harmonic import harmonic_centrality

Edges = Mapping[tuple[str, str], int]
"""(name, other name) → links."""


class Vertex(NamedTuple):
    """One vertex with its edges."""

    name: str
    harmonic: float
    """Sum of 1 / distance over the vertices from which links lead to it."""
    predecessors: list[str]
    """Vertices that link to it, by name."""
    successors: int
    links_in: int
    links_out: int


def by_rank(names: Iterable[str], edges: Edges) -> list[Vertex]:
    """These vertices, the largest centrality first, those with the same in the order of their names. Complexity as of
    `harmonic_centrality`."""
    ordered = sorted(names)
    numbers = {name: number for number, name in enumerate(ordered)}
    predecessors: list[list[int]] = [[] for _ in ordered]
    successors, links_in, links_out = Counter[str](), Counter[str](), Counter[str]()
    for (name, other), links in sorted(edges.items()):
        predecessors[numbers[other]].append(numbers[name])
        successors[name] += 1
        links_out[name] += links
        links_in[other] += links
    centrality = harmonic_centrality(predecessors)
    return [
        Vertex(
            name := ordered[number],
            centrality[number],
            [ordered[other] for other in predecessors[number]],
            successors[name],
            links_in[name],
            links_out[name],
        )
        for number in sorted(range(len(ordered)), key=lambda number: (-centrality[number], ordered[number]))
    ]
