"""Laws of physics and of sound bookkeeping that `corrected` must keep, each as a check of one problem.

`RESTS_ON` gives the switches on which each law rests: without them, a fault of the reference model breaks the law.
"""

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tilewright.base.errors import MappingError
from tilewright.cost.record import record_row
from tilewright.hardware.core import Core, Memory
from tilewright.search.evaluate import evaluate_prepared, prepare
from tilewright.search.exact.search import ExactParameters, search_exact
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.plain.allocation import Boundaries
from tests.plain.model import Cost, PlainModel
from tests.plain.problems import Problem, random_problem, tightened, with_memory
from tests.plain.relevancy import Loops, counted_positions
from tests.plain.reordering import with_other_orders
from tests.plain.space import OBJECTIVES, merged_loops
from tests.plain.spatial import DoesNotFitError
from tests.plain.switches import SWITCHES
from tests.plain.tally import Tally

ROUNDING = 1 + 1e-9
Record = dict[str, Any]
Broken = Iterator[str]

ORDER_OF_ENTRIES = "the result does not depend on the order of entries"
BUSY_PORTS = "no port is busier than the latency"
TRAFFIC = "each level moves at least the tensor"
UTILIZATION = "nothing is used by more than all of it"
MORE_IS_NOT_WORSE = "more bandwidth, more memory, fewer bits, cheaper accesses are never worse"
SCALE = "the unit of bits, and that of energy, means nothing"
LAWS = (ORDER_OF_ENTRIES, BUSY_PORTS, TRAFFIC, UTILIZATION, MORE_IS_NOT_WORSE, SCALE)

RESTS_ON: dict[str, frozenset[str]] = {
    # Without them: the count of the link named first stands for all (B17); operands take room for second tiles in turn;
    # ports hide loads in turn; passes are rounded factor by factor; relations clip the term named first only (B12); the
    # last bit of fractional tiles depends on the order of factors.
    ORDER_OF_ENTRIES: frozenset(
        {
            "consistent_window_union",
            "best_double_buffers",
            "every_transfer_takes_port_time",
            "exact_temporal_sizes",
            "exact_window_sizes",
            "whole_tiles",
        }
    ),
    # Without them: preloading and read-backs share cycles; loads of both inputs over one port overlap (B16).
    BUSY_PORTS: frozenset({"every_transfer_takes_port_time", "serial_half_shared_loading"}),
    # Without them: tiles are rounded to the nearest and words truncated; an operand has windows that are not its own;
    # what is formed in the top memory moves as partial sums, which may be narrower.
    TRAFFIC: frozenset({"whole_tiles", "exact_window_sizes", "room_for_final_outputs"}),
    # Without them: fractional tiles fit that whole ones exceed; final outputs that are wider than partial sums fit.
    UTILIZATION: frozenset({"whole_tiles", "room_for_final_outputs"}),
    MORE_IS_NOT_WORSE: frozenset(SWITCHES),
    SCALE: frozenset(SWITCHES),
}
"""Law -> switches on which it rests. Laws of searches and of scale are tried only with all switches."""


@dataclass(frozen=True)
class Mapped:
    """A problem with a temporal mapping that fits, with the results of the plain model and of the package."""

    problem: Problem
    model: str
    plain: PlainModel
    order: Loops
    boundaries: Boundaries
    cost: Cost
    record: Record


# mappings -------------------------------------------------------------------------------------------------------------


def record_of(problem: Problem, model: str, order: Loops, boundaries: Boundaries) -> Record:
    """The package's record of a mapping. Raises MappingError if it does not fit."""
    prepared = prepare(problem.layer, problem.core, problem.links, problem.unrolling, SearchOptions(model=model))
    return record_row(evaluate_prepared(prepared, order, tuple(boundaries[o] for o in problem.layer.operands)))


