"""Blocks divided between the stages of a pipeline, in their order, so that the slowest stage takes the least time."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]


def stage_ends(cycles: Numbers, first: Numbers, last: Numbers) -> tuple[int, ...]:
    """[stage] the number of blocks that it and the stages before it have.

    `cycles` is [stage, block]; `first` and `last` are, for each stage, what comes before the blocks and behind them,
    which the first and the last stage have besides. A stage may have no block. Of equal divisions that with the
    earliest ends counts.
    """
    stages, blocks = cycles.shape
    until = np.concatenate((np.zeros((stages, 1)), np.cumsum(cycles, axis=1)), axis=1)
    best = until[0] + first[0] + (last[0] if stages == 1 else 0.0)
    chosen: list[npt.NDArray[np.int64]] = []
    for stage in range(1, stages):
        more = last[stage] if stage == stages - 1 else 0.0
        own = until[stage][None, :] - until[stage][:, None] + more  # [begin, end]
        slowest = np.where(np.triu(np.ones(own.shape, np.bool_)), np.maximum(best[:, None], own), np.inf)
        chosen.append(slowest.argmin(axis=0))
        best = slowest.min(axis=0)
    ends = [blocks]
    for begins in reversed(chosen):
        ends.append(int(begins[ends[-1]]))
    return tuple(reversed(ends))


def blocks_of_stage(ends: Sequence[int], stage: int) -> range:
    """The blocks of a stage."""
    return range(ends[stage - 1] if stage else 0, ends[stage])
