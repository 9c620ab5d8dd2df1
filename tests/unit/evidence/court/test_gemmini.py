"""Gemmini in the court: the mappings agree with the rows of the set, and `evaluate` gives the estimates."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright import evaluate
from tilewright.cost.waiting import WAITING_TERMS, waiting_keys
from tilewright.hardware.attributes import WAITING
from tilewright.hardware.yaml_reader import read_accelerator
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.gemmini import COLUMNS, CONSTANTS, GEMMINI, prepare
from tilewright_evidence.court.gemmini_mapping import (
    CANDIDATE_CYCLES,
    DIMENSIONS,
    EQUATION,
    HARDWARE,
    PRODUCT_CALL_CYCLES,
    Program,
    calls_of,
    gemmini_core,
    gemmini_document,
    mapping_of,
    work_of,
)
from tilewright_evidence.court.gemmini_tiles import TILED, driver_tile
from tilewright_evidence.court.rows import read_rows

FILES = set_files(DATA / GEMMINI.name, GEMMINI.patterns)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """Return the rows of the sample."""
    return read_rows(FILES, COLUMNS)


def convolutions(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return the convolutions; the driver does not round their tiles."""
    return (row for row in rows if row["kind"] == "conv")


def test_calls_are_those_that_the_set_counts(rows: list[dict[str, Any]]) -> None:
    """The number of calls equals that of the program."""
    for row in convolutions(rows):
        assert sum(call.count for call in calls_of(work_of(row))) == row["accelerator_calls"], row["id"]


def test_the_array_does_all_multiply_accumulates(rows: list[dict[str, Any]]) -> None:
    """Computed array cycles equal those of the data set, and have room for all executed operations."""
    for row in convolutions(rows):
        cycles = sum(call.count * call.array_cycles for call in calls_of(work_of(row)))
        assert cycles == row["array_bound_cycles"], row["id"]
        assert cycles * row["array"] ** 2 >= row["executed_macs"]


def test_no_measurement_is_below_the_bound() -> None:
    """No measurement is below its bound, and no estimate is below it, except for matrix products of D4."""
    for prepared in prepare(FILES):
        case = prepared.case(GEMMINI.values())
        assert not case.breaks_bound
        assert case.estimate >= 0.999 * case.bound or case.part.startswith("D4 matmul")


def test_mappings_cover_what_was_executed(rows: list[dict[str, Any]]) -> None:
    """The loops of a mapping multiply to the sizes of its layer; channels are rounded up to whole array passes."""
    for row in rows:
        work = work_of(row)
        mapping = mapping_of(work)
        found = dict.fromkeys(DIMENSIONS, 1)
        for name, size in (*mapping.order, *(loop for _, loops in mapping.unrolling for loop in loops)):
            found[name] *= size
        assert found == mapping.layer.size_of, row["id"]
        for name in DIMENSIONS:
            assert work.size[name] <= found[name] < work.size[name] + work.array * work.counts[name], row["id"]
        calls = 1
        for _, size in mapping.order[dict(mapping.boundaries)["I"][0] :]:
            calls *= size
        assert calls == sum(call.count for call in calls_of(work)), row["id"]


def test_evaluate_gives_the_same_numbers_to_the_bit(tmp_path: Path) -> None:
    """`evaluate` gives exactly the estimates, with a hardware file for each array, a workload and a file of points."""
    parts: dict[str, list[Any]] = {}
    for one in prepare(FILES):
        parts.setdefault("default" if one.is_default else one.part, []).append(one)
    chosen = [one for own in parts.values() for one in own[:2]]
    assert {one.work.array for one in chosen} == {4, 8, 16, 64}
    assert {(one.work.program.is_product, one.work.program.candidates > 0) for one in chosen} == {
        (False, False),
        (False, True),
        (True, False),
    }
    for one in chosen:
        hardware, workload = tmp_path / "hardware.yaml", tmp_path / "workload.yaml"
        document = gemmini_document(one.work.array, program=one.work.program)
        hardware.write_text(yaml.safe_dump(document, sort_keys=False))
        layer = one.mapping.layer
        entry = {
            "id": 0,
            "name": layer.name,
            "operator_type": "Conv",
            "equation": EQUATION,
            "dimension_relations": [f"ix={one.work.stride[0]}*ox+1*fx", f"iy={one.work.stride[1]}*oy+1*fy"],
            "loop_dims": list(DIMENSIONS),
            "loop_sizes": [layer.size_of[name] for name in DIMENSIONS],
            "pr_loop_dims": ["IX", "IY"],
            "pr_loop_sizes": list(one.work.inputs),
            "operand_precision": {"W": 8, "I": 8, "O": 32, "O_final": 8},
            "operand_source": {"I": 0, "W": 0},
        }
        workload.write_text(yaml.safe_dump([entry], sort_keys=False))
        (record,) = evaluate(
            hardware=str(hardware), workload=str(workload), points=[one.mapping.point()], model="corrected"
        )
        assert record.latency_cycles == one.case(GEMMINI.values()).estimate, one.row["id"]
        assert sum(record.latency_breakdown_cycles[name] for name in WAITING_TERMS) >= 0


