"""Accelerator and core files with the keys of Stream 2.1: keys that are read, not modelled, or wrong."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_node
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError
from tilewright.cli.main import main
from tilewright.cli.validate import validate_file
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.hardware.system_paths import path_table
from tilewright.pipeline.sources import parse_accelerator

from tests.unit.hardware.system_cases import core, memory, write
from tests.unit.workload.onnx.dependency_checks import build_model

VECTOR_TYPES = [
    *("Add", "Sub", "Mul", "Div", "Exp", "Pow", "Silu", "Sigmoid", "Gelu", "Tanh", "Relu", "Cast", "Softmax"),
    *("ReduceMax", "ReduceSum", "ReduceMean", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"),
]
EVERYTHING = [*(f"{name}, {way}" for name in ("I1", "I2", "O") for way in ("fh", "tl")), "O, fl", "O, th"]
PORT = {"name": "rw_port_1", "type": "read_write", "bandwidth_min": 64, "bandwidth_max": 64, "allocation": EVERYTHING}


def stores(name: str, **memories: dict[str, Any]) -> dict[str, Any]:
    """Data of a core that only stores: its array has no units."""
    array = {"dimensions": ["D1", "D2"], "sizes": [0, 0], "unit_energy": 0, "unit_area": 0}
    return core(name, **memories) | {"operational_array": array}


def core_files() -> dict[str, dict[str, Any]]:
    """Return the core files of `accelerator`."""
    shared = memory(2**20, width=256)
    banks = {"count": 4, "width": 32, "stripe": 2}
    precision = {"input": "int8", "accumulator": "int24"}
    mac = {"type": "compute", "banks": banks, "operand_precision": precision, "operator_types": ["Conv", "Gemm"]}
    dram = memory(10**16) | {"ports": [PORT]}
    return {
        "array": core("array", tile=shared) | mac,
        "vector": core("vector", tile=shared) | {"type": "zigzag.compute", "operator_types": VECTOR_TYPES},
        "tile": stores("tile", tile=shared) | {"type": "memory"},
        "hbm": stores("hbm", dram=dram) | {"type": "zigzag.offchip"},
    }


def accelerator(**changes: Any) -> dict[str, Any]:
    """Data of an accelerator of three groups: each has an array and a vector unit, which share a memory.

    Links connect these memories with each other and with the off-chip memory.
    """
    files = ["array.yaml", "vector.yaml", "tile.yaml"] * 3 + ["hbm.yaml"]
    data = {
        "name": "slice",
        "cores": dict(enumerate(files)),
        "offchip_core_id": 9,
        "unit_energy_cost": 0,
        "technology_node": "n3",
        "kernel_library": "../kernels.toml",
        "reconfiguration": {"cycles_per_column": 40, "reset_cycles": 60.5},
        "memory_aliases": [["0.tile", "1.tile", "2.tile"]],
        "bandwidth": {
            "9.dram.rw_port_1": {"ceiling": 50.5, "contiguous": 40, "burst": 32},
            2: {"ceiling": 64, "contiguous": 32, "strided": {"read": {32: 4.5}, "write": {64: 8}}},
        },
        "core_memory_sharing": ["2, 0, 1", "5, 3, 4", "8, 6, 7"],
        "core_coordinates": {number: [number // 3, number % 3] for number in range(10)},
        "core_connectivity": [
            {"cores": [2, 5], "bandwidth": 64},
            {"type": "link", "cores": [5, 8], "bandwidth": 48},
            *({"type": "link", "cores": [number, 9], "bandwidth": 32} for number in (2, 5, 8)),
        ],
    }
    return data | changes


def written(folder: Path, data: dict[str, Any], **files: dict[str, Any]) -> Path:
    """Write the accelerator file with its core files beside it."""
    write(folder, **core_files() | files, accelerator=data)
    return folder / "accelerator.yaml"


def read(folder: Path, data: dict[str, Any], notices: list[str] | None = None, **files: Any) -> MultiCoreAccelerator:
    """Read the accelerator of a file."""
    found = parse_accelerator(written(folder, data, **files), notices)
    assert isinstance(found, MultiCoreAccelerator)
    return found


def test_all_keys_are_read_and_each_is_told_once_a_file(tmp_path: Path) -> None:
    """All keys are read, and each unused key gets one notice per file, even if three cores use the file."""
    notices: list[str] = []
    found = read(tmp_path, accelerator(), notices)
    told = [notice.removeprefix(f"{tmp_path}/").split(" ", 1) for notice in notices]
    assert [(place.split(":")[0], text) for place, text in told] == [
        (
            "array.yaml",
            "operand_precision: not used: widths of operands and of partial sums come from the workload; Stream takes "
            "int24 for partial sums of convolutions and matrix products",
        ),
        ("array.yaml", "banks: not used: in the model, accesses never wait for a bank"),
        (
            "accelerator.yaml",
            "bandwidth: not modelled: only the bandwidths of links limit transfers; the file gives 9.dram.rw_port_1 "
            "(50.5 bits per cycle at most, in bursts of 32 bytes; links of core 9: 96 in, 96 out); core 2 (64 bits per "
            "cycle at most, less for strided data; links of core 2: 96 in, 96 out)",
        ),
        ("accelerator.yaml", "technology_node: not used: energies and areas are those of the core files"),
        (
            "accelerator.yaml",
            "memory_aliases: not used: each core has its own memory and area; to merge memories, use "
            "core_memory_sharing",
        ),
        *(
            (
                "accelerator.yaml",
                f"{key}: not used: this key is for cores of the types aie2.*, which tilewright does not model",
            )
            for key in ("kernel_library", "reconfiguration")
        ),
    ]
    assert [place.role for place in found.places[:3]] == ["compute", "compute", "memory"]
    assert found.places[1].operator_types == tuple(VECTOR_TYPES)
    assert found.core_of[9].memories[0].size_bits == 10**16
    assert found.core_of[2].operational_array.unit_count == 1
    assert (found.offchip_core_id, found.links[0].bandwidth_bits_per_cycle) == (9, 64)


def test_unmodelled_keys_change_no_number(tmp_path: Path) -> None:
    """Keys that are not modelled leave the accelerator as it is, and a file without them gets no notice."""
    unmodelled = ("technology_node", "kernel_library", "reconfiguration", "memory_aliases", "bandwidth")
    bare = {key: value for key, value in accelerator().items() if key not in unmodelled}
    array = {key: value for key, value in core_files()["array"].items() if key not in ("banks", "operand_precision")}
    notices: list[str] = []
    assert read(tmp_path, bare, notices, array=array) == read(tmp_path, accelerator())
    assert notices == []


def test_keys_of_an_offchip_core_are_told_too(tmp_path: Path) -> None:
    """An unused key in the file of the off-chip core gets a notice."""
    notices: list[str] = []
    read(tmp_path, accelerator(), notices, hbm=core_files()["hbm"] | {"banks": {"count": 8, "width": 16}})
    assert sum("hbm.yaml" in notice and "banks: not used" in notice for notice in notices) == 1


def test_data_passes_through_a_memory_that_compute_cores_share(tmp_path: Path) -> None:
    """A memory core that compute cores share passes data on, other memory cores do not, and `routers` replaces both
    rules."""
    found = read(tmp_path, accelerator())
    assert path_table(found).path(0, 6).core_ids == (2, 5, 8)
    assert [place.core_id for place in found.places if place.is_router] == list(range(9))
    alone = read(tmp_path, accelerator(core_memory_sharing=[], core_connectivity=[{"cores": list(range(10))} | BUS]))
    assert [place.core_id for place in alone.places if not place.is_router] == [2, 5, 8, 9]
    chosen = read(tmp_path, accelerator(routers=[0]))
    assert [place.core_id for place in chosen.places if place.is_router] == [0]


BUS = {"type": "bus", "bandwidth": 64}


@pytest.mark.parametrize("prefix", ["", "zigzag."])
@pytest.mark.parametrize("kind", ["compute", "memory", "shim", "offchip"])
def test_types_with_and_without_namespace(prefix: str, kind: str, tmp_path: Path) -> None:
    """A core of type memory, shim or offchip has the role memory, with and without a namespace in the type."""
    data = core_files()["tile"] if kind != "compute" else core_files()["vector"]
    found = read(tmp_path, accelerator(), tile=data | {"type": prefix + kind})
    assert found.places[2].role == ("compute" if kind == "compute" else "memory")


def test_a_file_of_a_core_that_only_stores_is_valid_and_runs_no_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of a core that only stores is valid with a notice, but a run of one core refuses it."""
    written(tmp_path, accelerator())
    for name in ("tile", "hbm"):
        kind, problems, notices = validate_file(tmp_path / f"{name}.yaml")
        assert (kind, problems) == ("hardware", [])
        assert ["a core that only stores" in notice for notice in notices] == [True]
    assert main(["validate", str(tmp_path / "tile.yaml")]) == 0
    with pytest.raises(InputError, match=r"sizes\[0\]: must be greater than 0"):
        parse_accelerator(tmp_path / "tile.yaml")
    capsys.readouterr()


