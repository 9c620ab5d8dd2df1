"""A problem with its entries in other orders, wherever an order has no meaning."""

import random
from dataclasses import replace
from typing import Any

from tilewright.hardware.core import Memory, OperationalArray

from tests.plain.problems import Problem


def shuffled(rng: random.Random, entries: Any) -> tuple[Any, ...]:
    """Entries in another order."""
    result = list(entries)
    rng.shuffle(result)
    return tuple(result)


def with_other_orders(rng: random.Random, problem: Problem) -> Problem:
    """The problem with all entries in other orders, wherever an order has no meaning."""
    core, layer = problem.core, problem.layer
    memories = []
    waiting = list(core.memories)
    while waiting:
        ready = [m for i, m in enumerate(waiting) if not any(set(m.operands) & set(x.operands) for x in waiting[:i])]
        chosen = rng.choice(ready)
        waiting.remove(chosen)
        memories.append(_other_memory(rng, chosen))
    array = core.operational_array
    output, *inputs = layer.operand_dimensions
    other = replace(
        layer,
        operand_dimensions=tuple((o, shuffled(rng, own)) for o, own in (output, *shuffled(rng, inputs))),
        loop_sizes=shuffled(rng, layer.loop_sizes),
        relations=shuffled(rng, (r._replace(terms=shuffled(rng, r.terms)) for r in layer.relations)),
        precision_bits=shuffled(rng, layer.precision_bits),
        padding=shuffled(rng, layer.padding),
        data_dimension_sizes=shuffled(rng, layer.data_dimension_sizes),
    )
    unrolled = [d for _, factors in problem.unrolling for d, _ in factors]
    unrolling = problem.unrolling
    if len(set(unrolled)) == len(unrolled):
        # Of a dimension on several array dimensions, the first of the largest factors is the one that is adjusted.
        unrolling = shuffled(rng, ((name, shuffled(rng, factors)) for name, factors in unrolling))
    operational = OperationalArray(
        shuffled(rng, array.dimensions),
        array.unit_energy_pj,
        array.unit_area_mm2,
        shuffled(rng, array.systolic_dimensions),
    )
    return replace(
        problem,
        layer=other,
        core=replace(core, operational_array=operational, memories=tuple(memories)),
        links=shuffled(rng, problem.links),
        unrolling=unrolling,
    )


def _other_memory(rng: random.Random, memory: Memory) -> Memory:
    return replace(
        memory,
        operands=shuffled(rng, memory.operands),
        ports=shuffled(rng, (replace(port, allocation=shuffled(rng, port.allocation)) for port in memory.ports)),
        served_dimensions=shuffled(rng, memory.served_dimensions),
    )
