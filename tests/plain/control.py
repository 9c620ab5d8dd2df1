"""Rules of the control of a core, in plain Python, and random rules."""

import random
from collections.abc import Mapping
from dataclasses import replace

from tilewright.hardware.core import Core, Memory
from tilewright.workload.layer import Layer

from tests.plain.relevancy import Loops
from tests.plain.reuse import Levels

Reused = Mapping[str, frozenset[str]]
"""Operand -> loop dimensions that only reuse its data."""


def can_have(memory: Memory, dimension: str, reused: frozenset[str]) -> bool:
    """Whether the rules of a memory allow a loop there. A loop that only reuses an operand's data is always allowed."""
    return memory.tile_dimensions is None or dimension in reused or dimension in memory.tile_dimensions


def obeys(order: Loops, levels: Mapping[str, Levels], chains: Mapping[str, list[Memory]], reused: Reused) -> bool:
    """Whether a mapping obeys the rules of all memories."""
    for operand, loops_of_levels in levels.items():
        for memory, loops in zip(chains[operand], loops_of_levels, strict=True):
            if not all(can_have(memory, dimension, reused[operand]) for dimension, _ in loops):
                return False
    memories = {memory.name: memory for chain in chains.values() for memory in chain}
    return all(_is_in_order(order, memory, levels, chains, reused) for memory in memories.values())


def _is_in_order(
    order: Loops, memory: Memory, levels: Mapping[str, Levels], chains: Mapping[str, list[Memory]], reused: Reused
) -> bool:
    starts = [len(order)]
    for operand, chain in chains.items():
        if memory in chain:
            below = sum(len(loops) for loops in levels[operand][: chain.index(memory)])
            starts += [i for i in range(below, len(order)) if order[i][0] not in reused[operand]]
    places = [memory.loop_order.index(d) for d, _ in order[min(starts) :] if d in memory.loop_order]
    return places == sorted(places)


def with_random_rules(rng: random.Random, layer: Layer, core: Core) -> Core:
    """The core with random rules for loops of the layer.

    The topmost memories have fewer rules, so that some mappings are left.
    """
    dimensions = list(layer.size_of)
    memories, ordered = [], 0
    for memory in core.memories:
        is_top = memory.name.startswith("top")
        if rng.random() < (0.25 if is_top else 0.6):
            share = 0.85 if is_top else 0.6
            memory = replace(memory, tile_dimensions=tuple(d for d in dimensions if rng.random() < share))
        if rng.random() < 0.4 and ordered < 4 and len(dimensions) > 1:
            names = rng.sample(dimensions, rng.randint(2, len(dimensions)))
            memory, ordered = replace(memory, loop_order=tuple(names)), ordered + 1
        memories.append(memory)
    return replace(core, memories=tuple(memories))
