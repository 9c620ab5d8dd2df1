"""Topologies of regular graphs of cores, by the name that `graph.type` of an accelerator file gives.

A topology is one object with the attributes of `Topology`. Built-in topologies are in `BUILT_IN`, and plug-ins enter
theirs in `ENTERED`. All other code finds a topology by its name.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from tilewright.base.errors import count_of
from tilewright.base.registry import Registry, lacking, methods_of, taken

Pair = tuple[int, int]
Sizes = Mapping[str, int]
"""Sizes of the graph, by their keys in the file, such as nb_rows."""
ROWS, COLUMNS = "nb_rows", "nb_cols"


class SizeFault(NamedTuple):
    """Reason why the sizes of a graph do not match the number of its cores."""

    key: str
    """Key of the size that is wrong. The key is '' if the number of cores is wrong for every size."""
    message: str
    allowed: str


class Topology(Protocol):
    """Shape of a regular graph. The cores are numbered in the order of their ids; the pooling, SIMD and off-chip core
    are left out."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of the sizes that the file must give."""

    @property
    def is_bus(self) -> bool:
        """True if one medium joins all cores. A bus does not use `edges`."""

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Reason why `core_count` cores cannot form a graph of this topology with the given sizes; None if they can
        form it.
        """

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """Pairs of core numbers. The two cores of a pair have a link in each direction, and each pair occurs once."""

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Position (column, row) of each core in drawings; () if the layout is not fixed."""


class BuiltInTopology(Topology, Protocol):
    """Topology with a text `links`, which describes the topology in docs/formats/several-cores.md and in the schema of
    accelerator files.
    """

    @property
    def links(self) -> str:
        """Links between the cores, in Markdown, without a full stop at the end."""


class Bus(NamedTuple):
    """Bus: one medium that all cores share."""

    links: str = "one bus for all cores except the pooling core and the off-chip core"
    keys: tuple[str, ...] = ()
    is_bus: bool = True

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Always None: any number of cores can share a bus."""
        return None

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """Empty iterator, because the bus itself joins the cores."""
        return iter(())

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Empty tuple, because a bus has no fixed layout."""
        return ()


_MESH = (
    "between neighbours. The mesh has all cores except the cores of `pooling_core_id`, `simd_core_id` and"
    " `offchip_core_id`. Its cores are numbered from 0 in the order of their ids: core i is in row i mod `nb_rows`,"
    " column i div `nb_rows`"
)
_TORUS = "the links of the mesh. Each row and each column of three or more cores also has a link between its two ends"


class Mesh(NamedTuple):
    """Grid of rows and columns. Neighbours are linked. The cores fill one column after the other, as in Stream's 2-D
    mesh."""

    keys: tuple[str, ...] = (ROWS, COLUMNS)
    is_bus: bool = False
    wraps: bool = False
    """True for a torus: the two ends of each row and column are linked too. If a row has only two cores, its ends are
    neighbours and get no second link."""

    @property
    def links(self) -> str:
        """Links between the cores, in Markdown."""
        return _TORUS if self.wraps else _MESH

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Fault if the number of rows times the number of columns is not the number of cores; else None."""
        rows, columns = sizes[ROWS], sizes[COLUMNS]
        if rows * columns == core_count:
            return None
        grid = f"{count_of(rows, 'row')} of {count_of(columns, 'core')}"
        cores = "core that has" if core_count == 1 else "cores that have"
        message = f"{grid} cannot hold exactly the {core_count:,} {cores} no other role"
        return SizeFault(ROWS, message, f"{ROWS} times {COLUMNS} is {core_count}")

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """Pairs of each core with the next core in its column, and with the next core in its row. In a torus, the first
        core of a column or row is the next core of the last core, if there are more than two cores."""
        rows, columns = sizes[ROWS], sizes[COLUMNS]
        for place in range(core_count):
            column, row = place // rows, place % rows
            if row + 1 < rows or (self.wraps and rows > 2):
                yield place, column * rows + (row + 1) % rows
            if column + 1 < columns or (self.wraps and columns > 2):
                yield place, (column + 1) % columns * rows + row

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Position (column, row) of each core in the grid, in the order of the core numbers."""
        return tuple((place // sizes[ROWS], place % sizes[ROWS]) for place in range(core_count))


class Ring(NamedTuple):
    """Cores in a ring, each linked with the next one."""

    links: str = "between each core and the next one, and between the last core and the first"
    keys: tuple[str, ...] = ()
    is_bus: bool = False

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Always None: any number of cores can form a ring. Two cores have one link in each direction."""
        return None

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """Pairs of each core with the next one, and of the last core with the first one if there are more than two
        cores."""
        for place in range(core_count - (core_count <= 2)):
            yield place, (place + 1) % core_count

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Position (column, row) of each core, in two rows: the first half of the cores from left to right, and the
        second half below them, from right to left.
        """
        half = (core_count + 1) // 2
        return tuple((place, 0) if place < half else (core_count - 1 - place, 1) for place in range(core_count))


BUILT_IN: Mapping[str, BuiltInTopology] = {
    "2d_mesh": Mesh(),
    "2d_torus": Mesh(wraps=True),
    "ring": Ring(),
    "bus": Bus(),
}
OF_STREAM = ("2d_mesh", "bus")
"""Topologies that files of Stream can name."""


def _fault(name: str, entry: object) -> str:
    return taken(name, BUILT_IN) or lacking(entry, methods_of(Topology))


ENTERED: Registry[Topology] = Registry(__name__, _fault)
"""Topologies of plug-ins."""


def topology_names() -> tuple[str, ...]:
    """Names of all topologies, built-in ones first."""
    return tuple(dict.fromkeys((*BUILT_IN, *ENTERED.names)))


def topology_text() -> str:
    """Text for the schema of accelerator files, with the links of each built-in topology."""
    return " ".join(f"`{name}`: {shape.links}." for name, shape in BUILT_IN.items())


def topology(name: str) -> Topology:
    """Topology with this name. Raises KeyError for an unknown name."""
    return BUILT_IN[name] if name in BUILT_IN else ENTERED[name]
