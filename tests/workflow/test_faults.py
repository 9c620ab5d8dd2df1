"""A small part of the fault benchmarks: histories of edits must end like a fresh clone; flipped bits are noticed."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.clones import PROJECT, Clone
from benchmarks.fault_histories import Histories
from benchmarks.fault_steps import (
    Step,
    checkout_older,
    cut_file,
    delete_snakemake,
    edit_module_unseen,
    flip_bit,
    make_run,
    set_clock_back,
)
from benchmarks.faults import try_flips
from benchmarks.forked_python import ForkedPython
from tests.workflow.conftest import Project


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Histories]:
    """Histories of a tiny project that has run once."""
    folder = tmp_path_factory.mktemp("histories")
    with ForkedPython(folder / "forked", Clone(PROJECT).environment()) as forked:
        yield Histories(folder / "clones", forked, has_foreign=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "steps"),
    [(1, (edit_module_unseen, make_run, checkout_older)), (2, (flip_bit, cut_file, set_clock_back, delete_snakemake))],
)
def test_a_history_ends_as_a_fresh_clone(histories: Histories, seed: int, steps: tuple[Step, ...]) -> None:
    """A history of edits ends like a fresh clone; `benchmarks/faults.py histories` draws hundreds."""
    outcome = histories.run(seed, steps)
    assert outcome.steps == tuple(step.__name__ for step in steps)
    assert not outcome.refusal
    assert outcome.differing == ()


@pytest.mark.slow
def test_flipped_bits_are_noticed(project: Project, tmp_path: Path) -> None:
    """Flipped bits are noticed; `benchmarks/faults.py flips` flips 2,000, also in compiled code."""
    caches = tmp_path / "caches"
    for file in sorted((PROJECT / ".cache" / "kernels").glob("*/*.o"))[:2]:
        copy = caches / file.relative_to(PROJECT / ".cache")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, copy)
        os.chmod(copy, 0o644)
    before = project.artifacts()
    found = try_flips(project.root / "results", caches, 30, seed=1)
    assert not found.missed
    assert found.noticed.total() > 25
    assert project.artifacts() == before
