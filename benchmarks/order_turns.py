"""Comparison of what `compare` says would turn the order of two runs with changed files: no statement may be false.

    .venv/bin/python benchmarks/order_turns.py [--pairs 120] [--jobs 2] [--seconds 3600]

Each seed (`tests/plain/order_turns.py`) is a random network on two shipped cores with random clocks, prices and
off-chip bandwidths. Each change that `compare` names (an energy, a clock, an off-chip bandwidth, a size, a batch) is
written into a hardware file or a network file. The order must turn with the change, and must not turn with 0.9 of it.
No other number may turn the order by a smaller change, up to the ends of its range, and none of 25 random bandwidths.
The mappings of the runs are evaluated on the changed files; batches are searched again. Prints every false statement,
and counts; `--seed N` repeats one pair. The exit code is 1 if there is a false statement.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.order_turns import try_order_turns

AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "pair", 120, try_order_turns, AT_ONCE, wrong="false statements"))
