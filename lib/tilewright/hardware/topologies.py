"""Topologies of regular graphs of cores, by the name that `graph.type` of an accelerator file gives.

A topology is one object with the attributes of `Topology`. It is built in (`BUILT_IN`), or a plug-in enters it in
`ENTERED` under its name. All other code finds a topology by its name.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from tilewright.base.registry import Registry, lacking, methods_of, taken

Pair = tuple[int, int]
Sizes = Mapping[str, int]
"""Sizes of the graph, by their keys in the file, such as nb_rows."""
ROWS, COLUMNS = "nb_rows", "nb_cols"


class SizeFault(NamedTuple):
    """Reason why a graph of these sizes cannot have the given number of cores."""

    key: str
    """Key of the wrong size."""
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
        """True if one medium joins all cores. `edges` is then not used."""

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Reason why `core_count` cores cannot form such a graph; None if they can form it."""

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """Pairs of core numbers that have a link in each direction. Each pair occurs once."""

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Position (column, row) of each core in the figure; () if the layout is not fixed."""


class Bus(NamedTuple):
    """Bus: one medium that all cores share."""

    keys: tuple[str, ...] = ()
    is_bus: bool = True

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Always None: any number of cores can share a bus."""
        return None

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """No pairs, because the bus itself joins the cores."""
        return iter(())

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Always (): the layout is not fixed."""
        return ()


class Mesh(NamedTuple):
    """Grid of rows and columns in which neighbours are linked. Columns are filled first (2-D mesh of Stream)."""

    keys: tuple[str, ...] = (ROWS, COLUMNS)
    is_bus: bool = False
    wraps: bool = False
    """True for a torus, in which the two ends of each row and column are linked too. The two ends of a row of only two
    cores are neighbours, so they get no second link."""

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Fault if rows times columns is not the number of cores."""
        rows, columns = sizes[ROWS], sizes[COLUMNS]
        if rows * columns == core_count:
            return None
        message = f"{rows} rows of {columns} do not match the {core_count} cores that have no other role"
        return SizeFault(ROWS, message, f"{ROWS} times {COLUMNS} is {core_count}")

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """Pairs of each core with the next core in its column, and with the next core in its row."""
        rows, columns = sizes[ROWS], sizes[COLUMNS]
        for place in range(core_count):
            column, row = place // rows, place % rows
            if row + 1 < rows or (self.wraps and rows > 2):
                yield place, column * rows + (row + 1) % rows
            if column + 1 < columns or (self.wraps and columns > 2):
                yield place, (column + 1) % columns * rows + row

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Position (column, row) in the grid."""
        return tuple((place // sizes[ROWS], place % sizes[ROWS]) for place in range(core_count))


class Ring(NamedTuple):
    """Cores in a ring, each linked with the next one."""

    keys: tuple[str, ...] = ()
    is_bus: bool = False

    def fault(self, sizes: Sizes, core_count: int) -> SizeFault | None:
        """Always None: any number of cores can form a ring. Two cores have one link in each direction."""
        return None

    def edges(self, sizes: Sizes, core_count: int) -> Iterator[Pair]:
        """Pairs of each core with the next one, and of the last core with the first if there are more than two."""
        for place in range(core_count - (core_count <= 2)):
            yield place, (place + 1) % core_count

    def coordinates(self, sizes: Sizes, core_count: int) -> tuple[Pair, ...]:
        """Position (column, row) in two rows: one half runs from left to right, the other half runs back below it."""
        half = (core_count + 1) // 2
        return tuple((place, 0) if place < half else (core_count - 1 - place, 1) for place in range(core_count))


BUILT_IN: Mapping[str, Topology] = {"2d_mesh": Mesh(), "2d_torus": Mesh(wraps=True), "ring": Ring(), "bus": Bus()}


def _fault(name: str, entry: object) -> str:
    return taken(name, BUILT_IN) or lacking(entry, methods_of(Topology))


ENTERED: Registry[Topology] = Registry(__name__, _fault)
"""Topologies of plug-ins."""


def topology_names() -> tuple[str, ...]:
    """Names of all topologies, built-in ones first."""
    return tuple(dict.fromkeys((*BUILT_IN, *ENTERED.names)))


def topology(name: str) -> Topology:
    """Topology with this name. Raises KeyError for an unknown name."""
    return BUILT_IN[name] if name in BUILT_IN else ENTERED[name]
