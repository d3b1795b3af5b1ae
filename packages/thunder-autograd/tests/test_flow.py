"""Minimum cuts: both ways to find them agree, and both with all cuts tried."""

import itertools
import random

import pytest

from thunder_autograd import flow
from thunder_autograd.flow import Network


def networks(seed, nodes, edges):
    generator = random.Random(seed)
    network = Network()
    ends = [network.source, network.sink, *[network.node(i) for i in range(nodes)]]
    made = []
    for _ in range(edges):
        tail, head = generator.sample(ends, 2)
        if tail != network.sink and head != network.source:
            capacity = float(generator.choice([0, 1, 2, 3, 5, 8, float("inf")]))
            if not (tail == network.source and head == network.sink):
                made.append((tail, head, capacity))
                network.edge(tail, head, capacity)
    return network, made


def cut(edges, sink_side):
    return sum(c for tail, head, c in edges if tail not in sink_side and head in sink_side)


@pytest.mark.parametrize("seed", range(40))
def test_finds_the_smallest_of_all_cuts(seed):
    network, edges = networks(seed, 6, 14)
    sides = [
        {network.sink, *[n + 2 for n, on in enumerate(bits) if on]} for bits in itertools.product([0, 1], repeat=6)
    ]
    least = min(cut(edges, side) for side in sides)
    if least == float("inf"):
        return
    found = network.sink_side()

    assert cut(edges, found) == least
    assert all(found >= side for side in sides if cut(edges, side) == least)


@pytest.mark.parametrize("seed", range(10))
def test_scipy_finds_the_same(seed, monkeypatch):
    network, edges = networks(seed, 60, 200)
    here = network.sink_side()
    if cut(edges, here) == float("inf"):
        return
    monkeypatch.setattr(flow, "SMALL", 0)

    assert network.sink_side() == here


@pytest.mark.parametrize("seed", range(20))
def test_what_is_known_of_the_sides_changes_nothing(seed):
    network, edges = networks(seed, 30, 90)
    found = network.sink_side()
    if cut(edges, found) == float("inf"):
        return
    generator = random.Random(seed)
    nodes = range(2, 32)
    least = {n for n in nodes if n in found and generator.random() < 0.5}
    most = found | {n for n in nodes if generator.random() < 0.5}

    assert network.sink_side(least, most) == found


@pytest.mark.parametrize("seed", range(20))
def test_cuts_of_growing_capacities_at_the_source_are_nested(seed):
    generator = random.Random(seed)
    network = Network()
    prices = [(network.edge(network.source, network.node(n), 0.0), generator.randrange(1, 20)) for n in range(12)]
    for _ in range(30):
        tail, head = generator.sample(range(12), 2)
        network.edge(network.node(tail), network.node(head), float(generator.randrange(1, 9)))
    for n in generator.sample(range(12), 5):
        network.edge(network.node(n), network.sink, float(generator.randrange(1, 40)))
    sides = []
    for rate in (0.5, 1.0, 2.0, 4.0):
        for edge, price in prices:
            network.change(edge, price * rate)
        alone = network.sink_side()
        assert not sides or network.sink_side(most=sides[-1]) == alone
        sides.append(alone)

    assert all(smaller <= larger for larger, smaller in itertools.pairwise(sides))
