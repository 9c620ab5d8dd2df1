"""Space of allocations: the parts of layers that get a core, and the cores that can run each part.

A core can run a CN under four conditions. The cost table has a runtime. The core has a memory for each operand that
does not stream. The data of the CN fit these memories while the CN runs. A path leads to the off-chip memory.

The scheduler makes the same checks. Each check depends only on one CN and one core. Therefore all checks are made
before the search, so that no evaluation is wasted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tilewright.base.errors import InputError, Problem, cause_of, count_of, some_of
from tilewright.multicore.scheduling.assembled import SystemNames
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Floats, Integers, SchedulingProblem

NO_COST = "no cost in the cost table"


@dataclass(frozen=True)
class Unfit:
    """CNs that a core cannot run, all for one type of reason."""

    cns: Integers
    texts: tuple[str, ...]
    """[position in `cns`] Text of the reason for this CN"""


def unfit_for_core(
    problem: SchedulingProblem, core: int, reasons: Mapping[tuple[int, int], str] | None = None
) -> list[Unfit]:
    """All reasons why a core cannot run CNs, the simplest reason first.

    `reasons` explains missing entries of the cost table, by (row of the cost table, core).
    """
    if core == problem.system.off_chip_core:
        cns = np.arange(problem.graph.node_count)
        return [Unfit(cns, ("this is the off-chip core",) * len(cns))]
    cannot = np.flatnonzero(problem.costs.runtime_cycles[problem.graph.cost_row, core] < 1)
    why = [(reasons or {}).get((row, core), NO_COST) for row in range(len(problem.costs.runtime_cycles))]
    found = [Unfit(cannot, tuple(map(why.__getitem__, problem.graph.cost_row[cannot].tolist())))]
    return [*found, *_without_path(problem, core), *_without_memory(problem, core)]


def _streams(problem: SchedulingProblem, core: int) -> Booleans:
    """[cn, operand] Whether the operand streams from or to the off-chip memory."""
    streams: Booleans = problem.costs.stream_bits[problem.graph.cost_row, core] > 0
    return streams


def _without_path(problem: SchedulingProblem, core: int) -> list[Unfit]:
    """CNs that a missing path makes impossible on a core. CNs that read data need a path from the off-chip core, and
    CNs that write data need a path to it. Streams count as reads and writes.
    """
    system, graph = problem.system, problem.graph
    found, streams = [], _streams(problem, core)
    inward = bool(system.path_exists[system.off_chip_core * system.core_count + core])
    outward = bool(system.path_exists[core * system.core_count + system.off_chip_core])
    if not inward:
        cns = np.flatnonzero((np.diff(graph.need_start) > 0) | np.any(streams[:, OUTPUT_OPERAND + 1 :], axis=1))
        found.append(Unfit(cns, ("no path from the off-chip core",) * len(cns)))
    if not outward:
        makes = np.bincount(graph.piece_producer[graph.piece_producer >= 0], minlength=graph.node_count) > 0
        cns = np.flatnonzero(makes | streams[:, OUTPUT_OPERAND])
        found.append(Unfit(cns, ("no path to the off-chip core",) * len(cns)))
    return found


def _without_memory(problem: SchedulingProblem, core: int) -> list[Unfit]:
    """CNs for which the core has no memory, and CNs whose data do not fit a memory of the core."""
    graph, system = problem.graph, problem.system
    memory_of, memories = system.core_memory[core], len(system.memory_capacity_bits)
    streams = _streams(problem, core)
    produced = np.flatnonzero(graph.piece_producer >= 0)
    cn = np.concatenate((problem.need_cn, graph.piece_producer[produced]))
    piece = np.concatenate((problem.fetch_order[0], produced))
    operand = np.concatenate((problem.fetch_order[1], np.full(len(produced), OUTPUT_OPERAND)))
    kept = ~streams[cn, operand]
    cn, piece, operand = cn[kept], piece[kept], operand[kept]
    memory = memory_of[operand]
    absent = memory < 0
    lacking = Unfit(cn[absent], tuple(f"no memory for operand {number}" for number in operand[absent]))
    cn, piece, memory = cn[~absent], piece[~absent], memory[~absent]
    # This is an upper bound of the stored data: if it fits, no sorting is needed.
    place = cn * memories + memory
    most = np.bincount(place, graph.piece_bits[piece], minlength=graph.node_count * memories)
    may_be_over = (most.reshape(-1, memories) > system.memory_capacity_bits).reshape(-1)[place]
    cn, piece, memory = cn[may_be_over], piece[may_be_over], memory[may_be_over]
    # A piece that a CN reads by two operands is stored once in a memory that holds both operands.
    key = np.sort((cn * memories + memory) * max(len(graph.piece_bits), 1) + piece)
    key = key[np.append(True, key[1:] != key[:-1])[: len(key)]]  # np.unique hashes, which is slow for such keys
    place, piece = np.divmod(key, max(len(graph.piece_bits), 1))
    places, index = np.unique(place, return_inverse=True)
    needed_bits = np.zeros(len(places), np.int64)
    np.add.at(needed_bits, index, graph.piece_bits[piece])
    over = needed_bits > system.memory_capacity_bits[places % memories]
    texts = tuple(
        f"CN {place // memories} needs {bits} bits in memory {place % memories}, "
        f"which has {system.memory_capacity_bits[place % memories]}"
        for place, bits in zip(places[over].tolist(), needed_bits[over].tolist(), strict=True)
    )
    return [lacking, Unfit(places[over] // memories, texts)]


Genome = tuple[int, ...]
"""Core of each flexible part, in the order of `AllocationSpace.flexible`."""


@dataclass(frozen=True)
class LayerRequest:
    """Request for one layer, from `core_allocation` in a mapping file."""

    layer: int
    """Number of the layer, as in `NodeGraph.layer`."""
    cores: tuple[int, ...]
    """Cores that are allowed for every group of the layer. If `is_fixed` is set, it is instead the core of each group.
    """
    is_fixed: bool = False


@dataclass(frozen=True)
class Exclusion:
    """Core that is excluded for a part: the request for the layer allows it, but it cannot run the part."""

    layer: int
    group: int
    core: int
    reason: str


_Stranded = tuple[int, int, Sequence[Exclusion]]
"""Triple (layer, group, reason for each core) of a part that no core can run."""


@dataclass(frozen=True, eq=False)
class AllocationSpace:
    """Parts (layer, group) in rising order, with the allowed cores of each part. `allocation_space` makes it."""

    parts: tuple[tuple[int, int], ...]
    part_of_cn: Integers
    """[cn] Part of the CN"""
    choices: tuple[tuple[int, ...], ...]
    """[part] Cores that are allowed for the part, at least one, in rising order"""
    runtime_cycles: Integers
    """[part, core] Total runtime of the part's CNs in cycles; -1 if the core cannot run some CN of the part"""
    on_core_energy_pj: Floats
    """[part, core] Total energy of the part's CNs in pJ"""
    exclusions: tuple[Exclusion, ...] = ()

    @cached_property
    def flexible(self) -> tuple[int, ...]:
        """Parts with more than one allowed core. Each of them is a gene."""
        return tuple(part for part, cores in enumerate(self.choices) if len(cores) > 1)

    @cached_property
    def gene_choices(self) -> tuple[tuple[int, ...], ...]:
        """[gene] Cores that are allowed for the part of the gene."""
        return tuple(self.choices[part] for part in self.flexible)

    @cached_property
    def size(self) -> int:
        """Number of allocations."""
        return prod(len(cores) for cores in self.gene_choices)

    def part_cores(self, genome: Genome) -> tuple[int, ...]:
        """[part] Core of the part in the allocation of a genome."""
        cores = [choice[0] for choice in self.choices]
        for part, core in zip(self.flexible, genome, strict=True):
            cores[part] = core
        return tuple(cores)

    def allocation(self, genome: Genome) -> Integers:
        """[cn] Core of the CN, as input of the scheduler."""
        return np.array(self.part_cores(genome), np.int64)[self.part_of_cn]

    def genome(self, part_cores: Sequence[int]) -> Genome:
        """Genome of an allocation, from an array [part] of cores. Raises InputError with each part whose core is not
        allowed.
        """
        if len(part_cores) != len(self.parts):
            message = f"must name a core for each of {len(self.parts)} parts of layers"
            raise InputError([Problem(message, path="core_allocation", value=str(len(part_cores)))])
        problems = [
            Problem(
                "core is not allowed for this part",
                path=_part_name(*self.parts[part]),
                value=str(core),
                allowed=", ".join(str(choice) for choice in self.choices[part]),
            )
            for part, core in enumerate(part_cores)
            if core not in self.choices[part]
        ]
        if problems:
            raise InputError(problems)
        return tuple(int(part_cores[part]) for part in self.flexible)


