"""Terms of a layer's energy on a core: array, memory accesses, static power, and terms that plug-ins register.

The terms of static power come from the hardware attributes that are powers (`hardware.attributes`). Each term of a
plug-in is one object with the attributes of `EnergyTerm`. The object is registered in `ENERGY_TERMS` under the name of
the term, and no other code contains this name.

This module also makes the `ArrayWork` of a layer with its spatial mapping, which array models read.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Protocol

from tilewright.base.errors import InputError, Problem
from tilewright.base.profile import ModelProfile, profile_by_name
from tilewright.base.registry import Registry, lacking, methods_of, taken
from tilewright.cost.ledger import ACCESSES
from tilewright.cost.record import ArrayUseRecord, LayerRecord
from tilewright.hardware.array_model import MAC, ArrayRefusalError, ArrayWork, InputWindow, array_model
from tilewright.hardware.attributes import BUILT_IN, attributes, power_terms
from tilewright.hardware.core import DIGITAL, Core
from tilewright.hardware.static_power import rate_pj_a_cycle
from tilewright.hardware.system import IN_CELLS
from tilewright.mapping.constraints import Unrolling
from tilewright.mapping.spatial import spread_lanes
from tilewright.mapping.zeros import active_share
from tilewright.workload.layer import Layer, weight_operand
from tilewright.workload.relevancy import operand_relevancy

Links = tuple[tuple[str, str], ...]
"""Pairs (layer operand, memory operand)."""


def array_work(layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links) -> ArrayWork:
    """Work of a layer with a spatial mapping, for the model of the core's array. Raises MappingError if the spatial
    mapping cannot be converted to busy lanes."""
    given = {name: dict(factors) for name, factors in unrolling}
    if core.operational_array.kind == DIGITAL:
        return ArrayWork(layer.mac_count, given, given, {}, profile, active_share(layer, core, dict(links)))
    spread = profile.in_memory_active_parts
    lanes = spread_lanes(unrolling, layer, core, profile.whole_tiles) if spread else given
    return ArrayWork(layer.mac_count, given, lanes, input_loops(layer, profile, links), profile)


def array_use(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> ArrayUseRecord | None:
    """Use of an in-memory array by a layer, for the record of the layer; None for any other array."""
    if core.operational_array.kind == DIGITAL:
        return None
    work = array_work(layer, core, unrolling, profile, links)
    return ArrayUseRecord({name: dict(lanes) for name, lanes in work.lanes.items()}, dict(work.input_loops))


def work_of_record(record: LayerRecord) -> ArrayWork:
    """Work of a layer for the model of an array. The work is read from the record of the layer."""
    own = record.array_use or ArrayUseRecord({}, {})
    profile = profile_by_name(record.model)
    return ArrayWork(
        record.layer.work, record.spatial_mapping, own.lanes, own.input_loops, profile, record.active_share
    )


def input_loops(layer: Layer, profile: ModelProfile, links: Links) -> Mapping[str, InputWindow | None]:
    """Loop dimensions along which neighbouring columns of the array need different inputs: dimension -> its sliding
    window; None if it has no sliding window.

    These are dimensions of the input that is not stored in the cells; dimensions of size 1 are left out. zigzag-dse
    3.9.1 instead takes the dimensions that are irrelevant to the weights (fault B14, docs/model.md).
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
    """Energy in pJ that a term adds to a layer: `fixed_pj + pj_a_cycle * latency`. Both fields are at least 0."""

    fixed_pj: float = 0.0
    """Energy in pJ that does not depend on the loop order."""
    pj_a_cycle: float = 0.0
    """Energy in pJ for each cycle of the latency."""


class EnergyTerm(Protocol):
    """Energy term in addition to the terms of operations and of memory accesses."""

    def concerns(self, core: Core) -> bool:
        """True if the term applies to a core. Otherwise, results of the core do not contain the term."""

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Energy of the term for a layer. `core` has only the memories that the layer can use."""

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Energy of the term, in pJ, for each cycle in which no layer runs because data are copied between memories.
        Only depth-first schedules and attention in tiles have such cycles. In a schedule of several cores, waiting
        cycles of a core do not count.
        """


def _fault(name: str, entry: object) -> str:
    """Fault in the name or in the object of a plug-in's term; "" if there is no fault.

    The function does not compare the name with the terms of in-memory arrays; `energy_term_names` compares them for
    each core.
    """
    owner = next((one for one in attributes() if one.term == name and one not in BUILT_IN), None)
    if owner is not None:
        return f"has the name {name}, but the attribute {owner.key} already has an energy term of this name"
    return taken(name, (ACCESSES, MAC, *power_terms())) or lacking(entry, methods_of(EnergyTerm))


