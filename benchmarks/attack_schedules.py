"""Attack the exact search over allocations: random problems, proven optimal and compared with enumeration.

    .venv/bin/python benchmarks/attack_schedules.py [--problems 200] [--jobs 2] [--seconds 3600]

Each problem (`tests/unit/multicore/allocation/exact_attack.py`) is a random network of at most 60 computation nodes on
a random system (streams, shared memories, pairs of cores without a path, buses) with random settings of the scheduler
and a random objective. The search has 60 seconds; what it calls optimal must be the best of all allocations where
there are at most 30,000 of them. Besides, allocations whose schedules are known must be no less than their relaxation
says, and the solver must not exclude them. Prints what is wrong, with its seed, and counts; `--seed N` runs one
problem again. Exit code 1 where anything is wrong.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.multicore.allocation.exact_attack import attack

PROBLEMS_AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "problem", 200, attack, PROBLEMS_AT_ONCE, wrong="wrong"))
