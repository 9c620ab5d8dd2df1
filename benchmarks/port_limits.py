"""Check of the port that `tilewright explain` names as the limit of a layer: no other port may save more if its width
is doubled.

    .venv/bin/python benchmarks/port_limits.py [--pairs 500] [--jobs 2] [--seconds 3600]

Each seed is a random layer with a random mapping on a random core, with a random model (`tests/plain/problems.py`).
Each port of the core is doubled in width, one port at a time. No port may save more than the named port. The latencies
come from the plain model of `tests/plain`. Prints counts and every pair for which another port saves more; `--seed N`
repeats one pair. The exit code is 1 if there is such a pair.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.port_limits import try_port_limit

AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "pair", 500, try_port_limit, AT_ONCE))
