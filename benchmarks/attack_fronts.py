"""Attack Pareto fronts: small layers and networks by brute force, larger layers by random mappings.

    .venv/bin/python benchmarks/attack_fronts.py [--networks 300] [--jobs 2] [--seconds 3600]

Each seed (`tests/plain/attack_fronts.py`) makes a network of three small layers, whose fronts must equal those of all
mappings (both profiles, greedy and free), and a larger layer, none of whose 600 random mappings may escape the points
by more than the stated miss, at a random effort. Prints what is wrong, with its seed, and counts; `--seed N` runs one
seed again. Exit code 1 where anything is wrong.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.attack_fronts import attack_fronts

NETWORKS_AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "network", 300, attack_fronts, NETWORKS_AT_ONCE, wrong="wrong fronts"))
