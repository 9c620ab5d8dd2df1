"""Depth-first schedules with their costs: a network cut into stacks, each with one tile size and mode."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from tilewright.base.errors import InputError, MappingError, Problem, nearest_name
from tilewright.base.json_values import JsonObject
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.cost.breakdown import latency_terms
from tilewright.cost.energy_terms import energy_term_names, further_energy_terms
from tilewright.cost.latency_terms import added_latency_terms, latency_term_names
from tilewright.cost.ledger import ACCESSES
from tilewright.hardware.core import FH, FL, TH, TL, Core
from tilewright.mapping.constraints import Mapping, MappingConstraints
from tilewright.mapping.memory_reach import MemoryReach, remove_unused_memories
from tilewright.mapping.spatial_generation import spatial_candidates
from tilewright.peers.defines.tile_costs import MODEL
from tilewright.search.batch import best_row, cost_orders, is_better
from tilewright.search.evaluate import PreparedProblem, prepare, workspace_of
from tilewright.search.loma import loma_batches
from tilewright.search.options import BoundaryParameters
from tilewright.tiles.depth_first.chain import Chain, read_chain
from tilewright.tiles.depth_first.locations import MODES
from tilewright.tiles.depth_first.options import DEFAULT, READINGS, LayerOptions, Reading, TileOptions
from tilewright.tiles.depth_first.stack_cost import Ledger, StackModel, TileProblem
from tilewright.workload.graph import Workload
from tilewright.workload.layer import Layer


class TileSearch:
    """Callable object that gives the costs of the tiles of a chain. The mapping of each layer of a tile is searched
    once, and the result is stored.

    An object must not be used by several threads.
    """

    def __init__(self, chain: Chain, options: TileOptions, reading: Reading) -> None:
        self.chain, self.options, self.reading = chain, options, reading
        self._known: dict[TileProblem, Ledger | None] = {}

    @property
    def searched(self) -> int:
        """Number of distinct layers of tiles that were searched."""
        return len(self._known)

    def __call__(self, problem: TileProblem) -> Ledger | None:
        """Ledger (energy, accesses and cycles) of the best mapping of a layer of a tile; None if no mapping fits.
        Callers must not change the ledger, because later calls return the same object.
        """
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
    """Ledger (energy, accesses and cycles) of the best mapping of a layer on a core; None if no mapping fits."""
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
    """Mapping problems of a layer on a core, ready for the cost model: one for each possible spatial mapping."""
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
    """Ledger (energy, accesses and cycles) of the mapping that runs the loops of a prepared problem in the order
    `order`.
    """
    workspace = workspace_of(prepared, order, None)
    ledger = Ledger(float(workspace["totals"][0]), mac_count=prepared.layer.mac_count)
    terms = energy_term_names(prepared.core)
    values = workspace["terms"][: len(terms)].tolist()
    ledger.terms_pj = {name: value for name, value in zip(terms, values, strict=True) if name != ACCESSES}
    cycles = latency_terms(prepared.arrays, workspace)
    ledger.cycles.update(zip(latency_term_names(prepared.core), map(float, cycles), strict=True))
    _add_accesses(ledger, prepared, workspace["words"])
    return ledger


def _defines_ledger(cost) -> Ledger:  # type: ignore[no-untyped-def]
    prepared = cost.problem
    arrays = prepared.arrays
    if terms := (*further_energy_terms(prepared.core), *added_latency_terms(prepared.core)):
        problem = Problem(
            "the reading `defines` supports neither static power, nor waiting, nor terms of plug-ins",
            prepared.core.name,
            value=", ".join(terms),
        )
        raise InputError([problem])
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
    """Add the word accesses of a mapping, and the energy of these accesses, to the ledger, by memory and operand.
    `words` has the numbers of accesses: array [operand, level, direction].
    """
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


@dataclass(frozen=True)
class Point:
    """Mode and tile size of a schedule."""

    mode: str
    tile_x: int
    tile_y: int
    """Height of tiles, in output positions of the last layer of each stack."""


@dataclass(frozen=True)
class ScheduledStack:
    """Stack of a schedule, with its tile size, mode and cost."""

    first: int
    last: int
    mode: str
    tile_x: int
    tile_y: int
    ledger: Ledger


@dataclass(frozen=True)
class DepthFirstSchedule:
    """Depth-first schedule of a network, with its cost."""

    chain: Chain
    reading: Reading
    stacks: tuple[ScheduledStack, ...]

    @cached_property
    def ledger(self) -> Ledger:
        """Sum of the ledgers of all stacks: energy, accesses and cycles."""
        total = Ledger()
        for stack in self.stacks:
            total.add(stack.ledger)
        return total

    @property
    def energy_pj(self) -> float:
        """Total energy of all tiles and copies, in pJ."""
        return self.ledger.energy_pj

    @property
    def latency_cycles(self) -> float:
        """Latency in cycles. Layers of tiles and groups of copies run one after another, so their latencies are added.
        The copies of a group run at the same time. Off-loading (moving the last outputs of a tile out of the array and
        the inner memories) is counted only if `reading.counts_offloading` is true.
        """
        return self.ledger.latency_cycles(self.reading.counts_offloading)

    @property
    def repeated_macs(self) -> int:
        """Number of repeated multiply-accumulates: the number for all tiles together, minus the number for the layers
        without tiles.
        """
        return self.ledger.mac_count - sum(entry.layer.mac_count for entry in self.chain.layers)

    def row(self) -> JsonObject:
        """Row of the table of schedules. Mode and tile size are those of the first stack."""
        first, ledger = self.stacks[0], self.ledger
        top = self.chain.core.memories[-1].name
        row: JsonObject = {
            "mode": first.mode,
            "tile_x": first.tile_x,
            "tile_y": first.tile_y,
            "stacks": len(self.stacks),
            "tiles": ledger.tile_count,
            ENERGY_PJ: self.energy_pj,
            LATENCY_CYCLES: self.latency_cycles,
            "macs": ledger.mac_count,
            "repeated_macs": self.repeated_macs,
        }
        row |= {f"{part}_cycles": cycles for part, cycles in ledger.cycles.items()}
        row |= {f"{name}_energy_pj": value for name, value in ledger.terms_pj.items()}
        by_memory = dict.fromkeys([memory.name for memory in self.chain.core.memories], 0.0)
        for (memory, _), value in ledger.memory_pj.items():
            by_memory[memory] += value
        row |= {f"{memory}_energy_pj": value for memory, value in by_memory.items()}
        row["top_read_words"] = sum(v for (memory, _), v in ledger.read_words.items() if memory == top)
        row["top_written_words"] = sum(v for (memory, _), v in ledger.written_words.items() if memory == top)
        return row

    def as_object(self) -> JsonObject:
        """Schedule with all its stacks as JSON values."""
        names = [entry.layer.name for entry in self.chain.layers]
        return {
            "reading": self.reading.name,
            ENERGY_PJ: self.energy_pj,
            LATENCY_CYCLES: self.latency_cycles,
            "macs": self.ledger.mac_count,
            "repeated_macs": self.repeated_macs,
            "stacks": [
                {
                    "layers": names[stack.first : stack.last + 1],
                    "mode": stack.mode,
                    "tile_x": stack.tile_x,
                    "tile_y": stack.tile_y,
                    **_ledger_object(stack.ledger, self.reading),
                }
                for stack in self.stacks
            ],
        }


def _ledger_object(ledger: Ledger, reading: Reading) -> JsonObject:
    return {
        "tiles": ledger.tile_count,
        "macs": ledger.mac_count,
        ENERGY_PJ: ledger.energy_pj,
        LATENCY_CYCLES: ledger.latency_cycles(reading.counts_offloading),
        "cycles": dict(ledger.cycles),
        "terms_pj": dict(ledger.terms_pj),
        "accesses": ledger.accesses("cause"),
    }


def schedules_of(
    problem: tuple[Workload, Core, Mapping],
    points: Sequence[Point],
    cuts: Sequence[str],
    options: TileOptions,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[DepthFirstSchedule, ...]:
    """Schedules with their costs, one for each point. The mapping of equal layers of tiles is searched only once, even
    if they are at different points.

    `cuts` are the names of the layers after which a stack ends; a stack always ends after the last layer. Raises
    InputError if the network is not a chain, and for unknown names and sizes below 1. Raises MappingError if no mapping
    fits for a layer of a tile.
    """
    model = stack_model(problem, options)
    stacks = stacks_of(model.chain, cuts, points)
    found = []
    for point in points:
        tile = (point.tile_x, point.tile_y)
        parts = [
            ScheduledStack(first, last, point.mode, *tile, model.cost(first, last, tile, point.mode))
            for first, last in stacks
        ]
        found.append(DepthFirstSchedule(model.chain, model.reading, tuple(parts)))
        advance(1)
    return tuple(found)


def stack_model(problem: tuple[Workload, Core, Mapping], options: TileOptions) -> StackModel:
    """Cost model of the stacks of a network. Raises InputError if the network is not a chain."""
    reading = READINGS[options.reading]
    if reading.own_tile_costs:
        options = replace(options, model=MODEL, objective="energy")
    workload, core, mapping = problem
    chain = read_chain(workload, core, mapping, options.profile)
    return StackModel(chain, reading, TileSearch(chain, options, reading))


def stacks_of(chain: Chain, cuts: Sequence[str], points: Sequence[Point]) -> list[tuple[int, int]]:
    """Stacks of a chain, as pairs (index of the first layer, index of the last layer). `cuts` are the names of the
    layers after which a stack ends. Raises InputError with all wrong names in `cuts`, and all wrong modes and tile
    sizes in `points`.
    """
    names = [entry.layer.name for entry in chain.layers]
    problems = [
        Problem(
            "the chain has no layer of this name", path="cut", value=repr(name), nearest=nearest_name(name, names[:-1])
        )
        for name in cuts
        if name not in names
    ]
    problems += [
        Problem("this is the last layer, so there is no cut after it", path="cut", value=repr(name))
        for name in cuts
        if names and name == names[-1]
    ]
    problems += [
        Problem(
            "no such mode",
            path="overlap_mode",
            value=repr(mode),
            allowed=", ".join(MODES),
            nearest=nearest_name(mode, list(MODES)),
        )
        for mode in dict.fromkeys(point.mode for point in points)
        if mode not in MODES
    ]
    for key in ("tile_x", "tile_y"):
        sizes = dict.fromkeys(getattr(point, key) for point in points)
        wrong = [size for size in sizes if type(size) is not int or size < 1]
        problems += [
            Problem("the size of a tile must be a whole number of positions", path=key, value=repr(w), allowed="from 1")
            for w in wrong
        ]
    if problems:
        raise InputError(problems)
    ends = sorted({names.index(name) for name in cuts} | {len(names) - 1})
    return list(zip([0, *[end + 1 for end in ends[:-1]]], ends, strict=True))