def random_mapping(rng: random.Random, problem: Problem, model: str) -> Mapped | None:
    """A random order with level boundaries that fit; None if none is found."""
    plain = problem.plain(model)
    loops = list(merged_loops(plain.temporal_sizes, rng.choice((None, None, 3))))
    for _ in range(4):
        rng.shuffle(loops)
        order = tuple(loops)
        try:
            allocated = plain.allocate(order)
        except DoesNotFitError:
            continue
        boundaries = _bounds(allocated)
        for _ in range(3):
            other = {o: _shifted(rng, bounds) for o, bounds in boundaries.items()}
            try:
                plain.allocate(order, other)
            except DoesNotFitError:
                continue
            boundaries = other
        try:
            if rng.random() < 0.5:
                problem = tightened(rng, problem, plain, order, boundaries)
                plain = problem.plain(model)
            cost = plain.cost(order, boundaries)
        except DoesNotFitError:
            continue
        return Mapped(problem, model, plain, order, boundaries, cost, record_of(problem, model, order, boundaries))
    return None


def _bounds(allocated: dict[str, tuple[Loops, ...]]) -> Boundaries:
    result = {}
    for o, levels in allocated.items():
        ends, end = [], 0
        for loops in levels:
            end += len(loops)
            ends.append(end)
        result[o] = tuple(ends)
    return result


def _shifted(rng: random.Random, bounds: tuple[int, ...]) -> tuple[int, ...]:
    """Boundaries that are at most as far out as the given ones."""
    *inner, last = bounds
    return (*sorted(max(0, bound - rng.choice((0, 0, 1, 2))) for bound in inner), last)


# 1: order of entries --------------------------------------------------------------------------------------------------


def same_figures(first: Record, second: Record) -> Iterator[str]:
    """The names of differing figures."""
    names = ("energy_pj", "latency_cycles")
    figures = [{name: r[name] for name in names} | r["latency_breakdown_cycles"] for r in (first, second)]
    for name, value in figures[0].items():
        if not math.isclose(value, figures[1][name], rel_tol=1e-9, abs_tol=1e-9):
            yield f"{name} {value} or {figures[1][name]}"
    for name in ("word_accesses", "memory_utilization"):
        if first[name] != {o: second[name][o] for o in first[name]} and name == "word_accesses":
            yield f"{name} {first[name]} or {second[name]}"


def order_of_entries(rng: random.Random, mapped: Mapped) -> Broken:
    """Law 1: the order of operands, ports, memories, dimensions, relations and factors does not change the result."""
    other = with_other_orders(rng, mapped.problem)
    try:
        record = record_of(other, mapped.model, mapped.order, mapped.boundaries)
    except MappingError as error:
        yield f"refused in another order: {error}"
        return
    yield from same_figures(mapped.record, record)


# 2: ports -------------------------------------------------------------------------------------------------------------


def busy_ports(rng: random.Random, mapped: Mapped) -> Broken:
    """Law 2: transfers of a port take at most the cycles of the layer."""
    for port in mapped.record["ports"]:
        busy = sum(activity["real_cycles"] * activity["period_count"] for activity in port["activities"])
        if busy > mapped.record["latency_cycles"] * ROUNDING:
            yield f"{port['memory']} {port['port']} is busy for {busy} of {mapped.record['latency_cycles']} cycles"


# 3: traffic -----------------------------------------------------------------------------------------------------------


def tensor_elements(layer: Layer, operand: str) -> int:
    """Elements of a tensor; for sliding windows, the touched positions without padding."""
    own, size, elements = dict(layer.operand_dimensions)[operand], layer.size_of, 1
    relations = {r.data_dimension: r for r in layer.relations}
    for dimension in own:
        if dimension in relations:
            (d2, c2), (d3, c3) = relations[dimension].terms
            positions = counted_positions(c2, size[d2], c3, size[d3])
            padded = positions - sum(dict(layer.padding).get(dimension, (0, 0)))
            elements *= min(positions, dict(layer.data_dimension_sizes).get(dimension, padded))
        else:
            elements *= size[dimension]
    return elements


