"""Blocks of layers: parts along rows, channels, and heads or the batch at the same time, with an estimate of their
cycles.

If each block of `a x b` runs on a core of its own, the input is read `b` times and the weights `a` times. With fewer
cores, less data are read, but the computation takes longer. Data that do not fit a core are read again. The estimate
includes these effects. It only decides which cuts are scheduled first; the schedules decide which cut is the best.
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
"""Largest number of blocks of a layer that one core runs."""
REMEMBERED_LAYERS = 64
"""Number of different layers whose blocks are cached. The cache is useful because networks repeat layers."""


@dataclass(frozen=True)
class Machine:
    """Properties of a system, and of the cores that can run a layer, as input for the estimates of its blocks."""

    cores: int
    """Number of cores that can run the layer."""
    unrolling: tuple[tuple[str, int], ...]
    """Pairs (loop dimension, number of its indices that a core's array processes in parallel); empty if the unrolling
    is not known.
    """
    array_units: int
    """Number of processing units in the array of a core."""
    rooms: tuple[tuple[int, tuple[str, ...]], ...]
    """Pairs (capacity in bits, layer operands that share this memory), one for each top memory of a core."""
    read_bits_per_cycle: float
    """Largest rate of data from the off-chip memory to the cores, in bits per cycle."""
    write_bits_per_cycle: float
    """Largest rate of data from the cores to the off-chip memory, in bits per cycle."""
    shares_port: bool
    """True if one port carries both the data from the off-chip memory and the data to it."""
    is_heard: bool
    """True if a bus or a link with multicast brings data from the off-chip memory, so that equal data for several cores
    are sent once."""
    is_multicast: bool = False
    """True if these data also reach cores that do not wait for them yet."""


@dataclass(frozen=True)
class OnCores:
    """Estimate for the blocks of a layer on a certain number of cores."""

    cores: int
    port_cycles: float
    """Cycles in which the off-chip port is busy."""
    first_cycles: float
    """Cycles until every core has the data of its first block; 0 if computation overlaps with loading."""
    core_cycles: float
    """Cycles of the busiest core's array, without stalls."""
    last_cycles: float
    """Cycles of a block that starts after all its data have arrived; 0 if computation overlaps with loading."""
    moved_bits: float
    """Traffic of the off-chip memory in bits, reads and writes."""

    def cycles(self, stretch: float) -> float:
        """Estimated latency in cycles. `stretch` is the ratio of the real time on a core to the time without stalls."""
        port, core = self.port_cycles + stretch * self.last_cycles, self.first_cycles + stretch * self.core_cycles
        return max(port, core)


@dataclass(frozen=True)
class Blocks:
    """Cut of a layer into blocks of equal size. The last block along a dimension can be smaller."""

    counts: tuple[int, ...]
    """Number of parts along each dimension that can be cut; 1 for a dimension that is not cut."""
    block_cycles: float
    """Cycles of one block on the array of a core, without stalls."""
    choices: tuple[OnCores, ...]
    """Estimates for several numbers of cores. Each is the smallest number with which a core runs at most 1, 2, ...
    blocks.
    """

    @property
    def parts(self) -> int:
        """Number of blocks."""
        return math.prod(self.counts)

    def rank(self, objective: str, stretch: float = 1.0) -> tuple[float, ...]:
        """Sort key of the cut; cuts with small keys are tried first. The key is the value of the objective, with
        off-chip traffic in place of energy and the estimated latency. `stretch` is explained at `OnCores.cycles`.
        """
        pairs = ((one.cycles(stretch), one.moved_bits) for one in self.choices)
        first = min((OBJECTIVES[objective].value(bits, cycles), cycles) for cycles, bits in pairs)
        return *first, float(self.parts), *map(float, self.counts)

    def least_cycles(self, stretch: float) -> float:
        """Smallest estimated latency in cycles over all numbers of cores."""
        return min(one.cycles(stretch) for one in self.choices)


def machine(
    accelerator: MultiCoreAccelerator, core: Core, cores: int, unrolling: Mapping[str, int], link: Mapping[str, str]
) -> Machine:
    """Properties of the system and of `cores` equal cores that can run a layer. `link` maps each layer operand to its
    memory operand.
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
    """Largest total rate of these links of the off-chip core, in bits per cycle; infinite without a limit. Data use one
    link of the port and one other link, so the smaller total of the two groups counts.
    """
    found = math.inf
    for are_ports in (True, False):
        widths = [one.bandwidth_bits_per_cycle for one in links if (one.kind == OFFCHIP_PORT) is are_ports]
        limited = [width for width in widths if width is not None]
        if widths and len(limited) == len(widths):
            found = min(found, float(sum(limited)))
    return found


def uniform_blocks(layer: Layer, dimensions: Sequence[str], of: Machine) -> tuple[Blocks, ...]:
    """All cuts of a layer into equal blocks along `dimensions`, with at most MOST_BLOCKS_A_CORE blocks for each core.

    `dimensions` has at most three dimensions of the output: rows, channels, and heads or the batch. If two numbers of
    parts give parts of the same size, only the smaller number is used. From the third dimension on, the number of parts
    must divide the size of the dimension.
    """
    return _uniform_blocks(replace(layer, name=""), tuple(dimensions), of)


@lru_cache(maxsize=REMEMBERED_LAYERS)
def _uniform_blocks(layer: Layer, dimensions: tuple[str, ...], of: Machine) -> tuple[Blocks, ...]:
    most = MOST_BLOCKS_A_CORE * of.cores
    estimate = _Estimate(layer, dimensions, of)
    choices = [part_counts(layer.size_of[name], most, place > 1) for place, name in enumerate(dimensions)]
    return tuple(estimate.of(counts) for counts in itertools.product(*choices) if math.prod(counts) <= most)


def part_counts(size: int, most: int, evenly: bool = False) -> tuple[int, ...]:
    """Numbers of parts up to `most`, in rising order, one for each possible size of the parts. With `evenly`, the
    number must divide `size`.
    """
    found = {math.ceil(size / math.ceil(size / wanted)) for wanted in range(1, min(size, most) + 1)}
    return tuple(sorted(count for count in found if not evenly or size % count == 0))


def core_counts(parts: int, cores: int) -> tuple[int, ...]:
    """Numbers of cores, at most `cores`, in falling order. Each is the smallest number with which a core runs at most
    1, 2, ... parts.
    """
    counts = (math.ceil(parts / each) for each in range(1, MOST_BLOCKS_A_CORE + 1))
    return tuple(dict.fromkeys(count for count in counts if count <= cores))


class _Estimate:
    """Estimator of the cycles and of the off-chip traffic of the blocks of one layer."""

    def __init__(self, layer: Layer, dimensions: tuple[str, ...], of: Machine) -> None:
        self.layer, self.dimensions, self.machine = layer, dimensions, of
        self.unrolling = dict(of.unrolling)
        self.bits = cache(self._bits)
        self.sizes = tuple(layer.size_of[name] for name in dimensions)
        whole = self.bits(self.sizes)
        self.depends = {name: tuple(self._depends(name, place) for place in range(len(self.sizes))) for name in whole}
        """[operand][dimension] Whether two blocks that differ in the dimension have different data of the operand."""
        self.written_bits = operand_elements(layer, OUTPUT, CORRECTED) * layer.bits_of[FINAL_OUTPUT]

    def _bits(self, sizes: tuple[int, ...]) -> dict[str, int]:
        """Bits of a block's data, by operand. Outputs count with the width of partial sums if this width is larger."""
        changed = dict(zip(self.dimensions, sizes, strict=True))
        loops = tuple((name, changed.get(name, size)) for name, size in self.layer.loop_sizes)
        block, width = replace(self.layer, loop_sizes=loops), self.layer.bits_of
        wide = {OUTPUT: max(width[OUTPUT], width[FINAL_OUTPUT])}
        return {name: operand_elements(block, name, CORRECTED) * wide.get(name, width[name]) for name in block.operands}

    def _depends(self, operand: str, place: int) -> bool:
        one = tuple(1 if place == other else size for other, size in enumerate(self.sizes))
        return self.sizes[place] > 1 and self.bits(one)[operand] != self.bits(self.sizes)[operand]

    def of(self, counts: tuple[int, ...]) -> Blocks:
        """Cut into blocks with these numbers of parts along the dimensions, with its estimates."""
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
        """Bits of the inputs that all cores read together. Blocks on the same core share the data that they have in
        common.
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
        """Bits of the different inputs that all cores together need for their first blocks, if all cores that need data
        receive the data at once.

        A core runs a rectangle of `each` blocks. Along a side of this rectangle, only one of several parts is needed at
        first.
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

        The block reads its inputs once if its outputs or one of its inputs stay on the core. Otherwise, the block runs
        in pieces along its first two dimensions, and some inputs are read again. Mappings are chosen by their cycles,
        so a mapping can read more data in the time of the computation. A block in pieces is therefore assumed to read
        at least as much as the port can send in this time.
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
        """True if one operand of a piece can stay in a memory of the core. It is the output, or an input that is equal
        for all pieces along a dimension that is not cut.
        """
        for room, held in self.machine.rooms:
            for name in held:
                is_enough = name == OUTPUT or any(
                    count == 1 and not differs for count, differs in zip(pieces, self.depends[name], strict=False)
                )
                if is_enough and bits[name] <= room:
                    return True
        return False
