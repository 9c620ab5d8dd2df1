"""Advice against running the changed files: every number must be the same to the last bit.

    .venv/bin/python benchmarks/advices.py [--runs 60] [--jobs 2] [--seconds 3600]

Each seed is a run of one of three networks on one of five accelerators under random options, with twenty random changes
of its hardware file. What `tilewright advise` says of each is compared with `tilewright evaluate` of the exported
mappings and with `tilewright map`, both on the file that `--write` writes. 60 runs are more than 1,000 advices. Prints
counts and every difference; `--seed N` tries one run again. Exit code 1 where there is a difference.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.unit.designs.advice_cases import try_advices

AT_ONCE = 2


if __name__ == "__main__":
    sys.exit(run(__doc__, "run", 60, try_advices, AT_ONCE))
