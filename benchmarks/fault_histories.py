"""Random histories of a folder of results: edits and faults, then `make run` against a fresh clone, byte for byte.

Each history works on a copy of a tiny project that was run once. Its steps are edits of what people write and of the
library, and faults: damage, kills, restored and copied results, ages that lie. At its end `make run` must give the
bytes of a run from scratch, or refuse in words. `benchmarks/faults.py histories` prints the counts.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
RESULTS_PARTS = ("single", "hardware", "workload", "mapping", ".manifest", "pareto")
LOCAL = (".store", ".configuration", "logs")
"""In the folder of results: what is of this machine, and not compared."""
STAGE = '''"""A stage of this project: it keeps the mappings of a core as they are."""

from dataclasses import dataclass

from tilewright.stages.base import Stage


@dataclass(frozen=True)
class Mine(Stage):
    """Passes everything on."""

    def run(self, problem, below):
        """The results of the stages below."""
        yield from below(problem)
'''
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
runs:
  mine: {workload: net, hardware: narrow, mapping: free}
"""
MAPPING = """\
- {name: default, spatial_mapping: {D1: ["K, 2"]}, memory_operand_links: {O: O, W: I2, I: I1}}
"""
WORKLOAD = """\
- {id: 0, name: first, operator_type: Gemm, equation: "O[b][k]+=W[k][c]*I[b][c]", loop_dims: [B, K, C],
   loop_sizes: [4, 8, 4], operand_precision: {W: 8, I: 8, O: 16, O_final: 8}, operand_source: {I: 0, W: 0}}
"""
NUMBER = "energy_pj"


