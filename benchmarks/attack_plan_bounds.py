"""Attack on the lower bounds of every plan: random networks, systems and plans, and searches for a schedule that is
below a bound.

    .venv/bin/python benchmarks/attack_plan_bounds.py [--trials 10000] [--jobs 2] [--seconds 3600]

Each trial (`tests/unit/plans/plan_attack.py`) has a random network (convolutions of all kinds, matrix products,
elementwise operators, residuals) on a random system (bus, mesh, torus, ring, star, row; one or several off-chip ports;
cores with dataflows; small memories; with or without multicast and forwarding). In some trials, reductions are cut
between cores. The trial draws plans from the grammar of docs/proofs/every-plan.md. A hill climb changes the allocation
of each plan. Every schedule is compared with each term of the bounds. Prints each schedule below a bound with its seed,
and counts; `--seed N` repeats one trial. The exit code is 1 if a bound is wrong.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.plans.plan_attack import attack

TRIALS_AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "trial", 10000, attack, TRIALS_AT_ONCE, wrong="wrong bounds"))
