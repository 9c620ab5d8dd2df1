"""Check of the changes that `tilewright compare` names as enough to turn the order of two runs: no statement may be
false.

    .venv/bin/python benchmarks/order_turns.py [--pairs 120] [--jobs 2] [--seconds 3600]

Each seed (`tests/plain/order_turns.py`) is a random network on two shipped cores with random clocks, prices and
off-chip bandwidths. `compare` names changes: of an energy, a clock, an off-chip bandwidth, a size or a batch. Each
change is written into a hardware file or a network file. The whole change must turn the order; 0.9 of the change must
not. All other numbers are tried, too: no smaller change of one of them may turn the order, up to the ends of its range.
None of 25 random bandwidths may turn the order by a smaller change. The mappings of the runs are evaluated on the
changed files; batches are searched again. Prints every false statement, and counts; `--seed N` repeats one pair. The
exit code is 1 if there is a false statement.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.order_turns import try_order_turns

AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "pair", 120, try_order_turns, AT_ONCE, wrong="false statements"))
