"""Comparison of printed verdicts with brute force: no verdict may be false or contradict another one.

    .venv/bin/python benchmarks/printed_verdicts.py [--runs 300] [--jobs 2] [--seconds 3600]

Each seed is a random network of one to three layers on a random core, written as YAML files and mapped by `tilewright
map`. Verdicts are statements on limits, gains, gaps and bounds that `map`, `explain`, `advise`, `compare`, `page`,
`report` and (for one seed in ten) `tokens` print and write. They are read from the output, and compared with the plain
model of `tests/plain`. Prints every false verdict, and counts, including the runs in which two limits tie or no single
change helps; `--seed N` repeats one run. The exit code is 1 if there is a false verdict.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.printed_verdicts import try_printed_verdicts

AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 300, try_printed_verdicts, AT_ONCE))
