"""Random small ONNX graphs from all operator families, for property tests."""

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from tests.unit.workload.onnx.graph_builder import MOST_ELEMENTS, GraphBuilder
from tests.unit.workload.onnx.random_operators import FAMILIES, InapplicableError

_RANKS = {"general_product": (2, 2), "resize": (4, 4), "depth_and_space": (4, 4), "contraction": (3, 3)}
_IMAGES = ("convolution", "transposed_convolution", "pooling", "global_pooling", "normalization")


@st.composite
def one_operator(draw: st.DrawFn, family: str) -> GraphBuilder:
    """A graph with one operator of a family, and the operators that it needs beside it."""
    graph = GraphBuilder(draw)
    low, high = (3, 4) if family in _IMAGES else _RANKS.get(family, (2, 3))
    sizes = [graph.number(2 + (family == "normalization"), 4) for _ in range(graph.number(low, high))]
    if family == "depth_and_space":
        sizes = graph.choice([1, 4, 2, 3], [2, 2, 2, 4], [1, 8, 1, 2])
    try:
        FAMILIES[family](graph, graph.input(tuple(sizes)))
    except InapplicableError:
        assume(False)
    return graph


@st.composite
def random_graph(draw: st.DrawFn) -> GraphBuilder:
    """Two to four operators of any family, one after the other and in branches."""
    graph = GraphBuilder(draw)
    for _ in range(graph.number(1, 2)):
        graph.input(graph.choice((1, 2, 4, 3), (2, 3, 5), (1, 3, 3, 3), (4, 6), (2, 4, 3), (1, 4, 2, 2)))
    wanted = graph.number(2, 4)
    for _ in range(12):
        if len(graph.nodes) >= wanted:
            break
        # Mostly the newest tensor, so that chains grow; sometimes an older one, so that they branch.
        newest = list(graph.tensors)[-1]
        name = graph.choice(newest, newest, *graph.tensors)
        try:
            FAMILIES[graph.choice(*FAMILIES)](graph, name)
        except InapplicableError:
            continue
        if any(np.prod(shape) > MOST_ELEMENTS for shape in graph.tensors.values()):
            graph.nodes.pop()
            graph.tensors = {name: shape for name, shape in graph.tensors.items() if not _made_late(name, graph)}
    return graph


def _made_late(name: str, graph: GraphBuilder) -> bool:
    return name.startswith("t") and int(name[1:].split("_")[0]) >= len(graph.nodes)
