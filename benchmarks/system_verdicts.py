"""Verdicts about networks on several cores against brute force: none may be false, or contradict another one.

    .venv/bin/python benchmarks/system_verdicts.py [--runs 200] [--jobs 2] [--seconds 3600]

Each seed is a random small network on a random system of two to four cores. What `fuse`, `schedule`, `explain`,
`advise` and the pages say of bounds and what they cover, of gaps, baselines, limits and gains is judged by
`tests/plain/system_verdicts.py`.
Prints counts and every false verdict; `--seed N` tries one run again. Exit code 1 where there is one.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.system_verdicts import try_system_verdicts

AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 200, try_system_verdicts, AT_ONCE))
