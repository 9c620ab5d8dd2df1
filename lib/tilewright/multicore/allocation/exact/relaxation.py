"""Relaxation of all schedules of a problem: lower bounds of makespan and energy (docs/proofs/relaxation.md).

If an allocation has a schedule, the times of its CNs satisfy all constraints of the relaxation. If no times satisfy the
constraints, the allocation has no schedule.
"""

from dataclasses import dataclass

import numpy as np

from tilewright.multicore.allocation.exact.moves import ConditionalSum, Moves, OnCore, Ways, common, moves_of
from tilewright.multicore.allocation.result import allowed_cores
from tilewright.multicore.allocation.space import AllocationSpace
from tilewright.multicore.scheduling.bounds.classes import CnClasses, cn_classes
from tilewright.multicore.scheduling.bounds.forwarding import bounded_problem
from tilewright.multicore.scheduling.bounds.limits import SystemLimits, system_limits, whole_cycles
from tilewright.multicore.scheduling.bounds.paths import LongestPaths, latest_of_layers, pair_rate, paths_through
from tilewright.multicore.scheduling.problem import OUTPUT_OPERAND, Booleans, SchedulingProblem

MOST_SPLITS = 6
"""Largest number of splits of a schedule in the relaxation. Each split is at one CN (`Split`)."""


@dataclass(frozen=True)
class LinkLoad:
    """Bits that a link must carry, and the width of the link. The bits are counted over the whole schedule, or over the
    part of the schedule before or after a CN.
    """

    bits_per_cycle: int
    bits: ConditionalSum


@dataclass(frozen=True)
class Split:
    """Division of a schedule at one CN. The fields describe the work that must be done before the CN starts, and the
    work that can only begin after the CN ends.
    """

    cn: int
    before: tuple[LinkLoad, ...]
    after: tuple[LinkLoad, ...]
    work_before: tuple[ConditionalSum, ...]
    """Lower bound on the start of CN `cn`, in cycles, from the work of the core (one entry for each core). The work is
    done by the CNs that run on the core and must end before `cn` starts. The bound is the sum of their runtimes, plus
    the smallest possible idle time of the core before the first of these CNs.
    """
    work_after: tuple[ConditionalSum, ...]


@dataclass(frozen=True)
class Precedence:
    """Constraint on two CNs: if CN `first` runs on core a and CN `second` on core b, then `second` starts at least
    `delays[a, b]` cycles after the end of `first`.
    """

    first: int
    second: int
    delays: dict[tuple[int, int], int]
    """Least delay in cycles between the end of CN `first` and the start of CN `second`, by pair (core of `first`, core
    of `second`).
    """


@dataclass(frozen=True, eq=False)
class Relaxation:
    """Constraints that every schedule of every allocation of a space satisfies."""

    space: AllocationSpace
    runtime_cycles: tuple[dict[int, int], ...]
    """Smallest runtime of the CN in cycles, by core (one entry for each CN)"""
    release_cycles: tuple[dict[int, int], ...]
    """Earliest start of the CN in cycles, by core (one entry for each CN)"""
    tail_cycles: tuple[dict[int, int], ...]
    """Smallest number of cycles from the end of the CN to the end of the schedule, by the core of the CN (one entry for
    each CN)
    """
    precedences: tuple[Precedence, ...]
    links: tuple[LinkLoad, ...]
    core_work: tuple[ConditionalSum, ...]
    """Lower bound on the latency in cycles, from the work of the core (one entry for each core). The bound is the total
    runtime of the CNs on the core, plus the smallest possible idle time of the core before its first CN and after its
    last CN.
    """
    splits: tuple[Split, ...]
    energy_pj: ConditionalSum


def relaxation_of(problem: SchedulingProblem, space: AllocationSpace) -> Relaxation:
    """Relaxation of a problem over a space. Raises InputError if the dependences of CNs form a cycle."""
    problem = bounded_problem(problem)
    allowed = allowed_cores(space, problem.system.core_count)
    classes, limits = cn_classes(problem, allowed), system_limits(problem.system)
    paths = paths_through(problem, classes, limits)
    everything = _all(problem)
    moves = moves_of(problem, space, *everything)
    cns = np.ones(problem.graph.node_count, np.bool_)
    _add_streams(problem, space, moves, cns)
    runtime = _runtime(classes)
    release, tail = _ends(problem, space, limits)
    cores = range(problem.system.core_count)
    return Relaxation(
        space=space,
        runtime_cycles=runtime,
        release_cycles=release,
        tail_cycles=tail,
        precedences=_precedences(problem, classes, limits),
        links=_link_loads(problem, space, moves),
        core_work=tuple(_work(space, core, cns, runtime, release, tail) for core in cores),
        splits=tuple(_split(problem, space, paths, cn, runtime, release, tail) for cn in _split_cns(problem, paths)),
        energy_pj=_energy(problem, space, moves).simplified(space),
    )


def _all(problem: SchedulingProblem) -> tuple[Booleans, Booleans, Booleans]:
    pieces = np.ones(len(problem.graph.piece_bits), np.bool_)
    return np.ones(len(problem.need_cn), np.bool_), pieces, pieces


