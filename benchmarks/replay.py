"""Replay of random mappings of random affine layers, element by element, and comparison with the counts of the cost
model.

    .venv/bin/python benchmarks/replay.py [--problems 10000] [--first-seed 0] [--jobs 2] [--seconds 2400]

The layers have windows on any operand, including outputs. Several windows can share a loop, and the number of lanes
need not divide a size. Each layer is mapped twice on a core of random memories and ports: with greedy allocation, and
with random boundaries. Four results must equal those of `tests/plain/replay.py`: the words of every link, the largest
transfer of each link, the number of transfers, and the energy of accesses. Prints counts; `--seed N` repeats one
problem. The exit code is 1 if a result differs.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.replay_cases import attack

if __name__ == "__main__":
    sys.exit(run(__doc__, "problem", 10000, attack, 20, "differences"))
