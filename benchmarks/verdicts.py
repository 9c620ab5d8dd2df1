"""Comparison of verdicts of all verbs and of the page with brute force: no verdict may be false or contradict another
one.

    .venv/bin/python benchmarks/verdicts.py [--runs 500] [--jobs 2] [--seconds 3600]

Each seed is a random layer with a random mapping on a random core, with a random model (`tests/plain/problems.py`). In
one seed of five, all ports of the core are equally narrow. In two of five, the layer is a matrix product and the ports
are equal. `explain` (text, JSON, figure, repr), the page, `tokens` and `advise` state which part limits the layer.
These statements are compared with the plain model of `tests/plain`. Prints every false verdict, and counts, including
the runs in which two limits tie or no single change helps; `--seed N` repeats one run. The exit code is 1 if there is a
false verdict.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.verdicts import try_verdicts

AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 500, try_verdicts, AT_ONCE))
