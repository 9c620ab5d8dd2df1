"""Verdicts of all verbs and of the page against brute force: none may be false, or contradict another one.

    .venv/bin/python benchmarks/verdicts.py [--runs 500] [--jobs 2] [--seconds 3600]

Each seed is a random layer with a random mapping on a random core under a random model (`tests/plain/problems.py`); of
five seeds one has a core whose ports are all equally narrow, two a matrix product with equal ports. What `explain`
(text, JSON, figure, repr), the page, `tokens` and `advise` say limits it is held against the plain model of
`tests/plain`. Prints counts, of runs where two limits tie and where no single change helps among them, and every false
verdict; `--seed N` tries one run again. Exit code 1 where there is one.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.verdicts import try_verdicts

AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 500, try_verdicts, AT_ONCE))
