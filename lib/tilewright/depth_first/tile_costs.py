"""What the best mapping of a layer of a tile costs: the single-layer search, on the memories that its data reach."""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from tilewright.cost.breakdown import latency_terms
from tilewright.cost.energy_terms import energy_term_names
from tilewright.cost.ledger import ACCESSES, LATENCY_TERMS
from tilewright.depth_first.chain import Chain
from tilewright.depth_first.ledger import Ledger
from tilewright.depth_first.options import LayerOptions, TileOptions
from tilewright.depth_first.reading import DEFAULT, Reading
from tilewright.depth_first.stack_cost import TileProblem
from tilewright.errors import MappingError
from tilewright.hardware.core import FH, FL, TH, TL, Core
from tilewright.mapping.constraints import MappingConstraints
from tilewright.mapping.memory_reach import MemoryReach, remove_unused_memories
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.search.batch import best_row, cost_orders, is_better
from tilewright.search.evaluate import PreparedProblem, prepare, workspace_of
from tilewright.search.loma import loma_batches
from tilewright.search.options import BoundaryParameters
from tilewright.workload.layer import Layer


class TileSearch:
    """Costs tiles of a chain, each problem once. Not for several threads."""

    def __init__(self, chain: Chain, options: TileOptions, reading: Reading) -> None:
        self.chain, self.options, self.reading = chain, options, reading
        self._known: dict[TileProblem, Ledger | None] = {}

    @property
    def searched(self) -> int:
        """How many different problems have been searched."""
        return len(self._known)

    def __call__(self, problem: TileProblem) -> Ledger | None:
        """The ledger of the best mapping, not to be changed; None where nothing fits."""
        if problem not in self._known:
            self._known[problem] = self._search(problem)
        return self._known[problem]

    def _search(self, problem: TileProblem) -> Ledger | None:
        entry = self.chain.layers[problem.layer]
        ends = (problem.input_memory, problem.output_memory, problem.weight_memory)
        core = _own_core(self.chain, problem.layer, ends)
        layer = entry.tile(problem.made, problem.read)
        return best_ledger(layer, core, entry.constraints, self.options, self.reading)


def best_ledger(
    layer: Layer, core: Core, constraints: MappingConstraints, options: LayerOptions, reading: Reading = DEFAULT
) -> Ledger | None:
    """What the best mapping of a layer on a core costs; None where nothing fits."""
    best: Ledger | None = None
    try:
        for prepared in _prepared(layer, core, constraints, options):
            found = _best(prepared, constraints.temporal_ordering, options, reading)
            if found is not None and (best is None or _is_better(found, best, options.objective)):
                best = found
    except MappingError:
        return best
    return best


def _prepared(
    layer: Layer, core: Core, constraints: MappingConstraints, options: LayerOptions
) -> Iterator[PreparedProblem]:
    """The problem with each of its spatial mappings that is possible."""
    links = constraints.memory_operand_links
    count, mixed = options.spatial_count(False), options.enable_mix_spatial_mapping
    even = constraints.temporal_mapping_type or options.temporal_mapping_type
    same_data = constraints.access_same_data_considered_as_no_access is not False
    boundaries = BoundaryParameters(model=options.model, temporal_mapping_type=even)
    for unrolling in spatial_candidates(layer, core, constraints, options.profile, count, mixed):
        try:
            yield prepare(layer, core, links, unrolling, boundaries, same_data_is_no_access=same_data)
        except MappingError:
            continue


def _is_better(one: Ledger, other: Ledger, objective: str) -> bool:
    costs, known = (one.energy_pj, one.latency_cycles()), (other.energy_pj, other.latency_cycles())
    return is_better(objective, costs, known)


def _best(prepared: PreparedProblem, ordering, options: LayerOptions, reading: Reading) -> Ledger | None:  # type: ignore[no-untyped-def]
    batches = loma_batches(prepared, ordering, options.lpf_limit)
    if reading.own_tile_costs:
        from tilewright.peers.defines.tile_costs import least_energy

        cost = least_energy(batches)
        return None if cost is None else _defines_ledger(cost)
    best = order = None
    for batch in batches:
        costed = cost_orders(batch)
        row = best_row(costed, options.objective)
        if row is None:
            continue
        costs = float(costed.energy_pj[row]), float(costed.latency_cycles[row])
        if best is None or is_better(options.objective, costs, best):
            best, order = costs, batch.loop_order(row)
    return None if order is None else _ledger(prepared, order)


@lru_cache(maxsize=4096)
def _own_core(chain: Chain, place: int, ends: tuple[int, int, int | None]) -> Core:
    entry = chain.layers[place]
    reach = MemoryReach(entry.layer.name, *ends)
    return remove_unused_memories(chain.core, entry.layer, entry.constraints.memory_operand_links, reach)


def _ledger(prepared: PreparedProblem, order) -> Ledger:  # type: ignore[no-untyped-def]
    """The parts of the cost of one mapping."""
    workspace = workspace_of(prepared, order, None)
    ledger = Ledger(float(workspace["totals"][0]), mac_count=prepared.layer.mac_count)
    terms = energy_term_names(prepared.core)
    values = workspace["terms"][: len(terms)].tolist()
    ledger.terms_pj = {name: value for name, value in zip(terms, values, strict=True) if name != ACCESSES}
    cycles = latency_terms(prepared.arrays, workspace)
    ledger.cycles.update(zip(LATENCY_TERMS, map(float, cycles), strict=True))
    _add_accesses(ledger, prepared, workspace["words"])
    return ledger


def _defines_ledger(cost) -> Ledger:  # type: ignore[no-untyped-def]
    prepared = cost.problem
    arrays = prepared.arrays
    ideal = math.ceil(prepared.layer.mac_count / prepared.core.operational_array.unit_count)
    ledger = Ledger(cost.energy_pj, {"mac": float(arrays["fixed_energy_pj"])}, mac_count=prepared.layer.mac_count)
    ledger.cycles["ideal"] = float(ideal)
    ledger.cycles["spatial_stall"] = cost.total_cycles - ideal
    ledger.cycles["temporal_stall"] = cost.stall_cycles
    ledger.cycles["onloading"] = cost.onloading_cycles
    ledger.cycles["offloading"] = cost.offloading_cycles
    _add_accesses(ledger, prepared, cost.words)
    return ledger


def _add_accesses(ledger: Ledger, prepared: PreparedProblem, words: np.ndarray) -> None:
    """Accesses and their energy by memory, named by its index in the whole core, and operand."""
    levels, counts = prepared.arrays["level_memory"].tolist(), prepared.arrays["level_count"].tolist()
    for o, operand in enumerate(prepared.layer.operands):
        for m in range(counts[o]):
            memory = prepared.core.memories[levels[o][m]]
            down, up_in, up, down_in = (float(words[o, m, x]) for x in (TL, FL, TH, FH))
            cause = (memory.name, operand)
            ledger.read_words[cause] = ledger.read_words.get(cause, 0.0) + down + up
            ledger.written_words[cause] = ledger.written_words.get(cause, 0.0) + up_in + down_in
            energy = (down + up) * memory.read_energy_pj + (up_in + down_in) * memory.write_energy_pj
            ledger.memory_pj[cause] = ledger.memory_pj.get(cause, 0.0) + energy
