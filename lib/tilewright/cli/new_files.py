"""Texts of the files of a new accelerator: hardware with costs from the library, mapping, and configuration."""

import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.base.errors import Problem
from tilewright.base.units import (
    FieldError,
    is_per_second,
    parse_bandwidth_bits,
    parse_bits_per_second,
    parse_frequency_mhz,
    parse_size_bits,
    size_text,
)
from tilewright.hardware.silicon.library import entries
from tilewright.hardware.silicon.memory_cost import known_nodes, node_factors
from tilewright.hardware.silicon.multiplier import MULTIPLIER, multiplier_energy_pj

TPU, EYERISS = "tpu", "eyeriss"
KINDS = (TPU, EYERISS)
"""Kinds of arrays, weight-stationary and row-stationary, each named after a chip."""
INPUT_BITS, SUM_BITS = 8, 32
"""Bits of weights and activations, and of partial sums. A sum of n products of 8 bits needs 16 bits and log2(n) bits
more: 24 bits for 256 products. Accelerators for 8 bits therefore have sums of 32 bits. ONNX networks that are read
without `--bits partial=...` have partial sums of 16 bits, as in zigzag-dse.
"""
_LEAST_WIDTH, _MOST_WIDTH = 64, 512
"""Smallest and largest default width of the SRAM, in bits. The upper limit is the largest width in the SRAM table of
the cost library (CACTI setup `plain`).
"""
WINDOW = 3
"""Number of rows, and of columns, of the most common convolution window."""
_ABOUT = {
    TPU: (
        "weight-stationary, in the manner of TPU v1 (Jouppi et al., ISCA 2017): weights stay beside the multipliers,"
        " inputs move across the array, partial sums down it"
    ),
    EYERISS: (
        "row-stationary, in the manner of Eyeriss (Chen et al., ISCA 2016): registers for weights, activations and"
        " partial sums beside each multiplier"
    ),
}
_REGISTERS = {
    TPU: (("weight_register", "I2", 4 * INPUT_BITS), ("sum_register", "O", SUM_BITS)),
    EYERISS: (
        ("activation_registers", "I1", 12 * INPUT_BITS),
        ("weight_registers", "I2", 224 * INPUT_BITS),
        ("sum_registers", "O", 24 * SUM_BITS),
    ),
}
"""Registers beside each multiplier, by kind of array, as (name, memory operand, bits). The sizes for Eyeriss (12, 224
and 24 words) are those of the paper.
"""
_UNROLLED: dict[str, dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]]] = {
    TPU: {
        "default": ("output channels along D1, input channels along D2", ("K, {rows}",), ("C, {columns}",)),
        "@depthwise": (
            "groups along D1; the window takes the place of input channels",
            ("G, {rows}",),
            ("FX, {window}", "FY, {second_window}"),
        ),
    },
    EYERISS: {
        "default": (
            "rows of outputs along D1, rows of the window along D2",
            ("OY, {rows}",),
            ("FY, {window}", "K, {per_window}"),
        ),
        "@depthwise": (
            "as above, with groups in place of output channels",
            ("OY, {rows}",),
            ("FY, {window}", "G, {per_window}"),
        ),
        "Gemm": ("matrix products have no rows of pixels", ("K, {rows}",), ("C, {columns}",)),
        "MatMul": ("", ("K, {rows}",), ("C, {columns}",)),
    },
}
"""Entries of the mapping file, by kind of array and name of the entry, as (comment, loops along D1, loops along D2)."""


