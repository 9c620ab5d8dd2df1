"""A second implementation of zero gating and run-length compression (docs/model/zeros.md), in exact fractions.

The expected size of compressed data is summed over all runs of zeros that a pair can hold. No code of the package is
used.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from tilewright.hardware.core import Core
from tilewright.workload.layer import Layer

NOISE = Fraction(1, 10**12)
"""Part of a bit that is ignored: a run of 32 zeros can make data longer by less than this."""


def exactly(share: float) -> Fraction:
    """A share as an exact fraction of its decimal form: 0.45 is 9/20."""
    return Fraction(str(share))


def elements_a_pair(run_bits: int, zeros: Fraction) -> Fraction:
    """Expected number of elements for which one pair stands.

    A pair is k zeros and an element, or the most zeros that fit and one more element of any value.
    """
    longest = 2**run_bits - 1
    ended = sum((zeros**k * (1 - zeros) * (k + 1) for k in range(longest)), start=Fraction(0))
    return ended + zeros**longest * (longest + 1)


@dataclass(frozen=True)
class PlainZeros:
    """Savings by zeros in a layer on a core."""

    layer: Layer
    core: Core
    link: dict[str, str]

    def share(self, operand: str) -> Fraction | None:
        """Share of zeros of an operand, and for the output, of its final elements. None if it is not given."""
        key = "O_final" if operand == "O" else operand
        return exactly(dict(self.layer.zeros)[key]) if key in dict(self.layer.zeros) else None

    def size(self, operand: str, memory: int) -> Fraction:
        """Size of an operand in a memory, divided by its uncompressed size."""
        code, zeros = self.core.memories[memory].run_length, self.share(operand)
        bits = self.layer.bits_of["O_final" if operand == "O" else operand]
        if code is None or zeros is None or self.link[operand] not in code.operands or bits == 0:
            return Fraction(1)
        return Fraction(code.word_bits, code.pairs * bits) / elements_a_pair(code.run_bits, zeros)

    def width(self, operand: str, memory: int, direction: str, bits: int) -> int:
        """Uncompressed bits that a port of this width moves in a cycle; partial sums that come back are
        uncompressed.
        """
        comes_back = operand == "O" and direction in ("tl", "fh")
        return bits if comes_back or bits == 0 else max(1, math.floor(bits / self.size(operand, memory) * (1 + NOISE)))

    def sum_bits(self, memory: int, bits: int) -> int:
        """Bits of a partial sum in transfers between a memory and its neighbour below or above."""
        return math.ceil(bits / self.size("O", memory) * (1 - NOISE))

    def stopping(self) -> dict[str, Fraction]:
        """Input -> share of its zeros, for inputs whose zeros stop operations."""
        gating = self.core.operational_array.zero_gating
        if gating is None or self.layer.operator_type not in ("Conv", "Gemm") or len(self.layer.operands) < 3:
            return {}
        shares = {o: self.share(o) for o in self.layer.operands[1:] if self.link[o] in gating.operands}
        return {o: share for o, share in shares.items() if share is not None}

    def active(self) -> Fraction:
        """Share of the operations in which no stopping input is zero."""
        return math.prod((1 - share for share in self.stopping().values()), start=Fraction(1))

    def taken(self, operand: str, lanes: tuple[tuple[str, Fraction], ...], cycles: int) -> Fraction:
        """Share of an operand's reads from its innermost memory that take place.

        Each read serves these lanes for `cycles` operations. It is left out if, in each operation, some input stops
        every lane.
        """
        gating = self.core.operational_array.zero_gating
        if gating is None or operand == "O" or self.link[operand] not in gating.reads_of:
            return Fraction(1)
        runs = Fraction(1)
        for other, share in self.stopping().items():
            if other != operand:
                windows = {one.data_dimension: {d for d, _ in one.terms} for one in self.layer.relations}
                own = {d for name in dict(self.layer.operand_dimensions)[other] for d in windows.get(name, {name})}
                different = math.prod(math.ceil(factor) for d, factor in lanes if d in own)
                runs *= 1 - share**different
        return 1 - (1 - runs) ** cycles