@dataclass
class Clone:
    """A folder with the project, a tiny configuration and its results."""

    root: Path

    def file(self, path: str) -> Path:
        """A path in it."""
        return self.root / path

    @classmethod
    def create(cls, root: Path) -> "Clone":
        """One that never ran, with a library of its own."""
        root.mkdir(parents=True)
        for name in ("Snakefile", "environment.yml"):
            shutil.copy2(PROJECT / name, root)
        shutil.copytree(PROJECT / "workflow", root / "workflow")
        (root / "profiles").symlink_to("workflow/profiles")
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(PROJECT / "lib" / "tilewright", root / "lib" / "tilewright", ignore=ignored)
        if (kernels := PROJECT / ".cache").is_dir():
            shutil.copytree(kernels, root / ".cache")
        for path, text in (
            *(("config/config.yaml", CONFIG), ("config/hardware/narrow.yaml", HARDWARE)),
            *(("config/mapping/free.yaml", MAPPING), ("config/workload/net.yaml", WORKLOAD)),
            ("config/stages/mine.py", STAGE),
        ):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return cls(root)

    def copy(self, root: Path) -> "Clone":
        """The same folder elsewhere, with all ages."""
        shutil.copytree(self.root, root, symlinks=True)
        return Clone(root)

    def command(self) -> list[str]:
        """`make run`, without the set-up of the environment."""
        return ["workflow/run.sh", "config/config.yaml", "--cores", "2", "--quiet", "all"]

    def environment(self) -> dict[str, str]:
        """Of its processes: this interpreter, its library."""
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        known = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "TILEWRIGHT"))}
        return {**known, "PATH": path, "PYTHONPATH": str(self.root / "lib")}

    def run(self, limit: str = "") -> subprocess.CompletedProcess[str]:
        """Run it to the end; `limit` is a command of the shell before it."""
        words = ["bash", "-c", f'{limit or ":"}; exec "$@"', "run", *self.command()]
        return subprocess.run(words, cwd=self.root, env=self.environment(), capture_output=True, text=True, check=False)

    def start(self) -> "subprocess.Popen[bytes]":
        """Run it in a process group of its own."""
        return subprocess.Popen(
            *(self.command(),),
            cwd=self.root,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def results(self) -> dict[str, bytes]:
        """Every file of results with its bytes, but for those of the machine and the report, which has dates."""
        folder = self.root / "results"
        found = {}
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            is_local = bool({*inner.parts} & {*LOCAL}) or path.suffix == ".due" or path.name.startswith("report.html")
            if path.is_file() and not is_local:
                found[inner.as_posix()] = path.read_bytes()
        return found

    def written(self) -> str:
        """Digest of all that people write: configuration and library."""
        digest = hashlib.blake2b()
        files = [*sorted((self.root / "config").rglob("*")), *sorted((self.root / "lib").rglob("*.py"))]
        for path in files:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(path.relative_to(self.root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
        return digest.hexdigest()


@dataclass
class History:
    """One history: the clone, what its steps need to know, and what was done."""

    clone: Clone
    other: Clone
    """Another clone, whose results may be copied."""
    draw: random.Random
    scratch: Path
    done: list[str] = field(default_factory=list)

    def replace(self, path: str, old: str, new: str) -> bool:
        """Edit a file, if it says what is to be replaced."""
        file = self.clone.file(path)
        text = file.read_text() if file.is_file() else ""
        if old in text:
            file.write_text(text.replace(old, new, 1))
        return old in text

    def any_result(self, hidden: bool = True) -> Path | None:
        """A file of the results, drawn by its name."""
        folder = self.clone.root / "results"
        found = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
        found = [path for path in found if ".store" not in path.parts and path.name != ".configuration"]
        if not hidden:
            found = [path for path in found if ".manifest" not in path.parts]
        return self.draw.choice(found) if found else None


def hardware_file(history: History) -> Path:
    """The hardware file, whatever its name is now."""
    return next(iter(sorted(history.clone.file("config/hardware").glob("*.yaml"))))


def edit_value(history: History) -> None:
    """Another energy of a read: every total moves."""
    file = hardware_file(history)
    lines = file.read_text().splitlines(keepends=True)
    row = next(index for index, line in enumerate(lines) if "1 MiB" in line)
    before, _, rest = lines[row].partition("r_cost: ")
    lines[row] = f"{before}r_cost: {history.draw.randrange(51, 999)},{rest.partition(',')[2]}"
    file.write_text("".join(lines))


def edit_comment(history: History) -> None:
    """Words that say nothing to the tool."""
    file = history.draw.choice([hardware_file(history), history.clone.file("config/mapping/free.yaml")])
    file.write_text(f"# words {history.draw.random()}\n{file.read_text()}")


def edit_option(history: History) -> None:
    """Another objective or limit."""
    new = history.draw.choice(["lpf_limit: 3", "lpf_limit: 4\nobjective: energy", "lpf_limit: 5"])
    text = history.clone.file("config/config.yaml").read_text()
    history.clone.file("config/config.yaml").write_text(f"{new}\n{text[text.index('runs:') :]}")


def edit_mapping(history: History) -> None:
    """Another spatial mapping."""
    if not history.replace("config/mapping/free.yaml", "K, 2", "C, 2"):
        history.replace("config/mapping/free.yaml", "C, 2", "K, 2")


def edit_module(history: History) -> None:
    """A source module says something else; the total energy is another one."""
    path = "lib/tilewright/search/summary.py"
    file = history.clone.file(path)
    file.write_text(file.read_text() + f"\n# {history.draw.random()}\n")
    table = "lib/tilewright/hardware/core_reader.py"
    if not history.replace(table, "entry.r_cost", "entry.w_cost"):
        history.replace(table, "entry.w_cost", "entry.r_cost")


def edit_module_unseen(history: History) -> None:
    """An edit of equal size and age, as `rsync -t` or an image leaves it."""
    file = history.clone.file("lib/tilewright/hardware/core_reader.py")
    stat = file.stat()
    if not history.replace(str(file.relative_to(history.clone.root)), "entry.r_cost", "entry.w_cost"):
        history.replace(str(file.relative_to(history.clone.root)), "entry.w_cost", "entry.r_cost")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def edit_stage(history: History) -> None:
    """The pipeline has a stage of the project, which changes."""
    config = history.clone.file("config/config.yaml")
    pipeline = "pipeline: [{insert: config.stages.mine.Mine, before: SpatialMappingGenerator}]\n"
    if "pipeline" not in config.read_text():
        config.write_text(pipeline + config.read_text())
    stage = history.clone.file("config/stages/mine.py")
    stage.write_text(stage.read_text() + f"# {history.draw.random()}\n")


def rename_hardware(history: History) -> None:
    """The hardware file gets another name, and the configuration says so."""
    old, new = hardware_file(history), f"core{history.draw.randrange(1000)}"
    old.rename(old.with_name(f"{new}.yaml"))
    history.replace("config/config.yaml", f"hardware: {old.stem},", f"hardware: {new},")


def checkout_older(history: History) -> None:
    """What people write is as it was at the beginning."""
    shutil.rmtree(history.clone.file("config"))
    shutil.copytree(history.other.root / "config", history.clone.file("config"))


def touch_files(history: History) -> None:
    """Some files are new, by their age."""
    for path in sorted(history.clone.root.rglob("*")):
        if path.is_file() and ".cache" not in path.parts and history.draw.random() < 0.2:
            os.utime(path)


def set_clock_back(history: History) -> None:
    """All that was made until now is of tomorrow, as it seems on a machine whose clock was set back."""
    tomorrow = time.time() + 86_400
    for path in sorted(history.clone.root.rglob("*")):
        if path.is_file() and ".cache" not in path.parts:
            os.utime(path, (tomorrow, tomorrow))


def delete_snakemake(history: History) -> None:
    """What Snakemake remembers is gone."""
    shutil.rmtree(history.clone.file(".snakemake"), ignore_errors=True)


def restore_snakemake(history: History) -> None:
    """What Snakemake remembers is that of another clone."""
    delete_snakemake(history)
    shutil.copytree(history.other.root / ".snakemake", history.clone.file(".snakemake"))


def delete_results(history: History) -> None:
    """All results, or a part of them."""
    folder = history.clone.file("results")
    part = history.draw.choice(["", *RESULTS_PARTS])
    shutil.rmtree(folder / part, ignore_errors=True)


def copy_results(history: History) -> None:
    """Results of another clone, all or a part, with their ages or without."""
    part = history.draw.choice(["", *RESULTS_PARTS])
    target, copy = history.clone.file("results") / part, history.draw.choice([shutil.copy2, shutil.copyfile])
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(history.other.root / "results" / part, target, copy_function=copy)


def save_and_restore(history: History) -> None:
    """Results come back from a backup that was made before an edit and a run."""
    backup = history.scratch / "backup"
    shutil.rmtree(backup, ignore_errors=True)
    if not history.clone.file("results").is_dir():
        return
    shutil.copytree(history.clone.file("results"), backup)
    edit_value(history)
    history.clone.run()
    shutil.rmtree(history.clone.file("results"))
    shutil.copytree(backup, history.clone.file("results"))


def flip_bit(history: History) -> None:
    """One bit of a result, with or without its age."""
    path = history.any_result()
    if path is None:
        return
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[history.draw.randrange(len(content))] ^= 1 << history.draw.randrange(8)
    path.write_bytes(content)
    if history.draw.random() < 0.5:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def cut_file(history: History) -> None:
    """A result ends early."""
    if path := history.any_result():
        os.truncate(path, history.draw.randrange(path.stat().st_size))


def kill_run(history: History) -> None:
    """kill -9 of a run and all its processes at a random moment, after an edit so that there is something to do."""
    edit_value(history)
    process = history.clone.start()
    time.sleep(history.draw.uniform(0.3, 8))
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def fill_disk(history: History) -> None:
    """No file may grow beyond some KiB while a run makes something."""
    edit_value(history)
    history.clone.run(limit=f"ulimit -f {history.draw.choice([1, 4, 16, 64])}")


def two_runs(history: History) -> None:
    """Two runs at once, one of which refuses or waits."""
    edit_value(history)
    both = [history.clone.start(), history.clone.start()]
    for process in both:
        process.wait()


def make_run(history: History) -> None:
    """A run to its end."""
    history.clone.run()


EDITS: tuple[Callable[[History], None], ...] = (
    *(edit_value, edit_option, edit_mapping, edit_module, edit_module_unseen),
    *(edit_stage, rename_hardware),
)
"""Steps that change numbers, or what runs."""
FAULTS: tuple[Callable[[History], None], ...] = (
    *(edit_comment, touch_files, set_clock_back, checkout_older, delete_snakemake, restore_snakemake, delete_results),
    *(copy_results, save_and_restore, flip_bit, cut_file, kill_run, fill_disk, two_runs),
)


@dataclass(frozen=True)
class Outcome:
    """How a history ended."""

    seed: int
    steps: tuple[str, ...]
    is_changed: bool
    """The bytes at the end are others than at the beginning."""
    refusal: str
    """What `make run` said instead of making everything; '' if it made it."""
    differing: tuple[str, ...]
    """Files with other bytes than those of a fresh clone."""


class Histories:
    """Histories of one tiny project; runs from scratch are made once for each state of what people wrote."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.base = Clone.create(scratch / "base")
        self._fresh: dict[str, dict[str, bytes]] = {}
        done = self.base.run()
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        self.began = self.base.results()

    def run(self, seed: int, length: int = 5) -> Outcome:
        """One history of so many steps, at least one edit and one fault among them, then `make run`."""
        draw = random.Random(seed)
        steps = [draw.choice(EDITS), draw.choice(FAULTS)]
        steps += [draw.choice((*EDITS, *FAULTS, make_run, make_run)) for _ in range(length - len(steps))]
        draw.shuffle(steps)
        folder = self.scratch / f"history-{seed}"
        history = History(self.base.copy(folder / "clone"), self.base, draw, folder)
        for step in steps:
            step(history)
            history.done.append(step.__name__)
        done = history.clone.run()
        found, expected = history.clone.results(), self.fresh(history.clone)
        differing = [name for name in expected if found.get(name) != expected[name]]
        refusal = (done.stdout + done.stderr)[-2000:] if done.returncode else ""
        if not differing:
            shutil.rmtree(folder)
        return Outcome(seed, tuple(history.done), expected != self.began, refusal, tuple(differing))

    def fresh(self, clone: Clone) -> dict[str, bytes]:
        """Results of a run from scratch of what a clone says."""
        state = clone.written()
        if state not in self._fresh:
            root = self.scratch / "fresh"
            shutil.rmtree(root, ignore_errors=True)
            fresh = Clone.create(root)
            for part in ("config", "lib"):
                shutil.rmtree(root / part)
                shutil.copytree(
                    clone.root / part, root / part, ignore=shutil.ignore_patterns("__pycache__"), symlinks=True
                )
            done = fresh.run()
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
            self._fresh[state] = fresh.results()
        return self._fresh[state]
