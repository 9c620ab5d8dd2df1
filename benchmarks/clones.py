"""Clones of the project with a tiny configuration, whose results are compared byte by byte.

A clone has its own copies of the workflow and of the library, so that both can be edited. The caches of compiled code
are linked. The configuration has two runs on one core.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
NOT_COMPARED = (
    *("report.html", ".manifest/report.json"),  # the report of Snakemake has the time of the run in it
    *("*.due", ".configuration", ".tilewright-lock*", ".running"),  # orders, marks and locks are of the machine
    *(".store/*", "*.tmp"),  # earlier results only save time; leftovers of killed writes are read by nobody
)
"""Files in the folder of results whose bytes may differ between two runs of the same project. Logs are not listed,
because they are in another folder.
"""
STAGE = '''"""A reduction of this project: which mapping of a layer is kept."""

from dataclasses import dataclass

from config.stages.sign import SIGN
from tilewright.pipeline.stages import Reduction


@dataclass(frozen=True)
class Mine(Reduction):
    """Keeps the mapping with the least energy, or the most."""

    def rank(self, costs):
        """Energy with a sign."""
        return (SIGN * costs.energy_pj,)
'''
SIGN = '"""What the reduction looks for."""\n\nSIGN = +1\n'
PIPELINE = "pipeline: [{replace: MinimalLatency, stage: config.stages.mine.Mine}]\n"
HARDWARE = """\
name: narrow
operational_array: {dimensions: [D1], sizes: [2], unit_energy: 0.5, unit_area: 0}
memories:
  register:
    {operands: [I2], size: 16, r_cost: 0.1, w_cost: 0.1, area: 0, latency: 1, served_dimensions: [], ports: [
      {name: r, type: read, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I2, tl"]},
      {name: w, type: write, bandwidth_min: 8, bandwidth_max: 8, allocation: ["I2, fh"]}]}
  memory:
    {operands: [I1, I2, O], size: 1 MiB, r_cost: 50, w_cost: 60, area: 0, latency: 1, served_dimensions: [D1], ports: [
      {name: r, type: read, bandwidth_min: 8, bandwidth_max: 128, allocation: ["I1, tl", "I2, tl", "O, tl", "O, th"]},
      {name: w, type: write, bandwidth_min: 8, bandwidth_max: 128, allocation: ["I1, fh", "I2, fh", "O, fh", "O, fl"]}]}
"""
CONFIG = """\
lpf_limit: 4
preset: zigzag
runs_per_job: 2
runs:
  mine: {workload: net, hardware: narrow, mapping: free}
  other: {workload: net, hardware: narrow, mapping: free, lpf_limit: 3}
"""
MAPPING = """\
- {name: default, spatial_mapping: {D1: ["K, 2"]}, memory_operand_links: {O: O, W: I2, I: I1}}
- {name: nobody, spatial_mapping: {D1: ["K, 2"]}, memory_operand_links: {O: O, W: I2, I: I1}}
"""
"""Mapping file. No layer uses its second entry, and the summaries say this."""
WORKLOAD = """\
- {id: 0, name: first, operator_type: Gemm, equation: "O[b][k]+=W[k][c]*I[b][c]", loop_dims: [B, K, C],
   loop_sizes: [4, 8, 4], operand_precision: {W: 8, I: 8, O: 16, O_final: 8}, operand_source: {I: 0, W: 0}}
"""
WRITTEN = {
    **{"config/config.yaml": CONFIG, "config/hardware/narrow.yaml": HARDWARE, "config/mapping/free.yaml": MAPPING},
    **{"config/workload/net.yaml": WORKLOAD, "config/stages/mine.py": STAGE, "config/stages/sign.py": SIGN},
}
"""Files in a clone that people write."""


def is_compared(name: str) -> bool:
    """True if the bytes of a file in the folder of results must be equal after every run."""
    return not any(fnmatchcase(name, pattern) for pattern in NOT_COMPARED)


def files_below(folder: Path) -> dict[str, Path]:
    """Paths of all files below a folder, relative to the folder, sorted."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


@dataclass
class Clone:
    """Folder with the project, a tiny configuration and the results."""

    root: Path
    programs: str = ""
    """Folder of programs that are searched first (`benchmarks/forked_python.py`); '' for the programs of this
    environment.
    """

    def file(self, path: str) -> Path:
        """Path in the clone."""
        return self.root / path

    @classmethod
    def create(cls, root: Path, programs: str = "") -> "Clone":
        """Make a clone that has never run, with its own copy of the library."""
        root.mkdir(parents=True)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy2(PROJECT / name, root)
        shutil.copytree(PROJECT / "workflow", root / "workflow")
        (root / "profiles").symlink_to("workflow/profiles")
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(PROJECT / "lib" / "tilewright", root / "lib" / "tilewright", ignore=ignored)
        (root / ".cache").symlink_to(PROJECT / ".cache")
        for path, text in WRITTEN.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return cls(root, programs)

    def copy(self, root: Path) -> "Clone":
        """Copy the clone to another folder, with the ages of all files."""
        shutil.copytree(self.root, root, symlinks=True)
        return Clone(root, self.programs)

    def fresh(self, root: Path, clean: "Clone") -> "Clone":
        """Make a clone that has never run, with the same input as this clone.

        Bytecode of unchanged modules is copied from `clean`, a clone in which nothing was ever edited.
        """
        shutil.copytree(clean.root, root, symlinks=True, ignore=shutil.ignore_patterns("results", "logs", ".snakemake"))
        for part in ("config", "workflow", "lib"):
            before, now = files_below(root / part), files_below(self.root / part)
            for name, path in before.items():
                if "__pycache__" not in name and (name not in now or now[name].read_bytes() != path.read_bytes()):
                    path.unlink()
                    for kept in path.parent.glob(f"__pycache__/{path.stem}.*"):
                        kept.unlink()
            for name, path in now.items():
                if "__pycache__" not in name and not (root / part / name).exists():
                    (root / part / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, root / part / name)
        return Clone(root, self.programs)

    def command(self) -> list[str]:
        """Command `make run`, without the set-up of the environment."""
        return ["bash", "workflow/run.sh", "config/config.yaml", "--cores", "2"]

    def run_plainly(self) -> subprocess.CompletedProcess[str]:
        """Make all results by Snakemake alone. The report of Snakemake is not made, and no summary is printed."""
        words = ["snakemake", "--configfile", "config/config.yaml", "--cores", "2"]
        return subprocess.run(words, cwd=self.root, env=self.environment(), capture_output=True, text=True, check=False)

    def environment(self) -> dict[str, str]:
        """Environment of the clone's processes: this interpreter, the clone's library, and its caches."""
        own = (self.programs, str(Path(sys.executable).parent), os.environ["PATH"])
        path = os.pathsep.join(filter(None, own))
        left_out = ("PYTEST", "PYTHON", "TILEWRIGHT")
        known = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        caches = {"XDG_CACHE_HOME": str(self.root / ".cache"), "MPLCONFIGDIR": str(self.root / ".cache" / "matplotlib")}
        return {**known, **caches, "PATH": path, "PYTHONPATH": str(self.root / "lib")}

    def run(self, limit: str = "") -> subprocess.CompletedProcess[str]:
        """Run the clone to the end. `limit` is a shell command that is executed before the run."""
        words = ["bash", "-c", f'{limit or ":"}; exec "$@"', "run", *self.command()]
        return subprocess.run(words, cwd=self.root, env=self.environment(), capture_output=True, text=True, check=False)

    def start(self) -> "subprocess.Popen[bytes]":
        """Start a run of the clone in a separate process group."""
        nowhere = subprocess.DEVNULL
        return subprocess.Popen(
            self.command(),
            cwd=self.root,
            env=self.environment(),
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
        )

    def results(self) -> dict[str, bytes]:
        """Bytes of every result file that is compared, by path in the folder of results."""
        found = files_below(self.root / "results")
        return {name: path.read_bytes() for name, path in found.items() if is_compared(name)}

    def written(self) -> str:
        """Digest of everything that people write: configuration, workflow and library."""
        digest = hashlib.blake2b()
        for part in ("config", "workflow", "lib"):
            for name, path in files_below(self.root / part).items():
                if "__pycache__" not in name:
                    digest.update(f"{part}/{name}\0".encode() + path.read_bytes() + b"\0")
        return digest.hexdigest()
