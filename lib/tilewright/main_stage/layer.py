"""Layers and mappings in the form that the user's stages read, with the names of zigzag-dse 3.9.1 (`zigzag.workload`,
`zigzag.mapping`).

A user's stage can set some attributes of a layer (`spatial_mapping`, `spatial_mapping_hint`, `temporal_ordering`), and
can pass on mappings. The stages below the user's stage get these attributes and mappings.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tilewright.base.errors import InputError, Problem, count_of
from tilewright.base.profile import REFERENCE
from tilewright.main_stage.names import Fixed, LayerDim, LayerOperand, MemoryOperand, OADimension, Shown
from tilewright.mapping.constraints import TemporalOrderingEntry, Unrolling
from tilewright.pipeline.stages.items import LayerProblem, SpatialCandidate, TemporalProblem
from tilewright.search.batch import OrderBatch
from tilewright.search.evaluate import allocated_boundaries, full_record
from tilewright.workload.layer import Layer, activation_operand, weight_operand
from tilewright.workload.relevancy import operand_bits, operand_elements

Loops = list[tuple[LayerDim, int]]


class MappingSingleOADim(dict[str, Any]):
    """Unrolling factors along one array dimension, by loop dimension."""

    @property
    def utilization(self) -> int:
        """Number of lanes that the unrolling uses."""
        return math.prod(self.values())

    @property
    def layer_dims(self) -> set[str]:
        """Names of the unrolled loop dimensions."""
        return set(self)


class SpatialMapping(dict[str, Any]):
    """Spatial mapping: array dimension -> loop dimension -> unrolling factor."""

    def __init__(self, data: Mapping[str, Mapping[str, int]]) -> None:
        super().__init__({OADimension(side): MappingSingleOADim(factors) for side, factors in data.items()})

    @property
    def data(self) -> dict[str, Any]:
        """Mapping as a dict. The result is this object itself."""
        return self

    @property
    def oa_dims(self) -> list[str]:
        """Names of the array dimensions that the mapping uses."""
        return list(self)

    @classmethod
    def _of(cls, unrolling: Unrolling) -> "SpatialMapping":
        return cls({side: {LayerDim(name): factor for name, factor in factors} for side, factors in unrolling})


def unrolling_of(value: Any) -> Unrolling:
    """Spatial mapping in tilewright's form, from a table: array dimension -> loop dimension -> factor.

    Raises InputError if `value` is not a table of this form, or if a factor is not a positive integer.
    """
    wrong = Problem(
        *("is not a spatial mapping", "", 0, "spatial_mapping", repr(value)[:60]),
        allowed="side of the array -> loop dimension -> positive integer",
    )
    if not isinstance(value, Mapping):
        raise InputError([wrong])
    unrolling = []
    for side, factors in value.items():
        if not isinstance(factors, Mapping) or any(not isinstance(f, int) or f < 1 for f in factors.values()):
            raise InputError([wrong])
        unrolling.append((str(side), tuple((str(name), int(factor)) for name, factor in factors.items())))
    return tuple(unrolling)


class LayerDimSizes(Fixed):
    """Sizes by loop dimension."""

    @property
    def data(self) -> dict[str, int]:
        """Sizes as a dict. The result is this object itself."""
        return self

    @property
    def layer_dims(self) -> list[str]:
        """Names of the loop dimensions."""
        return list(self)

    @property
    def total_size(self) -> int:
        """Product of all sizes."""
        return math.prod(self.values())


class LayerNode(Shown):
    """Layer of the network, with the constraints that the mapping file sets for it."""

    _may_be_set = ("spatial_mapping", "spatial_mapping_hint", "temporal_ordering")

    def __init__(self, problem: LayerProblem, layer: Layer, node_id: int) -> None:
        given = problem.constraints
        self.id, self.name, self.type = node_id, layer.name, layer.operator_type
        self.equation = layer.equation
        self.layer_dim_sizes = LayerDimSizes((LayerDim(name), size) for name, size in layer.loop_sizes)
        self.operand_precision = Fixed((LayerOperand(operand), bits) for operand, bits in layer.precision_bits)
        self.constant_operands = tuple(LayerOperand(operand) for operand in layer.constant_operands)
        self.memory_operand_links = Fixed(
            (LayerOperand(operand), MemoryOperand(memory)) for operand, memory in given.memory_operand_links
        )
        self.layer_operands = tuple(LayerOperand(operand) for operand in layer.operands)
        chosen = problem.unrolling if isinstance(problem, SpatialCandidate) else given.spatial_mapping
        self.spatial_mapping = SpatialMapping._of(chosen)
        self.spatial_mapping_hint = {side: list(names) for side, names in given.spatial_mapping_hint}
        self.temporal_ordering = [(entry.dimension, entry.size) for entry in given.temporal_ordering]
        self._problem, self._layer = problem, layer
        self._told = self._said()
        self._made()

    @property
    def output_operand(self) -> str:
        """Name of the operand that the layer writes."""
        return self.layer_operands[0]

    @property
    def input_operands(self) -> tuple[Any, ...]:
        """Names of the operands that the layer reads."""
        return self.layer_operands[1:]

    @property
    def layer_dims(self) -> list[str]:
        """Names of the loop dimensions."""
        return list(self.layer_dim_sizes)

    @property
    def loop_dim_size(self) -> LayerDimSizes:
        """Sizes by loop dimension. The attribute has the name that zigzag-dse used before 3.0."""
        return self.layer_dim_sizes

    @property
    def total_mac_count(self) -> int:
        """Number of multiply-accumulate operations of the layer."""
        return self._layer.mac_count

    total_MAC_count = total_mac_count  # noqa: N815  the name in releases before 3.0

    @property
    def operand_size_elem(self) -> dict[str, int]:
        """Number of elements of each operand."""
        layer = self._layer
        return {LayerOperand(operand): operand_elements(layer, operand, REFERENCE) for operand in layer.operands}

    @property
    def operand_size_bit(self) -> dict[str, int]:
        """Number of bits of each operand. Outputs have the width of partial sums."""
        layer = self._layer
        return {LayerOperand(operand): operand_bits(layer, operand, REFERENCE) for operand in layer.operands}

    def get_act_layer_op(self) -> str:
        """Name of the operand that holds activations."""
        return LayerOperand(activation_operand(self._layer))

    def get_weight_layer_op(self, _: object = None) -> str | None:
        """Name of the operand that holds weights; None if the layer has no weights."""
        found = weight_operand(self._layer)
        return None if found is None else LayerOperand(found)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def _said(self) -> tuple[Any, ...]:
        """Current values of the attributes that a user's stage can change."""
        hints = tuple((str(side), tuple(map(str, names))) for side, names in dict(self.spatial_mapping_hint).items())
        return unrolling_of(self.spatial_mapping), hints, tuple(tuple(entry) for entry in self.temporal_ordering)

    def problem_on(self, core: Any, reach: Any = None) -> LayerProblem:
        """Problem of mapping the layer on a core. The attributes that the user's stages have set are used."""
        problem, said = self._problem, self._said()
        changed: dict[str, Any] = {} if core == problem.core else {"core": core}
        if said != self._told:
            unrolling, hints, ordering = said
            entries = tuple(TemporalOrderingEntry(str(name), size) for name, size in ordering)
            changed["constraints"] = replace(
                problem.constraints,
                spatial_mapping=unrolling,
                spatial_mapping_hint=hints,
                temporal_ordering=entries,
                level_boundaries=(),
            )
            if isinstance(problem, SpatialCandidate):
                changed["unrolling"] = unrolling
        return replace(problem, **changed) if changed else problem