def _layer_name(layer: int, names: SystemNames | None) -> str:
    return f"layer {layer}" if names is None else names.layer_names[layer]


def _part_name(layer: int, group: int, names: SystemNames | None = None) -> str:
    return f"layer {layer} group {group}" if names is None else f"{names.layer_names[layer]} [{group}]"


def allocation_space(
    problem: SchedulingProblem,
    requests: Sequence[LayerRequest] = (),
    names: SystemNames | None = None,
    reasons: Mapping[tuple[int, int], str] | None = None,
) -> AllocationSpace:
    """Space of allocations: the parts of `problem`, with the allowed cores of each part.

    A core is allowed for a part if it can run all CNs of the part, and if the request for the layer allows it.
    `exclusions` of the result lists the cores that a request allows but that cannot run the part. Raises InputError
    with every request for unknown layers or cores, every fixed core that cannot run its part, and every part without a
    core. `names` has the names that messages use. `reasons` explains missing entries of the cost table, by (row of the
    cost table, core).
    """
    graph = problem.graph
    key, part_of_cn = np.unique(np.stack((graph.layer, graph.group)), axis=1, return_inverse=True)
    parts = tuple((int(layer), int(group)) for layer, group in key.T)
    part_of_cn = part_of_cn.ravel().astype(np.int64)
    found = _reasons(problem, part_of_cn, len(parts), reasons)
    problems = _request_problems(problem, parts, requests)
    request_of = {request.layer: request for request in requests}
    choices: list[tuple[int, ...]] = []
    exclusions = []
    stranded: list[_Stranded] = []
    for part, (layer, group) in enumerate(parts):
        wanted = _wanted_cores(problem, request_of.get(layer), group)
        refused = [Exclusion(layer, group, core, found[part, core]) for core in wanted if (part, core) in found]
        choices.append(tuple(core for core in wanted if (part, core) not in found))
        exclusions += refused
        if not choices[-1] and wanted:
            stranded.append((layer, group, refused))
    problems += _no_core(stranded, names)
    if problems:
        raise InputError(problems)
    runtime, energy = _part_costs(problem, part_of_cn, len(parts))
    for part, core in found:
        runtime[part, core] = -1
    return AllocationSpace(parts, part_of_cn, tuple(choices), runtime, energy, tuple(exclusions))


