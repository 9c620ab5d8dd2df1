"""AMD XDNA in the court: `evaluate` gives the estimates, with the tiles of the measurements."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright import evaluate
from tilewright.base.errors import InputError
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.mapped_layer import PRODUCT_EQUATION
from tilewright_evidence.court.xdna import COLUMNS, XDNA, prepare
from tilewright_evidence.court.xdna_mapping import (
    DIMENSIONS,
    FORMATS,
    Tiles,
    clock_mhz,
    mapping_of,
    misfits,
    xdna_core,
    xdna_document,
)

FILES = set_files(DATA / XDNA.name, XDNA.patterns)
ROWS = prepare(FILES)


def record_of(one: Any, folder: Path) -> Any:
    """Return the record of `evaluate` for a row, its hardware file and its mapping."""
    (m, k, n), (bits, output_bits) = one.sizes, FORMATS[one.row["precision_in_out"]]
    entry = {
        "id": 0,
        "name": "layer",
        "operator_type": "MatMul",
        "equation": PRODUCT_EQUATION,
        "loop_dims": list(DIMENSIONS),
        "loop_sizes": [m, n, k],
        "operand_precision": {"W": bits, "I": bits, "O": output_bits, "O_final": output_bits},
        "operand_source": {"I": 0, "W": 0},
    }
    hardware, file = folder / "hardware.yaml", folder / "workload.yaml"
    document = xdna_document(one.row["device"], one.row["precision_in_out"])
    hardware.write_text(yaml.safe_dump(document, sort_keys=False))
    file.write_text(yaml.safe_dump([entry], sort_keys=False))
    point = one.mapping.point()
    (record,) = evaluate(hardware=str(hardware), workload=str(file), points=[point], model="corrected")
    return record


@pytest.mark.parametrize("one", ROWS, ids=lambda one: one.row["row_id"])
def test_evaluate_gives_the_estimates_to_the_last_bit(one: Any, tmp_path: Path) -> None:
    """`evaluate` gives exactly the latency of each row, and the DRAM traffic of the authors' equations 6 and 7."""
    record = record_of(one, tmp_path)
    device, (m, k, n), tiles = one.row["device"], one.sizes, one.tiles
    assert record.latency_cycles / clock_mhz(device) == one.case({}).estimate
    core = xdna_core(device, one.row["precision_in_out"])
    (dram,) = (memory for memory in core.memories if memory.name == "dram")
    rows, columns = {"XDNA": (4, 4), "XDNA2": (4, 8)}[device]
    bits = FORMATS[one.row["precision_in_out"]][0]
    moved = {"I": m * k * n * bits / (tiles.columns * columns), "W": m * k * n * bits / (tiles.rows * rows)}
    for operand, expected in moved.items():
        found = record.word_accesses[operand][-1]["tl"] * dram.ports[0].bandwidth_max_bits
        assert found == pytest.approx(expected, rel=0.01)


def test_no_row_is_below_its_bound() -> None:
    """No measurement and no estimate is below its bound, and no row is fitted."""
    cases = [one.case({}) for one in ROWS]
    assert len(cases) == 10
    assert all(0 < case.bound <= min(case.measured, case.estimate) and not case.fitted for case in cases)


@pytest.mark.parametrize("device", ["xdna", "xdna2"])
def test_each_line_of_a_number_names_its_source(device: str) -> None:
    """Each number names one of the sources at the top of the file: on its line, or, for a port, on the line `ports`.

    Costs, areas and latencies are left out, because they are not numbers of the device.
    """
    text = (DATA / "hardware" / f"{device}.yaml").read_text()
    sources = "".join(re.findall(r"^# ([A-Z])  \S", text, re.MULTILINE))
    assert sources == "TMDA"
    named = re.compile(rf"#.*\b[{sources}](?::|\s*$)")
    numbers, unnamed, is_above_named = 0, [], False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("ports:"):
            is_above_named = named.search(line) is not None
        is_port = line.startswith("- {")
        if is_port or line.split(":")[0] in ("clock_frequency", "sizes", "size"):
            numbers += 1
            if not named.search(line) and not (is_port and is_above_named):
                unnamed.append(line)
    document = yaml.safe_load(text)
    assert numbers == 2 + sum(1 + len(memory["ports"]) for memory in document["memories"].values())
    assert unnamed == []


def test_steps_in_l2_divide_the_reduction() -> None:
    """A step in L2 has as many tiles as fit, but their number must divide the tiles of the reduction.

    A capacity of 448 holds 4 tiles of 112, or 4 of 104. A capacity of 500 also holds 4 tiles of 104, but 4 does not
    divide the 6 tiles of that reduction, so a step has 3 tiles.
    """
    assert Tiles(96, 112, 96, 448).steps_in_l2(4032) == 4
    assert Tiles(80, 104, 128, 448).steps_in_l2(4160) == 4
    assert Tiles(80, 104, 128, 500).steps_in_l2(6 * 104) == 3
    assert Tiles(80, 104, 128, 50).steps_in_l2(4160) == 1


@pytest.mark.parametrize("device", ["XDNA", "XDNA2"])
@pytest.mark.parametrize("precision", FORMATS)
def test_every_precision_has_a_mapping(device: str, precision: str) -> None:
    """Each device and precision has a mapping for difficult tiles, with at least the time of the arithmetic."""
    columns, lanes = {"XDNA": (4, 256), "XDNA2": (8, 512)}[device]
    for tiles in (Tiles(96, 64, 96, 256), Tiles(64, 64, 72 if device == "XDNA" else 88, 128)):
        sizes = 4 * tiles.rows, 512, columns * tiles.columns
        assert misfits(device, sizes, tiles, precision) == []
        used = lanes // 2 if (device, precision) == ("XDNA", "bf16-bf16") else lanes
        cycles = sum(mapping_of(device, sizes, tiles, precision).parts(xdna_core(device, precision)).values())
        assert cycles >= tiles.rows * 512 * tiles.columns / used


def test_wrong_rows_are_told(tmp_path: Path) -> None:
    """Unknown names and tiles that do not divide the sizes are refused."""
    good = {name: ROWS[0].row[name] for name in COLUMNS}
    file = tmp_path / "rows.csv"
    for changes, told in (
        ({"device": "XDNA3"}, "'XDNA3'"),
        ({"m": 4225}, "m 4225 (allowed: multiples of 384)"),
        ({"k_ct": ""}, "no k_ct"),
    ):
        wrong = good | changes
        file.write_text("\n".join([",".join(COLUMNS), ",".join(str(wrong[one]) for one in COLUMNS)]))
        with pytest.raises(InputError) as error:
            prepare([file])
        assert told in str(error.value)
