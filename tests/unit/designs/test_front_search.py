"""Complete fronts: equal to those of all designs, and independent of interruptions and processes."""

from pathlib import Path
from typing import Any

import pandas
import pytest
from tilewright.base.errors import InputError
from tilewright.designs import front_search
from tilewright.designs.answer import Answer, answer_of
from tilewright.designs.explore import explored
from tilewright.designs.front_search import CompleteFront
from tilewright.designs.space_reader import read_space

from tests.unit.designs.front_cases import NETWORKS, front_space, write_space

WORDS = {"networks": {"two": NETWORKS["two"]}}
CASES: dict[str, dict[str, Any]] = {
    "two networks": {},
    "energy": {**WORDS, "objectives": ["energy_pj", "latency_cycles"], "options": {"objective": "energy"}},
    "constraints": {**WORDS, "constraints": ["latency_cycles <= 3000", "rows * word_bits <= 2048", "area_mm2 <= 0.3"]},
    "one objective": {**WORDS, "objectives": ["edp_pj_cycles"]},
    "reference profile": {**WORDS, "options": {"model": "zigzag-3.9.1", "objective": "latency", "lpf_limit": 4}},
}


def nothing(_: int) -> None:
    """Ignore progress."""


def found(path: Path, folder: Path, jobs: int = 1) -> CompleteFront:
    """Return the fronts of a space in a folder."""
    space = read_space(path)
    front_search.make_parts(path, space, folder, jobs, nothing)
    return front_search.front_of_folder(path, space, folder, folder / "certificate.parquet", jobs, nothing)


def members(answer: Answer) -> list[list[dict[str, Any]]]:
    """Return the designs of each front with all their values."""
    return [front.members.drop(columns=["dominated_by"]).to_dict("records") for front in answer.fronts]


@pytest.mark.parametrize("case", CASES)
def test_fronts_are_those_of_all_designs(case: str, tmp_path: Path) -> None:
    """Complete fronts equal those of all designs, and the certificate has the numbers of each design alone."""
    path = write_space(tmp_path, **CASES[case])
    complete, exhaustive = found(path, tmp_path / "front"), answer_of(explored(path, read_space(path), 1, nothing))
    assert members(answer_of(complete.exploration)) == members(exhaustive)
    assert any(members(exhaustive)), "the front has no designs to compare"
    assert exhaustive.design_count == answer_of(complete.exploration).design_count
    table, rows = complete.certificate.table, exhaustive.exploration.table
    for number, network in enumerate(exhaustive.exploration.networks):
        own = rows[rows["network"] == network].reset_index(drop=True)
        assert own["index"].tolist() == table["index"].tolist()
        assert own["status"].tolist() == table[f"status_{number}"].tolist()
        for column in ("energy_pj", "latency_cycles"):
            kind, _, unit = column.partition("_")
            claimed, costs = table[f"{kind}_{number}_{unit}"], own[column]
            pandas.testing.assert_series_equal(claimed, costs, check_exact=True, check_names=False)


def test_an_interruption_loses_nothing_and_changes_nothing(tmp_path: Path) -> None:
    """Finished parts are used again after an interruption, damaged ones made again; other options replace all."""
    path = write_space(tmp_path, **WORDS)
    whole = tmp_path / "whole"
    expected = found(path, whole).certificate.table
    files = {str(file.relative_to(whole)): file.read_bytes() for file in whole.rglob("*.parquet")}
    kept = (whole / "costs" / "00000.parquet").stat().st_mtime_ns
    assert found(path, whole).certificate.table.equals(expected)
    assert (whole / "costs" / "00000.parquet").stat().st_mtime_ns == kept, "up-to-date costs were made again"
    (whole / "costs" / "00000.parquet").write_bytes(b"PAR1")
    (whole / "certificate.parquet").unlink()
    with pytest.raises(InputError, match="missing or out of date"):
        front_search.front_of_folder(path, read_space(path), whole, whole / "certificate.parquet", 1, nothing)
    assert found(path, whole).certificate.table.equals(expected)
    assert {str(file.relative_to(whole)): file.read_bytes() for file in whole.rglob("*.parquet")} == files
    changed = write_space(tmp_path, **WORDS, options={"objective": "latency", "lpf_limit": 3})
    found(changed, whole)
    for name in ("certificate.parquet", "costs/00000.parquet"):
        assert (whole / name).read_bytes() != files[name]


def test_processes_change_nothing(tmp_path: Path) -> None:
    """One process and two processes write the same bytes."""
    path = write_space(tmp_path, **WORDS)
    for jobs in (1, 2):
        found(path, tmp_path / str(jobs), jobs)
    for name in ("certificate.parquet", "costs/00000.parquet"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


def test_what_has_no_families_is_refused(tmp_path: Path) -> None:
    """Spaces with another search engine, or with a missing area, are refused."""
    path = write_space(tmp_path, options={"temporal_mapping_search_engine": "salsa"})
    with pytest.raises(InputError, match="which only one search engine computes"):
        found(path, tmp_path / "salsa")
    laws = {key: law for key, law in front_space()["laws"].items() if key != "memories.sram.area"}
    axes = front_space()["axes"] | {"area": {"path": "memories.sram.area", "values": [0, 1]}}
    path = write_space(tmp_path, **WORDS, laws=laws, axes=axes)
    with pytest.raises(InputError, match="the area of a component is not given"):
        found(path, tmp_path / "area")
