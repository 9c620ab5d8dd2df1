"""Attack on schedules of plans: random schedules with multicast, forwarding and sums over cores, checked twice.

    .venv/bin/python benchmarks/attack_plan_schedules.py [--plans 2000] [--jobs 2] [--seconds 3600]

Each plan (`tests/unit/plans/schedule_attack.py`) belongs to a random network on a random system whose links have
multicast or forwarding. In some networks, reductions are cut between cores. Up to four allocations of each plan are
scheduled. The independent checker checks every rule of each schedule, and a second scheduler in plain Python must make
the same schedule. Prints each fault with its seed, and counts; `--seed N` repeats one plan. The exit code is 1 if there
is a fault.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.plans.schedule_attack import attack

PLANS_AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "plan", 2000, attack, PLANS_AT_ONCE, wrong="faults"))
