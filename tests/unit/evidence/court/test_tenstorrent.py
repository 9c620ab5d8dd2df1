"""Tenstorrent in the court: `evaluate` gives the estimates, and plans are those of the measured program."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright import evaluate
from tilewright.base.errors import InputError
from tilewright.cost.waiting import WAITING_TERMS, waiting_keys
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.mapped_layer import PRODUCT_EQUATION
from tilewright_evidence.court.tenstorrent import COLUMNS, DEVICES, TENSTORRENT, prepare
from tilewright_evidence.court.tenstorrent_mapping import (
    DIMENSIONS,
    FORMATS,
    PASSES,
    TILE,
    Place,
    clock_mhz,
    default_plan,
    manual_plan,
    mapping_of,
    tenstorrent_core,
    tenstorrent_document,
    written_document,
    written_values,
)

FILES = set_files(DATA / TENSTORRENT.name, TENSTORRENT.patterns)
FULL_SET = Path(__file__).resolve().parents[5] / "shared" / "third-party" / TENSTORRENT.name
GRIDS = {"n150": [(8, 8)], "p150": [(13, 10), (11, 10)]}
SIZES = [(64, 64, 64), (64, 128, 256), (128, 256, 256), (384, 384, 384), (416, 320, 320), (512, 512, 512)]
"""Sizes (m, k, n) of products on one core; the program multiplies them by the sides of the grid."""


def workload(row: Any) -> list[dict[str, Any]]:
    """Return the product of a row as a workload file."""
    sizes = {"B": row["m"], "K": row["n"], "C": row["k"]}
    bits = FORMATS[row["dtype"]][0]
    return [
        {
            "id": 0,
            "name": "layer",
            "operator_type": "MatMul",
            "equation": PRODUCT_EQUATION,
            "loop_dims": list(DIMENSIONS),
            "loop_sizes": [sizes[name] for name in DIMENSIONS],
            "operand_precision": {"W": bits, "I": bits, "O": 16, "O_final": bits},
            "operand_source": {"I": 0, "W": 0},
        }
    ]


def test_evaluate_gives_the_estimates_to_the_last_bit(tmp_path: Path) -> None:
    """`evaluate` gives exactly the estimates, for rows of each part of the sample."""
    parts: dict[str, list[Any]] = {}
    for one in prepare(FILES):
        parts.setdefault(one.part, []).append(one)
    assert len(parts) == 7
    hardware, file = tmp_path / "hardware.yaml", tmp_path / "workload.yaml"
    for one in (row for rows in parts.values() for row in (rows[0], rows[-1])):
        document = tenstorrent_document(one.device, one.planned[1])
        hardware.write_text(yaml.safe_dump(document, sort_keys=False))
        file.write_text(yaml.safe_dump(workload(one.row), sort_keys=False))
        point = one.mapping(written_values(one.device)["bandwidth_max of l1.r_port_1"]).point()
        (record,) = evaluate(hardware=str(hardware), workload=str(file), points=[point], model="corrected")
        alone = record.latency_cycles - sum(record.latency_breakdown_cycles[name] for name in WAITING_TERMS)
        case = one.case(TENSTORRENT.values())
        assert 1e3 * record.latency_cycles / clock_mhz(one.device) == case.estimate
        assert 1e3 * alone / clock_mhz(one.device) == case.alone


@pytest.mark.parametrize("device", DEVICES)
def test_other_times_give_the_core_of_the_whole_file(device: str) -> None:
    """A core with replaced numbers equals that of the changed file, also with another port."""
    place = Place("BFLOAT16", inputs_in_l1=True, outputs_in_l1=False)
    values = {name: value * 1.07 for name, value in written_values(device).items()}
    core = tenstorrent_core(device, place, tuple(sorted(values.items())))
    assert core == read_accelerator(tenstorrent_document(device, place, values)).cores[0]
    assert core != tenstorrent_core(device, place)


@pytest.mark.parametrize("device", DEVICES)
def test_each_line_of_a_key_names_its_source(device: str) -> None:
    """Each line of the file on waiting, the clock or the array names its source.

    Inputs in L1 are an operand of the memory `shards`, not of the DRAM.
    """
    core = tenstorrent_core(device, Place("BFLOAT16", inputs_in_l1=False, outputs_in_l1=False))
    keys = {*waiting_keys(core), "command_dimensions", "clock_frequency", "sizes", "size"}
    lines = (DATA / "hardware" / f"tenstorrent_{device}.yaml").read_text().splitlines()
    sourced = [line.strip() for line in lines if line.strip().split(":")[0] in keys - {"command_dimensions"}]
    assert len(sourced) >= len(keys)
    assert all(re.search(r"# [GBNPFA](, [GBNPFA])*\b", line) for line in sourced), sourced
    document = tenstorrent_document(device, Place("BFLOAT16", inputs_in_l1=True, outputs_in_l1=False))
    assert document["memories"]["dram"]["operands"] == ["I2", "O"]
    assert document["memories"]["shards"]["operands"] == ["I1"]
    assert written_document(device)["memories"]["dram"]["operands"] == ["I1", "I2", "O"]


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("device", DEVICES)
def test_plans_cover_the_product_and_are_never_below_the_bound(device: str, dtype: str) -> None:
    """Plans by hand and by default cover the product without padding, in at least the time of the arithmetic."""
    width = written_values(device)["bandwidth_max of l1.r_port_1"]
    for columns, rows in GRIDS[device]:
        for m, k, n in SIZES:
            sizes = m * rows, k * columns, n * columns
            place = Place(dtype, inputs_in_l1=m < 256, outputs_in_l1=m < 256)
            by_hand = manual_plan(sizes, (columns, rows), dtype, outputs_in_l1=m < 256), place
            for plan, where in (by_hand, default_plan(device, sizes, (columns, rows), dtype)):
                mapping = mapping_of(device, plan, where, "HiFi2", width)
                of = mapping.layer.size_of
                assert (of["B"], of["C"], of["K"]) == sizes
                cycles = sum(mapping.parts(tenstorrent_core(device, where)).values())
                assert cycles >= PASSES["HiFi2"] * m * k * columns * n / (16 * 8 * 16)
                assert plan.subblock[0] * plan.subblock[1] <= 8


def test_known_plans() -> None:
    """Plans for known products equal those of the program and of the library."""
    plan = manual_plan((3072, 3072, 3072), (8, 8), "BFLOAT16", outputs_in_l1=True)
    assert (plan.block, plan.blocks, plan.subblock) == ((12, 12, 3), (1, 1, 32), (1, 6))
    plan = manual_plan((4096, 4096, 4096), (8, 8), "BFLOAT16", outputs_in_l1=False)
    assert (plan.block, plan.blocks, plan.subblock) == ((8, 8, 16), (2, 2, 8), (4, 2))
    plan, place = default_plan("n150", (512, 1024, 1024), (8, 8), "BFLOAT16")
    assert place.one_row
    assert (plan.rows * plan.columns, plan.block, plan.blocks) == (32, (16, 1, 2), (1, 1, 16))


def test_multicast_reads_each_tile_once(tmp_path: Path) -> None:
    """Multicast reads each tile once: with one block a core, the DRAM moves every element once."""
    one = next(
        row for row in prepare(FILES) if row.part == "n150, default tiles" and row.planned[0].blocks[:2] == (1, 1)
    )
    hardware, file = tmp_path / "hardware.yaml", tmp_path / "workload.yaml"
    hardware.write_text(yaml.safe_dump(tenstorrent_document("n150", one.planned[1]), sort_keys=False))
    file.write_text(yaml.safe_dump(workload(one.row), sort_keys=False))
    (record,) = evaluate(
        hardware=str(hardware), workload=str(file), points=[one.mapping(355).point()], model="corrected"
    )
    (dram,) = (memory for memory in tenstorrent_core("n150", one.planned[1]).memories if memory.name == "dram")
    row, bits = one.row, FORMATS[one.row["dtype"]][0]
    elements = {"W": row["k"] * row["n"], "I": row["m"] * row["k"], "O": row["m"] * row["n"]}
    for operand, count in elements.items():
        words = record.word_accesses[operand][-1]["fl" if operand == "O" else "tl"]
        assert words * dram.ports[0].bandwidth_max_bits == pytest.approx(count * bits, rel=0.01)


def test_wrong_rows_are_told(tmp_path: Path) -> None:
    """Unknown names and sizes that do not divide among the cores are reported together."""
    good = {
        **{"row_id": "a", "report": "r", "config": "manual", "device": "n150", "grid_x": 8, "grid_y": 8, "m": 512},
        **{"k": 512, "n": 512, "trace": "True", "in0_memory": "L1", "out_memory": "L1", "dtype": "BFLOAT16"},
        **{"fidelity": "HiFi2", "host_time_ns": 1.0, "flags": ""},
    }
    file = tmp_path / "rows.csv"
    file.write_text(
        "\n".join([",".join(COLUMNS), ",".join(str({**good, "dtype": "FP8", "m": 500}[one]) for one in COLUMNS)])
    )
    with pytest.raises(InputError) as error:
        prepare([file])
    told = str(error.value)
    assert "'FP8'" in told
    assert "BFLOAT8_B" in told
    assert "500 on 8 cores" in told


@pytest.mark.skipif(not FULL_SET.is_dir(), reason="the full sets ../shared/third-party are not beside this checkout")
def test_no_row_is_below_its_bound() -> None:
    """No row is below its bound, even among the flagged rows, which are no cases."""
    from tilewright_evidence.court import tenstorrent
    from tilewright_evidence.court.rows import read_rows

    rows = read_rows(set_files(FULL_SET, TENSTORRENT.patterns), COLUMNS)
    assert len(rows) == 564
    flagged = [tenstorrent._Product(row) for row in rows if row["flags"]]
    assert len(flagged) == 146
    assert all(one.row["host_time_ns"] >= max(one.least_times) for one in flagged)
    assert all(row["m"] % TILE == 0 for row in rows)
