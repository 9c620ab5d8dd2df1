"""Effects of faults of files on results: flipped bits, failing writes, and random histories.

`faults.py flips` makes a project of tiny runs. It flips one random bit at a time in the results and in a copy of the
caches, and records whether `tilewright store verify` notices it. Then it damages all files at the same time, runs the
project again, and compares all bytes. `faults.py writes` runs `map`, `explore` and `fuse` many times. Each time, a
different system call that writes fails (full disk, error of the disk, kill). The next run must leave the same bytes as
a run without a fault. `faults.py histories` is `benchmarks/fault_histories.py`.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "lib")]

from tilewright.base.artifacts.verification import verify_folder  # noqa: E402
from tilewright.base.noted_files import cache_files, damaged_caches  # noqa: E402

from benchmarks.fault_histories import histories  # noqa: E402
from tests.three_layers import write_network  # noqa: E402

NOT_READ_BACK = (".configuration",)
"""Files of results in which `store verify` notices no fault. Every run writes these files again."""
SPACE = """\
accelerator: ../hardware/wide.yaml
mapping: ../mapping/free.yaml
networks: [../workload/two_layers.yaml]
axes:
  lanes: {path: operational_array.sizes.0, values: [2, 4]}
  read_pj: {path: memories.memory.r_cost, values: [30, 50]}
options: {objective: energy, lpf_limit: 3}
shard_designs: 2
"""
CONFIG = """\
lpf_limit: 4
preset: zigzag
objective: latency
sweeps:
  tiny: {workload: two_layers, hardware: [narrow, wide], mapping: free}
runs:
  fused: {flow: multi, workload: net, hardware: duo, nb_ga_individuals: 4, nb_ga_generations: 2, exhaustive_nodes: 0}
spaces: [lanes]
"""


def make_project(root: Path) -> Path:
    """Make a project with two runs on one core, one run on two cores, and a space. It uses the library of this
    checkout.
    """
    root.mkdir(parents=True)
    for name in ("Snakefile", "environment.yml"):
        shutil.copy2(PROJECT / name, root)
    shutil.copytree(PROJECT / "workflow", root / "workflow")
    for name in ("tiny", "tiny_multi"):
        shutil.copytree(PROJECT / "tests" / "workflow" / name, root / "config", dirs_exist_ok=True)
    write_network(root / "config" / "workload" / "net.onnx")
    (root / "config" / "space").mkdir()
    (root / "config" / "space" / "lanes.yaml").write_text(SPACE)
    (root / "config" / "config.yaml").write_text(CONFIG)
    (root / "lib").symlink_to(PROJECT / "lib")
    return root


def environment() -> dict[str, str]:
    """Environment of a process of the project."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return {**keep, "PATH": path, "PYTHONPATH": str(PROJECT / "lib"), "XDG_CACHE_HOME": str(PROJECT / ".cache")}


