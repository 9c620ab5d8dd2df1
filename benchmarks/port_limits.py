"""The port that limits a layer against brute force: no other port, twice as wide, may help more.

    .venv/bin/python benchmarks/port_limits.py [--pairs 500] [--jobs 2] [--seconds 3600]

Each seed is a random layer with a random mapping on a random core under a random model (`tests/plain/problems.py`).
The port that `tilewright explain` names is compared with the latency of every core with one port twice as wide, by the
plain model of `tests/plain`. Prints counts and every pair where another port helps more; `--seed N` tries one pair
again. Exit code 1 where there is one.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.port_limits import try_port_limit

AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "pair", 500, try_port_limit, AT_ONCE))
