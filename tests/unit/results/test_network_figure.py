"""Places of nodes in rows of a drawn graph."""

import itertools

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.results.network_figure import layered_layout


@settings(max_examples=80, deadline=None, derandomize=True)
@given(edges=st.sets(st.tuples(st.integers(0, 14), st.integers(0, 14)), max_size=30))
def test_nothing_overlaps_and_edges_run_down(edges: set[tuple[int, int]]) -> None:
    """Nodes and edges of a row keep apart, and each edge runs down row by row from source to target."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(15))
    graph.add_edges_from((a, b) for a, b in sorted(edges) if a < b)
    layout = layered_layout(graph, 2.0, 0.25)
    half = dict.fromkeys(layout.places.values(), 1.0)
    assert len(half) == 15
    for (source, target), path in zip(graph.edges, layout.paths, strict=True):
        assert path[0] == layout.places[source]
        assert path[-1] == layout.places[target]
        assert all(second[1] == first[1] + 1 for first, second in itertools.pairwise(path))
        half.update((bend, 0.125) for bend in path[1:-1])
    for row in range(layout.row_count):
        spans = sorted((x - size, x + size) for (x, number), size in half.items() if number == row)
        assert all(right <= left + 1e-9 for (_, right), (left, _) in itertools.pairwise(spans))
        assert all(left >= -1e-9 and right <= layout.width + 1e-9 for left, right in spans)


def test_skip_connection_runs_beside_the_chain() -> None:
    """An edge that skips a chain runs beside the nodes of the chain."""
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 3), (0, 3)])
    layout = layered_layout(graph, 2.0, 0.25)
    bends = layout.paths[list(graph.edges).index((0, 3))][1:-1]
    assert [row for _, row in bends] == [1, 2]
    assert all(abs(x - layout.places[row][0]) >= 1.125 for x, row in bends)


def test_empty_graph() -> None:
    """A graph without nodes has a width of 0."""
    assert layered_layout(nx.DiGraph(), 2.0, 0.25).width == 0
