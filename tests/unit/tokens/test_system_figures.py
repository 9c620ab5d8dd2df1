"""Stages of a pipeline: no other division of the blocks makes the slowest stage faster."""

import itertools

import numpy as np
import numpy.typing as npt
from tilewright.tokens.system_figures import blocks_of_stage, stage_ends

Numbers = npt.NDArray[np.float64]


def slowest(ends: tuple[int, ...], cycles: Numbers, first: Numbers, last: Numbers) -> float:
    """Cycles of the slowest stage."""
    loads = [cycles[stage, list(blocks_of_stage(ends, stage))].sum() for stage in range(len(ends))]
    loads[0] += first[0]
    loads[-1] += last[len(ends) - 1]
    return float(max(loads))


def test_the_slowest_stage_is_as_fast_as_can_be() -> None:
    """The slowest stage is as fast as in the best of all divisions, for random blocks on random cores."""
    draw = np.random.default_rng(7)
    for _ in range(200):
        stages, blocks = int(draw.integers(1, 5)), int(draw.integers(1, 8))
        cycles = draw.integers(1, 50, (stages, blocks)).astype(np.float64)
        first, last = (draw.integers(0, 60, stages).astype(np.float64) for _ in range(2))
        cuts = itertools.combinations_with_replacement(range(blocks + 1), stages - 1)
        found = stage_ends(cycles, first, last)
        assert found[-1] == blocks
        assert list(found) == sorted(found)
        assert slowest(found, cycles, first, last) == min(slowest((*one, blocks), cycles, first, last) for one in cuts)