def _in(place: list[Any], value: Any) -> dict[str, Any]:
    """Return the accelerator with one value changed or added."""
    data = copy.deepcopy(accelerator())
    at: Any = data
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return data


RATE = {"ceiling": 1, "contiguous": 1}
WRONG: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]], str]] = {
    "misspelt key": (accelerator(technology_nod="n3"), {}, "technology_nod: unknown key (did you mean 'technology_nod"),
    "process that is a number": (accelerator(technology_node=3), {}, "technology_node: must be text, got 3"),
    "rates of no port": (_in(["bandwidth", "9.dram"], RATE), {}, "bandwidth.9.dram: must be a core or a port"),
    "rates of an unknown core": (_in(["bandwidth", "77.dram.x"], RATE), {}, "77.dram.x: no core has this id, got 77"),
    "rates of an unknown memory": (
        _in(["bandwidth", "9.dran.rw_port_1"], RATE),
        {},
        "is not a memory at the top of this core, got 'dran' (allowed: dram) (did you mean 'dram'?)",
    ),
    "rates of an unknown port": (
        _in(["bandwidth", "9.dram.rw_port_2"], RATE),
        {},
        "dram has no such port, got 'rw_port_2' (allowed: rw_port_1) (did you mean 'rw_port_1'?)",
    ),
    "rates of a core and of its port": (_in(["bandwidth", 9], RATE), {}, "core 9 already has rates"),
    "no ceiling": (_in(["bandwidth", 2], {"contiguous": 1}), {}, "bandwidth.2.ceiling: required key is missing"),
    "rate of nothing": (_in(["bandwidth", 2, "ceiling"], 0), {}, "bandwidth.2.ceiling: must be greater than 0, got 0"),
    "misspelt rate": (
        _in(["bandwidth", 2, "bursts"], 3),
        {},
        "bandwidth.2.bursts: unknown key (did you mean 'burst'?)",
    ),
    "part of a byte": (_in(["bandwidth", 2, "burst"], 1.5), {}, "bandwidth.2.burst: must be a whole number, got 1.5"),
    "strides of no direction": (
        _in(["bandwidth", 2, "strided"], {"reed": {}}),
        {},
        "strided.reed: unknown key (did you mean 'read'?)",
    ),
    "rates are no default width": (
        _in(["core_connectivity", 0], {"cores": [2, 5]}),
        {},
        "core_connectivity[0]: has no bandwidth, and the file has no default for it",
    ),
    "one alias": (accelerator(memory_aliases=[["0.tile"]]), {}, "memory_aliases[0]: too few items"),
    "alias without core": (accelerator(memory_aliases=[["tile", "0.tile"]]), {}, "[0][0]: must be a memory of a core"),
    "alias of an unknown memory": (
        accelerator(memory_aliases=[["0.tile", "1.tyle"]]),
        {},
        "memory_aliases[0][1]: core 1 has no such memory, got 'tyle' (allowed: tile) (did you mean 'tile'?)",
    ),
    "misspelt cycles": (
        accelerator(reconfiguration={"reset": 1}),
        {},
        "reconfiguration.reset: unknown key",
    ),
    "link of three": (
        _in(["core_connectivity", 0], {"cores": [2, 5, 8], "bandwidth": 64}),
        {},
        "core_connectivity[0].cores: a link joins two cores; a bus joins more",
    ),
    "core in place": (
        _in(["cores", 0], core()),
        {},
        "cores.0: must be text",
    ),
    "misspelt type": (
        accelerator(),
        {"array": {"type": "compuet"}},
        "type: not one of the known values",
    ),
    "tile without hierarchy": (accelerator(), {"array": {"type": "aie2.compute"}}, "type: cores of this type have no"),
    "banks without width": (accelerator(), {"array": {"banks": {"count": 4}}}, "banks.width: required key is missing"),
    "no bank": (accelerator(), {"array": {"banks": {"count": 0, "width": 1}}}, "banks.count: must be greater than 0"),
    "misspelt width": (
        accelerator(),
        {"array": {"banks": {"count": 1, "width": 1, "strip": 1}}},
        "banks.strip: unknown key (did you mean 'stripe'?)",
    ),
    "unknown element type": (
        accelerator(),
        {"array": {"operand_precision": {"input": "int7"}}},
        "operand_precision.input: not one of the known values, got 'int7' (allowed: int4, int8, uint8, int16, int24, "
        "bf16, fp16, int32, fp32)",
    ),
    "unknown operand": (
        accelerator(),
        {"array": {"operand_precision": {"inputs": "int8"}}},
        "operand_precision.inputs: unknown key (did you mean 'input'?)",
    ),
    "misspelt operator": (
        accelerator(),
        {"vector": {"operator_types": ["Silo"]}},
        "operator_types[0]: is neither an operator type nor a group of operator types, got 'Silo' (allowed: an ONNX "
        "operator type, such as MaxPool, or one of mac, vector, pooling, elementwise, normalization, reduction, "
        "softmax, all; plug-in operators: vector or all)",
    ),
}


