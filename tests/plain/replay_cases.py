"""Random affine layers on random cores from a seed, costed by the package and counted by the replay."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.base.errors import MappingError
from tilewright.cost.record import LayerRecord
from tilewright.search.evaluate import evaluate_prepared, prepare
from tilewright.search.options import SearchOptions
from tilewright.workload.layer import DimensionRelation, Layer

from tests.plain.problems import Problem, random_bits, random_core, random_layer, random_unrolling
from tests.plain.replay import Replay, replay
from tests.plain.space import primes
from tests.plain.tally import Tally

LINKS = (("O", "O"), ("W", "I2"), ("I", "I1"))
MODEL = "corrected"
SIZES = (1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9)
MOST_OPERATIONS = 1500


def affine_layer(rng: random.Random) -> Layer:
    """A layer of a few loops; windows may be on any operand, also outputs, and may share loops."""
    while True:
        names = list("ABCDEFG")[: rng.choice((2, 3, 3, 4, 4, 5))]
        sizes = {name: rng.choice(SIZES) for name in names}
        if 2 <= math.prod(sizes.values()) <= MOST_OPERATIONS:
            break
    operands: dict[str, list[str]] = {"O": [], "W": [], "I": []}
    if rng.random() < 0.15:
        del operands["W"]
    relations = []
    for number in range(rng.choice((0, 1, 1, 2, 2, 3))):
        first, second = rng.sample(names, 2)
        terms = ((first, rng.choice((1, 1, 1, 2, 3))), (second, rng.choice((1, 1, 2, 3))))
        relation = DimensionRelation(f"X{number}", terms)
        relations.append(relation)
        operands[rng.choice(("O", "O", *operands))].append(relation.data_dimension)
    for name in names:
        for axes in operands.values():
            coupled = {d for r in relations if r.data_dimension in axes for d, _ in r.terms}
            if rng.random() < (0.1 if name in coupled else 0.45):
                axes.append(name)
    for axes in operands.values():
        if not axes:
            axes.append(rng.choice(names))
    bits = random_bits(rng, "affine")
    kept = tuple((o, n) for o, n in bits if o in operands or o == "O_final")
    order = rng.sample(names, len(names))
    return Layer(
        "affine",
        "Conv",
        tuple((o, tuple(axes)) for o, axes in operands.items()),
        tuple((name, sizes[name]) for name in order),
        tuple(relations),
        kept,
    )


def random_problem(rng: random.Random) -> Problem:
    """A problem of an affine layer, or sometimes a usual layer without padding, on a random core."""
    while True:
        layer = affine_layer(rng)
        if rng.random() < 0.25:
            layer = random_layer(rng, rng.choice(("convolution", "grouped", "depthwise", "pooling", "gemm")))
            if layer.padding or layer.mac_count > MOST_OPERATIONS:
                continue
        count = rng.choice((1, 1, 2, 2, 3))
        array = tuple((name, rng.choice((1, 2, 3, 4, 5, 6))) for name in ("D1", "D2", "D3")[:count])
        core = random_core(rng, layer, array)
        return Problem("affine", layer, core, LINKS, random_unrolling(rng, layer, core), MODEL)


@dataclass(frozen=True)
class Replayed:
    """A mapping with the package's record and the replay's counts."""

    problem: Problem
    record: LayerRecord
    replay: Replay

    @property
    def differences(self) -> list[str]:
        """The differences as texts: words, largest transfers and their number, energy."""
        record, found = self.record, []
        for operand, levels in record.word_accesses.items():
            for m, row in enumerate(levels):
                for direction, words in row.items():
                    link = self.replay.links.get((operand, m, direction))
                    mine = link.words if link else 0
                    if mine != words:
                        found.append(f"words of {operand} {m} {direction}: replay {mine}, package {words} ({link})")
        seen = set()
        for port in record.ports:
            for activity in port.activities:
                place = (activity.operand, activity.level, activity.direction)
                link = self.replay.links.get(place)
                mine = (link.cycles, link.transfers) if link and link.bits else (0, 0)
                seen.add(place)
                theirs = (activity.real_cycles, activity.period_count)
                if mine != theirs and (mine[1] or theirs[0]):
                    found.append(f"(cycles, transfers) of {place}: replay {mine}, package {theirs}")
        energy = record.energy_terms_pj["memory"]
        if not math.isclose(energy, self.replay.energy_pj, rel_tol=1e-9, abs_tol=1e-9):
            found.append(f"energy: replay {self.replay.energy_pj}, package {energy}")
        return found


def replayed(seed: int, mappings: int = 2) -> Iterator[Replayed]:
    """Random temporal mappings for the problem of a seed, only those that fit."""
    rng = random.Random(seed)
    problem = random_problem(rng)
    options = SearchOptions(model=MODEL)
    try:
        prepared = prepare(problem.layer, problem.core, LINKS, problem.unrolling, options)
    except MappingError:
        return
    loops = [(d, p) for d, size in prepared.spatial.temporal_sizes for p in primes(size)]
    for _ in range(mappings):
        rng.shuffle(loops)
        given = None
        if rng.random() < 0.6:
            given = tuple(
                (*sorted(rng.randint(0, len(loops)) for _ in range(levels - 1)), len(loops))
                for levels in prepared.arrays.level_count[: len(problem.layer.operands)].tolist()
            )
        try:
            record = evaluate_prepared(prepared, tuple(loops), given)
        except MappingError:
            continue
        own = replay(problem.layer, problem.core, LINKS, problem.unrolling, record.temporal_mapping)
        yield Replayed(problem, record, own)


def attack(seed: int) -> Tally:
    """Replay the problem of a seed, and record the differences."""
    tally = Tally()
    for number, case in enumerate(replayed(seed)):
        layer = case.problem.layer
        windows = {r.data_dimension for r in layer.relations}
        of_outputs = bool(windows & set(layer.operand_dimensions[0][1]))
        used = [d for r in layer.relations for d, _ in r.terms]
        lanes = {d: math.prod(f for _, fs in case.problem.unrolling for n, f in fs if n == d) for d in layer.size_of}
        tally.counts["replays"] += 1
        tally.counts["windows on outputs"] += of_outputs
        comes_back = any(row["tl"] or row["fh"] for row in case.record.word_accesses["O"])
        tally.counts["sums come back through windows"] += of_outputs and comes_back
        tally.counts["windows on inputs"] += any(windows & set(axes) for _, axes in layer.operand_dimensions[1:])
        tally.counts["windows share loops"] += len(set(used)) < len(used)
        tally.counts["ragged lanes"] += any(layer.size_of[d] % f for d, f in lanes.items())
        tally.wrong += [f"seed {seed}, mapping {number}: {difference}" for difference in case.differences]
    return tally
