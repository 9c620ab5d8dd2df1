"""Attack the bounds and the optimum of depth-first schedules: random chains of layers on random cores.

    .venv/bin/python benchmarks/attack_depth_first.py [--chains 2000] [--jobs 2] [--seconds 2400]

Every chain has windows, strides, dilation and padding of any kind, narrow maps, precisions in any order, on a core of
random memories and ports, or of registers below memories that all lanes share. No bound may be above what a stack
in random tiles costs, and the optimum of small spaces must be the best of all schedules, tried one by one
(`tests/plain/depth_first.py`). Prints counts; `--seed N` runs one chain again. Exit code 1 where something is wrong.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.depth_first_attack import attack

if __name__ == "__main__":
    sys.exit(run(__doc__, "chain", 2000, attack, 10, "wrong bounds and optima"))
