"""Design spaces with a failed or killed shard: the answer covers the finished designs and says so."""

import shutil
from pathlib import Path

import pandas
import pytest

from tests.workflow.conftest import Project
from tests.workflow.killing import check_whole, finish, kill_tree, running, wait_for_verb
from tests.workflow.test_explore import explored, write  # noqa: F401  a fixture
from tests.workflow.test_run_script import run_script

pytestmark = pytest.mark.slow

FOLDER = Path("results/space/lanes")
MISSING = "Not evaluated yet: 2 designs. This answer covers only the evaluated designs."


def failing(project: Project, log: str) -> Path:
    """Make the job with this log fail, because a folder is in the place of the log; returns the folder.

    The folder is not empty, because Snakemake removes empty ones before a job.
    """
    blocking = project.root / "logs" / log
    blocking.unlink()
    blocking.mkdir()
    (blocking / "in_the_way").touch()
    return blocking


def test_a_failed_shard_leaves_the_others(explored: Project) -> None:  # noqa: F811
    """The answer covers the evaluated designs of the present space if a shard fails.

    Page, tables and terminal say that others are missing, and no result from before the change is shown. After a
    further run, all designs are there.
    """
    assert run_script(explored).returncode == 0
    folder = explored.root / FOLDER
    before = pandas.read_csv(folder / "space.csv")
    write(explored, most=99999)
    file = explored.root / "config" / "space" / "lanes.yaml"
    file.write_text(file.read_text().replace("[30, 50]", "[31, 50]"))
    blocking = failing(explored, "space/lanes.00001.log")
    for _ in range(2):
        done = run_script(explored)
        assert done.returncode == 1
        assert "explore.html, of some designs alone" in done.stdout
        after = pandas.read_csv(folder / "space.csv")
        assert after["index"].tolist() == [0, 1]
        assert after["energy_pj"][0] != before["energy_pj"][0]
        assert MISSING in (folder / "explore.html").read_text()
        assert MISSING in pandas.read_csv(folder / "front.csv")["assumes"][0]
    shutil.rmtree(blocking)
    done = run_script(explored)
    assert done.returncode == 0, done.stderr
    assert "of some designs" not in done.stdout
    assert pandas.read_csv(folder / "space.csv")["index"].tolist() == [0, 1, 2, 3]
    assert MISSING not in (folder / "explore.html").read_text()


def test_a_complete_front_is_of_all_designs(explored: Project) -> None:  # noqa: F811
    """The terminal names the page of a complete front after a run, and the report includes it.

    If the costs of the front fail, the page from before stays and is reported as such.
    """
    page = "complete front: results/front/lanes/front.html"
    (explored.root / "config" / "config.yaml").write_text("fronts: [lanes]\n")
    done = run_script(explored)
    assert done.returncode == 0, done.stderr
    assert page in done.stdout.splitlines()
    report = explored.root / "results" / "report.html"
    assert "Complete fronts" in report.read_text()
    write(explored, "2, 4, 8")
    blocking = failing(explored, "front/lanes.00000.log")
    done = run_script(explored)
    assert done.returncode == 1
    assert f"{page}, not made again" in done.stdout.splitlines()
    assert "making" not in done.stdout
    shutil.rmtree(blocking)
    done = run_script(explored)
    assert done.returncode == 0, done.stderr
    assert page in done.stdout.splitlines()
    assert "making results/report.html" in done.stdout


def test_two_configurations_have_answers_of_their_own(explored: Project) -> None:  # noqa: F811
    """Two configurations have their own answers, even for spaces with equal names."""
    (explored.root / "other").mkdir()
    space = (explored.root / "config" / "space" / "lanes.yaml").read_text()
    other = space.replace("../", "../config/").replace("[30, 50]", "[70]")
    (explored.root / "other" / "lanes.yaml").write_text(other)
    (explored.root / "mine.yaml").write_text("spaces: [other/lanes.yaml]\n")
    assert run_script(explored).returncode == 0
    first = (explored.root / FOLDER / "space.csv").read_bytes()
    done = run_script(explored, config="mine.yaml")
    assert done.returncode == 0, done.stderr
    own = explored.root / "results" / "configurations" / "mine" / "space" / "lanes"
    assert len(pandas.read_csv(own / "space.csv")) == 2
    assert (explored.root / FOLDER / "space.csv").read_bytes() == first
    assert "results/configurations/mine/space/lanes/explore.html" in done.stdout


def test_a_killed_run_goes_on(explored: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """A run that is killed twice during `explore` and then finished has the bytes of an undisturbed run."""
    undisturbed = explored.copy(tmp_path / "undisturbed")
    undisturbed.run()
    (explored.root / "profiles").symlink_to("workflow/profiles")
    for _ in range(2):
        with running(explored) as process:
            wait_for_verb(process, "explore")
            kill_tree(process)
        check_whole(explored, monkeypatch)
    assert "did not end; what it finished is kept" in finish(explored)
    assert explored.artifacts() == undisturbed.artifacts()
