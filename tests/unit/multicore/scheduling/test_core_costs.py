"""The file with the cost table of one core."""

from pathlib import Path

import pytest
from tilewright.base.errors import ArtifactError
from tilewright.multicore.scheduling.core_costs import CoreCostRow, Stream, read_core_costs, write_core_costs

RUNS = CoreCostRow(
    cost_class=0,
    ideal_cycles=10,
    total0_cycles=12,
    total1_cycles=20,
    total2_cycles=21,
    on_core_energy_pj=7.25,
    operational_energy_pj=3.0,
    memory_energy_pj=(("rf", 1.25), ("sram", 3.0)),
    spatial_utilisation=0.5,
    streams=(Stream("I2", 4096, 64),),
    mapping={"loop_order": [["K", 2]]},
    what="Conv K 4",
    layers=(0, 2),
    cn_count=3,
)
CANNOT = CoreCostRow(1, "runs pooling, not Conv")


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    """Rows are read as written, even rows of CNs that the core cannot run; equal rows give equal bytes."""
    path = tmp_path / "core.jsonl"
    digest = write_core_costs(path, [RUNS, CANNOT], {"code": "x"})
    assert read_core_costs(path) == (RUNS, CANNOT)
    written = path.read_bytes()
    assert write_core_costs(path, read_core_costs(path), {"code": "x"}) == digest
    assert path.read_bytes() == written


def test_utilisation_is_of_the_time_with_on_loading() -> None:
    """Utilisation is 10 of 20 cycles, on-loading included, and 0 where the core cannot run the class."""
    assert RUNS.can_run
    assert RUNS.utilisation == 0.5
    assert not CANNOT.can_run
    assert CANNOT.utilisation == 0


@pytest.mark.parametrize("rows", [[CANNOT], [CANNOT, RUNS], [RUNS, RUNS]], ids=["gap", "order", "twice"])
def test_rows_that_are_not_one_for_each_class_are_refused(rows: list[CoreCostRow], tmp_path: Path) -> None:
    """A table whose rows are not one for each class, in order, is refused."""
    path = tmp_path / "core.jsonl"
    write_core_costs(path, rows, {})
    with pytest.raises(ArtifactError, match="in order"):
        read_core_costs(path)


def test_missing_and_damaged_tables_are_told(tmp_path: Path) -> None:
    """A missing and a damaged table raise ArtifactError."""
    path = tmp_path / "core.jsonl"
    with pytest.raises(ArtifactError, match="no such artifact"):
        read_core_costs(path)
    write_core_costs(path, [RUNS], {})
    path.write_text(path.read_text().replace('"total1_cycles":20', '"total1_cycles":19'))
    with pytest.raises(ArtifactError, match="damaged"):
        read_core_costs(path)
