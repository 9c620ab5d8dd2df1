"""A tiny project, built once, and copies of it to change. Snakemake runs in this process."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from snakemake.api import SnakemakeApi
from snakemake.scheduling.greedy import SchedulerSettings as GreedySettings
from snakemake.settings.enums import Quietness, RerunTrigger
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    ExecutionSettings,
    OutputSettings,
    ResourceSettings,
    SchedulingSettings,
)
from tilewright.base.steps import SINGLE, STEPS
from tilewright.cli.config_folders import MARK

from benchmarks.forked_python import ForkedPython

PROJECT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).resolve().parent / "tiny"
REPORT_OF_SNAKEMAKE = {"report.html", ".manifest/report.json"}
ON_REQUEST = {"figures", "paper"}
"""Steps of a run that the configurations here do not request."""
SINGLE_RULES = [
    f"{name}_single" for name, step in STEPS.items() if step.folder == f"{SINGLE}/{{run}}" and name not in ON_REQUEST
]
"""Rules that make the files of a run on one core."""


class Project:
    """A copy of the project's workflow with the tiny configuration."""

    programs = Path(sys.executable).parent
    """Folder of the Python program that runs the jobs."""
    server: psutil.Process | None = None
    """Server process whose children run the programs of the folder `programs`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def create(cls, root: Path, config: Path = TINY) -> "Project":
        """A project that has not run yet. It uses the library of the checkout, so that compiled kernels are found."""
        root.mkdir(parents=True, exist_ok=True)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy2(PROJECT / name, root)
        shutil.copytree(PROJECT / "workflow", root / "workflow")
        shutil.copytree(config, root / "config")
        (root / "lib").symlink_to(PROJECT / "lib")
        return cls(root)

    def copy(self, root: Path) -> "Project":
        """A copy of the project with its own results."""
        shutil.copytree(self.root, root, symlinks=True)
        return Project(root)

    def own_library(self) -> Path:
        """Replace the link to the checkout's library by a copy to edit; returns the package."""
        (self.root / "lib").unlink()
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(PROJECT / "lib" / "tilewright", self.root / "lib" / "tilewright", ignore=ignored)
        return self.root / "lib" / "tilewright"

    def would_run(self) -> list[str]:
        """The rules that a run would execute now, each with its subject; sorted."""
        return self._snakemake(dryrun=True)

    def run(self, *targets: str, cores: int = 2) -> None:
        """Run the project. Raises Snakemake's error if a job fails."""
        self._snakemake(*targets, cores=cores)

    def _snakemake(self, *targets: str, dryrun: bool = False, cores: int = 2) -> list[str]:
        before, paths = (os.getcwd(), dict(os.environ)), sys.path[:]
        try:
            said = OutputSettings(quiet={Quietness.ALL}, dryrun=dryrun, show_failed_logs=True)
            with jobs_run_by(self.programs / "python"), SnakemakeApi(said) as api:
                workflow = api.workflow(
                    resource_settings=ResourceSettings(cores=cores),
                    config_settings=ConfigSettings(),
                    snakefile=self.root / "Snakefile",
                    workdir=self.root,
                )
                # As workflow/profiles/default has it.
                triggers = frozenset({RerunTrigger.MTIME})
                settings = DAGSettings(targets=frozenset(targets), rerun_triggers=triggers)
                workflow.dag(settings).execute_workflow(
                    executor="dryrun" if dryrun else "local",
                    execution_settings=ExecutionSettings(keep_going=True, lock=False),
                    scheduling_settings=SchedulingSettings(scheduler="greedy"),
                    scheduler_settings=GreedySettings(),
                    greedy_scheduler_settings=GreedySettings(),
                )
                dag = workflow._workflow.dag
                return sorted(job_name(job) for job in dag.jobs if dag.needrun(job) and job.rule.name != "all")
        finally:
            os.chdir(before[0])
            os.environ.clear()
            os.environ.update(before[1])
            sys.path[:] = paths  # to which the Snakefile adds the library of the project, here perhaps an edited copy

    def artifacts(self) -> dict[str, bytes]:
        """Every result file with its bytes, manifests included.

        The store and the note on the owner of the results are left out. So are the orders, which belong to this
        machine, and Snakemake's report, which has the time of the run.
        """
        results, others = self.root / "results", {".store", MARK}
        found = (path for path in sorted(results.rglob("*")) if path.is_file() and not others & set(path.parts))
        files = {path.relative_to(results).as_posix(): path for path in found if path.suffix != ".due"}
        return {name: path.read_bytes() for name, path in files.items() if name not in REPORT_OF_SNAKEMAKE}


@contextmanager
def jobs_run_by(python: Path) -> Iterator[None]:
    """Lets Snakemake in this process start its jobs with the Python at `python`."""
    own, sys.executable = sys.executable, str(python)
    try:
        yield
    finally:
        sys.executable = own


@pytest.fixture(scope="session", autouse=True)
def forked_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lets processes of projects begin with libraries already imported, which saves most of their time.

    Their PNG files are not painted, because tests of figures are in tests/unit.
    """
    folder = tmp_path_factory.mktemp("forked") / "python"
    with ForkedPython(folder, dict(os.environ), PROJECT / "lib", is_painted=False) as forked:
        Project.programs, Project.server = forked.programs, psutil.Process(forked.process.pid)
        yield


def job_name(job: Any) -> str:
    """The rule of a Snakemake job, and its subject."""
    wildcards = job.wildcards_dict
    about = [str(wildcards[name]) for name in ("run", "hardware", "workload", "mapping", "core") if name in wildcards]
    return " ".join([job.rule.name, *about])


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The tiny project after its first run. Never change it; use `project`."""
    project = Project.create(tmp_path_factory.mktemp("built") / "project")
    project.run()
    return project


@pytest.fixture
def project(built: Project, tmp_path: Path) -> Project:
    """A copy of the built project to change."""
    return built.copy(tmp_path / "project")


@pytest.fixture(scope="session")
def built_multi(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The tiny project of two cores after its first run. Never change it; use `multi`."""
    from tests.workflow.multi_projects import create_multi

    project = create_multi(tmp_path_factory.mktemp("multi") / "project")
    project.run()
    return project


@pytest.fixture
def multi(built_multi: Project, tmp_path: Path) -> Project:
    """A copy of the tiny project of two cores to change."""
    return built_multi.copy(tmp_path / "project")


@pytest.fixture
def edit() -> Callable[[Path, str, str], None]:
    """Function that replaces a text in a file, which must contain it."""

    def replace(path: Path, old: str, new: str) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return replace