def _no_core(stranded: Sequence[_Stranded], names: SystemNames | None) -> list[Problem]:
    """Problems of parts that no core can run. Parts with the same cause share one problem, which gives the reason for
    the first part.
    """
    alike: dict[object, list[_Stranded]] = {}
    for one in stranded:
        cause = tuple((exclusion.core, cause_of([exclusion.reason])) for exclusion in one[2])
        alike.setdefault(cause, []).append(one)
    problems = []
    for parts in alike.values():
        layer, group, refused = parts[0]
        name, what = _part_name(layer, group, names), "it"
        if len(parts) > 1:
            name = ""
            layers = [_layer_name(layer, names) for layer in dict.fromkeys(layer for layer, _, _ in parts)]
            what = f"{len(parts)} parts of {count_of(len(layers), 'layer')}, {some_of(layers)}"
        problems.append(Problem(f"no core can run {what} ({_reason(refused, names)})", path=name))
    return problems


def _reason(refused: Sequence[Exclusion], names: SystemNames | None) -> str:
    """Text with the reasons why no core can run a part. Cores of one file with the same reason are named together."""
    cores_of: dict[tuple[str, str], list[int]] = {}
    for exclusion in refused:
        file = "" if names is None else names.core_files[exclusion.core]
        core_id = exclusion.core if names is None else names.core_ids[exclusion.core]
        cores_of.setdefault((file, exclusion.reason), []).append(core_id)
    return "; ".join(
        f"core{'s' if len(cores) > 1 else ''} {', '.join(map(str, cores))}{f' ({file})' if file else ''}: {reason}"
        for (file, reason), cores in cores_of.items()
    )


