"""Laws of physics on random accelerators and layers: what must hold of `corrected` whatever the problem.

    .venv/bin/python benchmarks/laws.py [--cases 100000] [--jobs 2] [--seconds 3600]

Each case is a random layer, core, spatial mapping and mapping in time (`tests/plain/problems.py`); the laws are those
of `tests/plain/laws.py`, tried under `corrected`, and with one switch off for each law that does not rest on it. Prints
how often each was tried and every case that breaks one, with its seed; `--seed N` runs one case again. Exit code 1
where a law is broken.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "lib")]
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ.setdefault("XDG_CACHE_HOME", str(PROJECT / ".cache"))

from tests.plain.laws import Tally, try_laws  # noqa: E402

CASES_AT_ONCE = 100


def tried(task: tuple[range, float]) -> Tally:
    """The cases of some seeds, as far as time allows."""
    seeds, deadline = task
    tally = Tally()
    for seed in seeds:
        if time.time() >= deadline:
            tally.counts["cases left out for lack of time"] += 1
            continue
        try:
            tally.add(try_laws(seed))
        except Exception as error:
            raise RuntimeError(f"seed {seed}: {error}") from error
    return tally


def main() -> int:
    """Run it; 1 where a law is broken."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=100000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seed", type=int, help="one case only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    options = parser.parse_args()
    start = time.time()
    first, last = options.first_seed, options.first_seed + options.cases
    if options.seed is not None:
        first, last = options.seed, options.seed + 1
    tasks = [
        (range(seed, min(last, seed + CASES_AT_ONCE)), start + options.seconds)
        for seed in range(first, last, CASES_AT_ONCE)
    ]
    tally = Tally()
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for done, part in enumerate(pool.imap(tried, tasks), 1):
            tally.add(part)
            for text in part.broken:
                print(text, flush=True)
            if done % 50 == 0:
                print(f"{done * CASES_AT_ONCE} of {last - first}, {time.time() - start:.0f} s", flush=True)
    for name, count in sorted(tally.counts.items()):
        print(f"{name:100} {count:>10,}")
    print(f"{'broken':100} {len(tally.broken):>10,}")
    print(f"{'seconds':100} {time.time() - start:>10,.0f}")
    return 1 if tally.broken else 0


if __name__ == "__main__":
    sys.exit(main())
