"""A small problem of the flow for several cores with correct files, and the messages after an edit."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from onnx import helper

from tests.three_layers import write_network

CORE = """\
name: {name}
operational_array: {{ dimensions: [D1], sizes: [2], unit_energy: 0.5, unit_area: 0 }}
operator_types: [{types}]
dataflows: {{ D1: ["K, 2"] }}
memories:
  memory:
    operands: [I1, I2, O]
    size: {size}
    r_cost: 50
    w_cost: 60
    served_dimensions: [D1]
    ports:
      - {{ name: r, type: read, {bits}, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th"] }}
      - {{ name: w, type: write, {bits}, allocation: ["I1, fh", "I2, fh", "O, fh", "O, fl"] }}
"""
BITS = "bandwidth_min: 8, bandwidth_max: 64"
OFFCHIP = """\
name: offchip
memories:
  dram:
    operands: [I1, I2, O]
    size: 1 MiB
    r_cost: 1000
    w_cost: 1000
    served_dimensions: [D1]
    ports:
      - name: rw
        type: read_write
        bandwidth_min: 64
        bandwidth_max: 64
        allocation: ["I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"]
"""
LINKS = """\
name: trio
cores:
  0: cores/left.yaml
  1: cores/right.yaml
  2: cores/pool.yaml
offchip_core: cores/offchip.yaml
core_connectivity:
  - 0, 1
  - { type: bus, cores: [0, 1, 2], bandwidth: 16 }
bandwidth: 32
energy_per_bit: 0.3
core_roles: { 2: pooling }
"""
GRAPH = """\
name: mesh
cores: [cores/left.yaml, cores/right.yaml, cores/pool.yaml, cores/offchip.yaml]
graph:
  type: 2d_mesh
  nb_rows: 1
  nb_cols: 2
  bandwidth: 64
  unit_energy_cost: 0
  pooling_core_id: 2
  offchip_core_id: 3
"""
MAPPING_TEXT = """\
- name: first
  core_allocation: [0, 1]
  intra_core_tiling: ["OY, 4"]
  inter_core_tiling: ["K, 2"]
- name: pool
  core_allocation: [2]
- name: default
"""
FILES = {
    "trio.yaml": LINKS,
    "mesh.yaml": GRAPH,
    "cores/left.yaml": CORE.format(name="left", types="mac", size="4 KiB", bits=BITS),
    "cores/right.yaml": CORE.format(name="right", types="mac", size="8 KiB", bits=BITS),
    "cores/pool.yaml": CORE.format(name="pool", types="pooling", size="4 KiB", bits=BITS),
    "cores/offchip.yaml": OFFCHIP,
    "mapping.yaml": MAPPING_TEXT,
}


POOL = helper.make_node("MaxPool", ["c"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2])


class Slip(NamedTuple):
    """A mistake in files or options, with all expected messages."""

    edits: list[tuple[str, str, str]]
    """Triples (file, old text, new text)."""
    told: list[str]
    """Lines of the message without `error: ` and the folder; an ellipsis stands for any text."""
    options: Sequence[str] = ()
    """Options of `cns`."""


def write_files(folder: Path) -> None:
    """Write the files of the problem: a network of convolution `first`, pooling `pool` and convolution `second`.

    `first` has K 8 and OY 8, the other layers have OY 4, and `second` has K 4.
    """
    (folder / "cores").mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    write_network(folder / "net.onnx", POOL, side=8, side_behind=4)


SYSTEM, MESH, MAPPING, LEFT, RIGHT = "trio.yaml", "mesh.yaml", "mapping.yaml", "cores/left.yaml", "cores/right.yaml"
HARDWARE: dict[str, Slip] = {
    "core file that is not there": Slip(
        [(SYSTEM, "cores/right", "cores/rigth")],
        ["trio.yaml:4 cores.1: no such core file, got 'cores/rigth.yaml' … (did you mean 'cores/right.yaml'?)"],
    ),
    "off-chip file that is not there": Slip(
        [(SYSTEM, "cores/offchip", "cores/offchp")],
        ["trio.yaml:6 offchip_core: no such core file, got 'cores/offchp.yaml' … 'cores/offchip.yaml'?)"],
    ),
    "core file that is the accelerator": Slip(
        [(SYSTEM, "cores/right.yaml", "trio.yaml")],
        ["trio.yaml:4 cores.1: is an accelerator of several cores; the file of one core is needed, got 'trio.yaml'"],
    ),
    "core file that is no YAML": Slip(
        [(LEFT, "dimensions: [D1], s", "dimensions: [D1, s")],
        ["cores/left.yaml:2 is not valid YAML: while parsing a flow sequence, …"],
    ),
    "one id twice": Slip(
        [(SYSTEM, "  1: cores", "  0: cores")],
        ["trio.yaml:4 cores.0: another core has this id, and only the last one would count, got 0"],
    ),
    "link to an unknown core": Slip(
        [(SYSTEM, "- 0, 1", "- 0, 11")],
        ["trio.yaml:8 core_connectivity[0]: no core has this id, got 11 (allowed: 0, 1, 2, 3)"],
    ),
    "bus of one core": Slip(
        [(SYSTEM, "cores: [0, 1, 2]", "cores: [2]")],
        ["trio.yaml:9 core_connectivity[1].cores: too few items, got [2] (allowed: at least 2 items)"],
    ),
    "negative bandwidth": Slip(
        [(SYSTEM, "bandwidth: 32", "bandwidth: -32")], ["trio.yaml:10 bandwidth: must be greater than 0, got -32"]
    ),
    "no off-chip core": Slip(
        [(SYSTEM, "offchip_core: cores/offchip.yaml\n", "")],
        ["trio.yaml:1 offchip_core: the accelerator has no off-chip core to keep … (allowed: offchip_core: FILE, …"],
    ),
    "core without links": Slip(
        [(SYSTEM, "[0, 1, 2], bandwidth: 16 }", "[0, 1, 3] }")],
        ["trio.yaml:7 core_connectivity: no data can get from core 0 to 2; 1 to 2; 2 to 0, 1, 3; 3 to 2 (allowed: …"],
    ),
    "unknown role": Slip(
        [(SYSTEM, "2: pooling", "2: poolling")],
        ["trio.yaml:12 core_roles.2: not one of the known values, got 'poolling' … (did you mean 'pooling'?)"],
    ),
    "misspelt key": Slip(
        [(SYSTEM, "energy_per_bit", "energy_per_bits")],
        ["trio.yaml:11 energy_per_bits: unknown key (did you mean 'energy_per_bit'?)"],
    ),
    "unknown operator type": Slip(
        [(RIGHT, "[mac]", "[MaxPol]")],
        ["cores/right.yaml:3 operator_types[0]: is neither an operator type nor …, got 'MaxPol' … 'MaxPool'?)"],
    ),
    "memory for no operand": Slip(
        [(LEFT, "operands: [I1, I2, O]", "operands: []")],
        ["cores/left.yaml:7 memories.memory.operands: too few items, got [] (allowed: at least 1 items)"],
    ),
    "operand without a memory": Slip(
        [(LEFT, "operands: [I1, I2, O]", "operands: [I1, O]"), (LEFT, '"I2, tl", ', ""), (LEFT, '"I2, fh", ', "")],
        ["cores/left.yaml:5 memories: no memory holds operand I2 (allowed: every operand needs one)"],
    ),
    "shared memory of two shapes": Slip(
        [
            (SYSTEM, "  - 0, 1\n", ""),
            (SYSTEM, "[0, 1, 2]", "[0, 2]"),
            (SYSTEM, "name:", "core_memory_sharing: ['0, 1']\nname:"),
        ],
        ["trio.yaml:1 core_memory_sharing[0]: memory of core 1 differs from that of core 0: size"],
    ),
    "dataflow over a loop that no layer has": Slip(
        [(LEFT, '"K, 2"', '"KK, 2"')],
        ["cores/left.yaml:4 dataflows.D1[0]: no layer of net has this loop dimension, got 'KK' … (did you mean 'K'?)"],
    ),
    "dataflow over an array dimension that is not there": Slip(
        [(LEFT, "{ D1: [", "{ D2: [")],
        ["cores/left.yaml:4 dataflows.D2: no such array dimension, got 'D2' (allowed: D1)"],
    ),
}
GRAPHS: dict[str, Slip] = {
    "size of a mesh": Slip(
        [(MESH, "nb_cols: 2", "nb_cols: 3")],
        [
            "mesh.yaml:5 graph.nb_rows: 1 row of 3 cores cannot hold exactly the 2 cores that have no other role, "
            "got 1 … is 2)"
        ],
    ),
    "negative bandwidth": Slip(
        [(MESH, "bandwidth: 64", "bandwidth: -64")], ["mesh.yaml:7 graph.bandwidth: must be greater than 0, got -64"]
    ),
    "unknown core": Slip(
        [(MESH, "pooling_core_id: 2", "pooling_core_id: 22")],
        ["mesh.yaml:9 graph.pooling_core_id: no core has this id, got 22 (allowed: 0, 1, 2, 3)"],
    ),
    "unknown kind": Slip(
        [(MESH, "2d_mesh", "2d_mehs")],
        ["mesh.yaml:4 graph.type: not one of the known values, got '2d_mehs' … (did you mean '2d_mesh'?)"],
    ),
    "no off-chip core": Slip(
        [(MESH, "  offchip_core_id: 3\n", ""), (MESH, ", cores/offchip.yaml]", "]")],
        ["mesh.yaml:1 offchip_core: the accelerator has no off-chip core to keep weights, inputs and results …"],
    ),
    "two mistakes": Slip(
        [(MESH, "nb_rows: 1", "nb_rows: 0"), (MESH, "cores/pool", "cores/pol")],
        [
            "mesh.yaml:2 cores[2]: no such core file, got 'cores/pol.yaml' … 'cores/pool.yaml'?)",
            "mesh.yaml:5 graph.nb_rows: must be greater than 0, got 0",
        ],
    ),
}
