"""Attack on the certificates of the exact search: random small problems, each solved by plain brute force.

    .venv/bin/python benchmarks/attack_certificates.py [--problems 20000] [--jobs 2] [--seconds 2400]

Every problem is a random layer, core, spatial mapping and model profile (`tests/plain/problems.py`). A model in plain
Python that shares no code with the package (`tests/plain`) costs all mappings. For each allocation and objective, a
proven value must be the least of these costs. The cost of the found mapping must be equal in both models. With
`--open`, the spatial mapping is not given: one search over all spatial mappings that the package generates must find
the least cost. With `--sentence`, the spatial mapping is not given either. The record then has a sentence that states
its bound, and the sentence must hold for every mapping that it covers. With `--in-memory
config/hardware/zigzag/aimc.yaml`, every problem is a random layer on this in-memory array. With `--sentence --engine
best`, the engine `best` searches; `--effort N` limits its effort, so that most bounds are not proofs. Prints counts.
Each difference is saved with its seed to `benchmarks/results/`; `--seed N` repeats one problem. The exit code is 1 if
there is a difference.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

from seeded import HERE, parser_of, parts, report

from tests.plain.attack import Outcome, attack
from tests.plain.attack_candidates import attack_candidates
from tests.plain.attack_open import attack_open
from tests.plain.in_memory_problems import InMemoryProblems

SEEDS_AT_ONCE = 20


def main() -> int:
    """Run the attack. Returns 1 if there is a difference, else 0."""
    parser = parser_of(__doc__, "problem", 20000)
    parser.add_argument("--model", help="this profile instead of random ones")
    parser.add_argument("--open", action="store_true", help="search all spatial mappings of a layer at once")
    parser.add_argument(
        "--sentence", action="store_true", help="check the sentence of each record over all mappings that it covers"
    )
    parser.add_argument("--engine", choices=("exact", "best"), default="exact", help="engine, with --sentence")
    parser.add_argument("--effort", type=int, help="effort of the engine best; needs --sentence")
    parser.add_argument("--in-memory", type=Path, metavar="FILE", help="layers on the in-memory array of this file")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "attack_certificates.jsonl")
    options = parser.parse_args()
    outcome = Outcome()
    if sum(map(bool, (options.open, options.sentence, options.in_memory))) > 1:
        parser.error("--open, --sentence and --in-memory are three attacks: give one of them")
    kind = attack_open if options.sentence else attack_candidates if options.open else attack
    one = partial(kind, model=options.model)
    if options.sentence:
        one = partial(one, engine=options.engine, **({} if options.effort is None else {"effort": options.effort}))
    elif options.engine != "exact" or options.effort is not None:
        parser.error("--engine and --effort need --sentence")
    if options.in_memory:
        one = partial(one, draw=InMemoryProblems(options.in_memory))
    for part in parts(options, Outcome, one, SEEDS_AT_ONCE):
        outcome.add(part)
        for difference in part.rows():
            print(json.dumps(difference), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("".join(json.dumps(row) + "\n" for row in outcome.rows()))
    print(report(outcome.counts, "differences", len(outcome.differences), options))
    return 1 if outcome.differences else 0


if __name__ == "__main__":
    sys.exit(main())
