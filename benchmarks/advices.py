"""Comparison of advice with runs of the changed files: every number must be equal to the last bit.

    .venv/bin/python benchmarks/advices.py [--runs 60] [--jobs 2] [--seconds 3600]

Each seed is a run of one of three networks on one of five accelerators with random options. Twenty random changes of
its hardware file are tried. For each change, `tilewright advise --write` writes the changed hardware file. The gains
that `advise` states for the change are compared with two results on this file: `tilewright evaluate` of the exported
mappings, and `tilewright map`. 60 runs give more than 1,000 comparisons. Prints counts and every difference; `--seed N`
repeats one run. The exit code is 1 if there is a difference.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.designs.advice_cases import try_advices

AT_ONCE = 2


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 60, try_advices, AT_ONCE))