class SpatialMappingInternal(Shown):
    """Spatial mapping, divided into the memory levels of each operand."""

    def __init__(self, problem: TemporalProblem) -> None:
        self._problem = problem
        self._made()

    @property
    def unrolling(self) -> SpatialMapping:
        """Spatial mapping over the dimensions of the array."""
        return SpatialMapping._of(self._problem.spatial.unrolling)

    @property
    def temporal_sizes(self) -> dict[str, int]:
        """Number of iterations of each loop dimension that remain for temporal loops."""
        return dict(self._problem.spatial.temporal_sizes)

    def __str__(self) -> str:
        return str(dict(self.unrolling))

    __repr__ = __str__


class TemporalMapping(Shown):
    """Temporal mapping: loops by operand and memory level, innermost first, as pairs (loop dimension, size).

    A mapping that a user's stage made is checked when its costs are computed: all operands must have the same loop
    order.
    """

    def __init__(
        self,
        temporal_mapping_dict: Mapping[str, Sequence[Iterable[tuple[str, int]]]],
        layer_node: LayerNode | None = None,
        mapping_type: str = "uneven",
    ) -> None:
        self.layer_node, self.type = layer_node, mapping_type
        self._levels: dict[str, list[Loops]] | None = {
            LayerOperand(operand): [[(LayerDim(name), int(size)) for name, size in loops] for loops in levels]
            for operand, levels in temporal_mapping_dict.items()
        }
        self._batch: OrderBatch | None = None
        self._row = 0
        self._made()

    @classmethod
    def _of(cls, batch: OrderBatch, row: int, layer_node: LayerNode | None) -> "TemporalMapping":
        made = cls({}, layer_node, "uneven")
        made._levels, made._batch, made._row = None, batch, row
        return made

    @property
    def mapping_dic_origin(self) -> dict[str, list[Loops]]:
        """Loops by operand and memory level. If a user's stage made the mapping, they are the loops of this stage.
        Otherwise, they are the loops that the mapper or the allocator assigned to the memories.
        """
        if self._levels is None:
            assert self._batch is not None
            order, problem = self._batch.loop_order(self._row), self._batch.problem
            bounds = self._batch.level_boundaries(self._row) or allocated_boundaries(problem, order) or ()
            loops = [(LayerDim(name), size) for name, size in order]
            self._levels = {
                LayerOperand(operand): [loops[low:high] for low, high in pairwise((0, *of_operand))]
                for operand, of_operand in zip(problem.layer.operands, bounds, strict=True)
            }
        return self._levels

    @property
    def mapping_dic_stationary(self) -> dict[str, list[Loops]]:
        """Loops by operand and memory level, with stationary loops moved to lower levels.

        The data of an operand stay in place during its stationary loops. If a user's stage made the mapping, the
        mapping is returned unchanged.
        """
        if self._batch is None:
            return self.mapping_dic_origin
        order, boundaries = self._batch.loop_order(self._row), self._batch.level_boundaries(self._row)
        return loops_of(full_record(self._batch.problem, order, boundaries, "", "").temporal_mapping)

    @property
    def loop_order(self) -> tuple[tuple[str, int], ...]:
        """All loops, innermost first."""
        if self._batch is not None:
            return self._batch.loop_order(self._row)
        levels = next(iter((self._levels or {}).values()), [])
        return tuple((str(name), size) for loops in levels for name, size in loops)

    @property
    def operand_list(self) -> list[str]:
        """Names of the operands."""
        return list(self.mapping_dic_stationary)

    @property
    def mem_level(self) -> dict[str, int]:
        """Number of memory levels of each operand."""
        return {operand: len(levels) for operand, levels in self.mapping_dic_stationary.items()}

    def __str__(self) -> str:
        return str(self.mapping_dic_stationary)

    __repr__ = __str__

    def source(self) -> tuple[OrderBatch, int] | None:
        """Pair (batch that contains the mapping, row in the batch). None if a user's stage made the mapping."""
        return None if self._batch is None else (self._batch, self._row)

    def as_batch(self, problem: TemporalProblem) -> OrderBatch:
        """Batch with the loop order and the level boundaries of a mapping that a user's stage made.

        Raises InputError in two cases: an operand does not have one list of loops for each of its memory levels, or two
        operands have different loop orders.
        """
        levels = self._levels or {}
        orders = {
            operand: tuple((str(name), size) for loops in of_operand for name, size in loops)
            for operand, of_operand in levels.items()
        }
        operands = problem.layer.operands
        counts = dict(zip(operands, problem.arrays.level_count.tolist(), strict=False))
        wrong = [
            Problem(
                f"operand {name} has lists of loops for {count_of(len(levels.get(name, ())), 'memory level')}",
                path="temporal_mapping",
                allowed=str(counts[name]),
            )
            for name in operands
            if len(levels.get(name, ())) != counts[name]
        ]
        if not wrong and len(set(orders.values())) > 1:
            wrong.append(Problem("the operands do not have the same loop order", path="temporal_mapping"))
        if wrong:
            raise InputError(wrong)
        boundaries = []
        for name in operands:
            total, bounds = 0, []
            for loops in levels[name]:
                total += len(loops)
                bounds.append(total)
            boundaries.append(tuple(bounds))
        return OrderBatch.of_orders(problem, [orders[operands[0]]], [tuple(boundaries)])


def loops_of(levels: Mapping[str, Iterable[Iterable[tuple[str, int]]]]) -> dict[str, list[Loops]]:
    """Loops by operand and level. The names of operands and loop dimensions become objects of the classes LayerOperand
    and LayerDim, as in zigzag-dse.
    """
    return {
        LayerOperand(operand): [[(LayerDim(name), size) for name, size in loops] for loops in of_operand]
        for operand, of_operand in levels.items()
    }
