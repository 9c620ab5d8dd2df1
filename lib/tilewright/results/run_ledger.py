"""Ledger of a run: the parts of its energy and its latency, by layer, term and memory.

The parts add up to the totals.

The field `run` of a ledger (a `RunPoint`) decides with which other runs the run can be compared. The ledgers of the
designs of a design space are made in `designs/`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tilewright.base.artifacts.envelope import PLUG_INS
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.cost.ledger import ACCESSES, ARRAYS, agree
from tilewright.cost.record import LayerRecord
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.energy_ledger import ON_CORE, term_parts, words_of
from tilewright.multicore.scheduling.result import ScheduleArtifact
from tilewright.results.pareto import candidate, multi_candidate
from tilewright.results.part_costs import HardwareCosts
from tilewright.results.records import Summary, layers_in_order, memory_energies_pj, other_energies_pj
from tilewright.results.run_point import RunPoint

ENERGY, LATENCY = ENERGY_PJ, LATENCY_CYCLES
QUANTITIES = (ENERGY, LATENCY)
ENDS_LATER, AFTER_LAYERS = "ends_later", "after_all_layers"
"""Terms of the latency of a schedule. ENDS_LATER: cycles by which a layer ends later than all earlier layers.
AFTER_LAYERS: cycles after the end of all layers, in which outputs still move.
"""
NO_TERM = "in_no_term"
"""Term for the difference between a total and the sum of the other terms, if there is a difference."""
_WORDS = {
    ENDS_LATER: "ends after the layers before",
    AFTER_LAYERS: "after all layers",
    NO_TERM: "in no term",
}


class LedgerPlace(NamedTuple):
    """Key of a number in a ledger. Fields that do not apply are ''."""

    quantity: str
    """Quantity: ENERGY or LATENCY."""
    layer: str
    term: str
    memory: str = ""
    part: str = ""
    """Part of the term. For the energy of accesses in a run on one core, it is the operand. For the energy of moved
    data in a run on several cores, it is `link` or `memory`.
    """


Entries = dict[LedgerPlace, float]


@dataclass(frozen=True, eq=False)
class RunLedger:
    """Ledger of a run or of a design in a design space: the parts of its energy and its latency. Comparisons of runs
    use ledgers.
    """

    run: RunPoint
    """Run of the ledger, with its name, totals and options."""
    entries: Entries
    """Numbers of the ledger by key, in execution order. The energies add up to the total energy, and the cycles add up
    to the total latency.
    """
    settings: tuple[tuple[str, str], ...] = ()
    """Options that may differ between comparable runs. The options that must be equal are those of `run`."""
    made_of: Mapping[str, str] = field(default_factory=dict)
    """Digests of the inputs of the run, by kind of input, such as `hardware`. {} for a design."""
    made_with: Mapping[str, str] = field(default_factory=dict)
    """Plug-ins of the run: name and version of a package -> digest of its code. {} for a design."""
    memory_bits: Mapping[str, int] = field(default_factory=dict)
    """Size in bits of each on-chip memory of a run on several cores; {} for a run on one core."""

    @property
    def options(self) -> dict[str, str]:
        """Known options as texts, including the cost model and the objective."""
        run = self.run
        chosen = {"model": run.model, "objective": run.objective} | dict(run.options) | dict(self.settings)
        return {key: text for key, text in chosen.items() if text}

    def total(self, quantity: str) -> float:
        """Total of a quantity: energy in pJ or latency in cycles."""
        total: float = getattr(self.run, quantity)
        return total


def ledger_of(
    run: RunPoint,
    entries: Iterable[tuple[LedgerPlace, float]],
    settings: Iterable[tuple[str, str]] = (),
    made_of: Mapping[str, str] | None = None,
    memory_bits: Mapping[str, int] | None = None,
) -> RunLedger:
    """Ledger of a run, made from the numbers in `entries`. Numbers with equal keys are summed, and zeros are left out.

    If the numbers of a quantity do not add up to the total in `run`, the difference is added as the term NO_TERM.
    `settings`, `made_of` and `memory_bits` become fields of the ledger.
    """
    found = added_up(entries)
    for quantity in QUANTITIES:
        total = getattr(run, quantity)
        terms = sum(value for place, value in found.items() if place.quantity == quantity)
        if not agree(total, terms):
            found[LedgerPlace(quantity, "", NO_TERM)] = total - terms
    kept = {place: value for place, value in found.items() if value}
    return RunLedger(run, kept, tuple(settings), made_of or {}, memory_bits=memory_bits or {})


def added_up(entries: Iterable[tuple[LedgerPlace, float]]) -> Entries:
    """Sums of the numbers with the same key, in the order in which the keys first occur."""
    found: Entries = {}
    for place, value in entries:
        found[place] = found.get(place, 0.0) + value
    return found


def ledger_of_layers(
    name: str,
    records: Sequence[LayerRecord],
    summary: Summary | None,
    made_by: Mapping[str, Any],
    costs: HardwareCosts | None = None,
) -> RunLedger:
    """Ledger of a run on one core. `made_by` is the provenance of the records; `costs` are the costs of the parts of
    the core, if they are known.

    If there is no summary, the ledger has no name of the network, and the layers are in the order of the records.
    """
    placed = layers_in_order(records, summary)
    in_order = [layer.record for layer in placed]
    if summary is None:
        run = replace(_of_records(name, in_order, made_by), costs=costs)
    else:
        run = candidate(name, summary, made_by, costs)
    entries = (entry for layer in placed for entry in _layer_entries(layer.name, layer.record))
    return replace(ledger_of(run, entries, made_of=made_by.get("inputs", {})), made_with=made_by.get(PLUG_INS, {}))


def ledger_of_schedule(
    name: str,
    artifact: ScheduleArtifact,
    summary: Summary,
    made_by: Mapping[str, Any],
    costs: Mapping[str, Sequence[CoreCostRow]] | None,
) -> RunLedger:
    """Ledger of a run on several cores. `costs` are the cost tables by core file; without them, a layer's energy on the
    cores is a single term.
    """
    run = multi_candidate(name, summary, made_by)
    counted = dict(run.options)
    settings = ((key, str(value)) for key, value in summary["settings"].items() if key not in counted)
    entries = [*schedule_energies(artifact, costs), *_ends(artifact)]
    sizes = dict(zip(artifact.names.memory_names, artifact.system.memory_capacity_bits.tolist(), strict=True))
    del sizes[artifact.names.memory_names[artifact.system.off_chip_memory]]
    ledger = ledger_of(run, entries, settings, made_by.get("inputs", {}), sizes)
    return replace(ledger, made_with=made_by.get(PLUG_INS, {}))


def schedule_energies(
    artifact: ScheduleArtifact, costs: Mapping[str, Sequence[CoreCostRow]] | None
) -> Iterator[tuple[LedgerPlace, float]]:
    """Energy of a schedule in pJ: first the energy on the cores by layer, term and memory, then the energy of moved
    data by cause.

    `costs` are the cost tables by core file; without them, a layer's energy on the cores is a single term.
    """
    yield from _on_core_entries(artifact, costs)
    for term, part, energy in term_parts(artifact.schedule.energy_terms_pj):
        if term != ON_CORE:
            yield LedgerPlace(ENERGY, "", term, part=part), energy


def words_of_term(term: str) -> str:
    """Text that names a term of a ledger."""
    return _WORDS.get(term) or words_of(term)


def renamed(ledger: RunLedger, name: str) -> RunLedger:
    """Ledger with another name for its run."""
    return replace(ledger, run=replace(ledger.run, run=name))


def _of_records(name: str, records: Sequence[LayerRecord], made_by: Mapping[str, Any]) -> RunPoint:
    """Point (energy, latency, area) of a run without a summary, made from the records of the run."""
    first = records[0] if records else None
    options = made_by.get("options", {})
    return RunPoint(
        run=name,
        workload="",
        workload_digest=str(made_by.get("inputs", {}).get("workload", "")),
        core=first.core if first else "",
        objective=first.objective if first else "",
        model=first.model if first else "",
        options=tuple((key, str(value)) for key, value in options.items() if key not in ("objective", "model")),
        energy_pj=sum(record.energy_pj for record in records),
        latency_cycles=sum(record.latency_cycles for record in records),
        area_mm2=first.area_mm2 if first else None,
    )


def _layer_entries(layer: str, record: LayerRecord) -> Iterator[tuple[LedgerPlace, float]]:
    for term, energy in other_energies_pj(record).items():
        yield LedgerPlace(ENERGY, layer, term), energy
    for memory, energies in memory_energies_pj(record).items():
        for (operand, _), energy in energies.items():
            yield LedgerPlace(ENERGY, layer, ACCESSES, memory, operand), energy
    for part, cycles in record.latency_breakdown_cycles.items():
        yield LedgerPlace(LATENCY, layer, part), cycles


def _on_core_entries(
    artifact: ScheduleArtifact, costs: Mapping[str, Sequence[CoreCostRow]] | None
) -> Iterator[tuple[LedgerPlace, float]]:
    """Energy of each layer on the cores. Each class of CNs contributes, on each core, the energy of one CN times the
    number of its CNs on this core.
    """
    graph, names = artifact.graph, artifact.names
    nodes = np.stack([graph.layer, artifact.schedule.allocation, graph.cost_row])
    for (layer, core, row), count in zip(*_counted(nodes), strict=True):
        name = names.layer_names[layer]
        if costs is None:
            energy = float(artifact.problem.costs.on_core_energy_pj[row, core])
            yield LedgerPlace(ENERGY, name, ON_CORE), count * energy
            continue
        cost = costs[names.core_files[core]][row]
        yield LedgerPlace(ENERGY, name, ARRAYS), count * cost.operational_energy_pj
        for memory, energy in cost.memory_energy_pj:
            yield LedgerPlace(ENERGY, name, ACCESSES, memory), count * energy
        for term, energy in cost.term_energy_pj:
            yield LedgerPlace(ENERGY, name, term), count * energy


def _counted(columns: "np.ndarray[Any, Any]") -> tuple[list[tuple[int, ...]], list[int]]:
    """Pair (distinct columns in ascending order, number of occurrences of each)."""
    distinct, counts = np.unique(columns, axis=1, return_counts=True)
    return [tuple(column) for column in distinct.T.tolist()], counts.tolist()


def _ends(artifact: ScheduleArtifact) -> Iterator[tuple[LedgerPlace, float]]:
    """Parts of the latency in network order: cycles by which each layer ends later than all earlier layers, then the
    cycles after the end of all layers.
    """
    layers, schedule, names = artifact.graph.layer, artifact.schedule, artifact.names
    ends = np.zeros(len(names.layer_names), np.int64)
    np.maximum.at(ends, layers, schedule.end_cycles)
    reached = [0, *np.maximum.accumulate(ends).tolist()]
    for name, (before, after) in zip(names.layer_names, pairwise(reached), strict=True):
        yield LedgerPlace(LATENCY, name, ENDS_LATER), after - before
    yield LedgerPlace(LATENCY, "", AFTER_LAYERS), schedule.latency_cycles - reached[-1]
