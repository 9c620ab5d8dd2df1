"""Set of points `timeloop-points`: mappings on Gemmini-like architectures, costed by the rules of Timeloop and
Accelergy.

The architectures have four memories: a register for a weight in each multiplier, an accumulator for each column, a
scratchpad, and DRAM. K is unrolled over the columns, C over the rows. The rules are taken from Timeloop (Parashar et
al., ISPASS 2019; its nest analysis and buffers):

* The loops above the memory of a tile determine how often the tile is moved. Only two kinds of these loops count: the
  innermost loop that changes the tile, and all loops outside this loop. The number of moves is the product of their
  sizes. If the window of the inputs slides, only new inputs are moved: see `_InputFills`.
* The first partial sum of an output is not read back. For the energy, DRAM moves complete blocks of 64 words, and the
  scratchpad moves complete rows. The words of each operand and direction are rounded up separately.
* A memory that needs more words per cycle than its bandwidth slows down all parts of the machine: cycles = ceil(n / s).
  Here, n is the product of the sizes of all temporal loops. Each memory has a ratio: its bandwidth divided by the words
  per cycle that it needs. The number s is the smallest of these ratios, and at most 1. Numbers are added in the same
  order as in Timeloop, because the last bit of a floating-point sum can change the result by a cycle.

The energy to read or write one byte of a memory on the chip is (97 + 5 x size of the memory in KiB) / 199 pJ. This
holds for the scratchpad, the accumulators, and the registers of one byte. The formula was derived here from the
published tables, and reproduces their six digits. With this formula, the energies equal the energies of the source.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.base.measures import ENERGY_PJ

from tilewright_evidence.court.case import Case, CourtSet, Values
from tilewright_evidence.court.rows import read_rows

DIMENSIONS = ("B", "K", "C", "OY", "OX", "FY", "FX")
WEIGHTS, OUTPUTS = frozenset(("K", "C", "FX", "FY")), frozenset(("B", "K", "OY", "OX"))
REGISTERS, ACCUMULATOR, SCRATCHPAD, DRAM = range(4)
"""Indexes of the memories in a mapping."""
Loops = Sequence[tuple[str, int]]
Point = tuple[int, int, int, int]
"""Position in the input, as (batch, channel, row, column)."""


@dataclass(frozen=True)
class TimeloopArchitecture:
    """Sizes, bandwidths and energies of one architecture."""

    side: int
    """Number of columns of the array. A row of the scratchpad has the same number of words."""
    accumulator_bytes: int
    """Capacity of the accumulator of one column, in bytes."""
    scratchpad_bytes: int
    accumulator_words_per_cycle: float
    scratchpad_words_per_cycle: float
    dram_words_per_cycle: float
    dram_block_words: int
    mac_pj: float
    dram_pj_per_word: float


@dataclass(frozen=True)
class TimeloopCounts:
    """Numbers of words that a mapping moves, and the loop sizes that determine its cycles."""

    macs: int
    loops: int
    """Product of the sizes of all temporal loops."""
    columns: int
    rows: int
    """Number of rows of the array that the mapping uses."""
    outputs: int
    register_fills: int
    weight_fills: int
    """Number of words of weights that are written into the scratchpad."""
    input_fills: int
    output_moves: int
    """Number of words that are written from the accumulators to DRAM."""

    @property
    def updates(self) -> int:
        """Number of partial sums that reach the accumulators."""
        return self.macs // self.rows

    @property
    def input_reads(self) -> int:
        """Number of inputs that are read from the scratchpad. One read serves all columns."""
        return self.macs // self.columns


def counts_of(layer: Mapping[str, int], mapping: Sequence[Mapping[str, Any]]) -> TimeloopCounts:
    """Numbers of words that a mapping moves.

    `mapping` lists memories from the innermost one, and their loops from inner to outer.
    """
    spatial = [(name, size) for memory in mapping for name, size in memory["spatial"]]
    columns, rows = (math.prod(size for name, size in spatial if name == side) for side in ("K", "C"))
    temporal: list[list[tuple[str, int]]] = [[(name, size) for name, size in one["temporal"]] for one in mapping]
    sizes = dict.fromkeys(DIMENSIONS, 1)
    for name, size in (*spatial, *(loop for place in range(DRAM) for loop in temporal[place])):
        sizes[name] *= size
    register_tile = _product(temporal[REGISTERS], WEIGHTS)
    output_tile = _product((*temporal[REGISTERS], *temporal[ACCUMULATOR]), OUTPUTS)
    weight_tile = sizes["K"] * sizes["C"] * sizes["FX"] * sizes["FY"]
    return TimeloopCounts(
        macs=math.prod(layer[name] for name in DIMENSIONS),
        loops=math.prod(size for loops in temporal for _, size in loops),
        columns=columns,
        rows=rows,
        outputs=math.prod(layer[name] for name in OUTPUTS),
        register_fills=columns * rows * register_tile * _moves(temporal, REGISTERS, WEIGHTS),
        weight_fills=weight_tile * _moves(temporal, SCRATCHPAD, WEIGHTS),
        input_fills=_InputFills(layer, sizes, temporal[DRAM]).words(),
        output_moves=columns * output_tile * _moves(temporal, ACCUMULATOR, OUTPUTS),
    )


def _product(loops: Loops, relevant: frozenset[str]) -> int:
    return math.prod(size for name, size in loops if name in relevant)


def _moves(temporal: Sequence[Loops], memory: int, relevant: frozenset[str]) -> int:
    """Number of times that a memory gets a new tile of an operand. `relevant` are the loop dimensions that change the
    tile.

    The number is a product of sizes of loops above the memory. These loops are the innermost loop that changes the
    tile, and all loops outside this loop. If no loop changes the tile, the number is 1.
    """
    above = [(name, size) for loops in temporal[memory + 1 :] for name, size in loops if size > 1]
    first = next((place for place, (name, _) in enumerate(above) if name in relevant), len(above))
    return math.prod(size for _, size in above[first:])


class _InputFills:
    """Counter of the input words that DRAM sends to the scratchpad.

    Timeloop simulates the first two iterations of each loop, and counts each later iteration like the second. The first
    tile is sent completely. Each simulated iteration then moves the tile by some step along the axes of the input:

    * A step along several axes, or longer than the tile, sends the complete tile.
    * Any other step, which can also be zero, is compared with the previous step. If the two are equal, only the data
      outside the previous tile are sent. If they differ, the complete tile is sent.
    * After the first tile, and after a step that sends the complete tile, the next step is not compared. It counts as
      equal to the previous step.
    """

    def __init__(self, layer: Mapping[str, int], sizes: Mapping[str, int], loops: Loops) -> None:
        x, y = layer["stride_x"], layer["stride_y"]
        rows, columns = (sizes["OY"] - 1) * y + sizes["FY"], (sizes["OX"] - 1) * x + sizes["FX"]
        self.shape = (sizes["B"], sizes["C"], rows, columns)
        self.steps = list(_steps(dict(sizes), loops, x, y))
        self.last: Point | None = None
        self.direction: Point | None = None

    def words(self) -> int:
        """Number of input words that DRAM sends to the scratchpad."""
        return self._visit(len(self.steps), (0, 0, 0, 0))

    def _visit(self, depth: int, at: Point) -> int:
        if depth == 0:
            return self._moved(at)
        step, size = self.steps[depth - 1]
        first = self._visit(depth - 1, at)
        if size == 1:
            return first
        b, c, y, x = (one + more for one, more in zip(at, step, strict=True))
        return first + (size - 1) * self._visit(depth - 1, (b, c, y, x))

    def _moved(self, at: Point) -> int:
        whole, last = math.prod(self.shape), self.last
        self.last = at
        if last is None:
            return whole
        way = (at[0] - last[0], at[1] - last[1], at[2] - last[2], at[3] - last[3])
        axes = [axis for axis in range(4) if way[axis]]
        slides = not axes or (len(axes) == 1 and abs(way[axes[0]]) <= self.shape[axes[0]])
        new = sum(whole // self.shape[axis] * abs(way[axis]) for axis in axes) if slides else whole
        direction = way if slides else None
        if self.direction in (None, direction):
            self.direction = direction
            return new
        self.direction = None
        return whole


def _steps(sizes: dict[str, int], loops: Loops, x: int, y: int) -> Iterator[tuple[Point, int]]:
    """Pairs (step, size of the loop), one for each loop in `loops`, inner to outer. The step is the distance by which
    one iteration of the loop moves the tile of inputs: one number for each axis of the input (see Point).

    `sizes` has the sizes of the loop dimensions within the tile. The function changes them: each loop multiplies the
    size of its dimension. `x` and `y` are the strides of the layer along columns and rows.
    """
    for name, size in loops:
        far = sizes[name]
        sizes[name] *= size
        rows = {"OY": far * y, "FY": far}.get(name, 0)
        columns = {"OX": far * x, "FX": far}.get(name, 0)
        yield (far if name == "B" else 0, far if name == "C" else 0, rows, columns), size


def cycles(counts: TimeloopCounts, architecture: TimeloopArchitecture) -> int:
    """Number of cycles of a mapping, by the rules of Timeloop."""
    slowest = min((limit / used for _, used, limit in rates(counts, architecture) if used > limit), default=1.0)
    return math.ceil(counts.loops / slowest)


def rates(counts: TimeloopCounts, architecture: TimeloopArchitecture) -> Iterator[tuple[str, float, float]]:
    """Triples (memory, needed words per cycle, available words per cycle). With the needed words per cycle, the array
    never waits.

    The numbers of words are added in the same order as in Timeloop, so that rounding errors are equal. For the
    accumulators, the numbers are for one column.
    """
    one, columns, loops = counts, counts.columns, counts.loops
    sums_read, sums_written = (one.updates - one.outputs) / columns, (one.updates + one.output_moves) / columns
    yield "accumulator", sums_read / loops + sums_written / loops, architecture.accumulator_words_per_cycle
    read, written = (one.register_fills, one.input_reads), (one.weight_fills, one.input_fills)
    yield "scratchpad", _rate(read, loops) + _rate(written, loops), architecture.scratchpad_words_per_cycle
    read_dram = (one.weight_fills, one.input_fills, one.output_moves - one.outputs)
    yield "DRAM", _rate(read_dram, loops) + one.output_moves / loops, architecture.dram_words_per_cycle


def _rate(words: Sequence[int], loops: int) -> float:
    return sum(one / loops for one in words)


def energies_pj(counts: TimeloopCounts, architecture: TimeloopArchitecture) -> dict[str, float]:
    """Energy in pJ of each part of the machine. The keys are `array` (the multiplications) and the memories:
    `registers`, `accumulator`, `scratchpad` and `DRAM`.
    """
    one, side, block = counts, architecture.side, architecture.dram_block_words
    scratchpad = sum(
        _up(words, side) for words in (one.register_fills, one.input_reads, one.weight_fills, one.input_fills)
    )
    moved = (one.weight_fills, one.input_fills, one.output_moves, one.output_moves - one.outputs)
    accumulator = 2 * one.updates - one.outputs + one.output_moves
    return {
        "array": one.macs * architecture.mac_pj,
        "registers": (one.macs + one.register_fills) * byte_pj(1),
        "accumulator": accumulator * 4 * byte_pj(architecture.accumulator_bytes),
        "scratchpad": scratchpad * byte_pj(architecture.scratchpad_bytes),
        "DRAM": sum(_up(words, block) for words in moved) * architecture.dram_pj_per_word,
    }


def byte_pj(size_bytes: int) -> float:
    """Energy in pJ to read or write one byte of an on-chip memory of `size_bytes` bytes."""
    return (97 + 5 * size_bytes / 1024) / 199


def _up(words: int, block: int) -> int:
    return -(-words // block) * block


NAME = "timeloop-points"
ARCHITECTURES = "architectures.csv"
COLUMNS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "arch": str,
    "layer": dict,
    "mapping": list,
    "cycles": int,
    ENERGY_PJ: float,
    **{f"layer.{name}": int for name in (*DIMENSIONS, "stride_x", "stride_y")},
}
ARCHITECTURE_COLUMNS: dict[str, type | tuple[type, ...]] = {
    "arch": str,
    "array_columns": int,
    "accumulator_words_per_instance": int,
    "accumulator_word_bits": int,
    "scratchpad_words": int,
    "scratchpad_word_bits": int,
    "accumulator_bandwidth_words_per_cycle_per_instance": float,
    "scratchpad_bandwidth_words_per_cycle": float,
    "dram_bandwidth_words_per_cycle": float,
    "dram_block_words": int,
    "mac_pj": float,
    "dram_pj_per_word": float,
}


@dataclass(frozen=True)
class _Prepared:
    """Row with one number that is predicted: its cycles or its energy."""

    row: Mapping[str, Any]
    counts: TimeloopCounts
    architecture: TimeloopArchitecture
    is_energy: bool
    is_fitted: bool = False
    drawn_by: None = None
    device: str = ""

    def case(self, constants: Mapping[str, Values]) -> Case:
        """Value that the source gives for the row (cycles, or energy in pJ), and our predictions of this value.
        `constants` is not used.
        """
        return self._energy() if self.is_energy else self._cycles()

    def _cycles(self) -> Case:
        one, chip = self.counts, self.architecture
        used = {"array": 1.0} | {name: rate / limit for name, rate, limit in rates(one, chip)}
        data = self._least_words() / chip.dram_words_per_cycle
        found = cycles(one, chip)
        return Case(
            identity=self.row["id"],
            part="cycles",
            group=self.row["arch"],
            measured=float(self.row["cycles"]),
            bound=max(one.macs / (one.columns * one.rows), data),
            estimate=float(found),
            roofline=max(one.macs / chip.side**2, data),
            limited_by=max(used, key=lambda name: used[name]),
            fitted=False,
            equal=found == self.row["cycles"],
        )

    def _energy(self) -> Case:
        parts, told = energies_pj(self.counts, self.architecture), self.row[ENERGY_PJ]
        found = sum(parts.values())
        chip = self.architecture
        least = self.counts.macs * chip.mac_pj + self._least_words() * chip.dram_pj_per_word
        return Case(
            identity=self.row["id"],
            part="energy",
            group=self.row["arch"],
            measured=told,
            bound=least,
            estimate=found,
            roofline=least,
            limited_by=max(parts, key=lambda name: parts[name]),
            fitted=False,
            equal=abs(found - told) <= last_digit(told) / 2,
        )

    def _least_words(self) -> int:
        """Lower bound of the number of words that any mapping moves to or from DRAM. Each weight and each output counts
        once; inputs do not count.
        """
        layer = self.row["layer"]
        weights = 1
        for name in WEIGHTS:
            weights *= layer[name]
        return weights + self.counts.outputs


def last_digit(value: float) -> float:
    """Step of the last nonzero digit of `value`, an energy in pJ. For 123,400 pJ, it is 100 pJ. It is at least 1 pJ,
    and is increased by a millionth as a margin for rounding.

    The source prints energies in uJ with six digits. In pJ, such an energy has zeros in place of the digits that were
    not printed.
    """
    digits, unit = round(value), 1.0
    while digits and digits % 10 == 0:
        digits, unit = digits // 10, unit * 10
    return unit * (1 + 1e-6)


def prepare(files: Sequence[Path]) -> list[_Prepared]:
    """Rows, ready for predictions. Each row of the files becomes two rows: one for its cycles, and one for its energy.
    Raises InputError if there are mistakes in the files.
    """
    architectures = {}
    for folder in sorted({file.parent for file in files}):
        for row in read_rows([folder / ARCHITECTURES], ARCHITECTURE_COLUMNS):
            architectures[row["arch"]] = _architecture(row)
    rows = read_rows(files, COLUMNS)
    unknown = sorted({row["arch"] for row in rows} - set(architectures))
    if unknown:
        raise InputError([Problem("no such architecture", ARCHITECTURES, path="arch", value=name) for name in unknown])
    prepared = []
    for row in rows:
        counts, chip = counts_of(row["layer"], row["mapping"]), architectures[row["arch"]]
        prepared += [_Prepared(row, counts, chip, is_energy) for is_energy in (False, True)]
    return prepared


def _architecture(row: Mapping[str, Any]) -> TimeloopArchitecture:
    return TimeloopArchitecture(
        side=row["array_columns"],
        accumulator_bytes=row["accumulator_words_per_instance"] * row["accumulator_word_bits"] // 8,
        scratchpad_bytes=row["scratchpad_words"] * row["scratchpad_word_bits"] // 8,
        accumulator_words_per_cycle=row["accumulator_bandwidth_words_per_cycle_per_instance"],
        scratchpad_words_per_cycle=row["scratchpad_bandwidth_words_per_cycle"],
        dram_words_per_cycle=row["dram_bandwidth_words_per_cycle"],
        dram_block_words=row["dram_block_words"],
        mac_pj=row["mac_pj"],
        dram_pj_per_word=row["dram_pj_per_word"],
    )


TIMELOOP = CourtSet(
    name=NAME,
    title="Timeloop and Accelergy: mappings on Gemmini-like architectures",
    unit="cycles, pJ",
    source="Hong et al., DOSA, MICRO 2023; github.com/ucb-bar/dosa a7a3239, BSD 2-Clause",
    rule="no rows",
    constants={},
    prepare=prepare,
    patterns=("*.jsonl", "*.jsonl.gz"),
)
