"""Variants of a network in which `fuse` cuts the reductions of some layers between cores.

If a reduction is cut, partial sums move between cores. If the outputs are cut instead, several cores read the same
inputs. A layer is chosen if a cut of its reduction moves fewer bits of partial sums than the best cut of its outputs
reads repeatedly. Layers with few outputs and a long reduction are typical.

A variant cuts all chosen layers in the same way. The search for plans runs on a variant as on any network.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tilewright.base.errors import Problems
from tilewright.mapping.constraints import Mapping, PartAdditions, TilingEntry
from tilewright.mapping.runnable import core_choice
from tilewright.mapping.words import RING, TREE, ReductionShape
from tilewright.multicore.nodes.partial_sums import reductions_of, why_not_summed
from tilewright.multicore.nodes.reduction_cuts import cut_reductions
from tilewright.pipeline.stages.multi.items import SystemProblem
from tilewright.workload.graph import WorkloadNode
from tilewright.workload.layer import OUTPUT, Layer

FEWER_PARTS = 4
"""Divisor for cuts into fewer parts than cores: the number of parts is the number of cores / FEWER_PARTS."""


@dataclass(frozen=True)
class ReductionVariant:
    """Network in which the reductions of some layers are cut between cores."""

    problem: SystemProblem
    layers: tuple[str, ...]
    """Names of the layers whose reductions are cut."""
    parts: int
    """Largest number of parts into which a reduction is to be cut. A reduction with fewer indices has fewer parts."""
    shape: str


def reduction_variants(problem: SystemProblem, with_rings: bool = True) -> list[ReductionVariant]:
    """Networks for further searches, in which reductions are cut between cores. There are up to three networks, with
    these cuts:

    * one part for each core; the partial sums are added in a tree
    * the same parts; the partial sums are added in a ring (left out if `with_rings` is false)
    * one part for every FEWER_PARTS cores, but at least two parts; the partial sums are added in a tree

    A network is left out if its cut breaks a rule of cuts.
    """
    chosen = list(_chosen(problem))
    found: dict[Mapping, ReductionVariant] = {}
    tried: tuple[tuple[ReductionShape, int], ...] = ((TREE, 1), (RING, 1), (TREE, FEWER_PARTS))
    for shape, divisor in tried:
        if shape == RING and not with_rings:
            continue
        parts = {node.name: (name, max(2, cores // divisor)) for node, name, cores in chosen}
        variant = _variant(problem, parts, shape) if parts else None
        if variant is not None:
            found.setdefault(variant.problem.mapping, variant)
    return list(found.values())


def _variant(
    problem: SystemProblem, parts: dict[str, tuple[str, int]], shape: ReductionShape
) -> ReductionVariant | None:
    """Network in which the reductions in `parts` are cut; None if a rule of cuts does not allow this. `parts` has pairs
    (loop dimension of the reduction, number of parts), by name of the layer. `shape` is the order in which the partial
    sums are added: in a tree or in a ring.
    """
    workload, mapping = problem.workload_as_read, problem.mapping_as_read
    entries = []
    for node in workload.nodes:
        if node.layer is not None and node.name in parts:
            name, count = parts[node.name]
            loops = (TilingEntry(name, min(count, node.layer.size_of[name])),)
            own = replace(mapping.constraints_for(node.layer), name=node.name, layer_dimension_names=())
            entries.append(replace(own, inter_core_tiling=loops, reduction=PartAdditions(shape)))
    named = {entry.name for entry in entries}
    whole = Mapping((*entries, *(entry for entry in mapping.entries if entry.name not in named)))
    problems = Problems()
    network, found = cut_reductions(workload, whole, problem.accelerator, problems)
    if problems.found or network is workload:
        return None
    changed = replace(problem, workload=network, mapping=found, read=(workload, mapping))
    return ReductionVariant(changed, tuple(parts), max(count for _, count in parts.values()), shape)


def _chosen(problem: SystemProblem) -> Iterator[tuple[WorkloadNode, str, int]]:
    """Triples (layer, reduction to cut, number of cores). There is one triple for each layer in which a cut of the
    reduction can move fewer bits than a cut of the outputs. Layers whose parts or cores the mapping file fixes are left
    out.
    """
    for node in problem.workload_as_read.nodes:
        layer = node.layer
        if layer is None or why_not_summed(node):
            continue
        entry = problem.mapping_as_read.constraints_for(layer)
        windows = {name for relation in layer.relations for name, _ in relation.terms}
        names = [name for name in reductions_of(layer) if name not in windows and layer.size_of[name] > 1]
        cores = len(core_choice(node, entry, problem.accelerator).core_ids)
        if not names or cores < 2 or entry.inter_core_tiling or entry.core_allocation_is_fixed:
            continue
        name = max(names, key=lambda one: layer.size_of[one])
        if _partial_bits(layer, cores) < _repeated_bits(layer, cores):
            yield node, name, cores


def _partial_bits(layer: Layer, cores: int) -> int:
    """Bits of the partial sums that move if the reduction is cut into one part for each core."""
    outputs = math.prod(layer.size_of.get(name, 1) for name in dict(layer.operand_dimensions)[OUTPUT])
    return (cores - 1) * outputs * layer.bits_of[OUTPUT]


def _repeated_bits(layer: Layer, cores: int) -> float:
    """Number of input bits that are read again, if the outputs are cut into one block for each core. The first read of
    each bit does not count.

    The cut with the fewest repeated bits is assumed. Two blocks read the same data of an operand if they differ only
    along dimensions that the operand does not have.
    """
    operands = dict(layer.operand_dimensions)
    related = {relation.data_dimension: [name for name, _ in relation.terms] for relation in layer.relations}
    sizes = layer.size_of
    bits, free = [], []
    for operand in layer.input_operands:
        loops = {loop for name in operands[operand] for loop in related.get(name, [name])}
        bits.append(math.prod(sizes.get(loop, 1) for loop in loops) * layer.bits_of.get(operand, 0))
        free.append(math.prod(sizes[name] for name in operands[OUTPUT] if name in sizes and name not in loops))
    splits = [(one, -(-cores // one)) for one in range(1, cores + 1)]
    return min(
        float(sum(size * (min(times, most) - 1) for size, times, most in zip(bits, split, free, strict=False)))
        for split in splits
    )
