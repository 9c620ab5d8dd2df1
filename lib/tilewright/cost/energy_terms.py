"""The terms of the energy of a layer on a core: of its array, of memory accesses, of static power, and those that are
entered.

A term of static power follows from the attributes of hardware that are drawn in it (`hardware.attributes`). A further
term is one object with the attributes of `EnergyTerm`, entered in `ENERGY_TERMS` under its name; nothing else names it.

What a layer with a spatial mapping asks of an array, as models of arrays read it.
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
"""(layer operand, memory operand)"""


def array_work(layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links) -> ArrayWork:
    """What a layer with a spatial mapping asks of the array of a core. Raises MappingError as the conversion does."""
    given = {name: dict(factors) for name, factors in unrolling}
    if core.operational_array.kind == DIGITAL:
        return ArrayWork(layer.mac_count, given, given, {}, profile)
    spread = profile.in_memory_active_parts
    lanes = spread_lanes(unrolling, layer, core, profile.whole_tiles) if spread else given
    return ArrayWork(layer.mac_count, given, lanes, input_loops(layer, profile, links), profile)


def array_use(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> ArrayUseRecord | None:
    """Work of the array as a part of a record; None of a digital array."""
    if core.operational_array.kind == DIGITAL:
        return None
    work = array_work(layer, core, unrolling, profile, links)
    return ArrayUseRecord({name: dict(lanes) for name, lanes in work.lanes.items()}, dict(work.input_loops))


def work_of_record(record: LayerRecord) -> ArrayWork:
    """What a layer asks of an array, from its record."""
    own = record.array_use or ArrayUseRecord({}, {})
    profile = profile_by_name(record.model)
    return ArrayWork(record.layer.work, record.spatial_mapping, own.lanes, own.input_loops, profile)


def input_loops(layer: Layer, profile: ModelProfile, links: Links) -> Mapping[str, InputWindow | None]:
    """Loop dimensions of more than one iteration for which columns side by side need inputs of their own, each with the
    window in which it slides, None without one.

    They are those of the input that the mapping does not put into the cells. The reference knows those alone over which
    weights stay the same, of the input that is constant, and of two that are computed always of the first one (B14).
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
    """What a term adds to the energy of a layer: `fixed_pj + pj_a_cycle * latency`, neither negative."""

    fixed_pj: float = 0.0
    """Whatever the loop order."""
    pj_a_cycle: float = 0.0
    """Energy in each cycle of the latency."""


class EnergyTerm(Protocol):
    """A term of the energy besides those of operations and of accesses."""

    def concerns(self, core: Core) -> bool:
        """Whether a core has it at all; where not, its results do not name it."""

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """What it adds for a layer, on the core as the layer sees it."""

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """What it adds in each cycle in which no layer runs and data are copied between memories."""


def _fault(name: str, entry: object) -> str:
    """Fault of a term of others; names of terms of arrays are looked at with the array."""
    return taken(name, (ACCESSES, *power_terms())) or lacking(entry, methods_of(EnergyTerm))


ENERGY_TERMS: Registry[EnergyTerm] = Registry(__name__, _fault)
"""Terms by name, in the order in which they add up after operations, accesses and static power."""


@dataclass(frozen=True)
class PowerTerm:
    """Static power of one core: all its memories and units draw it in every cycle, the outermost memory included."""

    pj_a_cycle: float

    def concerns(self, core: Core) -> bool:
        """Whether its file gives such power, and the clock that makes it energy."""
        return self.pj_a_cycle > 0

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """Cost that grows with the latency."""
        return TermCost(pj_a_cycle=self.pj_a_cycle)

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """Energy of a cycle while data are copied: that of a cycle in which the core computes."""
        return self.pj_a_cycle


def further_energy_terms(core: Core) -> dict[str, EnergyTerm]:
    """The terms of static power and the entered terms that a core has."""
    known: dict[str, EnergyTerm] = {name: PowerTerm(rate_pj_a_cycle(core, name)) for name in power_terms()}
    known |= {name: ENERGY_TERMS[name] for name in ENERGY_TERMS.names}
    return {name: term for name, term in known.items() if term.concerns(core)}


def energy_term_names(core: Core) -> tuple[str, ...]:
    """The terms of the energy on a core in the order in which they add up. Raises InputError for two of one name."""
    found = (*array_model(core.operational_array).terms, ACCESSES, *further_energy_terms(core))
    if twice := sorted({name for name in found if found.count(name) > 1}):
        message = "is a term of the energy of the array, and of another one"
        raise InputError([Problem(message, core.name, value=name) for name in twice])
    return found


def energy_terms_of(
    layer: Layer, core: Core, unrolling: Unrolling, profile: ModelProfile, links: Links
) -> dict[str, TermCost]:
    """Every term of the energy of a layer on a core; that of accesses is what the loop order makes of it.

    Raises ArrayRefusalError, a MappingError, where the array cannot run the spatial mapping.
    """
    array, work = core.operational_array, array_work(layer, core, unrolling, profile, links)
    model = array_model(array)
    if reason := model.refusal(array, work):
        raise ArrayRefusalError(reason)
    terms = {name: TermCost(energy) for name, energy in zip(model.terms, model.energies_pj(array, work), strict=True)}
    terms[ACCESSES] = TermCost()
    return terms | {name: term.cost(layer, core, unrolling) for name, term in further_energy_terms(core).items()}