def test_the_file_of_16_is_the_one_that_is_shipped() -> None:
    """The hardware file for 16 is the shipped one; other arrays are derived from it, and each key names its source."""
    assert gemmini_document(16) == yaml.safe_load(HARDWARE.read_text())
    assert gemmini_core(4).operational_array.size_of == {"D1": 4, "D2": 4}
    core = gemmini_core(64)
    assert set(waiting_keys(core)) == {one.key for one in WAITING} - {"start_cycles"}
    assert len(WAITING) == 17
    assert (
        dict(core.operational_array.figures)["command_latency_cycles"]
        == 4 * dict(gemmini_core(16).operational_array.figures)["command_latency_cycles"]
    )
    assert not gemmini_core(16, alone=True).waits
    keys = {one.key for one in WAITING} - {"start_cycles"} | {"command_dimensions", "row_dimensions"}
    lines = [line.strip() for line in HARDWARE.read_text().splitlines()]
    sourced = [line for line in lines if line.split(":")[0] in keys or "request_latency_cycles" in line]
    assert len(sourced) == len(keys) + 2
    assert all(re.search(r"# [GLCFA]: ", line) for line in sourced), sourced


@pytest.mark.parametrize("program", [Program(), Program(is_product=True), Program(candidates=7)])
def test_other_times_give_the_core_of_the_whole_file(program: Program) -> None:
    """Replacing fitted numbers gives the core that is read from a file with these numbers."""
    values = {one.name: one.value * 1.07 for one in CONSTANTS}
    core = gemmini_core(8, tuple(sorted(values.items())), program)
    assert core == read_accelerator(gemmini_document(8, values, program)).cores[0] != gemmini_core(8, (), program)
    for name in values:
        one = {name: values[name]}
        read = read_accelerator(gemmini_document(16, one, program)).cores[0]
        assert gemmini_core(16, tuple(one.items()), program) == read, name


def test_no_array_but_that_of_16_is_fitted() -> None:
    """The fitted rows all belong to the array of 16."""
    fitted = [one for one in prepare(FILES) if one.is_fitted]
    assert fitted
    assert {one.work.array for one in fitted} == {16}


def test_the_driver_finds_the_tiles_of_the_set(rows: list[dict[str, Any]]) -> None:
    """The driver's search gives the tile of every convolution; a layer that fits whole needs no try."""
    searched = [row for row in convolutions(rows) if row.get("default_tile")]
    assert len(searched) >= 10
    for row in searched:
        work = work_of(row)
        tile, tried = driver_tile(work.size, work.stride[0])
        assert tile == row["default_tile"], row["id"]
        assert (tried == 0) == (tile == {name: work.size[name] for name in TILED}), row["id"]
    small = {"B": 1, "OY": 4, "OX": 4, "K": 16, "FY": 3, "FX": 3, "C": 16}
    assert driver_tile(small, 1) == (small, 0)


def test_the_time_of_a_search_is_in_the_hardware_file() -> None:
    """The hardware file has the time of the tile search at the start, and a call time for matrix products."""
    searched = gemmini_document(16, program=Program(candidates=10))
    product = gemmini_document(16, program=Program(is_product=True))
    assert searched["start_cycles"] == 10 * CANDIDATE_CYCLES
    assert product["call_cycles"] == PRODUCT_CALL_CYCLES
    for document in (searched, product):
        document.pop("start_cycles", None)
        document["call_cycles"] = gemmini_document(16)["call_cycles"]
        assert document == gemmini_document(16)


def test_blocks_of_matrix_products_have_the_size_of_the_array(rows: list[dict[str, Any]]) -> None:
    """The driver counts tiles in blocks of 16 on every array, and the array runs blocks of its own size."""
    for row in rows:
        if row["kind"] != "matmul":
            continue
        work = work_of(row)
        for name in ("OX", "K", "C"):
            blocks = max(1, row["tile"][name] // 16)
            assert work.tile[name] == min(work.size[name], blocks * row["array"]), row["id"]


def test_the_default_tiling_is_a_case_of_its_own() -> None:
    """Each convolution of D3 has a second case with the default tiling, which has its own measurement.

    The second case is fitted if and only if the first case is fitted.
    """
    cases = [one.case(GEMMINI.values()) for one in prepare(FILES)]
    own = {case.identity.removesuffix(" default"): case for case in cases if case.part == "D3 default tiling"}
    mapped = {case.identity: case for case in cases if case.part == "D3 conv"}
    assert own.keys() == mapped.keys()
    assert all(own[name].fitted == mapped[name].fitted for name in own)
    assert all(own[name].measured != mapped[name].measured for name in own)


def test_the_sample_is_readable_without_compression_too(tmp_path: Any) -> None:
    """A gzipped file gives the same rows as a plain one."""
    packed = tmp_path / "sample.jsonl.gz"
    packed.write_bytes(gzip.compress(FILES[0].read_bytes()))
    assert read_rows([packed], COLUMNS) == [json.loads(line) for line in FILES[0].read_text().splitlines()]
