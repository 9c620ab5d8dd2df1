"""Gemmini in the court: the reading agrees with what the set says of its rows, and the bound is none that is broken."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.gemmini import COLUMNS, GEMMINI, prepare
from tilewright_evidence.court.gemmini_reading import (
    array_cycles,
    calls_of,
    gemmini_core,
    row_traffic,
    served_from,
    work_of,
)
from tilewright_evidence.court.rows import read_rows

FILES = set_files(DATA / GEMMINI.name, GEMMINI.patterns)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    """The rows of the sample."""
    return read_rows(FILES, COLUMNS)


def convolutions(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those whose tiles the driver does not round."""
    return (row for row in rows if row["kind"] == "conv")


def test_calls_are_those_that_the_set_counts(rows: list[dict[str, Any]]) -> None:
    """The tiles of the reading are as many as the program issued."""
    for row in convolutions(rows):
        assert sum(call.count for call in calls_of(work_of(row))) == row["accelerator_calls"], row["id"]


def test_the_array_does_all_multiply_accumulates(rows: list[dict[str, Any]]) -> None:
    """Blocks of channels cover what was executed: array cycles times multipliers are at least its operations."""
    for row in convolutions(rows):
        cycles = sum(call.count * call.bound_cycles[0] for call in calls_of(work_of(row)))
        assert cycles == row["array_bound_cycles"], row["id"]
        assert cycles * row["array"] ** 2 >= row["executed_macs"]


def test_no_measurement_is_below_the_bound() -> None:
    """Acceptance: nothing is faster than possible; and the estimate is never below the bound either."""
    for prepared in prepare(FILES):
        case = prepared.case(GEMMINI.values())
        assert not case.breaks_bound
        assert case.estimate >= 0.999 * case.bound or case.part.startswith("D4 matmul")


@pytest.mark.parametrize(
    ("total", "tile", "beats", "lines"),
    [(64, 64, 4, 1), (36, 36, 3.5, 36 / 64), (512, 16, 1, 1), (720, 64, 50.5 / 12, 20.25 / 12)],
)
def test_rows_are_fetched_in_aligned_requests(total: int, tile: int, beats: float, lines: float) -> None:
    """A row of 64 bytes is one request of 4 beats; one of 36 bytes begins anywhere and takes more than its 3 beats."""
    found = row_traffic(total, tile, 64)
    assert (found.beats, found.lines) == pytest.approx((beats, lines))


def test_a_load_comes_from_where_it_was_left() -> None:
    """Two iterations of a loop that does not concern the weights: the second finds them in L2, LLC or DRAM."""
    relevant = frozenset("K")
    for footprint, llc, dram in ((1000, 0, 0), (10**6, 0.5, 0), (10**7, 0, 0.5)):
        served = served_from(relevant, [("OX", 2)], [footprint], 0)
        assert (served.llc, served.dram) == (llc, dram)


def test_the_cost_model_has_the_weights_wait_for_the_array() -> None:
    """A block of weights takes as many cycles as the array has rows, also where fewer pixels use it."""
    few = array_cycles(16, (1, 64, 64, 1, 4, 3, 3), 1)
    assert few == pytest.approx(16 * 4 * 4 * 9, rel=0.03)
    assert array_cycles(16, (1, 64, 64, 4, 16, 3, 3), 1) == 64 * 4 * 4 * 9
    assert gemmini_core(4).operational_array.size_of == {"D1": 4, "D2": 4}


def test_the_default_tiling_is_a_case_of_its_own() -> None:
    """Each convolution of D3 a second time, never fitted, with the other measurement."""
    cases = [one.case(GEMMINI.values()) for one in prepare(FILES)]
    own = {case.identity.removesuffix(" default"): case for case in cases if case.part == "D3 default tiling"}
    mapped = {case.identity: case for case in cases if case.part == "D3 conv"}
    assert own.keys() == mapped.keys()
    assert not any(case.fitted for case in own.values())
    assert all(own[name].measured != mapped[name].measured for name in own)


def test_the_sample_is_readable_without_compression_too(tmp_path: Any) -> None:
    """A gzipped file gives the same rows."""
    packed = tmp_path / "sample.jsonl.gz"
    packed.write_bytes(gzip.compress(FILES[0].read_bytes()))
    assert read_rows([packed], COLUMNS) == [json.loads(line) for line in FILES[0].read_text().splitlines()]
