"""Cost model evaluations (CMEs) for scripts, under the names of zigzag-dse 3.9.1 (`zigzag.cost_model`).

Energies are in pJ, latencies in cycles. The CME of a mapping stores only energy and latency; all other attributes are
computed when they are read. Names from releases before 3.0 also work.
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
"""Names of attributes that are summed over layers."""
TABLES = ("mem_energy_breakdown", "mem_energy_breakdown_further", "memory_word_access")
"""Names of the attributes of a CME that are tables with one value for each operand and memory level. A sum of CMEs has
the sums of these values.
"""
UTILIZATIONS = {
    "mac_spatial_utilization": "ideal_temporal_cycle",
    "mac_utilization0": "latency_total0",
    "mac_utilization1": "latency_total1",
    "mac_utilization2": "latency_total2",
}
"""Denominators of utilizations: name of the utilization -> name of the attribute that is its denominator. The numerator
is always `ideal_cycle`.
"""
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
"""Names of attributes in zigzag-dse 3.9.1, by their names in other releases of zigzag-dse."""


class Directions(dict[str, float]):
    """Numbers by direction of the access, under the names of zigzag-dse: `rd_out_to_low`, `wr_in_by_low`,
    `rd_out_to_high`, `wr_in_by_high`.
    """

    def __getattr__(self, name: str) -> float:
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __add__(self, other: "Directions") -> "Directions":
        return Directions({name: figure + other.get(name, 0) for name, figure in self.items()})

    def __mul__(self, count: float) -> "Directions":
        return Directions({name: figure * count for name, figure in self.items()})


def _by_direction(figures: Any) -> dict[LayerOperand, list[Directions]]:
    """Numbers by operand, level and direction. The directions have the names of zigzag-dse."""
    return {
        LayerOperand(operand): [
            Directions({name: level[direction] for direction, name in DIRECTION_NAMES.items()}) for level in levels
        ]
        for operand, levels in figures.items()
    }


@dataclass
class Context:
    """Context of a CME: the layer, and the stages that made the CME."""

    layer: LayerNode
    stages: tuple[Stage, ...] = ()
    """Stages of tilewright that made the CME. They determine the model and the objective in the record of the CME."""
    known: LayerRecord | None = None
    """Record of the mapping; None if the record is not made yet."""

    def record_of(self, costs: CostedBatch, row: int) -> LayerRecord:
        """Record of the mapping in row `row` of `costs`, with the full breakdown. The record has the name of this
        context's layer.
        """
        record = self.known or records_of([Evaluations(single_row(costs, row))], self.stages)[0]
        name = self.layer.name
        return replace(record, layer=record.layer._replace(name=name), layer_names=(name,))


class CostModelEvaluationABC:
    """Base class of CMEs (cost model evaluations). A CME belongs to a single mapping, or is a sum of CMEs."""

    accelerator: Any
    energy_total: float
    latency_total2: float

    def __getattr__(self, name: str) -> Any:
        """Value of the utilization `name`, or of the attribute that another release of zigzag-dse calls `name`.

        Raises AttributeError with the nearest name if there is no such attribute.
        """
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
        raise AttributeError(f"{type(self).__name__} of tilewright has no {name}{hint}")

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
        """Energy and latency as in the output files of SimpleSaveStage."""
        return {"energy": self.energy_total, "latency": self.latency_total2}


class CostModelEvaluation(CostModelEvaluationABC):
    """Costs of one mapping of one layer.

    The object is made from keywords that stages pass on: `accelerator`, `layer`, `spatial_mapping`, `temporal_mapping`
    and `access_same_data_considered_as_no_access`. The keyword `spatial_mapping_int` repeats `spatial_mapping` and can
    be left out. Raises InputError if the keywords do not describe a mapping, or if the mapping does not fit.
    """

    def __init__(self, **given: Any) -> None:
        from tilewright.main_stage.costing import costs_of

        self._set(*costs_of(given), Context(given["layer"]))

    @classmethod
    def of(cls, costs: CostedBatch, row: int, context: "Context") -> "CostModelEvaluation":
        """CME of the loop order in row `row` of a batch of evaluated loop orders."""
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
        """LayerRecord of the mapping, with the full breakdown of energy and latency."""
        return self._context.record_of(self._costs, self._row)

    @cached_property
    def layer(self) -> LayerNode:
        """Layer that is mapped."""
        return self._context.layer

    @cached_property
    def accelerator(self) -> Accelerator:  # type: ignore[override]
        """Core on which the layer is mapped."""
        return Accelerator(self._costs.batch.problem.core)

    @cached_property
    def spatial_mapping(self) -> SpatialMappingInternal:
        """Spatial mapping over the memory levels of each operand."""
        return SpatialMappingInternal(self._costs.batch.problem)  # type: ignore[arg-type]

    spatial_mapping_int = property(lambda self: self.spatial_mapping)

    @cached_property
    def user_spatial_mapping(self) -> SpatialMapping:
        """Spatial mapping over the dimensions of the array."""
        return self.spatial_mapping.unrolling

    @cached_property
    def temporal_mapping(self) -> TemporalMapping:
        """Temporal mapping."""
        return TemporalMapping._of(self._costs.batch, self._row, self.layer)

    @cached_property
    def mac_energy(self) -> float:
        """Energy without memory accesses (for example, energy of array operations), in pJ."""
        terms = self.record.energy_terms_pj
        return sum(energy for term, energy in terms.items() if term != ACCESSES) or 0.0

    @cached_property
    def mem_energy(self) -> float:
        """Energy of memory accesses, in pJ."""
        return self.record.energy_terms_pj[ACCESSES]

    @cached_property
    def mem_energy_breakdown(self) -> dict[LayerOperand, list[float]]:
        """Energy of memory accesses by operand and level, in pJ."""
        found = level_energies(self.record.energy_breakdown_pj)
        return {LayerOperand(operand): energies for operand, energies in found.items()}

    @cached_property
    def mem_energy_breakdown_further(self) -> dict[LayerOperand, list[Directions]]:
        """Energy of memory accesses by operand, level and direction, in pJ."""
        return _by_direction(self.record.energy_breakdown_pj)

    @cached_property
    def memory_word_access(self) -> dict[LayerOperand, list[Directions]]:
        """Number of words that memories read or write, by operand, level and direction."""
        return _by_direction(self.record.word_accesses)

    @cached_property
    def mem_utili_shared(self) -> dict[LayerOperand, list[float]]:
        """Filled share of each memory, by operand and level. The data of all operands in the memory are counted."""
        return {LayerOperand(name): list(shares) for name, shares in self.record.memory_utilization.items()}

    @cached_property
    def mem_utili_individual(self) -> dict[LayerOperand, list[float]]:
        """Filled share of each memory, by operand and level. Only the data of this operand are counted."""
        return {LayerOperand(name): list(shares) for name, shares in self.record.memory_utilization_individual.items()}

    @cached_property
    def ideal_cycle(self) -> float:
        """Number of cycles that the layer would take if all units of the array worked in every cycle."""
        return self._cycles("ideal")

    @cached_property
    def ideal_temporal_cycle(self) -> float:
        """Cycles that the layer would take without stalls, on the units that the spatial mapping uses."""
        return self._cycles("ideal", "spatial_stall")

    @cached_property
    def stall_slack_comb(self) -> float:
        """Cycles of temporal stalls, in which the array waits for a memory port."""
        return self._cycles("temporal_stall")

    @cached_property
    def latency_total0(self) -> float:
        """Latency with stalls, but without on-loading, off-loading and drain, in cycles."""
        return self._cycles("ideal", "spatial_stall", "temporal_stall")

    @cached_property
    def latency_total1(self) -> float:
        """Latency with stalls and on-loading, but without off-loading and drain, in cycles."""
        return self._cycles("ideal", "spatial_stall", "temporal_stall", "onloading")

    @cached_property
    def data_onloading_cycle(self) -> float:
        """Cycles of on-loading: inputs move down to the lowest memories before the array starts."""
        return self._cycles("onloading")

    @cached_property
    def data_offloading_cycle(self) -> float:
        """Cycles of off-loading: outputs still move to higher memories after the array has ended its work."""
        return self._cycles("offloading")

    @cached_property
    def systolic_drain_cycle(self) -> float:
        """Cycles in which a systolic array drains."""
        return self._cycles("drain")

    def _cycles(self, *parts: str) -> float:
        found = self.record.latency_breakdown_cycles
        return sum(found.get(part, 0) for part in parts)

    def __jsonrepr__(self) -> JsonObject:
        """Inputs and outputs as in the output files of CompleteSaveStage."""
        problem = self._costs.batch.problem
        return complete_layer(self.record, problem.core, problem.layer, self.layer.name)

    def __str__(self) -> str:
        return f"CostModelEvaluation({self.layer.name} on {self._costs.batch.problem.core.name})"

    __repr__ = __str__

    def has_more(self) -> bool:
        """True if a user's stage has changed the energy or the latency, or has added an attribute."""
        return self.is_changed() or not vars(self).keys() <= _OWN

    def is_changed(self) -> bool:
        """True if a user's stage has changed the energy or the latency."""
        found = float(self._costs.energy_pj[self._row]), float(self._costs.latency_cycles[self._row])
        return (self.energy_total, self.latency_total2) != found

    def as_costs(self) -> CostedBatch:
        """Batch with only the loop order of this CME. Its costs include the values that a user's stage has set."""
        costs = single_row(self._costs, self._row)
        costs.energy_pj[0], costs.latency_cycles[0] = self.energy_total, self.latency_total2
        return costs