def _runtime(classes: CnClasses) -> tuple[dict[int, int], ...]:
    rows = [
        {core: int(whole_cycles(row[core])) for core in np.flatnonzero(np.isfinite(row)).tolist()}
        for row in classes.runtime
    ]
    return tuple(rows[number] for number in classes.of_cn.tolist())


def _ends(
    problem: SchedulingProblem, space: AllocationSpace, limits: SystemLimits
) -> tuple[tuple[dict[int, int], ...], tuple[dict[int, int], ...]]:
    """Bounds of the times of CNs: a pair of tuples with one entry for each CN. An entry of the first tuple has the
    earliest start of the CN in cycles, by core. An entry of the second tuple has the smallest number of cycles from the
    end of the CN to the end of the schedule, by core. The bounds consider only the constants and network inputs that
    the CN reads, and the network outputs that the CN writes.
    """
    graph, ways, costs = problem.graph, Ways(problem.system), problem.costs
    release: list[dict[int, int]] = []
    tail: list[dict[int, int]] = []
    certain = [common(ways.fetched(memory)) for memory in range(len(problem.system.memory_capacity_bits))]
    for cn, part in enumerate(space.part_of_cn.tolist()):
        row = int(graph.cost_row[cn])
        needs = range(graph.need_start[cn], graph.need_start[cn + 1])
        piece, operand = problem.fetch_order[0][needs], problem.fetch_order[1][needs]
        constant = graph.piece_producer[piece] < 0
        made = problem.outputs[1][problem.outputs[0][cn] : problem.outputs[0][cn + 1]]
        results = made[graph.piece_is_output[made]]
        release.append({})
        tail.append({})
        for core in space.choices[part]:
            moved = {
                (int(p), int(problem.system.core_memory[core, o]))
                for p, o in zip(piece[constant], operand[constant], strict=True)
                if costs.stream_bits[row, core, o] == 0
            }
            fetches = [(int(graph.piece_bits[p]), certain[m], float(limits.fetch_rate[m])) for p, m in sorted(moved)]
            # If a piece goes to two memories, one transfer can serve both memories.
            distinct = {p: (bits, links) for (p, _), (bits, links, _) in zip(sorted(moved), fetches, strict=True)}
            release[-1][core] = _cycles(problem, list(distinct.values()), [(bits, rate) for bits, _, rate in fetches])
            kept = results if costs.stream_bits[row, core, OUTPUT_OPERAND] == 0 else results[:0]
            writes = [(int(graph.piece_bits[p]), ways.written(core)) for p in kept.tolist()]
            rate = float(limits.write_rate[core])
            tail[-1][core] = _cycles(problem, writes, [(bits, rate) for bits, _ in writes])
    return tuple(release), tuple(tail)


