"""Attack on the exact search over allocations: random problems whose proven optimum is compared with enumeration.

    .venv/bin/python benchmarks/attack_schedules.py [--problems 200] [--jobs 2] [--seconds 3600]

Each problem (`tests/unit/multicore/allocation/exact_attack.py`) is a random network of at most 60 computation nodes on
a random system, with random settings of the scheduler and a random objective. Systems can have streams, shared
memories, pairs of cores without a path, and buses. The search has 60 seconds. If it proves an allocation optimal, and
there are at most 30,000 allocations, this allocation must be the best of all. Two checks concern each allocation with a
known schedule: the relaxation must not be above its cost, and the solver must not exclude it. Prints each fault with
its seed, and counts; `--seed N` repeats one problem. The exit code is 1 if there is a fault.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.multicore.allocation.exact_attack import attack

PROBLEMS_AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "problem", 200, attack, PROBLEMS_AT_ONCE, wrong="wrong"))
