"""Harmonic centrality of the vertices of a directed graph, exact for small graphs and sampled for large ones.

The harmonic centrality of x is the sum of 1 / d(y, x) over all other vertices y that reach x (Boldi and Vigna, *Axioms
for Centrality*, 2014). It needs no damping factor, and a graph that is not connected needs no special case. Common
Crawl ranks hosts by it.

The search runs from all vertices at once: a vertex has a set of bits, one for each source that reaches it. A graph with
more vertices than sources is sampled (Eppstein and Wang, *Fast Approximation of Centrality*, 2004).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

SOURCES: Final = 4096
"""Vertices from which distances are counted: up to so many the result is exact. A vertex has a bit for each."""
MAX_DISTANCE: Final = 100
"""Paths that are longer add less than a hundredth each, and are left out."""


def harmonic_centrality(predecessors: Sequence[Sequence[int]], sources: int = SOURCES) -> list[float]:
    """The centrality of each vertex, from the vertices with an edge to it. The same graph has the same result.

    O(edges x longest path) operations on `sources` bits; memory: `sources` bits for each vertex, twice.
    """
    count = len(predecessors)
    sampled = range(count) if count <= sources else sorted(random.Random(0).sample(range(count), sources))
    reached = [0] * count
    for bit, vertex in enumerate(sampled):
        reached[vertex] = 1 << bit
    centrality = [0.0] * count
    grown = [bits != 0 for bits in reached]
    for distance in range(1, MAX_DISTANCE + 1):
        following = [_union(vertex, predecessors[vertex], reached, grown) for vertex in range(count)]
        grown = [new != old for new, old in zip(following, reached, strict=True)]
        if not any(grown):
            break
        for vertex, new in enumerate(following):
            centrality[vertex] += (new.bit_count() - reached[vertex].bit_count()) / distance
        reached = following
    scale = count / len(sampled) if sampled else 1.0
    return [value * scale for value in centrality]


def _union(vertex: int, predecessors: Sequence[int], reached: Sequence[int], grown: Sequence[bool]) -> int:
    bits = reached[vertex]
    for other in predecessors:
        if grown[other]:
            bits |= reached[other]
    return bits
