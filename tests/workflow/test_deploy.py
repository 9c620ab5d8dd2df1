"""The workflow in a folder that `snakedeploy` made from a local repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).resolve().parent / "tiny"
SNAKEDEPLOY = shutil.which("snakedeploy")


def snakemake(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run Snakemake in a folder outside of this project."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, "-m", "snakemake", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(SNAKEDEPLOY is None, reason="no snakedeploy on PATH (pip install snakedeploy)")
def test_a_deployed_workflow_runs(tmp_path: Path) -> None:
    """A deployed workflow, with configuration and profiles to edit, plans the examples and runs a small
    configuration.
    """
    clone, deployed = tmp_path / "tilewright", tmp_path / "deployed"
    subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(clone)], check=True, capture_output=True)
    deploy = [str(SNAKEDEPLOY), "deploy-workflow", str(clone), str(deployed), "--branch", "main"]
    subprocess.run(deploy, check=True, capture_output=True)
    assert (deployed / "profiles" / "slurm" / "config.yaml").is_file()
    snakefile = deployed / "workflow" / "Snakefile"
    named = f'"{clone}/workflow/Snakefile"'  # docs/many-runs.md: snakedeploy writes no full path
    snakefile.write_text(snakefile.read_text().replace('"workflow/Snakefile"', named))
    planned = snakemake(deployed, "-n")
    assert planned.returncode == 0, planned.stderr
    assert "map_single" in planned.stdout + planned.stderr
    shutil.rmtree(deployed / "config")
    shutil.copytree(TINY, deployed / "config")
    made = snakemake(deployed, "--cores", "2")
    assert made.returncode == 0, made.stderr
    assert (deployed / "results" / "single" / "two_layers-wide" / "report" / "layers.csv").is_file()
    assert not (clone / "results").exists()