@dataclass(frozen=True)
class NewAccelerator:
    """Choices of the user for a new accelerator."""

    name: str
    kind: str
    array: str
    sram: str
    node_nm: float
    cells: str
    dram: str
    dram_bandwidth: str
    clock: str

    @property
    def sides(self) -> tuple[int, int]:
        """Numbers of rows and columns of the array. The choices must have no `problems`."""
        rows, _, columns = self.array.lower().partition("x")
        return int(rows), int(columns)

    def problems(self) -> list[Problem]:
        """Problems of the choices. They are found before the hardware file is checked, because that check cannot name
        the wrong option.
        """
        found = []
        sides = self.array.lower().split("x")
        if len(sides) != 2 or not all(side.strip().isdigit() and 0 < int(side) <= 65536 for side in sides):
            found.append(
                Problem("is not a valid size of an array", path="array", value=self.array, allowed="such as 16x16")
            )
        for name, value, parse, allowed in (
            ("sram", self.sram, parse_size_bits, "a size with a unit, such as 256 KiB"),
            (
                "dram_bandwidth",
                self.dram_bandwidth,
                _parsed_bandwidth,
                "with a unit, such as 12.8 GB/s or 64 b/cycle",
            ),
            ("clock", self.clock, parse_frequency_mhz, "a frequency with a unit, such as 800 MHz"),
        ):
            try:
                parse(value)
            except FieldError as error:
                found.append(
                    Problem(error.message, path=name, value=value, allowed=error.allowed, nearest=error.nearest)
                )
            else:
                if not value.strip()[-1:].isalpha():
                    found.append(Problem("must have a unit", path=name, value=value, allowed=allowed))
        least, most = known_nodes()
        if not least <= self.node_nm <= most:
            allowed = f"{least:g} to {most:g} nm"
            found.append(
                Problem(
                    "no scaling law covers this technology node",
                    path="node_nm",
                    value=f"{self.node_nm:g}",
                    allowed=allowed,
                )
            )
        return found

    def in_options(self, problem: Problem) -> Problem:
        """Problem of the hardware file, changed into a problem of the option that gives the wrong number. Problems of
        other numbers are returned unchanged.
        """
        if problem.path.startswith("memories.sram."):
            words = f"a larger SRAM; its words have {self.sram_width} bits, which follows from `array`"
            allowed = words if "words" in problem.allowed else problem.allowed
            return Problem(problem.message, path="sram", value=self.sram, allowed=allowed)
        if problem.path.startswith("memories.dram.ports."):
            return replace(problem, file="", line=0, path="dram_bandwidth", value=self.dram_bandwidth)
        return problem

    @property
    def sram_width(self) -> int:
        """Default width of the SRAM in bits: a power of two from _LEAST_WIDTH to _MOST_WIDTH. If the limit allows it,
        the width is enough for one input and one partial sum for each unit on the longer side of the array.
        """
        needed = max(self.sides) * (INPUT_BITS + SUM_BITS)
        return min(max(1 << (needed - 1).bit_length(), _LEAST_WIDTH), _MOST_WIDTH)


def _parsed_bandwidth(value: str) -> None:
    """Check a bandwidth per second or in bits per cycle. Raises FieldError."""
    (parse_bits_per_second if is_per_second(value) else parse_bandwidth_bits)(value)


def hardware_text(new: NewAccelerator) -> str:
    """Hardware file of a new accelerator."""
    rows, columns = new.sides
    unit = entries()[MULTIPLIER]
    assert unit.node_nm is not None
    assert unit.area_um2 is not None
    factors = node_factors(unit.node_nm, new.node_nm)
    energy, area = multiplier_energy_pj(new.node_nm), unit.area_um2 * factors.area
    comment = _comment(
        f"{MULTIPLIER}: {unit.energy_pj:g} pJ and {unit.area_um2:g} um2 at {unit.node_nm:g} nm"
        f" ({unit.sources[0].publication}), times {factors.energy:.4g} and {factors.area:.4g} for {new.node_nm:g} nm"
        " (Stillmaker and Baas, Integration 58, 2017)",
        "  # ",
    )
    systolic = "\n  systolic_dimensions: [D1, D2]" if new.kind == TPU else ""
    registers = "".join(_register(new, *one) for one in _REGISTERS[new.kind])
    return f"""\
{_comment(f"An array that is {_ABOUT[new.kind]}.", "# ")}
# Energies and areas of memories are those of the library of costs (docs/costs.md), for the sizes and widths below.
name: {_text(new.name)}
clock_frequency: {_text(new.clock)}

operational_array:
  dimensions: [D1, D2]
  sizes: [{rows}, {columns}]
{comment}
  unit_energy: {energy:.6g} # pJ for each 8-bit multiply-accumulate
  unit_energy_bits: {INPUT_BITS} # the energy is not scaled to other widths; a note names the layers that have them
  unit_area: {area:.6g} um2{systolic}

# From the array outwards: each operand finds its memories in this order. I2 has weights, I1 activations, O outputs and
# partial sums. A sum of n products of 8 bits needs 16 + log2(n) bits; the registers hold sums of {SUM_BITS} bits. ONNX
# networks have partial sums of 16 bits unless --bits partial={SUM_BITS} is given, or in the file of a space of designs:
# bits: {{ partial: {SUM_BITS} }}
memories:
{registers}  sram: # one for the whole array
    operands: [I1, I2, O]
    size: {_text(new.sram)}
    cost: {{ from: sram, node_nm: {new.node_nm:g}, cells: {new.cells} }}
    served_dimensions: [D1, D2]
    ports:
      - name: rw
        type: read_write
        bandwidth_min: {_LEAST_WIDTH}
        bandwidth_max: {new.sram_width}
        allocation: ["I1, tl", "I1, fh", "I2, tl", "I2, fh", "O, tl", "O, fl", "O, th", "O, fh"]

  dram:
    operands: [I1, I2, O]
    size: 1 GiB
    cost: {{ from: dram, type: {new.dram} }}
    served_dimensions: [D1, D2]
    ports:
      - name: rw
        type: read_write
        bandwidth_min: {_text(new.dram_bandwidth)}
        bandwidth_max: {_text(new.dram_bandwidth)}
        allocation: ["I1, tl", "I1, fh", "I2, tl", "I2, fh", "O, tl", "O, fl", "O, th", "O, fh"]
"""


