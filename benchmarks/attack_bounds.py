"""Attack on the lower bounds of schedules: random problems, and searches for a schedule that is below a bound.

    .venv/bin/python benchmarks/attack_bounds.py [--trials 10000] [--jobs 2] [--seconds 3600]

Each trial (`tests/unit/multicore/scheduling/bound_attack.py`) has a random network, a random system, random settings of
the scheduler (candidates, prefetch, share divisor), and a random set of allowed cores. Systems can have streams, shared
memories, memories between two cores, pairs of cores without a path, and buses. A hill climb over allocations brings the
latency as close to the bound as possible, and then also changes numbers of the problem. Every schedule is compared with
every bound. The best schedule is also compared with two further kinds of bounds: bounds for its cores, and bounds of
the time before and after a CN. Prints each schedule below a bound with its seed, and counts; `--seed N` repeats one
trial. The exit code is 1 if a bound is wrong.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.multicore.scheduling.bound_attack import attack

TRIALS_AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "trial", 10000, attack, TRIALS_AT_ONCE, wrong="wrong bounds"))
