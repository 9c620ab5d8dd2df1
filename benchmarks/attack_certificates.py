"""Attack the certificates of the exact search: random small problems, each searched through by plain brute force.

    .venv/bin/python benchmarks/attack_certificates.py [--problems 20000] [--jobs 2] [--seconds 2400]

Every problem is a random layer, core, spatial mapping and model profile (`tests/plain/problems.py`). For each
allocation and objective a proven value must be the least of all mappings by a model in plain Python that shares no code
with the package (`tests/plain`), and the mapping found must cost by that model what the package says. Prints counts;
each difference is saved with its seed to `benchmarks/results/`, and `--seed N` runs one problem again. Exit code 1
where there is a difference.
"""

from __future__ import annotations

import argparse
import json
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

from tests.plain.attack import Outcome, attack  # noqa: E402

SEEDS_AT_ONCE = 20


def attacks(task: tuple[range, float, str | None]) -> Outcome:
    """The problems of some seeds, as far as time allows."""
    seeds, deadline, model = task
    outcome = Outcome()
    for seed in seeds:
        if time.time() >= deadline:
            outcome.counts["problems left out for lack of time"] += 1
            continue
        try:
            outcome.add(attack(seed, model=model))
        except Exception as error:
            raise RuntimeError(f"seed {seed}: {error}") from error
    return outcome


def report(outcome: Outcome, seconds: float) -> str:
    """Counts as lines of text."""
    lines = [f"{name:60} {count:>12,}" for name, count in sorted(outcome.counts.items())]
    lines += [f"{'differences':60} {len(outcome.differences):>12,}", f"{'seconds':60} {seconds:>12,.0f}"]
    return "\n".join(lines)


def main() -> int:
    """Run it; 1 where there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--problems", type=int, default=20000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--seed", type=int, help="one problem only")
    parser.add_argument("--model", help="this profile instead of random ones")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "attack_certificates.jsonl")
    options = parser.parse_args()
    start = time.time()
    first, last = options.first_seed, options.first_seed + options.problems
    if options.seed is not None:
        first, last = options.seed, options.seed + 1
    tasks = [
        (range(seed, min(last, seed + SEEDS_AT_ONCE)), start + options.seconds, options.model)
        for seed in range(first, last, SEEDS_AT_ONCE)
    ]
    outcome = Outcome()
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for done, part in enumerate(pool.imap(attacks, tasks), 1):
            outcome.add(part)
            for difference in part.rows():
                print(json.dumps(difference), flush=True)
            if done % 50 == 0:
                print(f"{done * SEEDS_AT_ONCE} of {last - first}, {time.time() - start:.0f} s", flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("".join(json.dumps(row) + "\n" for row in outcome.rows()))
    print(report(outcome, time.time() - start))
    return 1 if outcome.differences else 0


if __name__ == "__main__":
    sys.exit(main())
