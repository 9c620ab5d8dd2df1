"""Design spaces in the workflow: the job of each shard, and the jobs that run again."""

from pathlib import Path

import pandas
import pytest

from tests.workflow.conftest import TINY, Project
from tests.workflow.multi_projects import create_multi

SPACE = """
accelerator: ../hardware/wide.yaml
mapping: ../mapping/free.yaml
networks: [../workload/two_layers.yaml]
axes:
  lanes: {{path: operational_array.sizes.0, values: [{lanes}]}}
  read_pj: {{path: memories.memory.r_cost, values: [30, 50]}}
constraints: [latency_cycles <= {most}]
options: {{objective: energy, lpf_limit: 3}}
shard_designs: 2
"""


@pytest.fixture
def explored(tmp_path: Path) -> Project:
    """A project of one space and no runs."""
    project = Project.create(tmp_path / "project", TINY)
    (project.root / "config" / "config.yaml").write_text("spaces: [lanes]\n")
    write(project)
    return project


def write(project: Project, lanes: str = "2, 4", most: int = 100000) -> None:
    """Write the space with these numbers of lanes."""
    folder = project.root / "config" / "space"
    folder.mkdir(exist_ok=True)
    (folder / "lanes.yaml").write_text(SPACE.format(lanes=lanes, most=most))


def test_shards_are_jobs_and_only_what_changed_runs_again(explored: Project) -> None:
    """Another design reruns one shard, a constraint on results reruns the answer, and a comment reruns nothing."""
    explored.run()
    folder = explored.root / "results" / "space" / "lanes"
    shards = {path.name: path.read_bytes() for path in (folder / "shards").iterdir()}
    assert sorted(shards) == ["00000.parquet", "00001.parquet"]
    assert len(pandas.read_csv(folder / "space.csv")) == 4
    assert (folder / "explore.html").is_file()
    assert explored.would_run() == []
    file = explored.root / "config" / "space" / "lanes.yaml"
    file.write_text("# a comment\n" + file.read_text())
    assert explored.would_run() == []
    write(explored, "2, 4, 8")
    assert sum(job.startswith("explore") for job in explored.would_run()) == 1
    explored.run()
    assert {name: (folder / "shards" / name).read_bytes() for name in shards} == shards
    assert len(pandas.read_csv(folder / "space.csv")) == 6
    write(explored, "2, 4, 8", 1000)
    assert [job.split()[0] for job in explored.would_run()] == ["answer"]
    explored.run()
    assert pandas.read_csv(folder / "space.csv")["unmet"].notna().any()


def test_the_workflow_makes_what_the_command_makes(explored: Project, tmp_path: Path) -> None:
    """The workflow's files have the bytes of the command, for any size of shards."""
    import tilewright

    explored.run()
    tilewright.explore(explored.root / "config" / "space" / "lanes.yaml", tmp_path / "by_hand", jobs=2)
    for name in ("space.csv", "space.parquet", "front.csv", "explore.html"):
        made = explored.root / "results" / "space" / "lanes" / name
        assert made.read_bytes() == (tmp_path / "by_hand" / name).read_bytes(), name


SYSTEMS = """
accelerator: ../hardware/duo.yaml
networks: [../workload/net.onnx]
axes:
  width: {path: core_connectivity.0.bandwidth, values: [16, 32]}
  count: {path: core_counts.0, values: [1, 2]}
options: {lpf_limit: 3, nb_ga_individuals: 4, nb_ga_generations: 1}
shard_designs: 2
"""


@pytest.mark.slow
def test_spaces_of_several_cores_have_jobs_too(tmp_path: Path) -> None:
    """Edits of a core file rerun the shards of a space of several cores; a comment does not."""
    project = create_multi(tmp_path / "project")
    (project.root / "config" / "config.yaml").write_text("spaces: [systems]\n")
    base = project.root / "config" / "hardware" / "duo.yaml"
    base.write_text(base.read_text() + "core_counts: { 0: 1 }\n")
    (project.root / "config" / "space").mkdir()
    (project.root / "config" / "space" / "systems.yaml").write_text(SYSTEMS)
    project.run()
    rows = pandas.read_csv(project.root / "results" / "space" / "systems" / "space.csv")
    assert set(rows["status"]) == {"ok"}
    assert len(rows) == 4
    assert project.would_run() == []
    core = project.root / "config" / "hardware" / "cores" / "left.yaml"
    core.write_text("# a comment\n" + core.read_text())
    assert project.would_run() == []
    core.write_text(core.read_text().replace("unit_energy: ", "unit_energy: 1"))
    assert [job.split()[0] for job in project.would_run()] == ["answer", "explore", "explore"]


FUSED = """
accelerator: ../hardware/duo.yaml
networks: [../workload/net.onnx]
axes:
  width: {path: core_connectivity.0.bandwidth, values: [16, 32]}
  read_pj: {path: core_files.left.operational_array.unit_energy, values: [1, 2]}
options: {fusion: search, nb_schedules: 12, search_block: 2, lpf_limit: 3}
shard_designs: 1
"""


@pytest.mark.slow
def test_fusion_is_searched_in_jobs(tmp_path: Path) -> None:
    """Each block of a fusion search is a job, and the bytes are those of the command with other shards and two
    processes.
    """
    import tilewright

    project = create_multi(tmp_path / "project")
    (project.root / "config" / "config.yaml").write_text("spaces: [fused]\n")
    (project.root / "config" / "space").mkdir()
    file = project.root / "config" / "space" / "fused.yaml"
    file.write_text(FUSED)
    assert sum(job.startswith("explore") for job in project.would_run()) == 2
    project.run()
    assert project.would_run() == []
    folder = project.root / "results" / "space" / "fused"
    rows = pandas.read_csv(folder / "space.csv")
    assert rows["start_design"].notna().tolist().count(True) <= 2
    assert (rows["gap_latency"] >= 0).any()
    other = file.with_name("other.yaml")
    other.write_text("name: fused\n" + FUSED.replace("shard_designs: 1", "shard_designs: 4"))
    tilewright.explore(other, tmp_path / "by_hand", jobs=2)
    for name in ("space.csv", "space.parquet", "front.csv", "explore.html"):
        assert (folder / name).read_bytes() == (tmp_path / "by_hand" / name).read_bytes(), name


@pytest.mark.slow
def test_complete_fronts_are_made_by_the_workflow_too(explored: Project, tmp_path: Path) -> None:
    """A complete front has one job for costs and one for the front; its files have the bytes of `tilewright front`.

    A change that affects only the front runs only the second job again.
    """
    import tilewright

    (explored.root / "config" / "config.yaml").write_text("fronts: [lanes]\n")
    write(explored, "2, 4, 8")
    jobs = explored.would_run()
    assert sum(job.startswith("family_costs") for job in jobs) == 1
    assert sum(job.startswith("front") for job in jobs) == 1
    explored.run()
    assert explored.would_run() == []
    folder = explored.root / "results" / "front" / "lanes"
    tilewright.front(explored.root / "config" / "space" / "lanes.yaml", tmp_path / "by_hand")
    for name in ("certificate.parquet", "front.csv", "front.html"):
        assert (folder / name).read_bytes() == (tmp_path / "by_hand" / name).read_bytes(), name
    assert not tilewright.check_front(tmp_path / "by_hand", everything=True)["problems"]
    write(explored, "2, 4, 8", 1000)
    assert [job.split()[0] for job in explored.would_run()] == ["front"]
