"""How the layers of a step are cut for several cores: tensor, data or pipeline parallel.

TENSOR: a layer is cut along what it makes, heads first, then output columns; a product with weights besides along its
inputs, with the sum of what the cores make (column- and row-parallel; Shoeybi et al., Megatron-LM, arXiv 1909.08053).
DATA: along requests, and the new tokens of each; of a prompt of one request that is sequence parallel. PIPELINE: each
layer runs on the core that has its block.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.mapping.constraints import DEFAULT, Mapping, MappingConstraints, TilingEntry
from tilewright.token_costs.layer_networks import row_parallel
from tilewright.token_costs.strategies import DATA, PIPELINE, TENSOR
from tilewright.workload.graph import Workload, WorkloadNode
from tilewright.workload.layer import Layer

FINER = (1, 4)
"""Parts for each core that are tried: several let a core fetch the next one while it computes."""
_HEADS = ("G", "H")
_ROWS = ("B", "D")
_COLUMNS = "K"


@dataclass(frozen=True)
class CutLayer:
    """A layer, cut: a network, and how each of its nodes is cut."""

    of: Workload
    """The network of the whole layer."""
    network: Workload
    """That of its parts, where it is cut along its inputs; else the same."""
    mapping: Mapping
    products: int = 0
    """Of how many products, the first nodes, a product consists that is cut along its inputs."""


def cut_layers(network: Workload, entry: MappingConstraints, strategy: str, cores: int) -> Iterator[CutLayer]:
    """The ways to cut the network of one layer for so many cores, the plainest first; each once."""
    (node,) = network.nodes
    plain = _for_any_core(entry)
    seen = set()
    for finer in FINER:
        parts = finer if strategy == PIPELINE else cores * finer
        loops = tiles_of(node, strategy, parts)
        if loops not in seen:
            seen.add(loops)
            yield CutLayer(network, network, Mapping((replace(plain, inter_core_tiling=loops),)))
    if strategy == TENSOR and cores > 1:
        yield from _by_inputs(network, plain, cores)


def _for_any_core(entry: MappingConstraints) -> MappingConstraints:
    """What a mapping file says of a layer, under a name that selects all layers, without its tilings."""
    fixed = entry.core_allocation_is_fixed
    cores = entry.core_allocation
    return replace(
        entry,
        name=DEFAULT,
        core_allocation=tuple(sorted(set(cores))) if fixed else cores,
        core_allocation_is_fixed=False,
        intra_core_tiling=(),
        inter_core_tiling=(),
        layer_dimension_names=(),
    )


def _by_inputs(network: Workload, plain: MappingConstraints, cores: int) -> Iterator[CutLayer]:
    cut = row_parallel(network, cores)
    if cut is None:
        return
    products = [node for node in cut.nodes if node.unit == network.nodes[0].unit]
    sums = [node for node in cut.nodes if node.unit != network.nodes[0].unit]
    for finer in FINER:
        entries = [(node, tiles_of(node, TENSOR, finer)) for node in products]
        entries += [(node, tiles_of(node, TENSOR, cores * finer)) for node in sums]
        named = [replace(plain, name=node.name, inter_core_tiling=loops) for node, loops in entries]
        yield CutLayer(network, cut, Mapping((*named, plain)), len(products))


def tiles_of(node: WorkloadNode, strategy: str, parts: int) -> tuple[TilingEntry, ...]:
    """The loops that cut a layer into so many parts, or as many as it can have."""
    assert node.layer is not None
    written = {name for axis in node.index_maps[0].output.axes for name, _ in axis.terms}
    loops = [name for name in _order(node.layer, strategy) if name in written]
    found, left = [], parts
    for place, name in enumerate(loops):
        size = node.layer.size_of[name]
        count = _share(size, left, is_last=place == len(loops) - 1)
        if count > 1:
            found.append(TilingEntry(name, count))
            left = -(-left // count)
    return tuple(found)


def _order(layer: Layer, strategy: str) -> Sequence[str]:
    """Loops in the order in which they are cut."""
    names = [name for name, _ in layer.loop_sizes]
    rows = [name for name in _ROWS if name in names]
    if strategy == DATA:
        return rows
    first = [name for name in (*_HEADS, _COLUMNS) if name in names]
    others = [name for name in names if name not in (*first, *rows)]
    return (*first, *others, *rows)


def _share(size: int, parts: int, is_last: bool) -> int:
    """Into how many tiles a loop of this size is cut, of the parts that are still wanted."""
    if is_last:
        return min(size, parts)
    return next(count for count in range(min(size, parts), 0, -1) if parts % count == 0)
