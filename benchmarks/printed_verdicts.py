"""Verdicts as the command line prints them against brute force: none may be false, or contradict another one.

    .venv/bin/python benchmarks/printed_verdicts.py [--runs 300] [--jobs 2] [--seconds 3600]

Each seed is a random network of one to three layers on a random core, written as the YAML files of a person, and mapped
by `tilewright map`. All that `map`, `explain`, `advise`, `compare`, `page`, `report` and (of one seed in ten) `tokens`
print and write of limits, gains, gaps and bounds is read back and held against the plain model of `tests/plain`. Prints
counts, of runs where two limits tie and where no single change helps among them, and every false verdict; `--seed N`
tries one run again. Exit code 1 where there is one.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.printed_verdicts import try_printed_verdicts

AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 300, try_printed_verdicts, AT_ONCE))
