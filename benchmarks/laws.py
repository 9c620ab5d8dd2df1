"""Laws of physics on random accelerators and layers: what must hold of `corrected` whatever the problem.

    .venv/bin/python benchmarks/laws.py [--cases 100000] [--jobs 2] [--seconds 3600]

Each case is a random layer, core, spatial mapping and mapping in time (`tests/plain/problems.py`); the laws are those
of `tests/plain/laws.py`, tried under `corrected`, and with one switch off for each law that does not rest on it. Prints
how often each was tried and every case that breaks one, with its seed; `--seed N` runs one case again. Exit code 1
where a law is broken.
"""

from __future__ import annotations

import sys

from seeded import parser_of, parts, report

from tests.plain.laws import Tally, try_laws

CASES_AT_ONCE = 100


def main() -> int:
    """Run it; 1 where a law is broken."""
    options = parser_of(__doc__, "case", 100000).parse_args()
    tally = Tally()
    for part in parts(options, Tally, try_laws, CASES_AT_ONCE):
        tally.add(part)
        for text in part.broken:
            print(text, flush=True)
    print(report(tally.counts, "broken", len(tally.broken), options))
    return 1 if tally.broken else 0


if __name__ == "__main__":
    sys.exit(main())
