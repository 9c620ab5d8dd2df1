"""The outer loops that cut a layer into computation nodes, and the tiling of a whole network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.mapping.constraints import ALL_TILES
from tilewright.workload.layer import Layer


@dataclass(frozen=True)
class OuterLoop:
    """A loop around the computation nodes: tile v of a dimension begins `v * tile_size` after the loop outside it.

    The last tile is smaller where `tile_size` does not divide what the loop runs over; nothing is padded.
    """

    dimension: str
    count: int
    tile_size: int


@dataclass(frozen=True)
class LayerTiling:
    """The outer loops of one layer."""

    node_id: int
    loops: tuple[OuterLoop, ...] = ()
    """Innermost first: the first counts fastest in the numbers of the CNs. Of one dimension the first is the finest."""
    group_loops: tuple[int, ...] = ()
    """Places in `loops` of those whose values tell the groups of the layer apart: a group runs on one core."""

    @property
    def group_count(self) -> int:
        """Number of groups that the loops make."""
        count = 1
        for place in self.group_loops:
            count *= self.loops[place].count
        return count


@dataclass(frozen=True)
class Tiling:
    """How a network is cut."""

    layers: tuple[LayerTiling, ...]
    """One for each layer of the network, in the order of its nodes."""
    stacks: tuple[tuple[int, ...], ...]
    """Node ids of the layers that are fused with one another; stacks run one after the other."""
    notices: tuple[str, ...] = ()
    """What is legal but not as it was written: a size larger than its layer, fewer tiles than asked for."""

    @cached_property
    def of_node(self) -> Mapping[int, LayerTiling]:
        """Node id -> tiling of its layer."""
        return {layer.node_id: layer for layer in self.layers}


def counted_loops(
    layer: Layer, counts: Sequence[tuple[str, int | str]]
) -> tuple[tuple[OuterLoop | None, ...], list[str]]:
    """Outer loops from (dimension, number of tiles or "all"), innermost first, and what is not as asked for.

    Tiles have the size that divides the dimension into that number, rounded up, and the last one is what is left;
    so there can be fewer than asked for: 6 in 4 are 3 tiles of 2. An entry is None where only one tile is left.
    Of several loops over one dimension the outer ones cut first.
    """
    spans = dict(layer.loop_sizes)
    loops: list[OuterLoop | None] = []
    notices = []
    for dimension, written in reversed(counts):
        span = spans[dimension]
        wanted = span if written == ALL_TILES else int(written)
        tile_size = -(-span // min(wanted, span))
        count = -(-span // tile_size)
        if wanted > span:
            notices.append(f"{layer.name}: {dimension} has {span} to cut, not {wanted}")
        elif count < wanted:
            notices.append(f"{layer.name}: {dimension} of {span} gives {count} tiles of {tile_size}, not {wanted}")
        spans[dimension] = tile_size
        loops.append(OuterLoop(dimension, count, tile_size) if count > 1 else None)
    return tuple(reversed(loops)), notices[::-1]


def layer_tiling(node_id: int, loops: Sequence[OuterLoop | None], in_group: Sequence[bool]) -> LayerTiling:
    """The tiling of the loops that are left; `in_group` says which of all of them tell groups apart."""
    kept: list[OuterLoop] = []
    places = []
    for loop, tells_groups in zip(loops, in_group, strict=True):
        if loop is not None:
            if tells_groups:
                places.append(len(kept))
            kept.append(loop)
    return LayerTiling(node_id, tuple(kept), tuple(places))
