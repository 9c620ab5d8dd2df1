"""Neighbours of a genome, which differ from the genome in one gene.

With n genes and c cores for each gene, a genome has n * (c - 1) neighbours, and each neighbour has n genes. The time to
make all neighbours and to compare them with the known genomes would grow with the square of n. Codes avoid this: each
pair (gene, core) has a random key, and the code of a genome is the sum of its keys. The codes of all neighbours are
computed from the code of the genome. A neighbour is made and compared only if its code is equal to the code of a known
genome. Any other neighbour is certainly new.
"""

import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tilewright.multicore.allocation.space import Genome
from tilewright.multicore.scheduling.problem import Integers


class Neighbourhood:
    """Neighbours of genomes of one allocation space. A neighbour differs from a genome in one gene. Neighbours that are
    already known are left out.
    """

    def __init__(self, choices: Sequence[Sequence[int]]) -> None:
        counts = np.array([len(cores) for cores in choices], np.int64)
        self._genes = np.repeat(np.arange(len(choices)), counts)
        self._cores = np.array([core for cores in choices for core in cores], np.int64)
        draw = random.Random(0)  # the keys have no influence on results, because equal codes are compared
        self._keys = np.array([draw.getrandbits(62) for _ in self._cores], np.int64)
        self._position = np.zeros((len(choices), int(self._cores.max(initial=0)) + 1), np.int64)
        self._position[self._genes, self._cores] = np.arange(len(self._cores))
        self._codes: list[int] = []

    def note(self, genomes: Iterable[Genome]) -> None:
        """Add genomes to the known genomes."""
        self._codes += [int(self._keys[self._places(genome)].sum()) for genome in genomes]

    def new_steps(self, genome: Genome, is_known: Callable[[Genome], bool]) -> list[int]:
        """Steps from a genome to all neighbours that are not known, in the order of genes and cores. A step is the
        number of a pair (gene, core). `is_known` may return True only for genomes that were passed to `note`.
        """
        places = self._places(genome)
        keys = self._keys[places]
        codes = keys.sum() - keys[self._genes] + self._keys
        is_new = self._cores != np.array(genome, np.int64)[self._genes]
        for step in np.flatnonzero(is_new & np.isin(codes, np.array(self._codes, np.int64))).tolist():
            is_new[step] = not is_known(self.neighbour(genome, step))
        return np.flatnonzero(is_new).tolist()

    def neighbour(self, genome: Genome, step: int) -> Genome:
        """Neighbour of a genome, in which one gene has another core. `step` is the number of the pair (gene, core)."""
        gene = int(self._genes[step])
        return (*genome[:gene], int(self._cores[step]), *genome[gene + 1 :])

    def _places(self, genome: Genome) -> Integers:
        """Indices of the pairs (gene, core) of a genome: one pair for each gene, with the core of this gene."""
        places: Integers = self._position[np.arange(len(genome)), np.array(genome, np.int64)]
        return places
