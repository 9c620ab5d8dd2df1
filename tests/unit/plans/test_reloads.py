"""Data that move more than once, by layer, worked out by hand."""

import numpy as np
from tilewright.multicore.scheduling.simulate import simulate
from tilewright.plans.reloads import moved_again_bits

from tests.unit.multicore.scheduling.tiny_systems import INPUT, WEIGHT, Link, Node, Piece, bus_system, make_problem


def test_what_two_cores_fetch_one_after_the_other_counts_for_its_layer() -> None:
    """Data that two cores fetch one after the other count for their layer.

    Both cores of layer 1 (CNs 1 and 2) fetch a constant of 50 bits and 60 bits that CN 0 makes on core 0. CN 3 of layer
    2 fetches a constant of its own.
    """
    pieces = [Piece(50), Piece(60, 0), Piece(30)]
    nodes = [
        Node(5, layer=0),
        Node(5, [(0, WEIGHT), (1, INPUT)], layer=1),
        Node(5, [(0, WEIGHT), (1, INPUT)], layer=1),
        Node(5, [(2, WEIGHT)], layer=2),
    ]
    apart = make_problem(bus_system(3), pieces, nodes)
    assert moved_again_bits(apart, simulate(apart, np.array([0, 1, 2, 0]))) == (60, 50, 0)
    assert moved_again_bits(apart, simulate(apart, np.array([0, 1, 1, 2]))) == (0, 0, 0)
    bus = make_problem(bus_system(3, link=Link(is_broadcast=True)), pieces, nodes)
    assert moved_again_bits(bus, simulate(bus, np.array([0, 1, 2, 0]))) == (0, 0, 0)
