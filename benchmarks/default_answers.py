"""Attack on the answers of the default search, on shipped cores: never worse than loma or salsa, never below a bound.

    .venv/bin/python benchmarks/default_answers.py [--networks 240] [--pairs] [--jobs 2] [--seconds 3600]

Each seed (`tests/plain/default_answers.py`) is a random network of one to three layers with odd sizes on one of the 20
shipped cores in turn. The model, the objective, data locality and `near_optimum` are random, and the spatial mapping is
given or open. The network is searched by loma, salsa, `best` with the default effort and with four other efforts, and
`exact`. Up to 600 random mappings of each layer, and 1,000 of each network, are costed. No layer and no network may be
worse than with loma or salsa, and nothing may be below a bound. With `--pairs`, each seed is a pair of a shipped core
and a shipped network at twelve efforts from 1 to 600,000. Prints faults, and counts of layers by printed gap and by
true distance from the optimum; `--seed N` repeats one seed. The exit code is 1 if there is a fault.
"""

from __future__ import annotations

import sys
from functools import partial

from seeded import PROJECT, run
from shipped import shipped

from tests.plain.default_answers import try_default_answers, try_pair

PAIRS = tuple(
    (shipped("hardware", core), PROJECT / "config" / "workload" / f"{network}.onnx")
    for network in ("resnet18", "mobilenetv2", "bert_tiny")
    for core in ("tpu_like", "edge_tpu_like", "eyeriss_like", "cube_3d", "aimc", "dimc", "tpu_like_vector")
)


if __name__ == "__main__":
    if "--pairs" in sys.argv:
        sys.argv.remove("--pairs")
        sys.exit(run(__doc__, "network", len(PAIRS), partial(try_pair, pairs=PAIRS), 1, wrong="false answers"))
    sys.exit(run(__doc__, "network", 240, try_default_answers, 5, wrong="false answers"))
