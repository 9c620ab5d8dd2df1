"""Space of allocations: the parts of layers that get a core, and the cores that can run each part.

A core can run a CN under four conditions:

* The cost table has a runtime of the CN on the core.
* The core has a memory for each operand of the CN that does not stream.
* The data of the CN fit these memories while the CN runs.
* If the CN reads data, a path leads from the off-chip core to the core. If the CN writes data, a path leads from the
  core to the off-chip core.

The scheduler makes the same checks. Each check depends on only one CN and one core, so all checks are made before the
search. The search then never evaluates an allocation that fails one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tilewright.base.errors import InputError, Label, Problem, cause_of, count_of, some_of
from tilewright.multicore.scheduling.assembled import SystemNames
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, Floats, Integers, SchedulingProblem

NO_COST = "no cost in the cost table"


@dataclass(frozen=True)
class Unfit:
    """CNs that a core cannot run, with a reason for each CN. The reasons of one object are all of the same kind: no
    cost, no path, or no memory.
    """

    cns: Integers
    texts: tuple[str, ...]
    """Reason why each CN of `cns` cannot run on the core, in the order of `cns`."""


def unfit_for_core(
    problem: SchedulingProblem, core: int, reasons: Mapping[tuple[int, int], str] | None = None
) -> list[Unfit]:
    """Reasons why a core cannot run CNs, the simplest reason first. `reasons` explains missing entries of the cost
    table; its key is (row of the cost table, core).
    """
    if core == problem.system.off_chip_core:
        cns = np.arange(problem.graph.node_count)
        return [Unfit(cns, ("this is the off-chip core",) * len(cns))]
    cannot = np.flatnonzero(problem.costs.runtime_cycles[problem.graph.cost_row, core] < 1)
    why = [(reasons or {}).get((row, core), NO_COST) for row in range(len(problem.costs.runtime_cycles))]
    found = [Unfit(cannot, tuple(map(why.__getitem__, problem.graph.cost_row[cannot].tolist())))]
    return [*found, *_without_path(problem, core), *_without_memory(problem, core)]


def _streams(problem: SchedulingProblem, core: int) -> Booleans:
    """True if the operand streams from or to the off-chip memory (one entry for each CN and operand)."""
    streams: Booleans = problem.costs.stream_bits[problem.graph.cost_row, core] > 0
    return streams


def _without_path(problem: SchedulingProblem, core: int) -> list[Unfit]:
    """CNs that cannot run on a core because a path is missing. CNs that read data need a path from the off-chip core to
    this core, and CNs that write data need a path in the opposite direction. Streams count as reads and writes.
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
    """CNs that cannot run on a core because of its memories. There are two cases: the core has no memory for an operand
    that does not stream, or the data of the CN do not fit a memory of the core.
    """
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
        f"which has {system.memory_capacity_bits[place % memories]} bits"
        for place, bits in zip(places[over].tolist(), needed_bits[over].tolist(), strict=True)
    )
    return [lacking, Unfit(places[over] // memories, texts)]


Genome = tuple[int, ...]
"""Allocation as a tuple: the core of each flexible part, in the order of `AllocationSpace.flexible`."""


@dataclass(frozen=True)
class LayerRequest:
    """Cores that a mapping file requests for one layer (`core_allocation`)."""

    layer: int
    """Number of the layer, as in `NodeGraph.layer`."""
    cores: tuple[int, ...]
    """Cores that are allowed for every group of the layer. If `is_fixed` is set, the tuple has one core for each group
    instead.
    """
    is_fixed: bool = False


@dataclass(frozen=True)
class Exclusion:
    """Core that cannot run a part, although the request for the layer allows this core."""

    layer: int
    group: int
    core: int
    reason: str


_Stranded = tuple[int, int, Sequence[Exclusion]]
"""Triple (layer, group, exclusions) for a part that no allowed core can run. There is one exclusion for each core that
the request for the layer allows.
"""


@dataclass(frozen=True, eq=False)
class AllocationSpace:
    """Space of allocations: the parts (layer, group) in rising order, and the allowed cores of each part. The function
    `allocation_space` makes the space.
    """

    parts: tuple[tuple[int, int], ...]
    part_of_cn: Integers
    """Part to which the CN belongs, as a position in `parts` (one entry for each CN)"""
    choices: tuple[tuple[int, ...], ...]
    """Cores that are allowed for the part, at least one, in rising order (one entry for each part)"""
    runtime_cycles: Integers
    """Total runtime of the part's CNs in cycles (one entry for each part and core); -1 if the core cannot run some CN
    of the part
    """
    on_core_energy_pj: Floats
    """Total energy of the part's CNs in pJ (one entry for each part and core)"""
    exclusions: tuple[Exclusion, ...] = ()

    @cached_property
    def flexible(self) -> tuple[int, ...]:
        """Parts with more than one allowed core. Each of these parts is a gene of the genome."""
        return tuple(part for part, cores in enumerate(self.choices) if len(cores) > 1)

    @cached_property
    def gene_choices(self) -> tuple[tuple[int, ...], ...]:
        """Cores that are allowed for the part of the gene (one entry for each gene)."""
        return tuple(self.choices[part] for part in self.flexible)

    @cached_property
    def size(self) -> int:
        """Number of allocations in the space."""
        return prod(len(cores) for cores in self.gene_choices)

    def part_cores(self, genome: Genome) -> tuple[int, ...]:
        """Core of each part in the allocation that the genome describes."""
        cores = [choice[0] for choice in self.choices]
        for part, core in zip(self.flexible, genome, strict=True):
            cores[part] = core
        return tuple(cores)

    def allocation(self, genome: Genome) -> Integers:
        """Core of the CN, as input of the scheduler (one entry for each CN)."""
        return np.array(self.part_cores(genome), np.int64)[self.part_of_cn]

    def genome(self, part_cores: Sequence[int]) -> Genome:
        """Genome of an allocation. `part_cores` has the core of each part. Raises InputError if `part_cores` has the
        wrong length, or if a core is not allowed for its part.
        """
        if len(part_cores) != len(self.parts):
            message = f"must name {count_of(len(self.parts), 'core')}, one for each part of a layer"
            raise InputError([Problem(message, path="core_allocation", value=count_of(len(part_cores), "core"))])
        problems = [
            Problem(
                "the core is not allowed for this part of the layer",
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

    A core is allowed for a part if it can run all CNs of the part, and if the request for the layer allows it. A
    request can allow a core that cannot run the part. The field `exclusions` of the result lists these cores. `names`
    has the names that messages use. `reasons` explains missing entries of the cost table, by (row of the cost table,
    core).

    Raises InputError that lists every request for an unknown layer or core, every fixed core that cannot run its part,
    and every part without a core.
    """
    graph = problem.graph
    key, part_of_cn = np.unique(np.stack((graph.layer, graph.group)), axis=1, return_inverse=True)
    parts = tuple((int(layer), int(group)) for layer, group in key.T)
    part_of_cn = part_of_cn.ravel().astype(np.int64)
    found = _reasons(problem, part_of_cn, len(parts), reasons)
    problems = _request_problems(problem, parts, requests)
    unfit_of: dict[int, dict[int, str]] = {}
    for (part, core), reason in found.items():
        if core != problem.system.off_chip_core:  # no request names it, and no part runs there
            unfit_of.setdefault(part, {})[core] = reason
    request_of = {request.layer: request for request in requests}
    wanted_of: dict[tuple[int, int], tuple[int, ...]] = {}
    choices: list[tuple[int, ...]] = []
    exclusions = []
    stranded: list[_Stranded] = []
    for part, (layer, group) in enumerate(parts):
        request, unfit = request_of.get(layer), unfit_of.get(part, {})
        key_of_request = layer, group if request is not None and request.is_fixed else 0
        if key_of_request not in wanted_of:
            wanted_of[key_of_request] = _wanted_cores(problem, request, group)
        wanted = wanted_of[key_of_request]
        refused = [Exclusion(layer, group, core, unfit[core]) for core in wanted if core in unfit]
        choices.append(tuple(core for core in wanted if core not in unfit) if unfit else wanted)
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
    """Problems of parts that no core can run. Parts share one problem if the same cores fail for the same causes. A
    cause is a reason without its numbers (`cause_of`). The problem quotes the reasons for the first of these parts.
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
        problems.append(Problem(f"no core can run {what} ({_reason(refused, names)})", path=Label(name)))
    return problems


def _reason(refused: Sequence[Exclusion], names: SystemNames | None) -> str:
    """Text with the reasons why no core can run a part. Cores that have the same core file and the same reason are
    named together.
    """
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
    """Problems of requests. There are six kinds:

    * The layer has no CNs.
    * A core does not exist.
    * A core is the off-chip core.
    * There are two requests for one layer.
    * The request has no cores.
    * The request is fixed, and its number of cores is not the number of groups of the layer.
    """
    groups = {layer: group + 1 for layer, group in parts}  # parts are in rising order, so the highest group is kept
    count, off_chip = problem.system.core_count, problem.system.off_chip_core
    allowed = ", ".join(str(core) for core in range(count) if core != off_chip)
    problems = []
    for index, request in enumerate(requests):
        name = f"layer {request.layer}"
        if request.layer not in groups:
            problems.append(Problem("has a core_allocation, but no computation nodes (CNs)", path=Label(name)))
        if request.layer in {earlier.layer for earlier in requests[:index]}:
            problems.append(Problem("has two entries of core_allocation", path=Label(name)))
        problems += [
            Problem("no such compute core", path=f"{name}: core_allocation", value=str(core), allowed=allowed)
            for core in request.cores
            if not 0 <= core < count or core == off_chip
        ]
        expected = groups.get(request.layer, len(request.cores))
        if request.is_fixed and len(request.cores) != expected:
            message = (
                f"a fixed allocation must name one core for each group of the layer ({count_of(expected, 'group')})"
            )
            problems.append(Problem(message, path=f"{name}: core_allocation", value=str(list(request.cores))))
        elif not request.cores:
            problems.append(Problem("names no core", path=f"{name}: core_allocation", allowed=allowed))
    return problems


def _reasons(
    problem: SchedulingProblem, part_of_cn: Integers, parts: int, of_costs: Mapping[tuple[int, int], str] | None
) -> dict[tuple[int, int], str]:
    """Reason why a core cannot run a part, by (part, core). If several reasons apply, the simplest reason is taken,
    with the text for the first CN that has this reason. Parts that the core can run have no entry.

    A core is skipped if another core with equal properties can run all CNs, because the skipped core can then run all
    CNs, too. All other cores are examined one by one, because the texts name memories of the examined core.
    """
    reasons: dict[tuple[int, int], str] = {}
    able: set[object] = set()
    for core in range(problem.system.core_count):
        likeness = _core_likeness(problem, core)
        if likeness in able:
            continue
        unfits = unfit_for_core(problem, core, of_costs)
        if not any(len(unfit.cns) for unfit in unfits):
            able.add(likeness)
        for unfit in unfits:
            found, first = np.unique(part_of_cn[unfit.cns], return_index=True)
            for part, index in zip(found.tolist(), first.tolist(), strict=True):
                reasons.setdefault((part, core), unfit.texts[index])
    return reasons


def _core_likeness(problem: SchedulingProblem, core: int) -> object:
    """Key of a core, made of all its properties on which the result of `unfit_for_core` depends. Cores with equal keys
    can run the same CNs. The properties are:

    * whether the core is the off-chip core;
    * whether paths lead from and to the off-chip core;
    * the rows of the cost table without a runtime;
    * the operands that stream;
    * the capacity of the memory of each operand;
    * which operands share a memory.
    """
    system, off_chip = problem.system, problem.system.off_chip_core
    memories = system.core_memory[core].tolist()
    capacities = tuple(-1 if one < 0 else int(system.memory_capacity_bits[one]) for one in memories)
    return (
        core == off_chip,
        bool(system.path_exists[off_chip * system.core_count + core]),
        bool(system.path_exists[core * system.core_count + off_chip]),
        (problem.costs.runtime_cycles[:, core] < 1).tobytes(),
        (problem.costs.stream_bits[:, core] > 0).tobytes(),
        capacities,
        tuple(memories.index(one) for one in memories),
    )


def _part_costs(problem: SchedulingProblem, part_of_cn: Integers, parts: int) -> tuple[Integers, Floats]:
    """Pair (runtime in cycles, energy in pJ) of arrays with one entry for each part and core. The numbers are summed
    over the CNs of the part.
    """
    rows = len(problem.costs.runtime_cycles)
    uses = np.bincount(part_of_cn * rows + problem.graph.cost_row, minlength=parts * rows).reshape(parts, rows)
    energy_pj: Floats = np.where(problem.costs.runtime_cycles < 1, 0.0, problem.costs.on_core_energy_pj)
    return uses @ np.maximum(problem.costs.runtime_cycles, 0), uses.astype(np.float64) @ energy_pj