def _register(new: NewAccelerator, name: str, operand: str, bits: int) -> str:
    """Lines of the hardware file that describe the registers of an operand beside each multiplier. `bits` is the size
    of the registers of one multiplier.
    """
    width = SUM_BITS if operand == "O" else INPUT_BITS
    reads, writes = (
        ('"O, tl", "O, th"', '"O, fh", "O, fl"') if operand == "O" else (f'"{operand}, tl"', f'"{operand}, fh"')
    )
    port = f"bandwidth_min: {width}, bandwidth_max: {width}"
    return f"""\
  {name}: # beside each multiplier
    operands: [{operand}]
    size: {size_text(bits)}
    cost: {{ from: register_file, node_nm: {new.node_nm:g} }}
    served_dimensions: []
    ports:
      - {{ name: r, type: read, {port}, allocation: [{reads}] }}
      - {{ name: w, type: write, {port}, allocation: [{writes}] }}

"""


def mapping_text(new: NewAccelerator) -> str:
    """Mapping file of a new accelerator. It fixes the loops along the sides of the array; temporal mappings are
    searched.
    """
    rows, columns = new.sides
    window = min(WINDOW, columns)
    per_window = columns // window
    sizes = {"rows": rows, "columns": columns, "window": window, "per_window": per_window}
    sizes["second_window"] = min(WINDOW, per_window)
    about = (
        "Loops that are unrolled along the sides of the array. A layer with fewer iterations uses a part of a side. On"
        " an array with fewer units, excess lanes are left out; on an array with more units, the further units stay"
        " idle. To use one mapping file for all arrays of a space of designs, write the sizes of the largest array."
        " The search finds the temporal mappings. For an entry without `spatial_mapping`, it also finds the spatial"
        " mapping."
    )
    found = [_comment(about, "# ") + "\n"]
    for entry, (comment, rows_of, columns_of) in _UNROLLED[new.kind].items():
        remark = f" # {comment}" if comment else ""
        lines = [f"- name: {_text(entry)}{remark}", "  spatial_mapping:"]
        for name, loops in (("D1", rows_of), ("D2", columns_of)):
            lines.append(f"    {name}: [{', '.join(_text(loop.format(**sizes)) for loop in loops)}]")
        lines.append("  memory_operand_links: { O: O, W: I2, I: I1 }")
        found.append("\n".join(lines) + "\n")
    return found[0] + "\n".join(found[1:])


def configuration_text(
    name: str, hardware: Path, mapping: Path, networks: Sequence[str], have_bits: Sequence[bool]
) -> str:
    """Configuration that maps each network on the accelerator. Its results have a folder with the name of the
    accelerator, so that several new accelerators do not share a folder. `have_bits` says which networks are ONNX files,
    whose partial sums then have SUM_BITS."""
    listed, folder = ", ".join(map(_text, networks)), re.sub(r"[^A-Za-z0-9_.+-]", "_", name)
    about = (
        "Relative paths in this file start from the folder in which `make run` works. In the file of a space of"
        " designs, relative paths start from the folder of that file."
    )
    stems = [Path(name).stem for name, has_bits in zip(networks, have_bits, strict=True) if has_bits]
    bits = "".join(f"  {_text(stem)}: {{ partial: {SUM_BITS} }}\n" for stem in dict.fromkeys(stems))
    key = f"bits: # the partial sums that the registers hold\n{bits}" if bits else ""
    return f"""\
# What `make run CONFIG=...` computes; config/README.md explains every key.
{_comment(about, "# ")}
results_dir: {_text(f"results/configurations/{folder}")}
{key}\
sweeps:
  networks:
    workload: [{listed}]
    hardware: {_text(hardware.as_posix())}
    mapping: {_text(mapping.as_posix())}
"""


def _comment(text: str, begin: str) -> str:
    """Text of a comment in lines of at most 118 characters. Each line begins with `begin`."""
    return textwrap.fill(text, 118, initial_indent=begin, subsequent_indent=begin)


def _text(value: str) -> str:
    """Text as a YAML value: quoted if it is not a plain word, number or quantity."""
    return (
        value if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./ -]*", value) and value.strip() == value else json.dumps(value)
    )