def make_run(root: Path) -> str:
    """Run a project as `make run` does. Returns its output. Raises RuntimeError if the run fails."""
    command = ["bash", "workflow/run.sh", "config/config.yaml", "--cores", "2"]
    done = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"make run failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout + done.stderr


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Bytes of every file of results. The report of Snakemake and its manifest are left out, because they contain
    times. Files that depend on the machine are also left out.
    """
    left_out = ("report.html", ".manifest/report.json", "*.due", "*.tilewright-lock*", "*.tmp")
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not _fits(name, left_out)}


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def flip(path: Path, bit: int) -> bytes:
    """Flip a bit of a file without a change of its age. Returns the former bytes."""
    before, age = path.read_bytes(), path.stat()
    content = bytearray(before)
    content[bit // 8] ^= 1 << (bit % 8)
    path.write_bytes(content)
    os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))
    return before


def restore(path: Path, content: bytes, age: os.stat_result) -> None:
    """Write the former bytes of a file again."""
    path.write_bytes(content)
    os.utime(path, ns=(age.st_atime_ns, age.st_mtime_ns))


@dataclass
class Flips:
    """Counts of flipped bits by outcome."""

    noticed: Counter[str] = field(default_factory=Counter)
    not_read_back: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    def told(self) -> str:
        """Text with the counts, by the end of the names of files."""
        kinds = sorted({*self.noticed, *self.not_read_back})
        lines = [
            f"{kind:10} {self.noticed[kind]:5} noticed {self.not_read_back[kind]:5} not read back" for kind in kinds
        ]
        lines += [f"MISSED: {one}" for one in self.missed]
        counts = sum(self.noticed.values()), sum(self.not_read_back.values()), len(self.missed)
        return "\n".join((*lines, "{} noticed, {} in files that nothing reads back, {} missed".format(*counts)))


def try_flips(results: Path, caches: Path, count: int, seed: int) -> Flips:
    """Flip `count` random bits, one at a time. Files of all kinds are chosen equally often."""
    draw, found = random.Random(seed), Flips()
    kinds: dict[str, list[Path]] = {}
    for path in [*(path for path in sorted(results.rglob("*")) if path.is_file()), *cache_files(caches)]:
        kinds.setdefault(_kind(path), []).append(path)
    for _ in range(count):
        path = draw.choice(kinds[draw.choice(sorted(kinds))])
        age = path.stat()
        if not age.st_size:
            continue
        bit = draw.randrange(8 * age.st_size)
        before = flip(path, bit)
        try:
            damaged = _damaged(path, results, caches)
        finally:
            restore(path, before, age)
        name = path.relative_to(results if path.is_relative_to(results) else caches).as_posix()
        if path in damaged:
            found.noticed[_kind(path)] += 1
        elif _fits(name, NOT_READ_BACK):
            found.not_read_back[_kind(path)] += 1
        else:
            found.missed.append(f"{name} bit {bit}")
    return found


def _damaged(path: Path, results: Path, caches: Path) -> set[Path]:
    """Damaged files that the verification finds if only the file `path` has changed."""
    if not path.is_relative_to(results):
        return {*damaged_caches(caches)}
    beside = [other for other in path.parent.glob("*.json") if other != path]
    return {*verify_folder(results, [path, *beside]).problems}


def _kind(path: Path) -> str:
    """Kind of a file: the end of its name. Entries of the store, manifests and reports are separate kinds."""
    return next((part for part in path.parts if part in (".store", ".manifest", "report")), "") + path.suffix


def flip_all_and_run(root: Path, seed: int) -> list[str]:
    """Flip a bit of every file that is verified, and run the project again. Returns the files that then differ."""
    results, draw = root / "results", random.Random(seed)
    before = bytes_of(results)
    for path in verify_folder(results).files:
        flip(path, draw.randrange(8 * path.stat().st_size))
    said = make_run(root)
    if "removed" not in said:
        print(said)
    after = bytes_of(results)
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def flips(count: int, seed: int, rounds: int, folder: Path) -> int:
    """Run the sub-command. Returns the number of faults."""
    root = make_project(folder / "project")
    make_run(root)
    caches = folder / "caches"
    for path in cache_files(PROJECT / ".cache"):
        if "kernels" not in path.parts or len(list(caches.rglob("*"))) < 60:
            copy = caches / path.relative_to(PROJECT / ".cache")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
    _note_copies(caches)
    if problems := [*verify_folder(root / "results").problems, *damaged_caches(caches)]:
        raise RuntimeError(f"damaged before anything was done: {problems}")
    found = try_flips(root / "results", caches, count, seed)
    print(f"{count} flips, seed {seed}:\n{found.told()}")
    different: list[str] = []
    for number in range(rounds):
        different += flip_all_and_run(root, seed + number)
    print(f"{rounds} runs after a flip in every verified file: {len(different)} files with other bytes {different[:5]}")
    return len(found.missed) + len(different)


def _note_copies(caches: Path) -> None:
    """Record the state of the copied caches again. The copy lacks some files, and its records can be older than its
    files.
    """
    from tilewright.base.noted_files import FONT_FILES, FONTS, KERNELS, NUMBA_FILES, NUMBA_FOLDER, NotedFolder

    NotedFolder(caches / FONTS, FONT_FILES).note()
    for folder in (caches / KERNELS).glob(f"*/{NUMBA_FOLDER}"):
        NotedFolder(folder, NUMBA_FILES).note()


class FailingCalls:
    """Replacement for the module `os` in code that writes files. One call, chosen by its number, fails."""

    NAMES = ("fdopen", "fsync", "chmod", "replace")
    """Names of the functions that make, fill, sync and rename a file, and of the writes of a stream."""

    def __init__(self, number: int, fault: str) -> None:
        self.number, self.fault, self.count = number, fault, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if name not in self.NAMES:
            return found

        def call(*given: Any, **named: Any) -> Any:
            self.step()
            made = found(*given, **named)
            return FailingStream(made, self) if name == "fdopen" else made

        return call

    def step(self) -> None:
        """Count a call, and fail if it is the chosen call."""
        self.count += 1
        if self.count == self.number:
            if self.fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            code = getattr(errno, self.fault)
            raise OSError(code, os.strerror(code))


class FailingStream:
    """File that is being written. A failing call writes only half of its data."""

    def __init__(self, stream: Any, calls: FailingCalls) -> None:
        self.stream, self.calls = stream, calls

    def __enter__(self) -> FailingStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, data: bytes) -> None:
        """Write half of the data, then the other half. The call between the two steps can fail."""
        self.stream.write(data[: len(data) // 2])
        self.stream.flush()
        self.calls.step()
        self.stream.write(data[len(data) // 2 :])


def works_of(project: Path, folder: Path) -> dict[str, Callable[[], object]]:
    """Tiny run of each verb, which writes into a folder."""
    import tilewright

    config = project / "config"
    tiny = {"workload": config / "workload/two_layers.yaml", "hardware": config / "hardware/wide.yaml"}
    duo = {"workload": config / "workload/net.onnx", "hardware": config / "hardware/duo.yaml"}
    return {
        "map": lambda: tilewright.map(
            **tiny,
            mapping=config / "mapping/free.yaml",
            output=folder / "map",
            store=folder / "store",
            preset="zigzag",
            lpf_limit=3,
        ),
        "explore": lambda: tilewright.explore(config / "space/lanes.yaml", folder / "explore"),
        "fuse": lambda: tilewright.fuse(**duo, output=folder / "fuse", nb_plans=2, lpf_limit=3, jobs=1),
    }


def in_child(work: Callable[[], object], calls: FailingCalls) -> tuple[int, int]:
    """Pair (how the process ended, number of its calls). The process does the work, with a failing call."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        from tilewright.base.artifacts import files
        from tilewright.base.errors import InputError

        files.os = calls  # type: ignore[attr-defined]
        code = 0
        try:
            work()
        except InputError:
            code = 2
        except BaseException:
            code = 1
        os.write(writer, str(calls.count).encode())
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as told:
        count = int(told.read() or b"0")
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), count


