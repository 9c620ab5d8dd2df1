"""New neighbours of genomes, compared with a plain list of all neighbours."""

import random

import pytest
from tilewright.multicore.allocation.neighbourhood import Neighbourhood
from tilewright.multicore.allocation.space import Genome

from tests.members import members


def all_neighbours(genome: Genome, choices: list[tuple[int, ...]]) -> list[Genome]:
    """Genomes that differ from `genome` in one gene, by gene, then by core."""
    return [
        (*genome[:gene], core, *genome[gene + 1 :])
        for gene, cores in enumerate(choices)
        for core in cores
        if core != genome[gene]
    ]


@pytest.mark.parametrize("seed", range(members(400, 60)))
@pytest.mark.parametrize("has_equal_keys", [False, True])
def test_new_neighbours_are_those_of_the_plain_list(seed: int, has_equal_keys: bool) -> None:
    """The neighbours and their order equal the plain list after each round of a search, also if all codes are equal."""
    draw = random.Random(seed)
    choices = [
        tuple(sorted(draw.sample(range(7), draw.randint(2, 5)))) for _ in range(draw.randint(1, 6))
    ]  # fmt: skip
    nearby = Neighbourhood(choices)
    if has_equal_keys:
        nearby._keys[:] = 3
    known: set[Genome] = set()
    genome = tuple(draw.choice(cores) for cores in choices)
    for _ in range(6):
        wanted = [other for other in all_neighbours(genome, choices) if other not in known]
        steps = nearby.new_steps(genome, known.__contains__)
        assert [nearby.neighbour(genome, step) for step in steps] == wanted
        noted = {genome, *draw.sample(wanted, min(len(wanted), 3))} - known
        nearby.note(sorted(noted))
        known |= noted
        genome = draw.choice(sorted(known))
