"""Laws of physics on random accelerators and layers: the model `corrected` must keep them for every problem.

    .venv/bin/python benchmarks/laws.py [--cases 100000] [--jobs 2] [--seconds 3600]

Each case is a random layer, core, spatial mapping and temporal mapping (`tests/plain/problems.py`).
`tests/plain/laws.py` has the laws. They are tried with the model `corrected`. Each law is also tried with one switch of
the model off, a switch that the law does not need. Prints the number of trials of each law, and every case that breaks
a law, with its seed; `--seed N` repeats one case. The exit code is 1 if a law is broken.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.laws import try_laws

CASES_AT_ONCE = 100


if __name__ == "__main__":
    sys.exit(run(__doc__, "case", 100000, try_laws, CASES_AT_ONCE, wrong="broken"))
