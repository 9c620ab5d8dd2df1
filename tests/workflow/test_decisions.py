"""Decisions on designs, and tables and figures of design spaces for a paper, in the workflow."""

import shutil
from pathlib import Path

import pytest
import tilewright
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import load_yaml
from tilewright.cli.config import plan_of

from tests.workflow.conftest import Project
from tests.workflow.test_explore import explored, write  # noqa: F401  a fixture
from tests.workflow.test_explore_failures import FOLDER, failing
from tests.workflow.test_run_script import run_script

pytestmark = pytest.mark.slow

DECISION = ("decision.md", "decision.html")
FOR_PAPER = (
    "front-column.tex",
    "front.md",
    "space-column.tex",
    "front-two_layers-column.pdf",
    "front-two_layers-column.csv",
)


def configure(project: Project, *lines: str) -> None:
    """Write a configuration of the space, with more keys at the top."""
    (project.root / "config" / "config.yaml").write_text("\n".join(("spaces: [lanes]", *lines)) + "\n")


def rules(project: Project) -> list[str]:
    """The names of the rules that would run."""
    return [job.split()[0] for job in project.would_run()]


def test_a_decision_follows_its_designs(explored: Project, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """The decision has the bytes of the command. Another objective reruns one job; another constraint reruns two."""
    configure(explored, "decide: energy")
    explored.run()
    folder = explored.root / FOLDER
    made = {name: (folder / name).read_bytes() for name in DECISION}
    assert b"least energy" in made["decision.md"]
    assert not (folder / "decision-table.csv").exists()
    assert rules(explored) == []
    monkeypatch.chdir(explored.root)
    tilewright.decide(FOLDER, "energy", space=Path("config/space/lanes.yaml"), jobs=1)
    assert {name: (folder / name).read_bytes() for name in DECISION} == made
    configure(explored, "decide: latency")
    assert rules(explored) == ["decide"]
    explored.run()
    assert b"least latency" in (folder / "decision.md").read_bytes()
    write(explored, most=5000)
    assert rules(explored) == ["answer", "decide"]
    configure(explored)
    assert rules(explored) == ["answer"]
    explored.run()
    assert not (folder / "decision.html").exists(), "a decision on designs of before"


def test_paper_reaches_spaces_fronts_and_decisions(explored: Project) -> None:  # noqa: F811
    """`paper` adds files to spaces, fronts and decisions without new shards; without the key, they are removed."""
    configure(explored, "fronts: [lanes]", "decide: EDP")
    explored.run()
    folder, front = explored.root / FOLDER, explored.root / "results" / "front" / "lanes"
    plain = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    configure(explored, "fronts: [lanes]", "decide: EDP", "paper: column")
    assert rules(explored) == ["answer", "decide", "front"]
    explored.run()
    assert rules(explored) == []
    assert all((folder / name).is_file() for name in FOR_PAPER)
    assert (front / "front-column.tex").read_text().startswith("% 3.4 inches wide")
    assert (folder / "decision-table-column.tex").read_text().startswith("% 3.4 inches wide")
    configure(explored, "fronts: [lanes]", "decide: EDP", "paper: page")
    explored.run()
    assert (folder / "front-page.tex").read_text().startswith("% 7 inches wide")
    assert not (folder / FOR_PAPER[-1]).exists()
    configure(explored, "fronts: [lanes]", "decide: EDP")
    explored.run()
    assert {path.name: path.read_bytes() for path in folder.glob("*.*")} == plain
    assert not list(front.glob("*.tex"))


def test_a_decision_is_of_all_designs(explored: Project) -> None:  # noqa: F811
    """A decision from before a failed shard is reported as such; files for a paper have only present designs."""
    configure(explored, "decide: energy", "paper: column")
    done = run_script(explored)
    assert done.returncode == 0, done.stderr
    page = f"decision: {FOLDER}/decision.html"
    assert page in done.stdout.splitlines()
    before = (explored.root / FOLDER / "space-column.tex").read_text()
    write(explored, most=99999)
    file = explored.root / "config" / "space" / "lanes.yaml"
    file.write_text(file.read_text().replace("[30, 50]", "[31, 50]"))
    blocking = failing(explored, "space/lanes.00001.log")
    done = run_script(explored)
    assert done.returncode == 1
    assert f"{page}, not made again" in done.stdout.splitlines()
    assert f"design space: {FOLDER}/explore.html, of some designs alone" in done.stdout.splitlines()
    assert (explored.root / FOLDER / "space-column.tex").read_text() != before
    shutil.rmtree(blocking)
    blocking = failing(explored, "space/lanes.decide.log")
    done = run_script(explored)
    assert done.returncode == 1
    assert f"design space: {FOLDER}/explore.html" in done.stdout.splitlines(), "the answer itself is complete"
    assert not (explored.root / FOLDER / "decision.html").exists()
    shutil.rmtree(blocking)
    done = run_script(explored)
    assert done.returncode == 0, done.stderr
    assert page in done.stdout.splitlines()


def test_wrong_keys_are_told(explored: Project, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Unknown objectives and widths are all reported at once; a key without effect is a notice."""
    monkeypatch.chdir(explored.root)

    def read(*lines: str) -> tuple[str, ...]:
        configure(explored, *lines)
        document = load_yaml("config/config.yaml")
        return tuple(map(str, plan_of(document.data, [document]).unused))

    with pytest.raises(InputError) as caught:
        read("decide: edp", "paper: colum")
    told = str(caught.value)
    wrong = "is not a measure by which a design can be chosen, got 'edp' (allowed: energy, latency, EDP"
    assert f"config.yaml:2 decide: {wrong}" in told
    assert "config.yaml:3 paper" in told
    assert read("decide: EDP", "paper: column") == ()
    (explored.root / "config" / "config.yaml").write_text("fronts: [lanes]\ndecide: EDP\n")
    document = load_yaml("config/config.yaml")
    (notice,) = plan_of(document.data, [document]).unused
    assert "decide: has no effect without spaces" in str(notice)
    (explored.root / "config" / "config.yaml").write_text("fronts: [lanes]\ndecide: EDP\nstrict: true\n")
    document = load_yaml("config/config.yaml")
    with pytest.raises(InputError, match="has no effect without spaces, which the option strict forbids"):
        plan_of(document.data, [document])
