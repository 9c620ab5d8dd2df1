"""Inputs of an audited run, by the manifest of the results or by the user's options."""

from pathlib import Path

import pytest
from tilewright.base.artifacts.manifest import ResultsLedger, Unit, read_order
from tilewright.base.errors import InputError
from tilewright.cli.auditing.inputs import changed, first_of, named_by_manifest
from tilewright.cli.described_run import HARDWARE, MAPPING, WORKLOAD

DESCRIBED = ("hardware/duo/accelerator", "workload/net/corrected/workload")
PLAN, OPEN = "multi/fused/plan/fuse", "mapping/open/mapping"
UNITS = {
    DESCRIBED[0]: (("hardware/duo/accelerator.json",), ()),
    DESCRIBED[1]: (("workload/net/corrected/workload.json", "workload/net/corrected/coverage.json"), ()),
    OPEN: (("mapping/open/mapping.json",), ()),
    PLAN: (("multi/fused/plan/fusion.json", "multi/fused/plan/mapping.yaml"), (*DESCRIBED, OPEN)),
    "multi/fused/allocate": (("multi/fused/allocation.json", "multi/fused/mapping.yaml"), (*DESCRIBED, PLAN)),
    "multi/fused/schedule": (("multi/fused/schedule.npz",), (*DESCRIBED, PLAN, "multi/fused/allocate")),
    "multi/alone/schedule": (("multi/alone/schedule.npz",), (*DESCRIBED, OPEN, PLAN)),
}
"""Maps a unit to its files and the units that it reads."""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Return a run by a plan and the layer-by-layer run with which it is compared."""
    made = {name: Unit(name, files, {"code": str}, needs) for name, (files, needs) in UNITS.items()}
    ledger = ResultsLedger(tmp_path, made)
    for name, (files, _) in UNITS.items():
        for file in files:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(file)
        read_order(ledger.order(name)).record()
    return tmp_path


@pytest.mark.parametrize(
    ("run", "mapping"), [("fused", "multi/fused/plan/mapping.yaml"), ("alone", "mapping/open/mapping.json")]
)
def test_the_manifest_names_what_a_run_read(results: Path, run: str, mapping: str) -> None:
    """The manifest names the inputs of a run.

    A run by a plan read the mapping file of the plan, not the one that its allocation wrote. The layer-by-layer run
    read the configured mapping file, although it needs the plan's settings.
    """
    assert named_by_manifest(results / "multi" / run, "schedule") == {
        HARDWARE: results / "hardware/duo/accelerator.json",
        WORKLOAD: results / "workload/net/corrected/workload.json",
        MAPPING: results / mapping,
    }
    assert named_by_manifest(results / "multi" / run, "map") == {}


def test_without_a_manifest_nothing_is_named(tmp_path: Path) -> None:
    """A folder without a manifest names no inputs."""
    assert named_by_manifest(tmp_path, "map") == {}


def test_what_a_person_names_counts_if_it_is_of_the_run() -> None:
    """A named file counts if its digest is that of the run; otherwise the first other existing file counts."""
    named, other = Path("named"), Path("other")
    digests = {named: "a", other: "b"}
    assert first_of(named, digests.__getitem__, "a", lambda: other) == named
    assert first_of(named, digests.__getitem__, "b", lambda: None, lambda: other) == other
    assert first_of(named, digests.__getitem__, "b", lambda: None) == named
    assert first_of(None, digests.__getitem__, "b", lambda: None) is None

    def wrong(path: Path) -> str:
        raise InputError("no hardware")

    assert first_of(named, wrong, "b", lambda: other) == named


def test_inputs_with_another_digest_are_told() -> None:
    """The message about a changed input has both digests and the file."""
    stated, now = {"hardware": "a", "mapping": "b"}, {"hardware": "c", "mapping": "b"}
    assert changed(stated, now, {"hardware": "core.yaml"}) == [
        "its hardware has changed since the result was made, or is another file: core.yaml has the digest c, but"
        " the result records a"
    ]