_OWN = frozenset(vars(CostModelEvaluation)) | {
    *("_costs", "_row", "_context", "_told", "energy_total", "latency_total2")
}
"""Names of the attributes that tilewright defines for a CME. An attribute with another name was added by a user's
stage.
"""


class CumulativeCME(CostModelEvaluationABC):
    """Sum of several CMEs."""

    def __init__(self, parts: "list[CostModelEvaluationABC] | None" = None) -> None:
        self.parts = list(parts or ())
        for name in SUMS:
            setattr(self, name, sum((getattr(part, name) for part in self.parts), 0.0 if "energy" in name else 0))
        self.accelerator = self.parts[-1].accelerator if self.parts else None

    @property
    def layer_ids(self) -> list[int]:
        """Ids of the layers whose CMEs are summed."""
        return [part.layer.id for part in self.parts]

    @property
    def layer(self) -> list[int]:
        """Ids of the layers whose CMEs are summed. Releases of zigzag-dse before 3.0 use the name `layer` for
        `layer_ids`.
        """
        return self.layer_ids

    @cached_property
    def mem_energy_breakdown(self) -> dict[str, list[Any]]:
        """Energy of memory accesses by operand and level, in pJ."""
        return self._added("mem_energy_breakdown")

    @cached_property
    def mem_energy_breakdown_further(self) -> dict[str, list[Any]]:
        """Energy of memory accesses by operand, level and direction, in pJ."""
        return self._added("mem_energy_breakdown_further")

    @cached_property
    def memory_word_access(self) -> dict[str, list[Any]]:
        """Number of words that memories read or write, by operand, level and direction."""
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
    """CMEs of single mappings whose sum is `cme`. If `cme` is not a sum, the only element is `cme` itself."""
    if isinstance(cme, CumulativeCME):
        yield from cme.parts
    else:
        yield cme
