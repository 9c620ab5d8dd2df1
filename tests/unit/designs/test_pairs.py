"""Pairs of changes that save more than their changes alone, against all pairs one by one."""

import random
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.yamlfile import load_yaml
from tilewright.designs.advice import LEAST_GAIN, Advice, Advices, Pairs
from tilewright.designs.advice_text import advice_text
from tilewright.designs.changes import BANDWIDTH, ENERGY, FileChange
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.trials import with_pairs
from tilewright.hardware.core import Accelerator, single_core

SEEDS = range(12)
BASE = Path(__file__).resolve().parents[3] / "config/hardware/zigzag/tpu_like.yaml"
HARDWARE: dict[str, Any] = load_yaml(BASE).data
PORTS = [
    (memory, place, port["name"])
    for memory, keys in HARDWARE["memories"].items()
    for place, port in enumerate(keys["ports"])
]


@dataclass(frozen=True, eq=False)
class Queues:
    """A run in which each layer takes as long as its slowest port: bits over the port, divided by its width."""

    layers: tuple[dict[tuple[str, str], float], ...]
    """Bits over each port, for each layer."""
    most_sets: int = 600
    hardware: dict[str, Any] = field(default_factory=lambda: HARDWARE)
    objective = "latency"
    same_words = "same\nmappings"
    name, not_searched, holds_searches = "queues", "", True

    def same(self, accelerator: Accelerator) -> Outcome:
        """Return the sum over the layers."""
        core = single_core(accelerator)
        width = {(memory.name, port.name): port.bandwidth_max_bits for memory in core.memories for port in memory.ports}
        return Outcome(1.0, sum(max(bits / width[one] for one, bits in layer.items()) for layer in self.layers))


def outcome(run: Queues, wider: set[tuple[str, str]]) -> float:
    """Return the cycles with some ports twice as wide, computed from the file."""
    widths = {(m, name): HARDWARE["memories"][m]["ports"][place]["bandwidth_max"] for m, place, name in PORTS}
    return sum(
        max(bits / (widths[one] * (2 if one in wider else 1)) for one, bits in layer.items()) for layer in run.layers
    )


@cache
def tried(seed: int, most_sets: int = 600) -> tuple[Queues, Advices, list[tuple[str, str]]]:
    """Return a random run with the advice on all its ports, and the ports in the order of the file."""
    rng = random.Random(seed)
    names = [(memory, name) for memory, _, name in PORTS]
    widths = {(m, name): HARDWARE["memories"][m]["ports"][place]["bandwidth_max"] for m, place, name in PORTS}
    layers = tuple(
        {one: widths[one] * rng.choice((60.0, 100.0, 100.0)) for one in rng.sample(names, rng.randint(1, 3))}
        for _ in range(rng.randint(1, 4))
    )
    run = Queues(layers, most_sets)
    now = outcome(run, set())
    found = []
    for memory, place, name in PORTS:
        before = HARDWARE["memories"][memory]["ports"][place]["bandwidth_max"]
        path = ("memories", memory, "ports", place, "bandwidth_max")
        change = FileChange(BANDWIDTH, path, f"{memory}.{name}", "", 0, before, 2 * before, True)
        found.append(Advice(change, Outcome(1.0, outcome(run, {(memory, name)})), None))
    energy = FileChange(ENERGY, ("operational_array", "unit_energy"), "array", "", 0, 2, 1, True)
    found.append(Advice(energy, Outcome(1.0, now), None))
    return run, with_pairs(run, Advices.of("latency", Outcome(1.0, now), found, searched=False)), names


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_pair_is_that_of_all_pairs(seed: int) -> None:
    """The named pair of changes saves most, of all pairs that save more than the sum of their two changes."""
    run, made, names = tried(seed)
    now = outcome(run, set())
    alone = {one: 1 - outcome(run, {one}) / now for one in names}
    ties = {}
    for pair in combinations(names, 2):
        gain = 1 - outcome(run, set(pair)) / now
        if gain - sum(alone[one] for one in pair) >= LEAST_GAIN * 0.999999:
            ties[pair] = gain
    assert made.pairs is not None
    assert (made.pairs.tried, made.pairs.changes, made.pairs.left_out) == (
        len(names) * (len(names) - 1) // 2,
        len(names),
        0,
    )
    best = made.pairs.best
    assert (best is None) == (not ties)
    if best is None:
        assert "no pair saves 0.1% of latency more than the sum of the savings of its two changes" in advice_text(made)
        return
    assert made.gain(best.outcome) == pytest.approx(max(ties.values()), rel=1e-12)
    keys = tuple(one.key for one in best.changes)
    (pair,) = (pair for pair in ties if {f"{m}.{n}" for m, n in pair} == set(keys))
    assert ties[pair] == pytest.approx(max(ties.values()), rel=1e-12)
    told = advice_text(made)
    assert f"save {max(ties.values()):.1%} of latency; alone they save " in told
    alone_gain = sum(alone[one] for one in pair)
    begin = "Two limits are about equally tight: together, " if alone_gain <= max(ties.values()) / 2 else "Together, "
    assert f"{begin}{keys[0]}: " in told


def test_ties_are_found_among_the_seeds() -> None:
    """Some of the seeds have a pair, and some have none."""
    found = [tried(seed)[1].pairs for seed in SEEDS]
    ties = sum(one is not None and one.best is not None for one in found)
    assert 2 <= ties <= 10


def test_too_many_pairs_are_those_of_the_best_changes() -> None:
    """Room for 6 pairs allows the pairs of the four best changes, and the text says so."""
    _, made, names = tried(3, most_sets=6)
    pairs = made.pairs
    assert pairs == Pairs(6, 4, len(names) - 4, None if pairs is None else pairs.best)
    assert "Of 6 pairs of the 4 changes of sizes, widths and array sides that save most alone" in advice_text(made)


def test_changes_of_several_files_are_one_change() -> None:
    """A pair of changes has the settings of both changes; changes of two files together name no file."""
    parts = [
        FileChange(BANDWIDTH, ("graph", "bandwidth"), "graph.bandwidth", "a.yaml", 3, 64, 128, True),
        FileChange(BANDWIDTH, ("x",), "core_files.c.x", "b.yaml", 5, 1, 2, True, within=("core_files", "c")),
    ]
    both = FileChange.together(parts)
    assert (both.file, both.line, both.key) == ("", 0, "graph.bandwidth + core_files.c.x")
    assert both.system_settings == ((("graph", "bandwidth"), 128), (("core_files", "c", "x"), 2))
    assert both.words == "graph.bandwidth: 64 -> 128 and core_files.c.x: 1 -> 2"
    assert FileChange.together(parts[:1]) is parts[0]
