"""Comparison of verdicts on networks on several cores with brute force: no verdict may be false or contradict another
one.

    .venv/bin/python benchmarks/system_verdicts.py [--runs 200] [--jobs 2] [--seconds 3600]

Each seed is a random small network on a random system of two to four cores. `fuse`, `schedule`, `explain`, `advise` and
the pages state bounds and their extent, gaps, baselines, limits and gains. `tests/plain/system_verdicts.py` checks
these statements. Prints counts and every false verdict; `--seed N` repeats one run. The exit code is 1 if there is a
false verdict.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.system_verdicts import try_system_verdicts

AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 200, try_system_verdicts, AT_ONCE))