def _cycles(
    problem: SchedulingProblem, loads: list[tuple[int, frozenset[int]]], single: list[tuple[int, float]]
) -> int:
    """Lower bound of the cycles that some transfers take: the largest of the bounds below. The result is 0 if there are
    no bounds.

    `loads` has pairs (bits, links). Each link gives a bound: the sum of the bits of all pairs with this link, divided
    by the width of the link. `single` has pairs (bits, bits per cycle). Each pair gives a bound: its bits divided by
    its bits per cycle. A pair with a rate of 0 gives no bound.
    """
    bits_of: dict[int, int] = {}
    for bits, links in loads:
        for link in links:
            bits_of[link] = bits_of.get(link, 0) + bits
    on_links = [-(-bits // int(problem.system.link_bits_per_cycle[link])) for link, bits in bits_of.items()]
    alone = [-(-bits // int(rate)) for bits, rate in single if rate > 0]
    return max([*on_links, *alone], default=0)


def _precedences(problem: SchedulingProblem, classes: CnClasses, limits: SystemLimits) -> tuple[Precedence, ...]:
    graph, found = problem.graph, []
    start, successor = problem.edges
    first_of = np.repeat(np.arange(graph.node_count), np.diff(start))
    largest: dict[tuple[int, int], dict[int, int]] = {}
    piece, operand = problem.fetch_order
    for number, producer in enumerate(graph.piece_producer[piece].tolist()):
        if producer >= 0:
            bits_of = largest.setdefault((producer, int(problem.need_cn[number])), {})
            by = int(operand[number])
            bits_of[by] = max(bits_of.get(by, 0), int(graph.piece_bits[piece[number]]))
    for first, second in zip(first_of.tolist(), successor.tolist(), strict=True):
        bits_of = largest.get((first, second), {})
        delays = {}
        for source in np.flatnonzero(classes.allowed[classes.of_cn[first]]).tolist():
            for target in np.flatnonzero(classes.allowed[classes.of_cn[second]]).tolist():
                rows = int(graph.cost_row[first]), int(graph.cost_row[second])
                rates = {by: pair_rate(problem, limits, rows, (source, target), by) for by in bits_of}
                cycles = [float(bits) / rates[by] for by, bits in bits_of.items() if rates[by] > 0]
                delays[source, target] = int(whole_cycles(np.array(max(cycles, default=0.0))))
        found.append(Precedence(first, second, delays))
    return tuple(found)


def _add_streams(problem: SchedulingProblem, space: AllocationSpace, moves: Moves, cns: Booleans) -> None:
    """Add the streams of the selected CNs to the traffic on links."""
    ways, off = Ways(problem.system), problem.system.off_chip_core
    bits = problem.costs.stream_bits
    for part, choices in enumerate(space.choices):
        rows = problem.graph.cost_row[(space.part_of_cn == part) & cns]
        for core in choices:
            inward, outward = int(bits[rows, core, 1:].sum()), int(bits[rows, core, OUTPUT_OPERAND].sum())
            for path, amount in ((ways.path(off, core), inward), (ways.path(core, off), outward)):
                for link in sorted(path or ()):
                    moves.load(link).add(amount, OnCore(part, core))


def _link_loads(problem: SchedulingProblem, space: AllocationSpace, moves: Moves) -> tuple[LinkLoad, ...]:
    widths = problem.system.link_bits_per_cycle
    return tuple(
        LinkLoad(int(widths[link]), load.simplified(space)) for link, load in sorted(moves.links.items()) if load.terms
    )


def _work(
    space: AllocationSpace,
    core: int,
    cns: Booleans,
    runtime: tuple[dict[int, int], ...],
    release: tuple[dict[int, int], ...] | None,
    tail: tuple[dict[int, int], ...] | None,
) -> ConditionalSum:
    """Cycles of the selected CNs on a core, plus the smallest possible idle time of the core. The idle time has two
    parts: the time before the first selected CN, and the time after the last selected CN. The first part is left out if
    `release` is None. The second part is left out if `tail` is None.
    """
    found = ConditionalSum()
    able = [cn for cn in np.flatnonzero(cns).tolist() if core in space.choices[int(space.part_of_cn[cn])]]
    for cn in able:
        found.add(runtime[cn][core], OnCore(int(space.part_of_cn[cn]), core))
    ends = sum(min((table[cn][core] for cn in able), default=0) for table in (release, tail) if table is not None)
    found.add(ends, None, {OnCore(int(space.part_of_cn[cn]), core) for cn in able})
    return found.simplified(space)


def _split_cns(problem: SchedulingProblem, paths: LongestPaths) -> list[int]:
    """CNs at which the relaxation splits a schedule (see `Split`), at most MOST_SPLITS. At most one CN of each layer is
    chosen: the CN with the largest lower bound of the start time. The layers of the chosen CNs are spread evenly over
    the network.
    """
    last = latest_of_layers(problem.graph.layer, paths.head)
    if len(last) <= MOST_SPLITS:
        return [int(cn) for cn in last]
    return [int(last[place]) for place in np.linspace(0, len(last) - 1, MOST_SPLITS).round().astype(np.int64)]


def _split(
    problem: SchedulingProblem,
    space: AllocationSpace,
    paths: LongestPaths,
    cn: int,
    runtime: tuple[dict[int, int], ...],
    release: tuple[dict[int, int], ...],
    tail: tuple[dict[int, int], ...],
) -> Split:
    before, after = (mask.copy() for mask in paths.around(cn))
    itself = np.arange(len(before)) == cn
    _, everything, _ = _all(problem)
    nothing = ~everything
    reads = (before | itself)[problem.need_cn]
    producer = problem.graph.piece_producer
    makes = (producer >= 0) & (after | itself)[np.maximum(producer, 0)]
    of_made = makes[problem.fetch_order[0]]
    cores = range(problem.system.core_count)
    moves_before = moves_of(problem, space, reads, nothing, everything)
    _add_streams(problem, space, moves_before, before)
    moves_after = moves_of(problem, space, of_made, everything, makes)
    _add_streams(problem, space, moves_after, after)
    return Split(
        cn=cn,
        before=_link_loads(problem, space, moves_before),
        after=_link_loads(problem, space, moves_after),
        work_before=tuple(_work(space, core, before, runtime, release, None) for core in cores),
        work_after=tuple(_work(space, core, after, runtime, None, tail) for core in cores),
    )


def _energy(problem: SchedulingProblem, space: AllocationSpace, moves: Moves) -> ConditionalSum:
    """Lower bound of the energy of a schedule in pJ: energy of all data movement, plus the energy of each part on the
    core that runs it.
    """
    found, costs, system = ConditionalSum(), problem.costs, problem.system
    off = system.off_chip_memory
    outward = np.arange(costs.stream_bits.shape[2]) == OUTPUT_OPERAND
    words = -(-costs.stream_bits // np.where(outward, system.memory_write_bits[off], system.memory_read_bits[off]))
    pj = np.where(outward, system.memory_write_energy_pj[off], system.memory_read_energy_pj[off])
    energy_pj = costs.on_core_energy_pj + words @ pj
    for part, choices in enumerate(space.choices):
        rows = problem.graph.cost_row[space.part_of_cn == part]
        for core in choices:
            found.add(float(energy_pj[rows, core].sum()), OnCore(part, core))
    for link, load in sorted(moves.links.items()):
        found.add_sum(load, float(system.link_energy_pj_per_bit[link]))
    found.add_sum(moves.memory_pj)
    return found
