"""How the layers of a step are cut for several cores: tensor, data or pipeline parallel.

TENSOR: a layer is cut along what it makes, heads first, then output columns; a product with weights besides along its
inputs, with the sum of what the cores make (column- and row-parallel; Shoeybi et al., Megatron-LM, arXiv 1909.08053).
DATA: along requests, and the new tokens of each; of a prompt of one request that is sequence parallel. PIPELINE: each
layer runs on the core that has its block.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as TableOf
from dataclasses import dataclass, replace
from typing import NamedTuple

from tilewright.mapping.constraints import DEFAULT, Mapping, MappingConstraints, TilingEntry
from tilewright.operator_groups import MAC_ARRAY
from tilewright.token_costs.layer_networks import row_parallel
from tilewright.token_costs.strategies import DATA, PIPELINE, TENSOR
from tilewright.workload.graph import Workload, WorkloadNode


class Finer(NamedTuple):
    """Into how many more parts the part of a core is cut: along what it makes, and along its rows."""

    columns: int = 1
    rows: int = 1


PLAIN = Finer()
FINER = (PLAIN, Finer(4), Finer(2), Finer(1, 4), Finer(4, 4), Finer(16, 8))
"""What is tried of products: of several parts a core fetches the next one while it computes, and they may fit it."""
FINER_VECTORS = (PLAIN, Finer(4))
"""What is tried of all other layers."""
FINER_BY_INPUTS = (PLAIN, Finer(4), Finer(16), Finer(64), Finer(16, 4), Finer(16, 16))
"""What is tried of products that are cut along their inputs."""
_COLUMNS = ("G", "H", "K")
"""Loops along what a layer makes: heads first. Others come behind them."""
_ROWS = ("B", "D")
"""Loops over requests and tokens."""


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
    tilings = (tiles_of(node, strategy, cores, finer) for finer in finer_of(node))
    for loops in dict.fromkeys(tilings):
        yield CutLayer(network, network, Mapping((replace(plain, inter_core_tiling=loops),)))
    if strategy == TENSOR and cores > 1:
        yield from _by_inputs(network, plain, cores)


def finer_of(node: WorkloadNode) -> tuple[Finer, ...]:
    """How much finer the part of a core is cut."""
    return FINER if node.unit == MAC_ARRAY else FINER_VECTORS


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
    products = [node for node in cut.nodes if node.unit == MAC_ARRAY]
    sums = [node for node in cut.nodes if node.unit != MAC_ARRAY]
    seen = set()
    for finer in FINER_BY_INPUTS:
        entries = [(node, tiles_of(node, TENSOR, 1, finer)) for node in products]
        entries += [(node, tiles_of(node, TENSOR, cores, finer)) for node in sums]
        named = tuple(replace(plain, name=node.name, inter_core_tiling=loops) for node, loops in entries)
        if named not in seen:
            seen.add(named)
            yield CutLayer(network, cut, Mapping((*named, plain)), len(products))


def tiles_of(node: WorkloadNode, strategy: str, cores: int, finer: Finer = PLAIN) -> tuple[TilingEntry, ...]:
    """The loops that cut a layer for so many cores, and finer, or as far as it can be cut.

    Those between cores are the first, so that parts in turn are the same share of a layer on each core.
    """
    assert node.layer is not None
    written = {name for axis in node.index_maps[0].output.axes for name, _ in axis.terms}
    names = [name for name, _ in node.layer.loop_sizes if name in written]
    rows = [name for name in _ROWS if name in names]
    first = [name for name in _COLUMNS if name in names]
    columns = [*first, *(name for name in names if name not in (*first, *rows))]
    sizes = node.layer.size_of
    if strategy == DATA:
        return (*_spread(rows, sizes, cores * finer.rows)[0], *_spread(columns, sizes, finer.columns)[0])
    if strategy == PIPELINE:
        cores = 1
    found, left = _spread(columns, sizes, cores * finer.columns)
    # What has too few columns is cut along its rows between cores, too.
    more = min(left, cores) if left > 1 else 1
    return (*found, *_spread(rows, sizes, more * finer.rows)[0])


def _spread(names: Sequence[str], sizes: TableOf[str, int], parts: int) -> tuple[tuple[TilingEntry, ...], int]:
    """Loops that make so many parts, the first ones as many as they can, and the parts that are left to be made."""
    found, left = [], parts
    for place, name in enumerate(names):
        is_last = place == len(names) - 1
        size = sizes[name]
        tiles = min(size, left) if is_last else next(n for n in range(min(size, left), 0, -1) if left % n == 0)
        if tiles > 1:
            found.append(TilingEntry(name, tiles))
            left = -(-left // tiles)
    return tuple(found), left