def traffic(rng: random.Random, mapped: Mapped) -> Broken:
    """Law 3: each boundary of an operand is crossed by at least its tensor, in elements and in words of the ports."""
    layer = mapped.problem.layer
    bits = layer.bits_of
    for o in layer.operands:
        tensor = tensor_elements(layer, o)
        width = bits["O_final"] if o == "O" else bits[o]
        last = len(mapped.plain.chains[o]) - 1
        for m in range(last + 1):
            down = [d for d in (("fl", "th") if o == "O" else ("tl", "fh")) if m < last or d in ("fl", "tl")]
            for direction in down:
                elements = mapped.cost.traffic_elements[o][m][direction]
                if elements < tensor * (1 - 1e-12):
                    yield f"{o} {m} {direction} moves {float(elements)} of {tensor} elements"
                words = mapped.record["word_accesses"][o][m][direction]
                wide = mapped.plain.table.widths((o, m, direction))[1]
                if words * wide < tensor * width:
                    yield f"{o} {m} {direction} moves {words} words of {wide} bits, {tensor} elements of {width} bits"


# 4: utilisation -------------------------------------------------------------------------------------------------------


def utilization(rng: random.Random, mapped: Mapped) -> Broken:
    """Law 4: the utilisation of the array and of each memory is at most 1."""
    for name, value in mapped.record["mac_utilization"].items():
        if not 0 < value <= ROUNDING:
            yield f"MAC utilisation {name} is {value}"
    for o, levels in mapped.record["memory_utilization"].items():
        for m, value in enumerate(levels):
            if not 0 <= value <= ROUNDING:
                yield f"memory utilisation of {o} {m} is {value}"


# 5: more is not worse -------------------------------------------------------------------------------------------------


def optimum(problem: Problem, model: str, objective: str) -> float | None:
    """The proven optimum with free boundaries; infinite if no mapping fits, None without a proof."""
    try:
        prepared = prepare(problem.layer, problem.core, problem.links, problem.unrolling, SearchOptions(model=model))
        result = search_exact(prepared, (), ExactParameters(objective, "free", 20.0))
    except MappingError:
        return None
    if result is None:
        return math.inf
    return result.value if result.is_proven else None


