"""Topologies by name: their links against a plain definition, their files, and a topology that a test adds."""

import json
from pathlib import Path

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.hardware.system_paths import path_table
from tilewright.hardware.topologies import BUILT_IN, COLUMNS, ROWS, Mesh, Ring, SizeFault, topology, topology_names

from tests.unit.hardware.system_cases import mesh, read
from tools.validate_files import schema_text

SIDE = st.integers(1, 6)
TORUS, GRID = Mesh(wraps=True), Mesh()


def graph_of(shape: Mesh | Ring, sizes: dict[str, int], count: int) -> networkx.Graph:
    """Return the links of a topology as a graph of places, after a check that each pair is given once."""
    edges = list(shape.edges(sizes, count))
    assert len({frozenset(edge) for edge in edges}) == len(edges)
    assert all(one != other for one, other in edges)
    graph = networkx.Graph(edges)
    graph.add_nodes_from(range(count))
    return graph


@given(SIDE, SIDE, st.booleans())
def test_a_grid_is_the_product_of_its_sides(rows: int, columns: int, wraps: bool) -> None:
    """Mesh and torus are Cartesian products of paths or cycles; a cycle of two has only one link."""
    shape = TORUS if wraps else GRID
    found = graph_of(shape, {ROWS: rows, COLUMNS: columns}, rows * columns)
    sides = [
        networkx.cycle_graph(side) if wraps and side > 2 else networkx.path_graph(side) for side in (columns, rows)
    ]
    product = networkx.cartesian_product(*sides)
    expected = networkx.relabel_nodes(product, {(c, r): c * rows + r for c, r in product.nodes})
    assert networkx.utils.graphs_equal(found, expected)
    cells = shape.coordinates({ROWS: rows, COLUMNS: columns}, rows * columns)
    assert cells == tuple(sorted((c, r) for c, r in product.nodes))


@given(st.integers(1, 20))
def test_a_ring_is_a_cycle(count: int) -> None:
    """A ring of three or more cores is a cycle, and a ring of one or two cores is a path."""
    found = graph_of(Ring(), {}, count)
    assert networkx.utils.graphs_equal(found, networkx.cycle_graph(count) if count > 2 else networkx.path_graph(count))
    cells = Ring().coordinates({}, count)
    assert len(set(cells)) == count
    assert {row for _, row in cells} <= {0, 1}


@pytest.mark.parametrize(
    ("name", "sizes", "farthest"),
    [("2d_mesh", {}, 5), ("2d_torus", {}, 3), ("ring", {ROWS: None, COLUMNS: None}, 6)],
)
def test_paths_of_a_file(tmp_path: Path, name: str, sizes: dict[str, None], farthest: int) -> None:
    """The longest path between twelve cores has 5 links in a mesh, 3 in a torus and 6 in a ring."""
    accelerator = read(tmp_path, mesh(3, 4, type=name, **sizes))
    links = {pair: len(path.links) for pair, path in path_table(accelerator).items() if 12 not in pair}
    assert len(links) == 144
    assert max(links.values()) == farthest
    assert all(links[one, other] == links[other, one] for one, other in links)


def test_sizes_that_a_topology_does_not_have_are_told(tmp_path: Path) -> None:
    """A notice says that rows have no effect on a ring or bus; a size with an unknown name is refused."""
    for name in ("ring", "bus"):
        notices: list[str] = []
        read(tmp_path, mesh(2, 2, type=name), notices)
        told = [notice for notice in notices if f"has no effect on a graph of type {name}" in str(notice)]
        assert len(told) == 2
    with pytest.raises(InputError) as caught:
        read(tmp_path, mesh(2, 2, sizes={"nb_layers": 2}))
    assert [(problem.path, problem.allowed) for problem in caught.value.problems] == [
        ("graph.sizes.nb_layers", "nb_rows, nb_cols")
    ]


class Tower(Mesh):
    """A topology that a test adds: layers of meshes, with each core linked to the core above it."""

    @property
    def keys(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the three size names."""
        return (ROWS, COLUMNS, "nb_layers")

    def fault(self, sizes, core_count):  # type: ignore[no-untyped-def]
        """Return no fault."""
        return

    def edges(self, sizes, core_count):  # type: ignore[no-untyped-def]
        """Yield the links of each layer and the links between layers."""
        floor = sizes[ROWS] * sizes[COLUMNS]
        for layer in range(sizes["nb_layers"]):
            yield from ((a + layer * floor, b + layer * floor) for a, b in super().edges(sizes, floor))
        yield from ((place, place + floor) for place in range(core_count - floor))

    def coordinates(self, sizes, core_count):  # type: ignore[no-untyped-def]
        """Return no layout."""
        return ()


TOWER = Tower()


def test_a_topology_of_someone_else_is_found_by_name(tmp_path: Path) -> None:
    """A registered topology is read, checked and linked by name; the message about a missing size names it."""
    entries = {"tilewright.hardware.topologies": {"tower": f"{__name__}:TOWER"}}
    enter(entries)
    try:
        assert topology_names()[-1] == "tower"
        data = mesh(2, 4, type="tower", nb_rows=2, nb_cols=2, sizes={"nb_layers": 2})
        accelerator = read(tmp_path, data)
        assert {edge for link in accelerator.links for edge in link.edges if 8 not in edge} >= {(0, 4), (4, 0), (4, 5)}
        del data["graph"]["sizes"]
        with pytest.raises(InputError, match=r"graph\.sizes\.nb_layers"):
            read(tmp_path, data)
    finally:
        withdraw(entries)
    with pytest.raises(KeyError):
        topology("tower")


class Pairs(Ring):
    """A topology that a test adds: it has no sizes and needs an even number of cores."""

    def fault(self, sizes, core_count):  # type: ignore[no-untyped-def]
        """Return a fault for an odd number of cores, which no size can correct."""
        return (
            SizeFault("", f"{core_count} cores do not form pairs", "an even number of cores")
            if core_count % 2
            else None
        )


PAIRS = Pairs()


def test_a_number_of_cores_that_no_size_can_mend_is_told_at_the_type(tmp_path: Path) -> None:
    """A wrong number of cores is reported at the type of the graph with the allowed numbers; an even number is read."""
    entries = {"tilewright.hardware.topologies": {"pairs": f"{__name__}:PAIRS"}}
    enter(entries)
    try:
        with pytest.raises(InputError) as caught:
            read(tmp_path, mesh(1, 3, type="pairs", nb_rows=None, nb_cols=None))
        (problem,) = caught.value.problems
        assert (problem.path, problem.value, problem.allowed) == ("graph.type", "'pairs'", "an even number of cores")
        assert "3 cores do not form pairs" in problem.message
        assert len(read(tmp_path, mesh(1, 4, type="pairs", nb_rows=None, nb_cols=None)).cores) == 5
    finally:
        withdraw(entries)


def test_the_schema_describes_each_built_in_topology() -> None:
    """The schema text of the key `type` has the links of each topology."""
    graph = json.loads(schema_text("multi_core"))["$defs"]["GraphEntry"]["properties"]["type"]
    for name, shape in BUILT_IN.items():
        assert f"`{name}`: {shape.links}." in graph["description"]
        assert name in graph["enum"]
