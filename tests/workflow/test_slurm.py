"""The SLURM profile on a cluster of one node, which this test starts, gives the bytes of a local run."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workflow.conftest import TINY, Project
from tests.workflow.multi_projects import create_multi

LAB = Path(__file__).resolve().parents[3] / "shared" / "tools" / "slurm-lab.sh"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "munged")
PLUGIN = "snakemake_executor_plugin_slurm"
SMALL_NODE = ("--set-threads", "map_single=2", "cost_multi=2", "allocate_multi=2")
NO_ACCOUNTING = ("--slurm-no-account", "--slurm-status-command", "squeue")
CONFIG = """
lpf_limit: 4
preset: zigzag
sweeps:
  tiny: {workload: two_layers, hardware: [narrow, wide], mapping: free}
runs:
  fused: {flow: multi, workload: net, hardware: duo, nb_ga_individuals: 4, nb_ga_generations: 2, exhaustive_nodes: 0}
spaces: [lanes]
"""
SPACE = """
accelerator: ../hardware/wide.yaml
mapping: ../mapping/free.yaml
networks: [../workload/two_layers.yaml]
axes:
  lanes: {path: operational_array.sizes.0, values: [2, 4]}
  read_pj: {path: memories.memory.r_cost, values: [30, 50]}
options: {objective: energy, lpf_limit: 3}
shard_designs: 2
"""
SUBMITTED = {
    *("rule_map_single", "rule_explore", "rule_answer"),
    *("rule_cns_multi", "rule_cost_multi", "rule_allocate_multi", "rule_schedule_multi"),
}


def missing() -> str:
    """The reason why no cluster can be started here; '' if one can."""
    programs = [name for name in PROGRAMS if shutil.which(name) is None]
    if programs:
        return f"no {', '.join(programs)} on PATH (Debian: slurmctld slurmd slurm-client munge)"
    if importlib.util.find_spec(PLUGIN) is None:
        return f"no {PLUGIN.replace('_', '-')} in this environment"
    return "" if LAB.is_file() else f"no {LAB.name} to start a cluster with"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """Start a SLURM cluster of this one machine, and yield the folder of its commands."""
    folder = tmp_path / "lab"
    up = subprocess.run(["bash", str(LAB), "up", str(folder)], capture_output=True, text=True, check=False)
    try:
        if up.returncode:
            pytest.skip(f"the cluster does not start: {up.stderr[-300:]}")
        yield folder / "bin"
    finally:
        subprocess.run(["bash", str(LAB), "down", str(folder)], capture_output=True, check=False)


@pytest.mark.skipif(bool(missing()), reason=missing() or "there is a cluster")
def test_results_on_a_cluster_are_the_same(cluster: Path, tmp_path: Path) -> None:
    """Results on a cluster have the same bytes as local ones, for single-core and multi-core runs and a space.

    Short rules are not separate jobs.
    """
    here = create_multi(tmp_path / "here")
    shutil.copytree(TINY, here.root / "config", dirs_exist_ok=True)
    (here.root / "config" / "config.yaml").write_text(CONFIG)
    (here.root / "config" / "space").mkdir()
    (here.root / "config" / "space" / "lanes.yaml").write_text(SPACE)
    there = here.copy(tmp_path / "there")
    here.run()
    profile = ("--workflow-profile", "workflow/profiles/slurm", "--default-resources", "slurm_partition=main")
    options = (*NO_ACCOUNTING, *SMALL_NODE, "--group-components", "look_at_schedules=2")
    path = os.pathsep.join((str(cluster), str(Path(sys.executable).parent), os.environ["PATH"]))
    command = [sys.executable, "-m", "snakemake", *profile, *options]
    command += ["--slurm-init-seconds-before-status-checks", "5"]
    done = subprocess.run(
        command, cwd=there.root, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert there.artifacts() == here.artifacts()
    submitted = set(re.findall(r"slurm_logs/(rule_\w+|group_look_at_schedules)", done.stdout + done.stderr))
    assert submitted == SUBMITTED | {"group_look_at_schedules"}


def test_the_profile_groups_rules_that_there_are() -> None:
    """The names in the profile are names of rules."""
    import yaml

    root = Project(Path(__file__).resolve().parents[2]).root
    profile = yaml.safe_load((root / "workflow" / "profiles" / "slurm" / "config.yaml").read_text())
    rules = {
        name
        for file in (root / "workflow" / "rules").glob("*.smk")
        for name in re.findall(r"^(?:rule|use rule \w+ as) (\w+)(?::| with:)", file.read_text(), re.MULTILINE)
    }
    assert {*profile["set-threads"], *profile["groups"]} <= rules
    assert set(profile["groups"].values()) == set(profile["group-components"])