@pytest.mark.parametrize("case", WRONG.values(), ids=list(WRONG))
def test_what_is_wrong_is_told_once(case: tuple[dict[str, Any], dict[str, Any], str], tmp_path: Path) -> None:
    """Each fault is reported once with its place and the allowed values or the nearest name."""
    data, changes, message = case
    files = {name: core_files()[name] | change for name, change in changes.items()}
    with pytest.raises(InputError) as caught:
        read(tmp_path, data, **files)
    told = [str(problem) for problem in caught.value.problems]
    assert len(told) == 1, told
    assert message in told[0]
    assert ".yaml:" in told[0]


def test_a_network_with_silu_goes_through_the_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Matrix products run on the arrays, Silu and the product on vector units, and no layer runs on memories."""
    hardware = written(tmp_path, accelerator())
    nodes = [
        make_node("Gemm", ["x", "gate"], ["g"], name="left"),
        make_node("Gemm", ["x", "up"], ["u"], name="right"),
        make_node("Silu", ["g"], ["s"], name="silu"),
        make_node("Mul", ["s", "u"], ["m"], name="product"),
        make_node("Gemm", ["m", "down"], ["y"], name="out"),
    ]
    sizes = {"gate": (8, 16), "up": (8, 16), "down": (16, 8)}
    weights = {name: np.ones(shape, np.float32) for name, shape in sizes.items()}
    onnx.save(build_model(nodes, {"x": (4, 8)}, weights), str(tmp_path / "net.onnx"))
    (tmp_path / "mapping.yaml").write_text("- {name: default, memory_operand_links: {O: O, W: I2, I: I1}}\n")
    given = ["--hardware", str(hardware), "--workload", str(tmp_path / "net.onnx")]
    given += ["--mapping", str(tmp_path / "mapping.yaml")]
    folder = tmp_path / "run"
    made = ["--cns", str(folder), "--costs", str(folder / "cost"), "-o", str(folder)]
    assert main(["cns", *given, "-o", str(folder)]) == 0
    for name in ("array", "vector", "tile"):
        table = str(folder / "cost" / f"{name}.jsonl")
        arguments = ["--core", name, "--cns", str(folder), "--model", "corrected", "--no-store", "-o", table]
        assert main(["cost", *given, *arguments]) == 0
    search = ["--nb-ga-individuals", "4", "--nb-ga-generations", "1", "--exhaustive-nodes", "0"]
    assert main(["allocate", *given, *made, *search]) == 0
    assert main(["schedule", *given, *made, "--core-allocation", str(folder / "allocation.json")]) == 0
    assert main(["check", str(folder)]) == 0
    capsys.readouterr()
    rows = read_artifact(folder / "allocation.json").payload["allocation"]
    cores = {row["name"]: row["core_name"] for row in rows}
    vector = {"silu": "vector", "product": "vector"}
    assert cores == {"left": "array", "right": "array", "out": "array"} | vector
    summary = json.loads((folder / "summary.json").read_text())
    # 4 x 8 values in and out, and three weights of 128, all of 8 bits, over links of 32 bits: 112 cycles at least, of
    # which three links may carry parts at once.
    assert summary["payload"]["latency_cycles"] > 112 / 3
