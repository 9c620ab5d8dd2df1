"""Attack on the lower bounds of loma and salsa: random mappings of random layers, none of which may be below a bound.

    .venv/bin/python benchmarks/attack_layer_bounds.py [--layers 2000] [--jobs 2] [--seconds 3600]

Each layer (`tests/plain/attack_layer_bounds.py`) is of a random kind, on a random core, with a random model profile.
Its spatial mapping is given or generated, and its boundaries are even or uneven. For each spatial mapping, 100 random
orders of prime factors, or of merged factors, are costed. They are compared with the bounds of each objective. Prints
each mapping below a bound with its seed, and counts; `--seed N` repeats one layer. The exit code is 1 if a bound is
wrong.
"""

from __future__ import annotations

import sys

from seeded import run

from tests.plain.attack_layer_bounds import attack_layer_bounds

LAYERS_AT_ONCE = 20


if __name__ == "__main__":
    sys.exit(run(__doc__, "layer", 2000, attack_layer_bounds, LAYERS_AT_ONCE, wrong="mappings below a bound"))
