"""Certified optima on in-memory arrays, whose operations take several cycles, equal those of brute force.

`benchmarks/attack_certificates.py --in-memory FILE` attacks more.
"""

import random
from pathlib import Path

import pytest
from tilewright.base.errors import MappingError
from tilewright.base.objectives import OBJECTIVES
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright.search.evaluate import prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import Layer

from tests.plain.attack import Outcome, attack
from tests.plain.in_memory_problems import InMemoryProblems
from tests.unit.cost.engine_cases import LINKS, convolution, gemm
from tests.unit.search.exact.exact_brute_force import (
    ALLOCATIONS,
    LARGEST_FREE_SPACE,
    check_optimum,
    free_mapping_count,
    search,
    space_of,
)

HARDWARE = Path(__file__).parents[3] / "conformance/data/in_memory/hardware"
EXAMPLES = Path(__file__).parents[4] / "config/hardware/zigzag"
BITS = (("W", 4), ("I", 4), ("O", 16), ("O_final", 8))


def small_layer(rng: random.Random) -> Layer:
    """A layer with few loops beyond the lanes of the array."""
    if rng.random() < 0.5:
        return gemm(bits=BITS, C=rng.choice([8, 96, 130]), D=rng.choice([4, 6, 9]), K=rng.choice([16, 48, 50]))
    sizes = {"K": [8, 48], "C": [3, 16, 40], "OX": [2, 3], "OY": [2, 4], "FX": [1, 3], "FY": [1, 3]}
    return convolution(bits=BITS, **{name: rng.choice(choices) for name, choices in sizes.items()})


def lanes_of(layer: Layer, rng: random.Random) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    """K on word lines, C and FX on bit lines; sometimes the mapping uses fewer lanes than the array has."""
    sizes = layer.size_of
    columns, rows = min(sizes["K"], rng.choice([8, 16])), min(sizes["C"], rng.choice([4, 8]))
    window = (("FX", sizes["FX"]),) if sizes.get("FX", 1) > 1 else ()
    return ("D1", (("K", columns),)), ("D2", (("C", rows), *window))


@pytest.mark.parametrize("hardware", ["analog_24x40", "digital_16x32x3"])
@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_value_is_that_of_brute_force(hardware: str, allocation: str) -> None:
    """The value equals that of brute force, for random layers, both profiles and all objectives."""
    core = read_accelerator(HARDWARE / f"{hardware}.yaml").cores[0]
    rng, tried = random.Random(allocation), 0
    for case in range(30):
        layer, model = small_layer(rng), rng.choice(["zigzag-3.9.1", "corrected"])
        try:
            prepared = prepare(layer, core, LINKS, lanes_of(layer, rng), SearchOptions(model=model))
        except MappingError:
            continue
        if allocation == "free" and free_mapping_count(prepared) > LARGEST_FREE_SPACE:
            continue
        spaces = space_of(prepared, allocation)
        for objective in OBJECTIVES:
            check_optimum(search(prepared, allocation, objective), spaces, objective, (case, model, objective))
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("example", ["aimc", "dimc"])
def test_certificates_on_the_example_arrays_are_those_of_a_plain_model(example: str) -> None:
    """Proven values are the least over every mapping, by a model that shares no code with the package.

    Under both profiles, mappings cost as much as stated, and so does every label of the search.
    """
    draw, outcome = InMemoryProblems(EXAMPLES / f"{example}.yaml"), Outcome()
    for seed in range(8):
        outcome.add(attack(seed, draw=draw))
    assert not outcome.differences
    counts = outcome.counts
    assert counts["model: corrected"] > 1
    assert counts["model: zigzag-3.9.1"] > 1
    assert counts["proven"] == counts["equal"] > 24
    assert counts["labels"] > 500
