"""Terms of a layer's energy on a core: array, memory accesses, static power, and terms that plug-ins enter.

The term of static power follows from the hardware attributes that are powers (`hardware.attributes`). A further term is
one object with the attributes of `EnergyTerm`, entered in `ENERGY_TERMS` under its name; no other code names it.

This module also makes the `ArrayWork` that models of arrays read: the work of a layer with its spatial mapping.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tilewright.base.errors import InputError, Problem
from tilewright.base.profile import ModelProfile, profile_by_name
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.record import ArrayUseRecord, LayerRecord
from tilewright.hardware.array_model import ArrayRefusalError, ArrayWork, InputWindow, array_model
from tilewright.hardware.attributes import power_terms
from tilewright.hardware.core import DIGITAL, Core
from tilewright.hardware.static_power import rate_pj_a_cycle
from tilewright.hardware.system import IN_CELLS
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.spatial import spread_lanes
from tilewright.workload.layer import Layer, weight_operand
from tilewright.workload.relevancy import operand_relevancy

Links = tuple[tuple[str, str], ...]
"""Pairs (layer operand, memory operand)."""


def array_work(layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links) -> ArrayWork:
    """Work of a layer with a spatial mapping on a core's array. Raises MappingError if the conversion fails."""
    given = {name: dict(factors) for name, factors in unrolling}
    if core.operational_array.kind == DIGITAL:
        return ArrayWork(layer.mac_count, given, given, {}, profile)
    spread = profile.in_memory_active_parts
    lanes = spread_lanes(unrolling, layer, core, profile.whole_tiles) if spread else given
    return ArrayWork(layer.mac_count, given, lanes, input_loops(layer, profile, links), profile)


def array_use(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> ArrayUseRecord | None:
    """Work of the array as part of a record; None for a digital array."""
    if core.operational_array.kind == DIGITAL:
        return None
    work = array_work(layer, core, unrolling, profile, links)
    return ArrayUseRecord({name: dict(lanes) for name, lanes in work.lanes.items()}, dict(work.input_loops))


def work_of_record(record: LayerRecord) -> ArrayWork:
    """Work of the array, read from the record of a layer."""
    own = record.array_use or ArrayUseRecord({}, {})
    profile = profile_by_name(record.model)
    return ArrayWork(record.layer.work, record.spatial_mapping, own.lanes, own.input_loops, profile)


def input_loops(layer: Layer, profile: ModelProfile, links: Links) -> Mapping[str, InputWindow | None]:
    """Input windows by loop dimension, for dimensions whose columns side by side need inputs of their own.

    Only dimensions of more than one iteration are keys; the value is None for a dimension without sliding window. The
    dimensions are those of the input that the mapping does not put into the cells. The reference takes only dimensions
    over which weights stay the same, and only those of the constant input; of two computed inputs it takes the first
    (B14).
    """
    windows: dict[str, InputWindow] = {}
    for relation in layer.relations:
        (first, one), (second, other) = relation.terms
        windows.setdefault(first, InputWindow(second, one, other))
        windows.setdefault(second, InputWindow(first, other, one))
    return {name: windows.get(name) for name in _input_loop_names(layer, profile, links)}


def _input_loop_names(layer: Layer, profile: ModelProfile, links: Links) -> tuple[str, ...]:
    if not profile.complete_in_memory_model:
        weight = weight_operand(layer)
        return () if weight is None else operand_relevancy(layer, weight, profile).irrelevant
    stored = [operand for operand in layer.input_operands if (operand, IN_CELLS) in links]
    arriving = [operand for operand in layer.input_operands if operand not in stored]
    if len(stored) != 1 or len(arriving) != 1:
        return ()
    same = operand_relevancy(layer, arriving[0], profile).irrelevant
    return tuple(name for name, size in layer.loop_sizes if size > 1 and name not in same)


@dataclass(frozen=True)
class TermCost:
    """Energy that a term adds to a layer: `fixed_pj + pj_a_cycle * latency`; neither is negative."""

    fixed_pj: float = 0.0
    """Energy in pJ that is the same for every loop order."""
    pj_a_cycle: float = 0.0
    """Energy in pJ for each cycle of the latency."""


class EnergyTerm(Protocol):
    """A term of the energy in addition to operations and memory accesses."""

    def concerns(self, core: Core) -> bool:
        """True if the term applies to a core; otherwise results of the core do not name the term."""

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Energy of the term for a layer, on the core as the layer sees it."""

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Energy of the term in pJ for each cycle in which no layer runs and data are copied between memories."""


def _fault(name: str, entry: object) -> str:
    """Fault in the name of a plug-in's term, or "". Names of array terms are checked with the array."""
    return taken(name, (ACCESSES, *power_terms())) or lacking(entry, methods_of(EnergyTerm))


ENERGY_TERMS: Registry[EnergyTerm] = Registry(__name__, _fault)
"""Energy terms by name; they add up in this order, after operations, accesses and static power."""


@dataclass(frozen=True)
class PowerTerm:
    """Static power of one core: all its memories and units draw it in every cycle, the outermost memory included."""

    pj_a_cycle: float

    def concerns(self, core: Core) -> bool:
        """True if the hardware file gives static power, and the clock that turns it into energy."""
        return self.pj_a_cycle > 0

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Energy proportional to the latency."""
        return TermCost(pj_a_cycle=self.pj_a_cycle)

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Static energy in pJ of one cycle of copying, the same as of one cycle of computing."""
        return self.pj_a_cycle


def further_energy_terms(core: Core) -> dict[str, EnergyTerm]:
    """Terms of static power and terms of plug-ins that apply to a core, by name."""
    known: dict[str, EnergyTerm] = {name: PowerTerm(rate_pj_a_cycle(core, name)) for name in power_terms()}
    known |= {name: ENERGY_TERMS[name] for name in ENERGY_TERMS.names}
    return {name: term for name, term in known.items() if term.concerns(core)}


def energy_term_names(core: Core) -> tuple[str, ...]:
    """Names of a core's energy terms, in the order of addition. Raises InputError if two have the same name."""
    found = (*array_model(core.operational_array).terms, ACCESSES, *further_energy_terms(core))
    if twice := sorted({name for name in found if found.count(name) > 1}):
        message = "is a term of the energy of the array, and of another one"
        raise InputError([Problem(message, core.name, value=name) for name in twice])
    return found


def energy_terms_of(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> dict[str, TermCost]:
    """All energy terms of a layer on a core, by name; that of accesses depends on the loop order and is left 0.

    Raises ArrayRefusalError, a MappingError, where the array cannot run the spatial mapping.
    """
    array, work = core.operational_array, array_work(layer, core, unrolling, profile, links)
    model = array_model(array)
    if reason := model.refusal(array, work):
        raise ArrayRefusalError(reason)
    terms = {name: TermCost(energy) for name, energy in zip(model.terms, model.energies_pj(array, work), strict=True)}
    terms[ACCESSES] = TermCost()
    return terms | {name: term.cost(layer, core, unrolling) for name, term in further_energy_terms(core).items()}
