"""Attack on Pareto fronts: small layers and networks by brute force, larger layers by random mappings.

    .venv/bin/python benchmarks/attack_fronts.py [--networks 300] [--jobs 2] [--seconds 3600]

Each seed (`tests/plain/attack_fronts.py`) makes a network of three small layers, a small layer without a given spatial
mapping, and one larger layer. The fronts of the network must equal the fronts of all mappings (both profiles, greedy
and free). The fronts of the other two layers are searched with a random effort. No mapping may be better than the front
by more than the stated miss. All mappings of the layer without a given spatial mapping are checked, and 600 random
mappings of the larger layer. Prints each fault with its seed, and counts; `--seed N` repeats one seed. The exit code is
1 if there is a fault.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.attack_fronts import attack_fronts

NETWORKS_AT_ONCE = 5


if __name__ == "__main__":
    sys.exit(run(__doc__, "network", 300, attack_fronts, NETWORKS_AT_ONCE, wrong="wrong fronts"))
