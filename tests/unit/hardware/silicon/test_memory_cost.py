"""Costs of SRAM from CACTI: exact in the table, by the law near the table, refused far from the table."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.hardware.silicon.library import CACTI, FILLED, PLAIN, ZIGZAG_CALL, rows, sram_table
from tilewright.hardware.silicon.memory_cost import (
    CELLS,
    LAW,
    MemoryShape,
    NoCostError,
    known_nodes,
    node_factors,
    sram_cost,
    sram_memory,
    zigzag_cost,
)
from tilewright.hardware.silicon.sram_law import errors, filled_text, fitted

DOCS = Path(__file__).resolve().parents[4] / "docs"
CELL_NAME = {cells: name for name, cells in CELLS.items()}
FIGURES = ("read_energy_pj", "write_energy_pj", "leakage_mw", "area_mm2", "access_time_ns")


def test_what_is_in_the_table_is_exact() -> None:
    """Each memory of the table has exactly the figures of its row."""
    for row in rows(CACTI):
        size, width = int(row["size_bytes"]) * 8, int(row["width_bits"])
        is_call = row["setup"] == ZIGZAG_CALL
        cells = CELL_NAME[row["cell_type"]]
        found = zigzag_cost(size, width) if is_call else sram_cost(size, width, float(row["node_nm"]), cells)
        assert found.is_in_table
        assert {name: getattr(found, name) for name in FIGURES} == {name: float(row[name]) for name in FIGURES}


def test_a_memory_that_is_smaller_with_wider_words_says_so() -> None:
    """A remark names both areas if a word of twice the width makes the memory at least 2 % smaller.
    The test compares all pairs of memories in the table that differ only in this width.
    """
    areas = {
        (float(row["node_nm"]), CELL_NAME[row["cell_type"]], int(row["size_bytes"]) * 8, int(row["width_bits"])): float(
            row["area_mm2"]
        )
        for row in rows(CACTI)
        if row["setup"] == PLAIN
    }
    found = {True: 0, False: 0}
    for (node, cells, size, width), area in areas.items():
        wider = areas.get((node, cells, size, 2 * width))
        if wider is None:
            continue
        remarks = sram_memory(MemoryShape(size, width, width), node, cells).remarks
        told = [one for one in remarks if f"{wider:.4g} instead of {area:.4g} mm2" in one]
        assert bool(told) == (wider <= 0.98 * area), (node, cells, size, width)
        found[bool(told)] += 1
    assert min(found.values()) > 10


def test_the_specification_of_zigzag_has_these() -> None:
    """The two examples in the specification of ZigZag have the energies and areas of the table."""
    found = zigzag_cost(65536, 64)
    assert (found.read_energy_pj, found.write_energy_pj, found.area_mm2) == (2.19637, 2.4641, 0.0146812)
    found = zigzag_cost(1024, 8)
    assert (found.read_energy_pj, found.write_energy_pj, found.area_mm2) == (0.0739625, 0.0996867, 0.000309137)


def test_the_filled_table_is_what_the_law_says() -> None:
    """The filled table has the figures of the law to within 0.01 %, and shares no memory with the table of CACTI."""
    made = list(csv.DictReader(io.StringIO(filled_text())))
    kept = rows(FILLED)
    places = [[row[name] for name in ("setup", "node_nm", "cell_type", "size_bytes", "width_bits")] for row in kept]
    assert places == [
        [row[name] for name in ("setup", "node_nm", "cell_type", "size_bytes", "width_bits")] for row in made
    ]
    figures = np.array([[[float(row[name]) for name in FIGURES] for row in table] for table in (made, kept)])
    assert np.allclose(figures[0], figures[1], rtol=1e-4)
    for group, found in sram_table(CACTI).items():
        assert not set(found) & set(sram_table(FILLED)[group])


def test_what_the_law_misses_is_what_the_page_says() -> None:
    """The median error of the law is below 5 % for a memory left out of the fit; docs/costs.md states each error."""
    law = fitted()
    page = (DOCS / "costs.md").read_text(encoding="utf-8")
    words = {"": "one at a time", "size_bytes": "a whole size", "width_bits": "a whole width"}
    for setup in (PLAIN, ZIGZAG_CALL):
        for whole, told in words.items():
            missed = errors(law, setup, whole)[:, :5] * 100
            cells = [f"{np.median(column):.1f} % ({np.quantile(column, 0.9):.0f} %)" for column in missed.T]
            assert f"| `{setup}` | {told} | {len(missed)} | {' | '.join(cells)} |" in page
            assert whole or (np.median(missed, axis=0) < 5).all()


def test_leaving_out_at_once_is_fitting_again() -> None:
    """The fast formula for the error of a left-out memory agrees with a fit without this memory."""
    law = fitted()
    rest = type(law)(law.places[1:], law.figures[1:])
    (predicted,) = rest.predict(law.places[:1])
    missed = np.abs(np.array(predicted) / np.array(law.figures[0]) - 1)
    assert np.allclose(law.left_out([[0]])[0], missed, atol=1e-5)


@given(
    size=st.integers(512 * 8, 4 * 2**23),
    width=st.integers(16, 128),
    node=st.sampled_from([22, 28, 45, 65]),
    cells=st.sampled_from(["hp", "lstp"]),
)
def test_between_memories_costs_are_between_theirs(size: int, width: int, node: int, cells: str) -> None:
    """The read energy of a memory between grid points lies between the energies of the surrounding grid points."""
    if size / width < 32:
        return
    found = sram_cost(size, width, node, cells)
    assert min(getattr(found, name) for name in FIGURES) > 0
    assert found.steps
    sizes = {2 ** int(np.floor(np.log2(size))), 2 ** int(np.ceil(np.log2(size)))}
    widths = {2 ** int(np.floor(np.log2(width))), 2 ** int(np.ceil(np.log2(width)))}
    if all(a / b >= 32 for a in sizes for b in widths):
        nodes = (22, 32) if node == 28 else (node,)
        corners = [sram_cost(a, b, n, cells).read_energy_pj for a in sizes for b in widths for n in nodes]
        assert min(corners) * 0.9999 <= found.read_energy_pj <= max(corners) * 1.0001


@pytest.mark.parametrize(
    ("size", "width", "node", "words"),
    [
        (2**12, 256, 22, "16 words of 256 bits"),
        (2**10, 16, 22, "a size of 128 bytes is too far"),
        (2**27, 64, 22, "a size of 16,777,216 bytes"),
        (2**24, 2048, 22, "a word of 2,048 bits is too far"),
        (2**19, 64, 5, "no scaling law covers 5 nm"),
    ],
)
def test_what_is_too_far_is_refused(size: int, width: int, node: float, words: str) -> None:
    """The library refuses SRAMs with too few words, sizes or widths more than twice beyond the table, or unknown nodes.

    A node is unknown if no scaling law covers it.
    """
    with pytest.raises(NoCostError) as raised:
        sram_cost(size, width, node, "hp")
    assert words[:20] in raised.value.message
    assert raised.value.allowed


def test_a_little_beyond_the_table_is_told() -> None:
    """The listed steps of a memory that is slightly larger than the table covers mention the extrapolation."""
    assert any("beyond the table" in step for step in sram_cost(2**26, 64, 22, "hp").steps)


def test_other_nodes_follow_a_named_law() -> None:
    """A node that CACTI lacks takes the figures of the nearest node, scaled by a law; its leakage is unknown."""
    here, there = sram_cost(2**19, 64, 22, "hp"), sram_cost(2**19, 64, 7, "hp")
    assert there.read_energy_pj == pytest.approx(here.read_energy_pj * node_factors(22, 7).energy, rel=1e-5)
    assert there.leakage_mw is None
    assert "Stillmaker and Baas 2017" in there.steps[-1]


def test_scaling_is_there_and_back() -> None:
    """Scaling to a node and back gives the factor 1, and smaller nodes need less energy."""
    smallest, largest = known_nodes()
    for node in (smallest, 8.0, 22.0, 28.0, 40.0, 100.0, largest):
        back = np.array(node_factors(45, node)) * np.array(node_factors(node, 45))
        assert np.allclose(back, 1)
    energies = [node_factors(45, node).energy for node in (7, 10, 14, 16, 20, 32, 45, 65, 90, 130, 180)]
    assert energies == sorted(energies)


@pytest.mark.parametrize(
    ("kib", "width", "node", "remarks"),
    [
        (32, 64, 22, ()),
        (48, 64, 22, ("figures are interpolated",)),
        (32, 64, 28, ("figures are interpolated",)),
        (32, 1024, 22, ("figures are extrapolated",)),
        (48, 1024, 22, ("figures are extrapolated",)),
        (32, 64, 16, (LAW,)),
        (48, 64, 16, (LAW, "figures are interpolated")),
    ],
)
def test_remarks_name_one_origin(kib: int, width: int, node: float, remarks: tuple[str, ...]) -> None:
    """Remarks call figures interpolated or extrapolated, never both; a remark on scaling can be added."""
    told = sram_memory(MemoryShape(kib * 8192, width, width), node, "hp").remarks
    found = [one for one in told if not one.startswith("with words of")]
    assert len(found) == len(remarks)
    for words in remarks:
        assert sum(words in one for one in found) == 1


def test_a_size_that_is_refused_has_the_factor() -> None:
    """The message about a word that is too wide names the limits of the table, and the limits of the extrapolation."""
    with pytest.raises(NoCostError) as raised:
        sram_cost(32 * 8192, 1280, 22, "hp")
    assert raised.value.message == "a word of 1,280 bits is too far outside the table, which has 16 to 512"
    assert raised.value.allowed == "8 to 1,024 bits: costs are extrapolated to 2 times the table"
