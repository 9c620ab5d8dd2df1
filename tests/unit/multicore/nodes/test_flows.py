"""Links computed together equal links computed one by one."""

import numpy as np
import pytest
from onnx.helper import make_node
from tilewright.multicore.nodes import flows as link_edges
from tilewright.multicore.nodes.axis_rows import whole_owners, whole_row
from tilewright.multicore.nodes.flows import NeedLink, flows
from tilewright.multicore.nodes.generation import build_cn_graph
from tilewright.multicore.nodes.graph import COLUMNS
from tilewright.multicore.nodes.grid import LayerGrid
from tilewright.multicore.nodes.needs import Demand, Producer
from tilewright.multicore.nodes.tiling import LayerTiling

from tests.unit.multicore.nodes.networks import conv, read
from tests.unit.multicore.nodes.test_generation import tiled

WHOLE = LayerGrid((), LayerTiling(-1))
CUTS = (
    {"a": [("OY", "all")], "b": [("OX", 2), ("OY", 2)], "c": [("K", 2), ("OY", 3)], "y": [("OX", 3)]},
    {"a": [("C", 2), ("OY", 4)], "b": [("OY", 4), ("OY", 2)], "c": [("OY", "all")], "y": []},
)


def branches():  # type: ignore[no-untyped-def]
    """A convolution whose whole output and whose swapped halves feed other layers; one of them has a stride larger than
    its window.
    """
    nodes = [
        conv("x", "w0", "a"),
        make_node("Split", ["a"], ["p", "q"], axis=2, num_outputs=2),
        make_node("Concat", ["q", "p"], ["m"], axis=2),
        conv("m", "w1", "b"),
        conv("a", "w2", "c", strides=[2, 2]),
        make_node("Add", ["a", "m"], ["y"]),
    ]
    return read(nodes, None, {"w0": (4, 4, 1, 1), "w1": (4, 4, 1, 1), "w2": (4, 4, 1, 1)})


@pytest.mark.parametrize("cut", CUTS)
def test_the_graph_is_the_same_however_many_links_are_worked_out_together(
    cut: dict,  # type: ignore[type-arg]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The graph is the same for links computed together or alone, also behind moves of data, strides, groups and split
    reductions.
    """
    workload = branches()
    tiling = tiled(workload, cut)
    together = build_cn_graph(workload, tiling)
    monkeypatch.setattr(link_edges, "_MOST_CNS", 0)
    alone = build_cn_graph(workload, tiling)
    assert alone.links == together.links
    assert len(together.links) > 2
    for name in COLUMNS:
        assert np.array_equal(getattr(alone, name), getattr(together, name)), name


def made_of(*sizes: int) -> NeedLink:
    """A demand: one CN makes a whole tensor, and one CN needs it."""
    zero = np.zeros(1, np.int64)
    demand = Demand((), zero, True, tuple((whole_row(0, size, size), zero) for size in sizes))
    return NeedLink((demand,), Producer(WHOLE, tuple(whole_owners(0, size, size) for size in sizes)), WHOLE)


def test_nothing_flows_of_a_tensor_without_elements() -> None:
    """A link whose tensor is empty along an axis carries nothing; links of 6 and of 4 elements beside it are right."""
    found = flows([made_of(2, 3), made_of(3, 0), made_of(4)])
    assert found.start.tolist() == [0, 1, 1, 2]
    assert found.elements.tolist() == [6, 4]
    assert flows([made_of(0)]).start.tolist() == [0, 0]
