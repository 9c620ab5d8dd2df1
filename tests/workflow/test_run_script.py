"""What `make run` says: workflow/run.sh."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.workflow.conftest import Project
from tests.workflow.multi_projects import RUN


def run_script(project: Project, *options: str, config: str = "config/config.yaml") -> subprocess.CompletedProcess[str]:
    """The script in a process of its own, with this interpreter first."""
    profiles = project.root / "profiles"
    if not profiles.exists():
        profiles.symlink_to("workflow/profiles")
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(project.root / "lib")}
    command = ["workflow/run.sh", config, "--cores", "2", *options]
    return subprocess.run(command, cwd=project.root, env=environment, capture_output=True, text=True, check=False)


def test_why_a_job_failed_is_told(project: Project, edit: Callable[[Path, str, str], None]) -> None:
    """The message in the log of a failed job is shown, once, and the other run is summarised."""
    edit(project.root / "config" / "hardware" / "narrow.yaml", "size: 1 MiB", "size: 8")
    (project.root / "results" / "single" / "two_layers-narrow" / "summary.json").unlink()
    done = run_script(project)
    assert done.returncode == 1
    assert done.stderr.count("map.log:error: no mapping of layer 'first' fits core 'narrow'") == 1
    assert "some runs failed" in done.stderr
    assert "two_layers-wide" in done.stdout


def test_wrong_configuration_is_told_once(project: Project, edit: Callable[[Path, str, str], None]) -> None:
    """A missing or wrong configuration is one line a problem and exit code 2; nothing is said to have run."""
    done = run_script(project, config="none.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.yaml no such file\n"
    edit(project.root / "config" / "config.yaml", "lpf_limit: 4", "lpf_limti: 4")
    done = run_script(project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "config.yaml:2 lpf_limti: unknown key" in done.stderr


def test_dry_run_makes_nothing(project: Project) -> None:
    """-n lists jobs; no report and no summary follow."""
    removed = project.root / "results" / "workload" / "two_layers" / "zigzag-3.9.1" / "coverage.json"
    removed.unlink()
    done = run_script(project, "-n")
    assert done.returncode == 0
    assert "parse_workload" in done.stdout + done.stderr
    assert "report:" not in done.stdout
    assert not removed.exists()


def test_one_failed_run_of_several_cores_leaves_the_others(
    multi: Project, edit: Callable[[Path, str, str], None]
) -> None:
    """A wrong mapping file stops the run that has it: that is told with its line, what it had is kept byte for byte and
    told to be of an earlier run; a run with another mapping file is made."""
    config = multi.root / "config"
    (config / "mapping" / "sound.yaml").write_text((config / "mapping" / "duo.yaml").read_text())
    edit(config / "mapping" / "duo.yaml", "core_allocation: [0, 1]", "core_allocation: [0, 7]")
    sound = "  sound: {flow: multi, workload: net, hardware: duo, mapping: sound, baselines: false}\n"
    edit(config / "config.yaml", "runs:\n", f"runs:\n{sound}")
    before = {name: content for name, content in multi.artifacts().items() if name.startswith(f"multi/{RUN}")}
    done = run_script(multi)
    assert done.returncode == 1
    assert "duo.yaml:2 default.core_allocation[1]: no core has this id, got 7" in done.stderr
    assert "some runs failed" in done.stderr
    after = multi.artifacts()
    assert {name: after[name] for name in before} == before
    assert "multi/sound/checks.json" in after
    table, _, earlier = done.stdout.partition("Of an earlier run, before what they are made of was changed:")
    assert " sound " in table
    assert earlier.split() == [RUN]
