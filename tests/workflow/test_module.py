"""The workflow as a module of another workflow, in a folder without this project."""

import os
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).resolve().parent / "tiny"
IMPORTING = """
module tilewright:
    snakefile: {snakefile!r}
    config: config["tilewright"]

use rule * from tilewright as tilewright_*

rule mine:
    default_target: True
    input: "out/single/mine/summary.json", "out/summary.csv"
    output: "copied.json"
    shell: "cp {{input[0]}} {{output}}"
"""
CONFIG = """
tilewright:
  results_dir: out
  runs:
    mine: {{workload: {tiny}/workload/two_layers.yaml, hardware: {tiny}/hardware/wide.yaml,
            mapping: {tiny}/mapping/free.yaml, lpf_limit: 3, preset: zigzag}}
"""


def test_another_workflow_uses_ours(tmp_path: Path) -> None:
    """Another workflow uses the rules of this one and continues with its artifacts."""
    (tmp_path / "Snakefile").write_text(IMPORTING.format(snakefile=str(PROJECT / "workflow" / "Snakefile")))
    (tmp_path / "mine.yaml").write_text(CONFIG.format(tiny=TINY))
    command = [sys.executable, "-m", "snakemake", "--configfile", "mine.yaml", "--cores", "2", "--quiet", "all"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "copied.json").read_bytes() == (
        tmp_path / "out" / "single" / "mine" / "summary.json"
    ).read_bytes()


def test_both_places_of_the_snakefile_are_one_workflow() -> None:
    """The Snakefile in the root only includes workflow/Snakefile."""
    statements = [
        line for line in (PROJECT / "Snakefile").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert statements[0] == 'include: "workflow/Snakefile"'
    assert len(statements) == 2  # the other one says which rule is the default
