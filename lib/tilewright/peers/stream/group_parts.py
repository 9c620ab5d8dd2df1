"""Parts of the layers in a mapping file of stream-dse 2.x: each layer is cut into parts for several cores."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tilewright.base.errors import KeyPath, Problems
from tilewright.mapping.spatial_generation import divisors
from tilewright.peers.stream.allowed_numbers import allowed_numbers
from tilewright.peers.stream.fused_axes import FusedAxes, Loop
from tilewright.peers.stream.selected_layers import SelectedLayers, loop_text
from tilewright.workload.graph import WorkloadNode


@dataclass(frozen=True)
class _Split:
    """Cut of one loop of a layer into parts."""

    node: WorkloadNode
    dimension: int
    loop: tuple[str, int]
    """Pair (name of the loop, size of the loop)."""
    parts: int
    most: int
    """Largest number of parts for which the entry lists enough cores."""
    path: KeyPath
    """Path of the number of parts in the file."""


class GroupParts:
    """Parts of the layers of one group of fused layers. A layer outside all groups is a group of one layer."""

    def __init__(self, layers: SelectedLayers, nodes: Sequence[WorkloadNode]) -> None:
        """Store the group. `nodes` are the layers of the group, in the order of the network."""
        self.layers = layers
        self.axes = FusedAxes(layers.workload, tuple(nodes))
        self._nodes = nodes

    @cached_property
    def largest(self) -> dict[Loop, int]:
        """Largest number of parts of each axis over the layers of the group. Wrong numbers of parts do not count."""
        found: dict[Loop, int] = {}
        for split in self._splits:
            axis = self._axis_of(split)
            if axis is not None and not self._indices_of(split) % split.parts:
                found[axis] = max(found.get(axis, 1), split.parts)
        return found

    def check(self) -> None:
        """Report each number of parts that does not divide its axis, or that does not divide the largest number of
        parts of its axis.
        """
        for split in self._splits:
            axis, indices, size = self._axis_of(split), self._indices_of(split), split.loop[1]
            most = self.largest.get(axis, 1) if axis is not None else 1
            what = loop_text(split.node, split.dimension, split.loop)
            if indices % split.parts and indices == size:
                self._tell(split, indices, f"{what}; the number of parts must divide this size")
            elif indices % split.parts:
                told = f"{what}, but a fused layer has only {indices} indices along it"
                self._tell(split, indices, f"{told}; the number of parts must divide both")
            elif most % split.parts:
                told = f"{what}, and a fused layer has {most} parts along it"
                self._tell(split, most, f"{told}; the number of parts must divide {most}")

    def _tell(self, split: _Split, divided: int, message: str) -> None:
        """Report a number of parts that does not divide `divided`."""
        choices = divisors(divided)
        possible = [one for one in choices if one <= split.most]
        cores = "" if possible == choices else "; each part needs a core"
        allowed = allowed_numbers(split.parts, possible)
        self.layers.problems.at(split.path, f"{message}, as in Stream 2.1.1{cores}", split.parts, allowed)

    @cached_property
    def _splits(self) -> list[_Split]:
        return list(self._found())

    def _found(self) -> Iterator[_Split]:
        """Cuts of the layers of the group. Cuts of loops that do not exist are left out."""
        for node in self._nodes:
            place = self.layers.place_of[node.node_id]
            entry = self.layers.plan.layers[place]
            for at, split in enumerate(entry.splits):
                loop = self.layers.loop(node, split.dimension, Problems())
                if loop is not None:
                    others = math.prod(one.parts for one in entry.splits) // split.parts
                    path = (*self.layers.root, place, "inter_core_tiling", 0, at, "split")
                    most = max(1, len(entry.cores) // others)
                    yield _Split(node, split.dimension, loop, split.parts, most, path)

    def _axis_of(self, split: _Split) -> Loop | None:
        """Axis of the loop that is cut. None if the layer leaves out the loop, which then has one iteration."""
        return self.axes.axis_of((split.node.node_id, split.loop[0])) if split.loop[0] else None

    def _indices_of(self, split: _Split) -> int:
        """Number of indices of the shortest loop of the axis that is cut."""
        name, size = split.loop
        step = self.axes.indices_of_step((split.node.node_id, name)) if name else Fraction(1)
        return int(size / step)
