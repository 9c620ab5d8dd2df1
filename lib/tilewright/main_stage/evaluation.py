"""Cost model evaluations (CMEs) as scripts read them, under the names of zigzag-dse 3.9.1 (`zigzag.cost_model`).

Energies in pJ, latencies in cycles. A CME of one mapping holds its energy and its latency; everything else of it is
computed when it is asked for. What has its name from releases before 3.0 is there under that name, too.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any

from tilewright.base.errors import nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.record import LayerRecord, number
from tilewright.main_stage.accelerator import Accelerator
from tilewright.main_stage.layer import LayerNode, SpatialMapping, SpatialMappingInternal, TemporalMapping
from tilewright.main_stage.names import LayerOperand
from tilewright.peers.zigzag.exports.results import DIRECTION_NAMES, complete_layer, level_energies
from tilewright.pipeline.stages.base import Stage
from tilewright.pipeline.stages.items import Evaluations
from tilewright.pipeline.stages.layers import records_of, single_row
from tilewright.search.batch import CostedBatch

SUMS = (
    *("mac_energy", "mem_energy", "energy_total", "data_onloading_cycle", "data_offloading_cycle"),
    *("systolic_drain_cycle", "ideal_cycle", "ideal_temporal_cycle"),
    *("latency_total0", "latency_total1", "latency_total2"),
)
"""Figures that add up over layers."""
TABLES = ("mem_energy_breakdown", "mem_energy_breakdown_further", "memory_word_access")
"""Figures of each operand and memory level; they add up as well."""
UTILIZATIONS = {
    "mac_spatial_utilization": "ideal_temporal_cycle",
    "mac_utilization0": "latency_total0",
    "mac_utilization1": "latency_total1",
    "mac_utilization2": "latency_total2",
}
"""Utilization -> the cycles that ideal cycles are divided by."""
OLDER_NAMES = {
    "energy_breakdown": "mem_energy_breakdown",
    "energy_breakdown_further": "mem_energy_breakdown_further",
    "MAC_energy": "mac_energy",
    "MAC_spatial_utilization": "mac_spatial_utilization",
    "MAC_utilization0": "mac_utilization0",
    "MAC_utilization1": "mac_utilization1",
    "MAC_utilization2": "mac_utilization2",
    "core": "accelerator",
}
"""Name in other releases -> name."""


class Directions(dict[str, float]):
    """Figures by direction: `rd_out_to_low`, `wr_in_by_low`, `rd_out_to_high`, `wr_in_by_high`."""

    def __getattr__(self, name: str) -> float:
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __add__(self, other: "Directions") -> "Directions":
        return Directions({name: figure + other.get(name, 0) for name, figure in self.items()})

    def __mul__(self, count: float) -> "Directions":
        return Directions({name: figure * count for name, figure in self.items()})


def _by_direction(figures: Any) -> dict[LayerOperand, list[Directions]]:
    """Operand -> level -> figures, under the names of directions in zigzag-dse."""
    return {
        LayerOperand(operand): [
            Directions({name: level[direction] for direction, name in DIRECTION_NAMES.items()}) for level in levels
        ]
        for operand, levels in figures.items()
    }


@dataclass
class Context:
    """What a CME is of: a layer, and the stages that made it."""

    layer: LayerNode
    stages: tuple[Stage, ...] = ()
    """Ours, from which its record takes the model and what was minimised."""
    known: LayerRecord | None = None
    """The record, where it is made already."""

    def record_of(self, costs: CostedBatch, row: int) -> LayerRecord:
        """The full breakdown of a mapping, under the name of the layer."""
        record = self.known or records_of([Evaluations(single_row(costs, row))], self.stages)[0]
        name = self.layer.name
        return replace(record, layer=record.layer._replace(name=name), layer_names=(name,))


class CostModelEvaluationABC:
    """What CMEs of single mappings and sums of them have in common."""

    accelerator: Any
    energy_total: float
    latency_total2: float

    def __getattr__(self, name: str) -> Any:
        """Utilizations, and names of other releases. Raises AttributeError with the nearest name for anything else."""
        if name.startswith("_"):
            raise AttributeError(name)
        if (older := OLDER_NAMES.get(name, name)) != name:
            return getattr(self, older)
        if name in UTILIZATIONS:
            cycles = getattr(self, UTILIZATIONS[name])
            return self.ideal_cycle / cycles if cycles else 0.0
        known = [*SUMS, *TABLES, *UTILIZATIONS, *OLDER_NAMES, *(one for one in dir(self) if not one.startswith("_"))]
        near = nearest_name(name, known)
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"a {type(self).__name__} here has no {name}{hint}")

    def __add__(self, other: "CostModelEvaluationABC") -> "CumulativeCME":
        return CumulativeCME([*parts_of(self), *parts_of(other)])

    def __radd__(self, other: Any) -> Any:
        return self if other == 0 else NotImplemented

    def __mul__(self, count: float) -> "CostModelEvaluationABC":
        made = copy.copy(self)
        for name in SUMS:
            setattr(made, name, getattr(self, name) * count)
        for name in TABLES:
            table = getattr(self, name)
            setattr(made, name, {operand: [one * count for one in levels] for operand, levels in table.items()})
        return made

    __rmul__ = __mul__

    def __simplejsonrepr__(self) -> dict[str, float]:
        """Energy and latency, as simple files have them."""
        return {"energy": self.energy_total, "latency": self.latency_total2}


class CostModelEvaluation(CostModelEvaluationABC):
    """The costs of one mapping of one layer.

    Made from what stages hand on, as keywords: `accelerator`, `layer`, `spatial_mapping`, `temporal_mapping`,
    `access_same_data_considered_as_no_access`; `spatial_mapping_int` is the same mapping. Raises InputError where these
    do not say a mapping, or where it does not fit.
    """

    def __init__(self, **given: Any) -> None:
        from tilewright.main_stage.costing import costs_of

        self._set(*costs_of(given), Context(given["layer"]))

    @classmethod
    def of(cls, costs: CostedBatch, row: int, context: "Context") -> "CostModelEvaluation":
        """The costs of a row of costed loop orders."""
        made = cls.__new__(cls)
        made._set(costs, row, context)
        return made

    def _set(self, costs: CostedBatch, row: int, context: "Context") -> None:
        self._costs, self._row, self._context = costs, row, context
        self.energy_total = float(costs.energy_pj[row])
        self.latency_total2 = number(float(costs.latency_cycles[row]))
        self._told: Any = None

    @cached_property
    def record(self) -> LayerRecord:
        """The full breakdown, as tilewright has it."""
        return self._context.record_of(self._costs, self._row)

    @cached_property
    def layer(self) -> LayerNode:
        """The layer."""
        return self._context.layer

    @cached_property
    def accelerator(self) -> Accelerator:  # type: ignore[override]
        """The core that the layer was mapped on."""
        return Accelerator(self._costs.batch.problem.core)

    @cached_property
    def spatial_mapping(self) -> SpatialMappingInternal:
        """The spatial mapping."""
        return SpatialMappingInternal(self._costs.batch.problem)  # type: ignore[arg-type]

    spatial_mapping_int = property(lambda self: self.spatial_mapping)

    @cached_property
    def user_spatial_mapping(self) -> SpatialMapping:
        """The spatial mapping over the sides of the array."""
        return self.spatial_mapping.unrolling

    @cached_property
    def temporal_mapping(self) -> TemporalMapping:
        """The temporal mapping."""
        return TemporalMapping._of(self._costs.batch, self._row, self.layer)

    @cached_property
    def mac_energy(self) -> float:
        """Energy of operations."""
        terms = self.record.energy_terms_pj
        return sum(energy for term, energy in terms.items() if term != ACCESSES) or 0.0

    @cached_property
    def mem_energy(self) -> float:
        """Energy of accesses."""
        return self.record.energy_terms_pj[ACCESSES]

    @cached_property
    def mem_energy_breakdown(self) -> dict[LayerOperand, list[float]]:
        """Operand -> level -> energy."""
        found = level_energies(self.record.energy_breakdown_pj)
        return {LayerOperand(operand): energies for operand, energies in found.items()}

    @cached_property
    def mem_energy_breakdown_further(self) -> dict[LayerOperand, list[Directions]]:
        """Operand -> level -> energies by direction."""
        return _by_direction(self.record.energy_breakdown_pj)

    @cached_property
    def memory_word_access(self) -> dict[LayerOperand, list[Directions]]:
        """Operand -> level -> words by direction."""
        return _by_direction(self.record.word_accesses)

    @cached_property
    def mem_utili_shared(self) -> dict[LayerOperand, list[float]]:
        """Operand -> level -> share of the memory that all operands in it fill together."""
        return {LayerOperand(name): list(shares) for name, shares in self.record.memory_utilization.items()}

    @cached_property
    def mem_utili_individual(self) -> dict[LayerOperand, list[float]]:
        """Operand -> level -> share of the memory that the operand fills."""
        return {LayerOperand(name): list(shares) for name, shares in self.record.memory_utilization_individual.items()}

    @cached_property
    def ideal_cycle(self) -> float:
        """Cycles with every unit busy."""
        return self._cycles("ideal")

    @cached_property
    def ideal_temporal_cycle(self) -> float:
        """Ideal cycles with the units that the spatial mapping leaves idle."""
        return self._cycles("ideal", "spatial_stall")

    @cached_property
    def stall_slack_comb(self) -> float:
        """Cycles of stalls."""
        return self._cycles("temporal_stall")

    @cached_property
    def latency_total0(self) -> float:
        """Latency with stalls."""
        return self._cycles("ideal", "spatial_stall", "temporal_stall")

    @cached_property
    def latency_total1(self) -> float:
        """Latency with stalls and on-loading."""
        return self._cycles("ideal", "spatial_stall", "temporal_stall", "onloading")

    @cached_property
    def data_onloading_cycle(self) -> float:
        """Cycles of on-loading."""
        return self._cycles("onloading")

    @cached_property
    def data_offloading_cycle(self) -> float:
        """Cycles of off-loading."""
        return self._cycles("offloading")

    @cached_property
    def systolic_drain_cycle(self) -> float:
        """Cycles in which a systolic array drains."""
        return self._cycles("drain")

    def _cycles(self, *parts: str) -> float:
        found = self.record.latency_breakdown_cycles
        return sum(found.get(part, 0) for part in parts)

    def __jsonrepr__(self) -> JsonObject:
        """Inputs and outputs, as complete files have them."""
        problem = self._costs.batch.problem
        return complete_layer(self.record, problem.core, problem.layer, self.layer.name)

    def __str__(self) -> str:
        return f"CostModelEvaluation({self.layer.name} on {self._costs.batch.problem.core.name})"

    __repr__ = __str__

    def has_more(self) -> bool:
        """Whether a stage has set anything of it."""
        return self.is_changed() or not vars(self).keys() <= _OWN

    def is_changed(self) -> bool:
        """Whether a stage has set another energy or latency."""
        found = float(self._costs.energy_pj[self._row]), float(self._costs.latency_cycles[self._row])
        return (self.energy_total, self.latency_total2) != found

    def as_costs(self) -> CostedBatch:
        """The one order with its costs, those that a stage has set included."""
        costs = single_row(self._costs, self._row)
        costs.energy_pj[0], costs.latency_cycles[0] = self.energy_total, self.latency_total2
        return costs


_OWN = frozenset(vars(CostModelEvaluation)) | {
    *("_costs", "_row", "_context", "_told", "energy_total", "latency_total2")
}
"""What a CME has by itself."""


class CumulativeCME(CostModelEvaluationABC):
    """The sum of CMEs."""

    def __init__(self, parts: "list[CostModelEvaluationABC] | None" = None) -> None:
        self.parts = list(parts or ())
        for name in SUMS:
            setattr(self, name, sum((getattr(part, name) for part in self.parts), 0.0 if "energy" in name else 0))
        self.accelerator = self.parts[-1].accelerator if self.parts else None

    @property
    def layer_ids(self) -> list[int]:
        """The numbers of the layers."""
        return [part.layer.id for part in self.parts]

    @property
    def layer(self) -> list[int]:
        """The same, by the name of releases before 3.0."""
        return self.layer_ids

    @cached_property
    def mem_energy_breakdown(self) -> dict[str, list[Any]]:
        """Operand -> level -> energy."""
        return self._added("mem_energy_breakdown")

    @cached_property
    def mem_energy_breakdown_further(self) -> dict[str, list[Any]]:
        """Operand -> level -> energies by direction."""
        return self._added("mem_energy_breakdown_further")

    @cached_property
    def memory_word_access(self) -> dict[str, list[Any]]:
        """Operand -> level -> words by direction."""
        return self._added("memory_word_access")

    def _added(self, name: str) -> dict[str, list[Any]]:
        total: dict[str, list[Any]] = {}
        for part in self.parts:
            for operand, levels in getattr(part, name).items():
                pairs = zip_longest(total.get(operand, []), levels)
                total[operand] = [new if old is None else old if new is None else old + new for old, new in pairs]
        return total

    def __str__(self) -> str:
        return "CumulativeCME"

    __repr__ = __str__


def parts_of(cme: CostModelEvaluationABC) -> Iterator[CostModelEvaluationABC]:
    """The CMEs of single mappings that are in one."""
    if isinstance(cme, CumulativeCME):
        yield from cme.parts
    else:
        yield cme