def bettered(rng: random.Random, problem: Problem) -> tuple[str, Problem]:
    """(name of the change, the problem with one property improved)."""
    core, layer = problem.core, problem.layer
    k = rng.randrange(len(core.memories))
    memory = core.memories[k]
    what = rng.choice(("bandwidth", "bandwidth", "memory", "memory", "bits", "bits", "energy"))
    if what == "bandwidth":
        p = rng.randrange(len(memory.ports))
        wide = memory.ports[p].bandwidth_max_bits
        more = rng.choice((wide + 1, 2 * wide, 3 * wide, wide + rng.randint(1, 64)))
        ports = list(memory.ports)
        ports[p] = replace(ports[p], bandwidth_max_bits=more)
        text = f"port {ports[p].name} of {memory.name} {wide} -> {more} bits"
        return text, replace(problem, core=with_memory(core, k, ports=tuple(ports)))
    if what == "memory":
        size = memory.size_bits
        more = rng.choice((size + 1, 2 * size, size + rng.randint(1, 100), size + size // 2 + 1))
        return f"{memory.name} {size} -> {more} bits", replace(problem, core=with_memory(core, k, size_bits=more))
    if what == "bits":
        name, width = rng.choice(layer.precision_bits)
        less = rng.choice((max(0, width - 1), width // 2, rng.randint(0, width)))
        less = less if name in ("W", "I") else max(1, less)
        bits = tuple((n, less if n == name else b) for n, b in layer.precision_bits)
        return f"{name} {width} -> {less} bits", replace(problem, layer=replace(layer, precision_bits=bits))
    cheaper = {"read_energy_pj": memory.read_energy_pj / 2, "write_energy_pj": memory.write_energy_pj * 0.9}
    return f"{memory.name} cheaper", replace(problem, core=with_memory(core, k, **cheaper))


def more_is_not_worse(rng: random.Random, problem: Problem, model: str) -> Broken:
    """Law 5: if one property improves, the optimum over all temporal mappings is no worse."""
    text, better = bettered(rng, problem)
    objective = rng.choice(OBJECTIVES)
    before, after = optimum(problem, model, objective), optimum(better, model, objective)
    if before is not None and after is not None and not after <= before * ROUNDING:
        yield f"{text}: {objective} {before} -> {after}"


# 6: scale -------------------------------------------------------------------------------------------------------------


def scaled_bits(problem: Problem, k: int) -> Problem:
    """The problem with all bits, bandwidths and sizes multiplied by k."""

    def port_scaled(memory: Memory) -> Memory:
        ports = tuple(
            replace(
                port,
                bandwidth_min_bits=port.bandwidth_min_bits * k,
                bandwidth_max_bits=port.bandwidth_max_bits * k,
            )
            for port in memory.ports
        )
        return replace(memory, size_bits=memory.size_bits * k, ports=ports)

    core = replace(problem.core, memories=tuple(port_scaled(memory) for memory in problem.core.memories))
    bits = tuple((name, width * k) for name, width in problem.layer.precision_bits)
    return replace(problem, core=core, layer=replace(problem.layer, precision_bits=bits))


def scaled_energy(problem: Problem, k: int) -> Problem:
    """The problem with all energies multiplied by k."""

    def memory_scaled(memory: Memory) -> Memory:
        return replace(memory, read_energy_pj=memory.read_energy_pj * k, write_energy_pj=memory.write_energy_pj * k)

    array = problem.core.operational_array
    core: Core = replace(
        problem.core,
        memories=tuple(memory_scaled(memory) for memory in problem.core.memories),
        operational_array=replace(array, unit_energy_pj=array.unit_energy_pj * k),
    )
    return replace(problem, core=core)


def scale(rng: random.Random, mapped: Mapped) -> Broken:
    """Law 6: if all bit counts grow by k, no figure changes; if all energies grow by k, only the energy does."""
    k = rng.choice((2, 3, 4, 7, 8))
    record = record_of(scaled_bits(mapped.problem, k), mapped.model, mapped.order, mapped.boundaries)
    for text in same_figures(mapped.record, record):
        yield f"bits x {k}: {text}"
    record = record_of(scaled_energy(mapped.problem, k), mapped.model, mapped.order, mapped.boundaries)
    record["energy_pj"] /= k
    for text in same_figures(mapped.record, record):
        yield f"energies x {k}: {text}"


# all ------------------------------------------------------------------------------------------------------------------

OF_MAPPINGS: dict[str, Callable[[random.Random, Mapped], Broken]] = {
    ORDER_OF_ENTRIES: order_of_entries,
    BUSY_PORTS: busy_ports,
    TRAFFIC: traffic,
    UTILIZATION: utilization,
    SCALE: scale,
}


def try_laws(seed: int, with_search: bool = True) -> Tally:
    """Try all laws on the problem of a seed under `corrected`.

    Then turn one switch off, and try the laws that do not rest on this switch.
    """
    tally = Tally()
    rng = random.Random(seed)
    problem = replace(random_problem(rng.getrandbits(48), (1, 7)), model="corrected")
    tally.counts["problems"] += 1
    removed = rng.choice(SWITCHES)
    for model, without in (("corrected", ""), (f"corrected-{removed}", removed)):
        try:
            mapped = random_mapping(rng, problem, model)
        except (DoesNotFitError, MappingError) as error:
            tally.wrong.append(f"seed {seed} {model}: {type(error).__name__} {error}")
            continue
        if mapped is None:
            tally.counts["no mapping found that fits"] += 1
            continue
        for law, check in OF_MAPPINGS.items():
            if without and without in RESTS_ON[law]:
                continue
            tally.counts[f"{'one switch off' if without else model}: {law}"] += 1
            tally.wrong += [f"seed {seed} {model}: {law}: {text}" for text in check(rng, mapped)]
    if with_search:
        tally.counts[f"corrected: {MORE_IS_NOT_WORSE}"] += 1
        small = replace(random_problem(rng.getrandbits(48), (1, 4)), model="corrected")
        tally.wrong += [
            f"seed {seed} corrected: {MORE_IS_NOT_WORSE}: {text}" for text in more_is_not_worse(rng, small, "corrected")
        ]
    return tally