def try_writes(verb: str, project: Path, folder: Path, faults: Sequence[str], every: int) -> list[str]:
    """Faults that remain after a call of a verb has failed. Calls are tried one at a time: all, or every n-th call."""
    wrong: list[str] = []
    shutil.rmtree(folder, ignore_errors=True)
    work = works_of(project, folder)[verb]
    work()
    expected = bytes_of(folder)
    shutil.rmtree(folder)
    calls = in_child(work, FailingCalls(0, ""))[1]
    tried = 0
    for fault in faults:
        for number in range(1, calls + 1, every):
            shutil.rmtree(folder, ignore_errors=True)
            tried += 1
            code, _ = in_child(work, FailingCalls(number, fault))
            left = bytes_of(folder)
            what = f"{verb}, call {number} of {calls}, {fault}"
            if code == 1:
                wrong.append(f"{what}: an internal error")
            torn = [name for name, content in left.items() if content != expected.get(name)]
            wrong += [f"{what}: {name} is torn" for name in torn]
            work()
            if bytes_of(folder) != expected:
                wrong.append(f"{what}: the next run leaves other bytes")
    print(f"{verb}: {tried} faults in {calls} calls, {len(wrong)} wrong", flush=True)
    return wrong


def writes(verbs: Sequence[str], faults: Sequence[str], every: int, folder: Path) -> int:
    """Run the sub-command. Returns the number of faults."""
    project = make_project(folder / "project")
    wrong = [line for verb in verbs for line in try_writes(verb, project, folder / "results", faults, every)]
    print("\n".join(wrong[:20]))
    return len(wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sub-command that the command line names. Returns 1 if there was a fault, else 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    asked = verbs.add_parser("flips", help="flip bits of results and caches")
    asked.add_argument("--count", type=int, default=2000)
    asked.add_argument("--rounds", type=int, default=3, help="runs of the project after a flip in every file")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--folder", type=Path, help="an empty folder to work in, which is kept")
    failing = verbs.add_parser("writes", help="let calls that write fail, one at a time")
    failing.add_argument("--verbs", nargs="+", default=["map", "explore", "fuse"])
    failing.add_argument("--faults", nargs="+", default=["ENOSPC", "EIO", "kill"])
    failing.add_argument("--every", type=int, default=1, help="let only every n-th call fail")
    failing.add_argument("--folder", type=Path, help="an empty folder to work in, which is kept")
    random_histories = verbs.add_parser(
        "histories", help="edits and faults, then `make run` compared with a fresh clone"
    )
    random_histories.add_argument("--count", type=int, default=200)
    random_histories.add_argument("--first-seed", type=int, default=0)
    random_histories.add_argument("--folder", type=Path, help="an empty folder to work in, which is kept")
    given = parser.parse_args(arguments)
    folder = given.folder or Path(tempfile.mkdtemp(prefix="tilewright-faults-"))
    try:
        if given.verb == "histories":
            return int(histories(given.count, given.first_seed, folder) > 0)
        if given.verb == "writes":
            return int(writes(given.verbs, given.faults, given.every, folder) > 0)
        return int(flips(given.count, given.seed, given.rounds, folder) > 0)
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
