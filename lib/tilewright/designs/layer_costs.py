"""Costs of the best mapping of a layer on many similar cores, computed one core after another.

Two kinds of results are stored and used again:

* Spatial mappings and loop orders of a layer, with inputs of the cost model into which the numbers of each core are
  written. These data are valid for all cores with the same array and the same arrangement of memories. If a memory
  limits spatial mappings, its name, size, energies and port widths must also be the same.
* The cost of a layer on a core. Cores share this cost if they differ only in areas, and in the sizes, energies and port
  widths of memories that the layer's data do not reach.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from tilewright.base.errors import MappingError
from tilewright.base.profile import ModelProfile
from tilewright.cost.breakdown import latency_terms, verify
from tilewright.cost.energy_terms import further_energy_terms
from tilewright.cost.latency_terms import added_latency_terms
from tilewright.cost.problem import MOST_CYCLES, Problem, fill, most_cycles, port_services, problem_frame, term_arrays
from tilewright.cost.problem_figures import CoreFigures, FigurePlaces
from tilewright.cost.workspace import Workspace
from tilewright.hardware.core import Core, Memory, OperationalArray
from tilewright.hardware.hierarchy import hierarchy_of
from tilewright.hardware.memory_columns import memory_columns
from tilewright.mapping.memory_reach import MemoryReach, operands_left, ports_left
from tilewright.mapping.zeros import check_widths
from tilewright.pipeline.stages.base import Rest, Stage
from tilewright.pipeline.stages.items import LayerProblem, TemporalProblem
from tilewright.pipeline.stages.reductions import OfObjective
from tilewright.pipeline.stages.spatial import SpatialMappingGenerator
from tilewright.pipeline.stages.spatial_conversion import SpatialMappingConversion
from tilewright.pipeline.stages.temporal import CostModel, Loma
from tilewright.search.batch import OrderBatch
from tilewright.search.best_order import MOST_ORDERS, OrderSet, can_be_tabulated

_MOST_FRAMES = 2048
_MOST_COSTS = 8192
Key = tuple[object, ...]
Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False)
class LayerCost:
    """Cost of the best mapping of a layer."""

    energy_pj: float
    latency_cycles: float
    energy_terms_pj: tuple[float, ...]
    memory_energy_pj: tuple[tuple[str, float], ...]
    latency_terms_cycles: tuple[float, ...]

    @classmethod
    def of(
        cls,
        memories: Sequence[str],
        problem: Problem | np.void,
        workspace: Workspace | np.void,
        costs: tuple[float, float],
    ) -> "LayerCost":
        """Cost of the mapping that was evaluated in `workspace`, with its energy and its latency split into parts.

        `memories` are the names of the memories. `costs` is the pair (energy in pJ, latency in cycles).
        """
        by_memory: dict[str, float] = {}
        energy = workspace["energy"].sum(axis=2).tolist()
        levels_of, counts = problem["level_memory"].tolist(), problem["level_count"].tolist()
        for row, levels, count in zip(energy, levels_of, counts, strict=True):
            for pj, k in zip(row[:count], levels[:count], strict=True):
                by_memory[memories[k]] = by_memory.get(memories[k], 0.0) + pj
        terms = tuple(workspace["terms"][: problem["term_count"]].tolist())
        return cls(*costs, terms, tuple(by_memory.items()), latency_terms(problem, workspace))

    def times(self, count: int) -> "LayerCost":
        """Cost of `count` equal layers that run one after another."""
        if count == 1:
            return self
        return LayerCost(
            self.energy_pj * count,
            self.latency_cycles * count,
            tuple([one * count for one in self.energy_terms_pj]),
            tuple([(name, one * count) for name, one in self.memory_energy_pj]),
            tuple([one * count for one in self.latency_terms_cycles]),
        )


@dataclass(frozen=True, eq=False)
class CoreColumns:
    """Core with data for all layers of a network, which are computed once. The data are properties in which cores can
    differ, and columns with one number for each memory of the core.
    """

    core: Core
    array: Key
    """Properties of the array that affect mappings: all properties except the energy of its units."""
    arranged: tuple[Key, ...]
    """Arrangement of each memory: its operands, the array dimensions that it serves, double buffering, compression, the
    rules of its control, and ports.
    """
    figures: tuple[Key, ...]
    """Name, energies and port widths of each memory."""
    columns: dict[str, np.ndarray]
    """Columns that describe the memories in problems of the cost model, by column name. Each column is an array of
    shape (memories,).
    """

    @classmethod
    def of(cls, core: Core) -> "CoreColumns":
        """Object `CoreColumns` of a core."""
        array = core.operational_array
        return cls(
            core,
            (
                *(array.dimensions, array.systolic_dimensions, array.kind, array.parameters),
                *(array.zero_gating, array.unrolled_dimensions),
            ),
            tuple([_arrangement(memory) for memory in core.memories]),
            tuple([_figures(memory) for memory in core.memories]),
            memory_columns(core.memories),
        )


def _arrangement(memory: Memory) -> Key:
    ports = tuple([(port.port_type, port.allocation) for port in memory.ports])
    rules = memory.tile_dimensions, memory.loop_order
    return memory.operands, memory.served_dimensions, memory.force_double_buffering, memory.run_length, rules, ports


def _figures(memory: Memory) -> Key:
    widths = tuple([(port.bandwidth_min_bits, port.bandwidth_max_bits) for port in memory.ports])
    return memory.name, memory.read_energy_pj, memory.write_energy_pj, widths


@dataclass(frozen=True, eq=False)
class _SeenCore:
    """Part of a core that a layer uses, described by indexes of memories and ports."""

    places: tuple[int, ...]
    """Indexes of the memories that the layer uses, in the list of memories of the whole core."""
    operands: tuple[tuple[str, ...], ...]
    """Operands of the layer in each memory of `places`, in the same order."""
    inner: tuple[int, ...]
    """Indexes of the memories that limit spatial mappings, in the list of memories of the whole core."""
    ports: tuple[tuple[int, ...], ...]
    """Indexes of the ports that the layer uses, for each memory in `places`."""

    @classmethod
    def of(cls, core: Core, left: tuple[tuple[str, ...], ...]) -> "_SeenCore":
        places = tuple([k for k, operands in enumerate(left) if operands])
        operands = tuple([left[k] for k in places])
        ports = tuple([tuple(ports_left(core.memories[k], left[k])) for k in places])
        return cls(places, operands, tuple([places[k] for k in hierarchy_of(operands).inner_memories]), ports)


@dataclass(frozen=True, eq=False)
class _LayerFrame:
    """Mapping problems of a layer for a group of cores.

    The cores differ only in numbers that do not affect the layer's spatial mappings.
    """

    orders: OrderSet
    places: FigurePlaces
    ports: tuple[tuple[int, int], ...]
    """Pairs (index of the memory in the whole core, index of the port in this memory), one for each port that serves an
    operand.
    """
    problems: tuple[TemporalProblem, ...]
    profile: ModelProfile
    array: list[OperationalArray] = field(default_factory=list)
    """Array whose energies the problems contain at present, in a list of length 1. The list is empty before the first
    array.
    """

    def cost(self, seen: _SeenCore, design: CoreColumns, bits: Sequence[int]) -> LayerCost | None:
        """Cost of the best mapping; None if no mapping fits. `bits` are the sizes of the memories in bits."""
        memories = design.core.memories
        places = list(seen.places)
        columns = {name: column[places] for name, column in design.columns.items()}
        columns["memory_bits"] = np.array([bits[k] for k in places], np.int64)
        ports = [memories[k].ports[p] for k, p in self.ports]
        self.places.write(self.orders.arrays, CoreFigures.of(columns, ports))
        self._write_terms(design.core.operational_array)
        found = self.orders.best()
        if found is None:
            return None
        verify(found.problem, found.workspace)
        names = [memories[k].name for k in places]
        return LayerCost.of(names, found.problem, found.workspace, (found.energy_pj, found.latency_cycles))

    def _write_terms(self, array: OperationalArray) -> None:
        """Write the energies of the array into the problems, unless they already have them."""
        if self.array and self.array[0] == array:
            return
        for problem, arrays in zip(self.problems, self.orders.arrays.view(np.recarray), strict=True):
            core = replace(problem.core, operational_array=array)
            fill(arrays, term_arrays(problem.layer, core, problem.spatial, self.profile, problem.links))
        self.array[:] = [array]


class LayerCosts:
    """Calculator for the costs of layers on cores. The result for a core does not depend on the cores costed before.

    A layer is covered only if the search tries all loop orders, and if the layer has few of them. For other layers,
    `cost` returns None.
    """

    def __init__(self, search: tuple[Stage, ...]) -> None:
        self._makers, self._mapper, self._objective = _known_search(search)
        self._seen: dict[Key, _SeenCore] = {}
        self._frames: dict[Key, _LayerFrame | None] = {}
        self._costs: dict[Key, LayerCost | None] = {}

    @property
    def is_known(self) -> bool:
        """True if the search tries all loop orders. If it does not, `cost` returns None for all layers."""
        return self._mapper is not None

    def cost(
        self,
        kind: int,
        design: CoreColumns,
        whole: LayerProblem,
        reach: MemoryReach | None,
        problem: Callable[[], LayerProblem],
    ) -> LayerCost | None:
        """Cost of the best mapping of a layer on a core. None if no mapping fits, or if the layer or the core is not
        covered. A core is not covered if it has static power, waiting terms of the latency, or terms of plug-ins, or if
        compressed data do not fit through a port.

        `kind` is the index of the group of equal layers. `design` is the whole core, and `whole` is the mapping problem
        of the layer on this core. `reach` has the memories that the layer's data reach; None stands for all memories.
        `problem` makes the mapping problem of the layer on the core with only these memories.
        """
        # Tables of orders do not contain energy terms that depend on the latency, or latency terms of plug-ins.
        if further_energy_terms(design.core) or added_latency_terms(design.core):
            return None
        ends = () if reach is None else (reach.activation, reach.output, reach.weight)
        arranged = (kind, design.arranged, ends)
        seen = _kept(self._seen, arranged, _MOST_FRAMES, lambda: _seen_core(whole, reach))
        taken = {} if reach is None else dict(reach.reserved_bits)
        bits = [size - taken.get(k, 0) for k, size in enumerate(design.columns["memory_bits"].tolist())]
        left = tuple([(design.figures[k], bits[k]) for k in seen.places])
        key = (arranged, design.array, design.core.operational_array.unit_energy_pj, left)

        def searched() -> LayerCost | None:
            if not _moves_a_bit(whole):
                return None
            inner = tuple([(design.figures[k], bits[k]) for k in seen.inner])
            frame_key = (arranged, design.array, inner)
            frame = _kept(self._frames, frame_key, _MOST_FRAMES, lambda: self._frame(seen, problem()))
            return None if frame is None else frame.cost(seen, design, bits)

        return _kept(self._costs, key, _MOST_COSTS, searched)

    def _frame(self, seen: _SeenCore, problem: LayerProblem) -> _LayerFrame | None:
        """Mapping problems of the layer for a group of cores. The cores of the group differ only in numbers that do not
        affect the layer's spatial mappings.

        None if there are too many loop orders, if the orders cannot be tabulated, or if no mapping fits.
        """
        assert self._mapper is not None
        try:
            problems = list(Rest(self._makers)(problem))
            if not all(isinstance(item, TemporalProblem) and self._is_small(item) for item in problems):
                return None
            batches = tuple([batch for item in problems for batch in Rest((self._mapper,))(item)])
        except MappingError:
            return None
        if not batches or not all(isinstance(one, OrderBatch) and can_be_tabulated(one) for one in batches):
            return None
        first, conversion = problems[0], self._makers[-1]
        assert isinstance(conversion, SpatialMappingConversion)
        _, places = problem_frame(first.layer, first.core.frame, first.links, first.spatial, conversion.profile)
        ports = tuple([(seen.places[k], seen.ports[k][p]) for k, p, _ in port_services(first.core)])
        return _LayerFrame(OrderSet(batches, self._objective), places, ports, tuple(problems), conversion.profile)

    def _is_small(self, item: TemporalProblem) -> bool:
        """True if three conditions hold: there are at most MOST_ORDERS loop orders; the mapping file does not fix the
        memory of each loop; the number of cycles cannot overflow at any port widths.
        """
        assert self._mapper is not None
        few = self._mapper.order_total(item) <= MOST_ORDERS and not item.given_boundaries
        return few and most_cycles(item.arrays, item.spatial, 1) <= MOST_CYCLES


def _moves_a_bit(whole: LayerProblem) -> bool:
    """True if all ports of the core move at least one bit of plain data per cycle, even if the data are compressed."""
    try:
        check_widths(whole.layer, whole.core, dict(whole.constraints.memory_operand_links))
    except MappingError:
        return False
    return True


def _seen_core(whole: LayerProblem, reach: MemoryReach | None) -> _SeenCore:
    core, links = whole.core, whole.constraints.memory_operand_links
    if reach is None:
        return _SeenCore.of(core, tuple([memory.operands for memory in core.memories]))
    return _SeenCore.of(core, operands_left(core, whole.layer, links, reach))


def _kept(store: dict[Key, Kept], key: Key, most: int, make: Callable[[], Kept]) -> Kept:
    """Stored value of a key. If there is none, the value is made and stored. If the store is full, its oldest entries
    are deleted.
    """
    if key in store:
        return store[key]
    made = make()
    if len(store) >= most:
        for old in list(islice(store, most // 8)):
            del store[old]
    store[key] = made
    return made


def _known_search(stages: tuple[Stage, ...]) -> tuple[tuple[Stage, ...], Loma | None, str]:
    """Triple (stages that make spatial mappings, stage that makes all loop orders, objective).

    The second entry is None if the search does not try all loop orders.
    """
    kinds: list[Any] = [type(stage) for stage in stages]
    goals = [kind for kind in kinds if issubclass(kind, OfObjective) and kind.__module__ == OfObjective.__module__]
    others = [stage for stage in stages if type(stage) not in goals]
    known = [SpatialMappingGenerator, SpatialMappingConversion, Loma, CostModel]
    if [type(stage) for stage in others] != known or len(set(goals)) != 1:
        return (), None, ""
    mapper = others[2]
    assert isinstance(mapper, Loma)
    return tuple(others[:2]), mapper, goals[0].minimises
