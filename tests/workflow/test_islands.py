"""`islands` of a run: each round of each island is a job, and all jobs together equal the search of one process."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tilewright.cli.main import main

from tests.workflow.conftest import Project
from tests.workflow.killing import LONGEST_WAIT_S, running, wait_for_verb
from tests.workflow.multi_projects import RUN
from tests.workflow.test_plan import PLAN, searching

pytestmark = pytest.mark.slow

ISLANDS = "    islands: 2\n    island_rounds: 2"
STATES = ["1.1", "1.2", "2.1", "2.2", "opening"]
FILES = ("fusion.json", "fusion.csv", "fusion.html", "mapping.yaml")


def with_islands(root: Path, edit: Callable[[Path, str, str], None]) -> Project:
    """The tiny project of two cores, whose plan two islands search, before its first run."""
    project = searching(root, edit)
    edit(root / "config/config.yaml", "nb_plans: 14", f"nb_plans: 70\n{ISLANDS}")
    return project


def test_a_killed_island_comes_back(tmp_path: Path, edit: Callable[[Path, str, str], None]) -> None:
    """The islands alone run again after a kill: the finished opening of the search is kept.

    The results have the same bytes from one job at a time, and from one `fuse` process without jobs. If the file of one
    island is lost, only this file is made again, with the same bytes.
    """
    killed = with_islands(tmp_path / "killed", edit)
    (killed.root / "profiles").symlink_to("workflow/profiles")
    opening = killed.root / PLAN / "islands/opening.json"
    with running(killed) as process:
        wait_for_verb(process, "fuse").wait(LONGEST_WAIT_S)
        assert opening.exists()
        wait_for_verb(process, "fuse").send_signal(signal.SIGKILL)
        process.wait(LONGEST_WAIT_S)
        assert process.returncode == 1
    made_at = opening.stat().st_mtime_ns
    killed.run(f"{PLAN}/fusion.json")
    assert opening.stat().st_mtime_ns == made_at
    assert sorted(path.stem for path in opening.parent.glob("*.json")) == STATES

    alone = with_islands(tmp_path / "alone", edit)
    jobs = [job for job in alone.would_run() if job.startswith("fuse")]
    assert jobs == [*[f"fuse_island_multi {RUN}"] * len(STATES), f"fuse_multi {RUN}"]
    alone.run(f"{PLAN}/fusion.json", cores=1)
    for name in (*FILES, *(f"islands/{part}.json" for part in STATES)):
        assert (alone.root / PLAN / name).read_bytes() == (killed.root / PLAN / name).read_bytes(), name

    results, out = alone.root / "results", tmp_path / "out"
    files = ["--hardware", str(results / "hardware/duo/accelerator.json")]
    files += ["--workload", str(next(results.glob("workload/*/*/workload.json")))]
    files += ["--mapping", str(next(results.glob("mapping/**/mapping.json")))]
    effort = ["--nb-plans", "70", "--islands", "2", "--island-rounds", "2", "--lpf-limit", "4"]
    effort += ["--fusion-time-budget-s", "none", "--jobs", "1", "--no-run"]
    assert main(["fuse", *files, *effort, "-o", str(out)]) == 0
    for name in FILES:
        assert (out / name).read_bytes() == (alone.root / PLAN / name).read_bytes(), name

    (alone.root / PLAN / "islands/2.1.json").unlink()
    assert [job for job in alone.would_run() if job.startswith("fuse_island")] == [f"fuse_island_multi {RUN}"]
    alone.run(f"{PLAN}/fusion.json")
    name = "islands/2.1.json"
    assert (alone.root / PLAN / name).read_bytes() == (killed.root / PLAN / name).read_bytes()
