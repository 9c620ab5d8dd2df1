"""Laws of physics on random accelerators and layers: what must hold of `corrected` whatever the problem.

    .venv/bin/python benchmarks/laws.py [--cases 100000] [--jobs 2] [--seconds 3600]

Each case is a random layer, core, spatial mapping and mapping in time (`tests/plain/problems.py`); the laws are those
of `tests/plain/laws.py`, tried under `corrected`, and with one switch off for each law that does not rest on it. Prints
how often each was tried and every case that breaks one, with its seed; `--seed N` runs one case again. Exit code 1
where a law is broken.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.laws import try_laws

CASES_AT_ONCE = 100


if __name__ == "__main__":
    sys.exit(run(__doc__, "case", 100000, try_laws, CASES_AT_ONCE, wrong="broken"))