def _wanted_cores(problem: SchedulingProblem, request: LayerRequest | None, group: int) -> tuple[int, ...]:
    """Cores that a request allows for a group, in rising order. Unknown cores are left out, because `_request_problems`
    reports them.
    """
    off_chip, count = problem.system.off_chip_core, problem.system.core_count
    if request is None:
        return tuple(core for core in range(count) if core != off_chip)
    cores = request.cores
    if request.is_fixed:
        cores = request.cores[group : group + 1]
    return tuple(sorted({core for core in cores if 0 <= core < count and core != off_chip}))


def _request_problems(
    problem: SchedulingProblem, parts: Sequence[tuple[int, int]], requests: Sequence[LayerRequest]
) -> list[Problem]:
    """Problems of requests: unknown layers, unknown cores, several requests for a layer, or a wrong number of cores."""
    groups = {layer: group + 1 for layer, group in parts}  # parts are in rising order, so the highest group is kept
    count, off_chip = problem.system.core_count, problem.system.off_chip_core
    allowed = ", ".join(str(core) for core in range(count) if core != off_chip)
    problems = []
    for index, request in enumerate(requests):
        name = f"layer {request.layer}"
        if request.layer not in groups:
            problems.append(Problem("has a core_allocation, but no CNs", path=name))
        if request.layer in {earlier.layer for earlier in requests[:index]}:
            problems.append(Problem("has two entries of core_allocation", path=name))
        problems += [
            Problem("no such compute core", path=f"{name}: core_allocation", value=str(core), allowed=allowed)
            for core in request.cores
            if not 0 <= core < count or core == off_chip
        ]
        expected = groups.get(request.layer, len(request.cores))
        if request.is_fixed and len(request.cores) != expected:
            message = f"fixed allocation must name a core for each of the {expected} groups of the layer"
            problems.append(Problem(message, path=f"{name}: core_allocation", value=str(list(request.cores))))
        elif not request.cores:
            problems.append(Problem("names no core", path=f"{name}: core_allocation", allowed=allowed))
    return problems


def _reasons(
    problem: SchedulingProblem, part_of_cn: Integers, parts: int, of_costs: Mapping[tuple[int, int], str] | None
) -> dict[tuple[int, int], str]:
    """Reason why a core cannot run a part, by (part, core). If there are several, it is the first reason of the part's
    first CN.
    """
    reasons: dict[tuple[int, int], str] = {}
    for core in range(problem.system.core_count):
        for unfit in unfit_for_core(problem, core, of_costs):
            found, first = np.unique(part_of_cn[unfit.cns], return_index=True)
            for part, index in zip(found.tolist(), first.tolist(), strict=True):
                reasons.setdefault((part, core), unfit.texts[index])
    return reasons


def _part_costs(problem: SchedulingProblem, part_of_cn: Integers, parts: int) -> tuple[Integers, Floats]:
    """Pair ([part, core] runtime in cycles, [part, core] energy in pJ), each summed over the CNs of the part."""
    rows = len(problem.costs.runtime_cycles)
    uses = np.bincount(part_of_cn * rows + problem.graph.cost_row, minlength=parts * rows).reshape(parts, rows)
    energy_pj: Floats = np.where(problem.costs.runtime_cycles < 1, 0.0, problem.costs.on_core_energy_pj)
    return uses @ np.maximum(problem.costs.runtime_cycles, 0), uses.astype(np.float64) @ energy_pj