ENERGY_TERMS: Registry[EnergyTerm] = Registry(__name__, _fault)
"""Energy terms of plug-ins, by name. Energies are added in the order of this registry, after the energies of
operations, accesses and static power.
"""


@dataclass(frozen=True)
class PowerTerm:
    """Static power of one core. The array and all memories of the core, including the outermost memory, draw this power
    in every cycle."""

    pj_a_cycle: float

    def concerns(self, core: Core) -> bool:
        """True if the hardware file gives a static power and the clock. Both are needed to compute the energy per
        cycle."""
        return self.pj_a_cycle > 0

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Static energy of a layer, which is proportional to the latency."""
        return TermCost(pj_a_cycle=self.pj_a_cycle)

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Static energy in pJ of one cycle in which data are copied. The result is equal to the static energy of a
        cycle of computing.
        """
        return self.pj_a_cycle


@dataclass(frozen=True)
class CheckedTerm:
    """Energy term of a plug-in whose values are checked: energies are finite numbers of at least 0."""

    name: str
    term: EnergyTerm

    def concerns(self, core: Core) -> bool:
        """True if the term applies to a core."""
        return self.term.concerns(core)

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Energy of the term for a layer. Raises InputError if the term gives a wrong value: energies must be finite
        and at least 0.
        """
        found = self.term.cost(layer, core, unrolling)
        if not (isinstance(found, TermCost) and is_energy(found.fixed_pj) and is_energy(found.pj_a_cycle)):
            allowed = "TermCost(fixed_pj, pj_a_cycle) with finite numbers of at least 0"
            raise InputError([wrong_energy(self.name, f"layer {layer.name} on {core.name}", found, allowed)])
        return found

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Energy of the term, in pJ, for each cycle in which no layer runs because data are copied between memories.
        Raises InputError if the term gives a wrong value: energies must be finite and at least 0.
        """
        found = self.term.waiting_pj_a_cycle(core)
        if not is_energy(found):
            raise InputError([wrong_energy(self.name, f"cycles in which data are copied on {core.name}", found)])
        return found


def is_energy(value: object) -> bool:
    """True if a plug-in gave a valid energy: a finite number of at least 0."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0  # type: ignore[arg-type,operator,return-value]


def wrong_energy(name: str, what: str, value: object, allowed: str = "finite numbers of at least 0") -> Problem:
    """Problem that the plug-in `name` gives a wrong energy for `what`. `allowed` is the text of allowed values."""
    return Problem(
        f"is not a valid energy for {what}",
        f"plug-in {name}",
        value=repr(value),
        allowed=allowed,
    )


def further_energy_terms(core: Core) -> dict[str, EnergyTerm]:
    """Energy terms that apply to a core, by name: first the terms of static power, then the terms of plug-ins."""
    known: dict[str, EnergyTerm] = {name: PowerTerm(rate_pj_a_cycle(core, name)) for name in power_terms()}
    known |= {name: CheckedTerm(name, ENERGY_TERMS[name]) for name in ENERGY_TERMS.names}
    return {name: term for name, term in known.items() if term.concerns(core)}


def energy_term_names(core: Core) -> tuple[str, ...]:
    """Names of a core's energy terms, in the order in which they are added.

    Raises InputError if two terms have the same name.
    """
    found = (*array_model(core.operational_array).terms, ACCESSES, *further_energy_terms(core))
    if twice := sorted({name for name in found if found.count(name) > 1}):
        message = "two energy terms of this core have the same name"
        raise InputError([Problem(message, core.name, value=name) for name in twice])
    return found


def energy_terms_of(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> dict[str, TermCost]:
    """Energy terms of a layer on a core, by name. The term of memory accesses depends on the loop order, and is 0 here.

    Raises ArrayRefusalError, which is a MappingError, if the array cannot run the spatial mapping.
    """
    array, work = core.operational_array, array_work(layer, core, unrolling, profile, links)
    model = array_model(array)
    if reason := model.refusal(array, work):
        raise ArrayRefusalError(reason)
    terms = {name: TermCost(energy) for name, energy in zip(model.terms, model.energies_pj(array, work), strict=True)}
    terms[ACCESSES] = TermCost()
    return terms | {name: term.cost(layer, core, unrolling) for name, term in further_energy_terms(core).items()}
