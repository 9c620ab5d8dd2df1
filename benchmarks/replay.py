"""Replay random mappings of random affine layers element by element, and compare what the cost model counts.

    .venv/bin/python benchmarks/replay.py [--problems 10000] [--first-seed 0] [--jobs 2] [--seconds 2400]

Layers have windows on any operand, outputs among them, shared loops of windows, and lanes that do not divide them; each
is mapped twice, allocated greedily or with random boundaries, on a core of random memories and ports. Words of every
link, the largest transfer of each, the number of transfers and the energy of accesses are those of
`tests/plain/replay.py`. Prints counts; `--seed N` runs one problem again. Exit code 1 where something differs.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.replay_cases import attack

if __name__ == "__main__":
    sys.exit(run(__doc__, "problem", 10000, attack, 20, "differences"))
