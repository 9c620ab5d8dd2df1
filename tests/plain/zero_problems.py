"""Random problems with shares of zeros, and with keys in the hardware file that use these shares."""

import random
from dataclasses import replace
from fractions import Fraction

from tilewright.hardware.core import Core, Memory, RunLength, ZeroGating
from tilewright.workload.layer import Layer

from tests.plain.problems import Problem, random_problem
from tests.plain.switches import SWITCHES
from tests.plain.zeros import elements_a_pair, exactly


def problem_with_zeros(
    seed: int, loops: tuple[int, int] = (0, 8), switches: tuple[str, ...] = SWITCHES, kind: str | None = None
) -> Problem:
    """A random problem of a seed with shares of zeros."""
    problem = random_problem(seed, loops, switches, kind)
    layer, core = with_random_zeros(random.Random(seed + 77), problem.layer, problem.core)
    return replace(problem, layer=layer, core=core)


def with_random_zeros(rng: random.Random, layer: Layer, core: Core) -> tuple[Layer, Core]:
    """The layer with random shares of zeros, and the core with random keys for zeros."""
    names = [key for key, _ in layer.precision_bits if key != "O"]
    zeros = tuple((key, rng.choice((0.0, 0.125, 0.25, 0.5, 0.75, 1.0))) for key in names if rng.random() < 0.8)
    most = max(bits for _, bits in layer.precision_bits)
    memories = []
    for memory in core.memories:
        run_bits, pairs = rng.choice((1, 2, 5)), rng.choice((1, 3))
        code = RunLength(memory.operands, run_bits, pairs, pairs * (run_bits + most) + rng.choice((0, 1, 7)))
        coded = replace(memory, run_length=code) if rng.random() < 0.5 else memory
        memories.append(coded if _moves_a_bit(coded, replace(layer, zeros=zeros)) else memory)
    choices = (("I1",), ("I2",), ("I1", "I2"))
    gating = ZeroGating(rng.choice(choices), rng.choice((*choices, ()))) if rng.random() < 0.7 else None
    array = replace(core.operational_array, zero_gating=gating)
    return replace(layer, zeros=zeros), replace(core, memories=tuple(memories), operational_array=array)


def _moves_a_bit(memory: Memory, layer: Layer) -> bool:
    """True if every port of a memory moves at least a bit of uncompressed data in a cycle, for each operand."""
    code, zeros = memory.run_length, dict(layer.zeros)
    sizes = [
        Fraction(code.word_bits, code.pairs * bits) / elements_a_pair(code.run_bits, exactly(zeros[key]))
        for key, bits in layer.precision_bits
        if code is not None and key in zeros and bits > 0
    ]
    return min(port.bandwidth_max_bits for port in memory.ports) >= max(sizes, default=0)
