"""Blocks of layers, with an estimate of their cycles.

A block is a part of a layer along up to three dimensions at the same time: the rows, the channels, and the heads or the
batch.

For example, `a` parts along rows and `b` parts along channels give `a x b` blocks. If each block runs on a separate
core, the input is read `b` times and the weights are read `a` times. With fewer cores, less data are read, but the
computation takes longer. Data that do not fit a core are read again. The estimate includes these effects.

The estimate only decides which cuts are scheduled first. The schedules decide which cut is the best.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache

from tilewright.base.objectives import OBJECTIVES
from tilewright.base.profile import CORRECTED
from tilewright.hardware.core import Core
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.system import BUS, OFFCHIP_PORT, Link, MultiCoreAccelerator
from tilewright.hardware.system_links import offchip_ports
from tilewright.mapping.spatial_generation import divisors
from tilewright.workload.layer import FINAL_OUTPUT, OUTPUT, Layer
from tilewright.workload.relevancy import operand_elements

MOST_BLOCKS_A_CORE = 4
"""Largest number of blocks of a layer, per core that can run the layer."""
REMEMBERED_LAYERS = 64
"""Number of different layers whose blocks are cached. The cache is useful because networks repeat layers."""


@dataclass(frozen=True)
class Machine:
    """Properties of a system for one layer, including the properties of the cores that can run the layer. The estimates
    for cutting the layer into blocks follow from these properties.
    """

    cores: int
    """Number of cores that can run the layer."""
    unrolling: tuple[tuple[str, int], ...]
    """Pairs (loop dimension, number of its indices that a core's array processes in parallel); empty if these numbers
    are not known.
    """
    array_units: int
    """Number of processing units in the array of a core."""
    rooms: tuple[tuple[int, tuple[str, ...]], ...]
    """Pairs (capacity in bits, layer operands that share it), one for each top memory of a core."""
    read_bits_per_cycle: float
    """Largest rate of data from the off-chip memory to the cores, in bits per cycle."""
    write_bits_per_cycle: float
    """Largest rate of data from the cores to the off-chip memory, in bits per cycle."""
    shares_port: bool
    """True if one port carries the data of both directions: from the off-chip memory, and to the off-chip memory."""
    is_heard: bool
    """True if a bus or a link with multicast brings data from the off-chip memory. Data that several cores need at the
    same time are then sent only once.
    """
    is_multicast: bool = False
    """True if a link with multicast brings data from the off-chip memory. A multicast delivers data to all cores that
    need them, even to cores that do not wait for them yet.
    """


@dataclass(frozen=True)
class OnCores:
    """Estimate for the blocks of a layer on a certain number of cores."""

    cores: int
    port_cycles: float
    """Cycles in which the port to the off-chip memory is busy."""
    first_cycles: float
    """Cycles until every core has the data of its first block. If the data of a block do not fit a core, the value is
    0, because the core then computes while the data are loaded.
    """
    core_cycles: float
    """Cycles in which the array of the busiest core computes, without stalls."""
    last_cycles: float
    """Cycles of the last block, which starts only after all data have arrived. If the data of a block do not fit a
    core, the value is 0, because the core then computes while the data are loaded.
    """
    moved_bits: float
    """Bits that are read from or written to the off-chip memory."""

    def cycles(self, stretch: float) -> float:
        """Estimated latency in cycles. `stretch` is the ratio: real time on a core / time without stalls."""
        port, core = self.port_cycles + stretch * self.last_cycles, self.first_cycles + stretch * self.core_cycles
        return max(port, core)


@dataclass(frozen=True)
class Blocks:
    """Cut of a layer into blocks of equal size. The last block along a dimension can be smaller."""

    counts: tuple[int, ...]
    """Number of parts along each dimension, in the order of the argument `dimensions` of `uniform_blocks`. The number
    is 1 for a dimension that is not cut.
    """
    block_cycles: float
    """Cycles of one block on the array of a core, without stalls."""
    choices: tuple[OnCores, ...]
    """Estimates for several numbers of cores: one for each number that `core_counts` returns."""

    @property
    def parts(self) -> int:
        """Number of blocks."""
        return math.prod(self.counts)

    def rank(self, objective: str, stretch: float = 1.0) -> tuple[float, ...]:
        """Sort key of the cut; cuts with smaller keys are tried first. The first number of the key is the estimated
        objective: the least value over the numbers of cores in `choices`. The estimate uses the off-chip traffic in
        place of the energy. `stretch` is explained at `OnCores.cycles`.
        """
        pairs = ((one.cycles(stretch), one.moved_bits) for one in self.choices)
        first = min((OBJECTIVES[objective].value(bits, cycles), cycles) for cycles, bits in pairs)
        return *first, float(self.parts), *map(float, self.counts)

    def least_cycles(self, stretch: float) -> float:
        """Smallest estimated latency in cycles over the numbers of cores in `choices`. `stretch` is explained at
        `OnCores.cycles`.
        """
        return min(one.cycles(stretch) for one in self.choices)


def machine(
    accelerator: MultiCoreAccelerator, core: Core, cores: int, unrolling: Mapping[str, int], link: Mapping[str, str]
) -> Machine:
    """Properties of a system in which `cores` cores, all equal to `core`, can run a layer. `unrolling` has the number
    of indices of each loop dimension that the array processes in parallel. `link` maps each layer operand to its memory
    operand.
    """
    off_chip = accelerator.offchip_core_id
    read, write, shares_port = (None, None, True) if off_chip is None else offchip_ports(accelerator.core_of[off_chip])
    outward = [one for one in accelerator.links if any(sender == off_chip for sender, _ in one.edges)]
    inward = [one for one in accelerator.links if any(receiver == off_chip for _, receiver in one.edges)]
    if sum(one.kind == OFFCHIP_PORT for one in outward) > 1:  # several ports: each link has the width of its port
        read, write = None, None
    return Machine(
        cores,
        tuple(unrolling.items()),
        math.prod(size for _, size in core.operational_array.dimensions),
        tuple(
            (memory.size_bits, tuple(name for name, operand in link.items() if operand in held))
            for memory, held in top_memories(core)
        ),
        min(read or math.inf, _width(outward)),
        min(write or math.inf, _width(inward)),
        shares_port or any(one in inward for one in outward),
        any(one.kind == BUS or one.is_multicast for one in outward),
        any(one.is_multicast for one in outward),
    )


def _width(links: Sequence[Link]) -> float:
    """Largest total rate in bits per cycle over these links of the off-chip core; infinite if there is no limit.

    All data pass one link at the off-chip port and one link behind the port. The rate is therefore the smaller of two
    totals: the width of all links at the port, and the width of all other links.
    """
    found = math.inf
    for are_ports in (True, False):
        widths = [one.bandwidth_bits_per_cycle for one in links if (one.kind == OFFCHIP_PORT) is are_ports]
        limited = [width for width in widths if width is not None]
        if widths and len(limited) == len(widths):
            found = min(found, float(sum(limited)))
    return found


def uniform_blocks(layer: Layer, dimensions: Sequence[str], of: Machine) -> tuple[Blocks, ...]:
    """Cuts of a layer into equal blocks along `dimensions`: all cuts with at most MOST_BLOCKS_A_CORE blocks for each
    core.

    `dimensions` are up to three dimensions of the output, in this order: the rows, the channels, and the heads or the
    batch. If several numbers of parts along a dimension give parts of the same size, only the smallest number is used.
    The number of parts along the third dimension must divide the size of this dimension.
    """
    return _uniform_blocks(replace(layer, name=""), tuple(dimensions), of)


@lru_cache(maxsize=REMEMBERED_LAYERS)
def _uniform_blocks(layer: Layer, dimensions: tuple[str, ...], of: Machine) -> tuple[Blocks, ...]:
    most = MOST_BLOCKS_A_CORE * of.cores
    estimate = _Estimate(layer, dimensions, of)
    choices = [part_counts(layer.size_of[name], most, place > 1) for place, name in enumerate(dimensions)]
    return tuple(estimate.of(counts) for counts in itertools.product(*choices) if math.prod(counts) <= most)


def part_counts(size: int, most: int, evenly: bool = False) -> tuple[int, ...]:
    """Numbers of parts into which `size` indices can be divided, at most `most`, in rising order. If several numbers
    give parts of the same size, only the smallest is returned. With `evenly`, each number divides `size`.
    """
    found = {math.ceil(size / math.ceil(size / wanted)) for wanted in range(1, min(size, most) + 1)}
    return tuple(sorted(count for count in found if not evenly or size % count == 0))


def core_counts(parts: int, cores: int) -> tuple[int, ...]:
    """Numbers of cores that are worth trying for `parts` blocks, in falling order. There is one number for each k from
    1 to MOST_BLOCKS_A_CORE: the smallest number of cores with which no core gets more than k blocks. Numbers above
    `cores` and repeated numbers are left out.
    """
    counts = (math.ceil(parts / each) for each in range(1, MOST_BLOCKS_A_CORE + 1))
    return tuple(dict.fromkeys(count for count in counts if count <= cores))


def part_bits(layer: Layer, sizes: Mapping[str, int]) -> dict[str, int]:
    """Number of bits of each operand that a part of a layer needs. `sizes` has the size of the part along each
    dimension that is cut. Outputs have the larger of two widths: the width of partial sums, and the width of final
    outputs.
    """
    loops = tuple((name, sizes.get(name, size)) for name, size in layer.loop_sizes)
    part, width = replace(layer, loop_sizes=loops), layer.bits_of
    wide = {OUTPUT: max(width[OUTPUT], width[FINAL_OUTPUT])}
    return {name: operand_elements(part, name, CORRECTED) * wide.get(name, width[name]) for name in part.operands}


class _Estimate:
    """Estimator for the cycles and the off-chip traffic of the blocks of one layer."""

    def __init__(self, layer: Layer, dimensions: tuple[str, ...], of: Machine) -> None:
        self.layer, self.dimensions, self.machine = layer, dimensions, of
        self.unrolling = dict(of.unrolling)
        self.bits = cache(self._bits)
        self.sizes = tuple(layer.size_of[name] for name in dimensions)
        whole = self.bits(self.sizes)
        self.depends = {name: tuple(self._depends(name, place) for place in range(len(self.sizes))) for name in whole}
        """Flags of each operand, one for each dimension in `dimensions`. A flag is True if blocks at different
        positions along the dimension need different data of the operand.
        """
        self.written_bits = operand_elements(layer, OUTPUT, CORRECTED) * layer.bits_of[FINAL_OUTPUT]

    def _bits(self, sizes: tuple[int, ...]) -> dict[str, int]:
        """Bits of a block's data, by operand. `sizes` has the size of the block along each dimension in
        `dimensions`.
        """
        return part_bits(self.layer, dict(zip(self.dimensions, sizes, strict=True)))

    def _depends(self, operand: str, place: int) -> bool:
        one = tuple(1 if place == other else size for other, size in enumerate(self.sizes))
        return self.sizes[place] > 1 and self.bits(one)[operand] != self.bits(self.sizes)[operand]

    def of(self, counts: tuple[int, ...]) -> Blocks:
        """Cut of the layer, with its estimates. `counts` has the number of parts along each dimension in
        `dimensions`.
        """
        sizes = tuple(math.ceil(size / count) for size, count in zip(self.sizes, counts, strict=True))
        parts, fits, block_cycles = math.prod(counts), self._fits(sizes), self._block_cycles(sizes)
        streamed = 0.0 if fits else parts * self._streamed_bits(sizes)
        inputs = sum(bits for name, bits in self.bits(sizes).items() if name != OUTPUT)
        choices = []
        for cores in core_counts(parts, self.machine.cores):
            each = math.ceil(parts / cores)
            read = self._copied_bits(sizes, counts, cores, each) if fits else streamed
            at_first = self._first_bits(counts, each) if self.machine.is_multicast else cores * inputs
            first = min(read, at_first) / self.machine.read_bits_per_cycle if fits else 0.0
            last = block_cycles if fits else 0.0
            port = self._port_cycles(read)
            choices.append(OnCores(cores, port, first, each * block_cycles, last, read + self.written_bits))
        return Blocks(counts, block_cycles, tuple(choices))

    def _port_cycles(self, read_bits: float) -> float:
        read, write = self.machine.read_bits_per_cycle, self.machine.write_bits_per_cycle
        reading, writing = read_bits / read, self.written_bits / write
        return reading + writing if self.machine.shares_port else max(reading, writing)

    def _block_cycles(self, sizes: tuple[int, ...]) -> float:
        """Cycles of a block on the array of a core, without stalls."""
        changed = dict(zip(self.dimensions, sizes, strict=True))
        loops = [(name, changed.get(name, size)) for name, size in self.layer.loop_sizes]
        unrolling = self.unrolling
        if not any(name in unrolling for name, _ in loops):
            return math.prod(size for _, size in loops) / max(self.machine.array_units, 1)
        return float(math.prod(math.ceil(size / unrolling.get(name, 1)) for name, size in loops))

    def _fits(self, sizes: tuple[int, ...]) -> bool:
        """True if all data of a block fit the memories of a core at the same time."""
        bits = self.bits(sizes)
        return all(sum(bits[name] for name in held) <= room for room, held in self.machine.rooms)

    def _copied_bits(self, sizes: tuple[int, ...], counts: tuple[int, ...], cores: int, each: int) -> float:
        """Number of input bits that all cores read in total. If several blocks of one core need the same data, these
        data count once for this core. If a bus or multicast sends the off-chip data (`is_heard`), data that several
        cores need also count only once.
        """
        if self.machine.is_heard:
            return float(sum(bits for name, bits in self.bits(self.sizes).items() if name != OUTPUT))
        bits = self.bits(sizes)

        def bits_of(shape: tuple[int, ...]) -> int:
            return sum(
                bits[name]
                * math.prod(along for along, differs in zip(shape, self.depends[name], strict=True) if differs)
                for name in bits
                if name != OUTPUT
            )

        shapes = itertools.product(*(range(1, min(count, each) + 1) for count in counts))
        return float(cores * min(bits_of(shape) for shape in shapes if math.prod(shape) >= each))

    def _first_bits(self, counts: tuple[int, ...], each: int) -> float:
        """Number of input bits that all cores together need for their first blocks. Data that several cores need count
        once.

        `counts` has the number of parts along each dimension, and `each` is the largest number of blocks on a core. The
        blocks of a core form a rectangle. If the rectangle is n parts long along a dimension, the first blocks of all
        cores need 1/n of the data along this dimension. The rectangle that needs the fewest bits is assumed.
        """
        bits = self.bits(self.sizes)

        def bits_of(shape: tuple[int, ...]) -> float:
            return sum(
                bits[name]
                / math.prod(along for along, differs in zip(shape, self.depends[name], strict=True) if differs)
                for name in bits
                if name != OUTPUT
            )

        shapes = itertools.product(*(range(1, min(count, each) + 1) for count in counts))
        return min(bits_of(shape) for shape in shapes if math.prod(shape) <= each)

    def _streamed_bits(self, sizes: tuple[int, ...]) -> float:
        """Bits of the inputs that a core reads for a block whose data do not fit the core.

        If the outputs or one of the inputs stay on the core, the block reads its inputs once. Otherwise, the block runs
        in pieces along its first two dimensions, and some inputs are read again.

        If the block runs in pieces, the result is at least the number of bits that the port can send while the block is
        computed. The reason: a mapping is chosen by its cycles, and reads that overlap with the computation cost no
        cycles.
        """
        steps = [math.ceil(size / self._unrolling(place)) for place, size in enumerate(sizes[:2])]
        least = math.inf
        for pieces in itertools.product(*map(divisors, steps)):
            shorter = [step // count for step, count in zip(steps, pieces, strict=True)]
            cut = [step * self._unrolling(place) for place, step in enumerate(shorter)]
            bits = self.bits((*cut, *sizes[2:]))
            if self._stays(bits, pieces):
                read = float(math.prod(pieces) * sum(of for name, of in bits.items() if name != OUTPUT))
                if math.prod(pieces) == 1:
                    return read
                least = min(least, read)
        hidden = self._block_cycles(sizes) * self.machine.read_bits_per_cycle
        return max(hidden, least if least < math.inf else 0.0)

    def _unrolling(self, place: int) -> int:
        return self.unrolling.get(self.dimensions[place], 1)

    def _stays(self, bits: Mapping[str, int], pieces: Sequence[int]) -> bool:
        """True if a memory of the core can keep the outputs of a piece of the block, or a suitable input of the piece.
        An input is suitable if the block has only one piece along some dimension on which the input does not depend.
        `bits` has the size of each operand of a piece. `pieces` has the number of pieces along each of the first two
        dimensions.
        """
        for room, held in self.machine.rooms:
            for name in held:
                is_enough = name == OUTPUT or any(
                    count == 1 and not differs for count, differs in zip(pieces, self.depends[name], strict=False)
                )
                if is_enough and bits[name] <= room:
                    return True
        return False
