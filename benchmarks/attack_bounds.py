"""Attack the lower bounds of schedules: random problems, and climbs towards a schedule that is below a bound.

    .venv/bin/python benchmarks/attack_bounds.py [--trials 10000] [--jobs 2] [--seconds 3600]

Each trial (`tests/unit/multicore/scheduling/bound_attack.py`) is a random network on a random system (streams, shared
memories, memories between two cores, pairs of cores without a path, buses), random settings of the scheduler
(candidates, prefetch, share divisor), and a random set of allowed cores. A hill climb over allocations makes the
latency as little above the bound as it can, and goes on with numbers of the problem changed; every schedule is
compared with every bound, the best one also with the bounds of its own cores and those before and after a CN. Prints
what is below a bound, with its seed, and counts; `--seed N` runs one trial again. Exit code 1 where a bound is wrong.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.multicore.scheduling.bound_attack import attack

TRIALS_AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "trial", 10000, attack, TRIALS_AT_ONCE, wrong="wrong bounds"))
