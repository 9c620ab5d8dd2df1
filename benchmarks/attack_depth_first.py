"""Attack on the bounds and the optimum of depth-first schedules: random chains of layers on random cores.

    .venv/bin/python benchmarks/attack_depth_first.py [--chains 2000] [--jobs 2] [--seconds 2400]

A chain has layers with windows, strides, dilation and padding of any kind, narrow maps, and any precisions. Its core
has random memories and ports, or registers below memories that all lanes share. No bound may be above the cost of a
stack in random tiles. The optimum of a small space must be the best of all schedules, which are tried one by one
(`tests/plain/depth_first.py`). Prints counts; `--seed N` repeats one chain. The exit code is 1 if there is a fault.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.depth_first_attack import attack

if __name__ == "__main__":
    sys.exit(run(__doc__, "chain", 2000, attack, 10, "wrong bounds and optima"))
