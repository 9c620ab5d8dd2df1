"""Families of designs that differ only in figures (docs/proofs/fronts.md).

A figure is a number that changes costs, but not the data that a mapping moves. Examples are an energy and a port width.
Families that differ only in memory sizes follow one another.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilewright.base.errors import KeyPath
from tilewright.designs.space import Axis, Space
from tilewright.hardware.zero_checks import RUN_LENGTH

MOST_MEMBERS = 1024
"""Largest number of designs in a family. A larger family is divided."""
_MEMORY_FIGURES = {"r_cost": "read_energy_pj", "w_cost": "write_energy_pj", "area": "area_mm2"}
_ARRAY_FIGURES = {"unit_energy": "unit_energy_pj", "unit_area": "unit_area_mm2"}
_WIDTH = "bandwidth_max"


@dataclass(frozen=True)
class Figure:
    """Figure: a number in the description of a core that a path in the hardware file can set, such as an energy or a
    port width.
    """

    field: str
    memory: str | None = None
    """Name of the memory; None for a figure of the array."""
    port: str | None = None
    """Name of the port if this figure is the width of a port; None for all other figures."""


def figure_of(base: dict[str, Any], path: KeyPath) -> Figure | None:
    """Number (energy, port width or another figure) that the path sets in the hardware file. None if the path sets
    nothing that is a `Figure`.
    """
    match path:
        case ("operational_array", str(key)) if key in _ARRAY_FIGURES:
            return Figure(_ARRAY_FIGURES[key])
        case ("memories", str(memory), str(key)) if key in _MEMORY_FIGURES:
            return Figure(_MEMORY_FIGURES[key], memory)
        case ("memories", str(memory), "ports", int(place), key) if key == _WIDTH:
            name = base["memories"][memory]["ports"][place].get("name")
            return Figure("bandwidth_max_bits", memory, name) if isinstance(name, str) else None
    return None


@dataclass(frozen=True)
class Family:
    """Group of designs that differ only in figures. A figure is a number that changes costs, but not the data that a
    mapping moves, such as an energy or a port width.
    """

    number: int
    members: tuple[int, ...]
    """Indexes of the designs, ascending. They include designs that a constraint excludes."""


class Families:
    """Families of a space. Each design is in exactly one family.

    The families are sorted by the values of the axes that separate families. In a design sheet, they are sorted by the
    first design with these values.
    """

    def __init__(self, space: Space) -> None:
        self.space = space

    def __len__(self) -> int:
        if self.space.rows is not None:
            return len(self._of_rows)
        return math.prod(self._sizes(self._structural)) * len(self._offsets)

    def __getitem__(self, number: int) -> Family:
        """Family with this number. Raises IndexError if there is none."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        if self.space.rows is not None:
            return Family(number, self._of_rows[number])
        place, part = divmod(number, len(self._offsets))
        first = 0
        for axis in reversed(self._structural):
            place, position = divmod(place, len(self.space.axes[axis].values))
            first += position * self._strides[axis]
        return Family(number, tuple(first + offset for offset in self._offsets[part]))

    def __iter__(self) -> Iterator[Family]:
        return (self[number] for number in range(len(self)))

    @cached_property
    def of_one_shape(self) -> int:
        """Number of consecutive families that differ only in memory sizes; 1 for a design sheet."""
        if self.space.rows is not None:
            return 1
        return math.prod(self._sizes(tuple(place for place in self._structural if place not in self._shapes)))

    @cached_property
    def _structural(self) -> tuple[int, ...]:
        """Indexes of the axes that separate families: designs with different values on such an axis are in different
        families.

        An axis separates families in three cases:

        * The axis sets a value that is not a figure, directly or through a law. Examples are the size of a memory and
          the size of the array. Energies and port widths are figures.
        * The axis sets the width of a port of a memory with compressed data. Compressed data can be too large for a
          narrow port, so some members of a family would have no costs.
        * The choices of the axis set different paths of the hardware file.

        Axes of `_shapes` come first. All other axes set only memory sizes and figures, and come last. Families that
        differ only in memory sizes therefore follow one another.
        """
        found = set()
        for place, axis in enumerate(self.space.axes):
            if not all(self._is_figure(path) for path in _paths(axis)):
                found.add(place)
            if len({tuple(path for path, _ in settings) for settings in axis.settings}) > 1:
                found.add(place)  # parts that a choice does not name are as in the base
        for law in self.space.laws:
            if law.path is not None and not self._is_figure(law.path):
                found.update(law.formula.axes)
        return tuple(sorted(found, key=lambda place: (place not in self._shapes, place)))

    @cached_property
    def _shapes(self) -> frozenset[int]:
        """Indexes of the axes that set something other than figures and memory sizes."""
        set_by: list[tuple[set[KeyPath], tuple[int, ...]]] = []
        set_by += [(_paths(axis), (place,)) for place, axis in enumerate(self.space.axes)]
        set_by += [({law.path}, law.formula.axes) for law in self.space.laws if law.path is not None]
        return frozenset(
            place
            for paths, places in set_by
            for place in places
            if any(not self._is_figure(path) and not _is_size(path) for path in paths)
        )

    def _is_figure(self, path: KeyPath) -> bool:
        """True if designs of one family can differ in the value at a path."""
        is_width = len(path) > 3 and path[0] == "memories" and path[2] == "ports"
        return figure_of(self.space.base, path) is not None and not (is_width and path[1] in self._compressed)

    @cached_property
    def _compressed(self) -> frozenset[str]:
        """Names of the memories whose data are compressed in some designs."""
        memories = self.space.base.get("memories", {})
        found = {name for name, memory in memories.items() if isinstance(memory, dict) and RUN_LENGTH in memory}
        paths = {path for axis in self.space.axes for path in _paths(axis)}
        paths |= {law.path for law in self.space.laws if law.path is not None}
        return frozenset(found | {str(path[1]) for path in paths if path[:1] == ("memories",) and RUN_LENGTH in path})

    @cached_property
    def _strides(self) -> tuple[int, ...]:
        sizes = [len(axis.values) for axis in self.space.axes]
        return tuple(math.prod(sizes[place + 1 :]) for place in range(len(sizes)))

    @cached_property
    def _offsets(self) -> tuple[tuple[int, ...], ...]:
        """Offsets of the designs that have equal values on the structural axes (the axes that separate families). The
        offset of a design is its index minus the index of the first of these designs.

        The offsets are divided into tuples, one for each family. A family has at most MOST_MEMBERS designs.
        """
        others = [place for place in range(len(self.space.axes)) if place not in self._structural]
        steps = [
            range(0, self._strides[place] * size, self._strides[place]) for place, size in self._with_sizes(others)
        ]
        return tuple(_parts(sorted(map(sum, itertools.product(*steps)))))

    def _with_sizes(self, places: list[int]) -> list[tuple[int, int]]:
        return [(place, len(self.space.axes[place].values)) for place in places]

    def _sizes(self, places: tuple[int, ...]) -> list[int]:
        return [len(self.space.axes[place].values) for place in places]

    @cached_property
    def _of_rows(self) -> tuple[tuple[int, ...], ...]:
        """Indexes of the designs in each family of a design sheet."""
        found: dict[tuple[int, ...], list[int]] = {}
        for index in range(len(self.space)):
            positions = self.space.positions(index)
            found.setdefault(tuple(positions[axis] for axis in self._structural), []).append(index)
        return tuple(part for members in found.values() for part in _parts(members))


def _paths(axis: Axis) -> set[KeyPath]:
    """Paths in the base hardware file that an axis sets."""
    return {path for settings in axis.settings for path, _ in settings}


def _is_size(path: KeyPath) -> bool:
    """True if a path sets the size of a memory."""
    return len(path) == 3 and path[0] == "memories" and path[2] == "size"


def _parts(members: list[int]) -> Iterator[tuple[int, ...]]:
    for first in range(0, len(members), MOST_MEMBERS):
        yield tuple(members[first : first + MOST_MEMBERS])
