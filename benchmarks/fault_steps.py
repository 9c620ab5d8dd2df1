"""Steps of histories of a folder of results: edits of the files that people write, and faults.

Each step is a function of a history. It returns True if it changed something, and False if it found nothing to change.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.clones import PIPELINE, Clone, files_below

RESULTS_PARTS = ("single", "single/mine", "hardware", "workload", "mapping", ".manifest", ".manifest/single", "batch")
"""Folders of results that are deleted or copied separately."""
MODULE, CORRECT, WRONG = (
    *("lib/tilewright/hardware/core_reader.py",),
    *("return entry.r_cost, entry.w_cost", "return entry.w_cost, entry.r_cost"),
)
"""Module that is edited, and two texts of equal length. The first text has the right energies of reads and writes; in
the second text, both energies are exchanged.
"""
WORDS = ("lib/tilewright/base/unused.py", "problem.message, value", "problem.message.upper(), value")
"""Another module that is edited, and two texts. The first is its code for notices on entries without effect; the second
is this code with words in capitals.
"""
LONGEST_RUN_S = 6.0
"""Time in seconds after which most runs have ended."""


@dataclass
class History:
    """History: the clone, the data that its steps need, and the steps that were made."""

    clone: Clone
    others: tuple[Clone, ...]
    """Other clones whose results and records can be copied. The first one is equal to this clone at its beginning."""
    draw: random.Random
    scratch: Path
    done: list[str] = field(default_factory=list)

    def swap(self, path: str, *texts: str) -> bool:
        """Replace the text that a file contains by the next text of the list."""
        file = self.clone.file(path)
        found = file.read_text() if file.is_file() else ""
        for old, new in zip(texts, (*texts[1:], texts[0]), strict=True):
            if old in found:
                file.write_text(found.replace(old, new, 1))
                return True
        return False

    def any_result(self) -> Path | None:
        """Random file of the results, drawn by its name. Hidden files are included."""
        found = files_below(self.clone.file("results"))
        paths = [path for path in found.values() if path.stat().st_size]
        return self.draw.choice(paths) if paths else None

    def files(self) -> list[Path]:
        """All files of the clone except caches."""
        return [path for path in files_below(self.clone.root).values() if "__pycache__" not in path.parts]


def hardware_file(history: History) -> Path:
    """Hardware file under its present name."""
    return min(history.clone.file("config/hardware").glob("*.yaml"))


def edit_value(history: History) -> bool:
    """Change the energy of a read, so that all totals change."""
    file = hardware_file(history)
    lines = file.read_text().splitlines(keepends=True)
    row = next(index for index, line in enumerate(lines) if "1 MiB" in line)
    before, _, rest = lines[row].partition("r_cost: ")
    old, _, after = rest.partition(",")
    new = history.draw.choice([value for value in ("50", "70", "90") if value != old])
    lines[row] = f"{before}r_cost: {new},{after}"
    file.write_text("".join(lines))
    return True


def edit_option(history: History) -> bool:
    """Change the model, a limit, or the number of runs that share a job."""
    texts = [
        f"lpf_limit: {limit}\n{model}runs_per_job: {size}\n"
        for limit in (4, 5)
        for model in ("", "model: corrected\n")
        for size in (1, 2)
    ]
    file = history.clone.file("config/config.yaml")
    before, _, runs = file.read_text().partition("runs:\n")
    text = history.draw.choice([text for text in texts if text not in before])
    kept = "".join(line for line in before.splitlines(keepends=True) if line.startswith(("#", "pipeline")))
    file.write_text(f"{kept}{text}runs:\n{runs}")
    return True


def edit_mapping(history: History) -> bool:
    """Change the spatial mapping."""
    return history.swap("config/mapping/free.yaml", 'D1: ["K, 2"]', 'D1: ["C, 2"]')


def edit_module(history: History) -> bool:
    """Edit a source module: exchange the energies of reads and writes, or change the words of summaries."""
    return history.swap(*history.draw.choice([(MODULE, CORRECT, WRONG), WORDS]))


def edit_module_unseen(history: History) -> bool:
    """Edit a file, but keep its size and age, as can happen with `rsync -t` or a disk image."""
    file = history.clone.file(MODULE)
    stat = file.stat()
    is_done = history.swap(MODULE, CORRECT, WRONG)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return is_done


def edit_stage(history: History) -> bool:
    """Add a stage of the project to the pipeline. If the stage exists, edit a module that the stage imports, so that
    the stage prefers the opposite.
    """
    config = history.clone.file("config/config.yaml")
    if "pipeline" not in config.read_text():
        config.write_text(PIPELINE + config.read_text())
        return True
    return history.swap("config/stages/sign.py", "SIGN = +1", "SIGN = -1")


def edit_comment(history: History) -> bool:
    """Add a comment above everything else in a file. The comment has no effect on tilewright."""
    names = (
        "config/config.yaml",
        "config/mapping/free.yaml",
        "config/workload/net.yaml",
        "config/stages/sign.py",
        MODULE,
    )
    file = history.draw.choice([hardware_file(history), *map(history.clone.file, names)])
    if not file.is_file():
        return False
    words, text = "# words that say nothing\n", file.read_text()
    file.write_text(text.removeprefix(words) if text.startswith(words) else words + text)
    return True


def rename(history: History) -> bool:
    """Rename a file or a run, or restore its former name. The names in the configuration are changed, too."""
    what, names = history.draw.choice(
        [
            ("hardware", ("narrow", "core")),
            ("workload", ("net", "mesh")),
            ("mapping", ("free", "open")),
            ("run", ("  mine:", "  yours:")),
        ]
    )
    config = history.clone.file("config/config.yaml")
    if what == "run":
        return history.swap("config/config.yaml", *names)
    for old, new in (names, names[::-1]):
        file = history.clone.file(f"config/{what}/{old}.yaml")
        if file.is_file():
            file.rename(file.with_name(f"{new}.yaml"))
            config.write_text(config.read_text().replace(f"{what}: {old}", f"{what}: {new}"))
            return True
    return False


def checkout_older(history: History) -> bool:
    """Restore the files that people write to their state at the beginning. The files get either their former ages, or
    new ages.
    """
    copy = history.draw.choice([shutil.copy2, shutil.copyfile])
    ignored = shutil.ignore_patterns("__pycache__")
    for part in ("config", "lib"):
        kept = {name: path for name, path in files_below(history.clone.file(part)).items() if "__pycache__" not in name}
        older = files_below(history.others[0].file(part))
        for name in kept.keys() - older.keys():
            kept[name].unlink()
        source, target = history.others[0].file(part), history.clone.file(part)
        shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True, copy_function=copy)
    return True


def touch_files(history: History) -> bool:
    """Give some files a new age."""
    for path in history.files():
        if history.draw.random() < 0.2:
            os.utime(path)
    return True


def set_clock_back(history: History) -> bool:
    """Set the ages of all or half of the results to tomorrow. Results look like this after the clock of the machine was
    set back.
    """
    tomorrow, share = time.time() + 86_400, history.draw.choice([1.0, 0.5])
    for path in history.files():
        if history.draw.random() < share:
            os.utime(path, (tomorrow, tomorrow))
    return True


def delete_snakemake(history: History) -> bool:
    """Delete the records of Snakemake."""
    folder = history.clone.file(".snakemake")
    is_there = folder.is_dir()
    shutil.rmtree(folder, ignore_errors=True)
    return is_there


def restore_snakemake(history: History) -> bool:
    """Replace the records of Snakemake by those of another clone."""
    delete_snakemake(history)
    shutil.copytree(history.draw.choice(history.others).root / ".snakemake", history.clone.file(".snakemake"))
    return True


def delete_results(history: History) -> bool:
    """Delete all results, a folder of results, or a file."""
    part = history.draw.choice(["", "a file", "a file", *RESULTS_PARTS])
    if part == "a file":
        file = history.any_result()
        if file:
            file.unlink()
        return file is not None
    folder = history.clone.file("results") / part
    is_there = folder.is_dir()
    shutil.rmtree(folder, ignore_errors=True)
    return is_there


def copy_results(history: History) -> bool:
    """Copy results of another clone: all results, a folder or a file, with or without their ages."""
    other, copy = history.draw.choice(history.others), history.draw.choice([shutil.copy2, shutil.copyfile])
    part = history.draw.choice(["", "a file", "a file", *RESULTS_PARTS])
    source, target = other.root / "results", history.clone.file("results")
    if part == "a file":
        name = history.draw.choice([*files_below(source)])
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source / name, target / name)
        return True
    shutil.rmtree(target / part, ignore_errors=True)
    if (source / part).is_dir():
        shutil.copytree(source / part, target / part, copy_function=copy)
    return True


def restore_results(history: History) -> bool:
    """Restore all results or a folder of results from a backup that was made before an edit and a run.

    The backup was copied, or moved aside. If it was moved, the files keep their inodes and all their times.
    """
    folder = history.clone.file("results") / history.draw.choice(["", "", *RESULTS_PARTS])
    backup, is_moved = history.scratch / "backup", history.draw.random() < 0.5
    shutil.rmtree(backup, ignore_errors=True)
    if not folder.is_dir():
        return False
    shutil.copytree(folder, backup) if not is_moved else folder.rename(backup)
    history.draw.choice([edit_value, edit_mapping, edit_module_unseen])(history)
    history.clone.run()
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(backup, folder) if not is_moved else backup.rename(folder)
    return True


def flip_bit(history: History) -> bool:
    """Change one bit of a result. The age of the file changes or stays."""
    path = history.any_result()
    if path is None:
        return False
    stat, content = path.stat(), bytearray(path.read_bytes())
    content[history.draw.randrange(len(content))] ^= 1 << history.draw.randrange(8)
    path.write_bytes(content)
    if history.draw.random() < 0.5:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return True


def cut_file(history: History) -> bool:
    """Cut off the end of a result."""
    if path := history.any_result():
        os.truncate(path, history.draw.randrange(path.stat().st_size))
    return path is not None


def kill_run(history: History) -> bool:
    """Kill a run and all its processes with kill -9 at a random moment. A file is edited before the run, so that the
    run has work.
    """
    edit_value(history)
    process = history.clone.start()
    time.sleep(history.draw.uniform(0.2, LONGEST_RUN_S))
    is_running = process.poll() is None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return is_running


def fill_disk(history: History) -> bool:
    """Run with a limit of some KiB on the size of every file."""
    edit_value(history)
    return history.clone.run(limit=f"ulimit -f {history.draw.choice([1, 4, 16, 64])}").returncode != 0


def two_runs(history: History) -> bool:
    """Start two runs at the same time. One of them must refuse or wait."""
    edit_value(history)
    both = [history.clone.start(), history.clone.start()]
    codes = [process.wait() for process in both]
    return any(codes)


def edit_during_run(history: History) -> bool:
    """Edit a file at a random moment of a run. In half of the cases, the edit is undone after the run."""
    edit_value(history)
    edit = history.draw.choice([edit_value, edit_mapping, edit_module, edit_stage, edit_option])
    before = history.scratch / "before"
    shutil.rmtree(before, ignore_errors=True)
    shutil.copytree(history.clone.file("config"), before)
    module = history.clone.file(MODULE).read_text()
    process = history.clone.start()
    time.sleep(history.draw.uniform(0.1, LONGEST_RUN_S / 2))
    is_running = process.poll() is None
    edit(history)
    process.wait()
    if history.draw.random() < 0.5:
        shutil.rmtree(history.clone.file("config"))
        shutil.copytree(before, history.clone.file("config"))
        history.clone.file(MODULE).write_text(module)
    return is_running


def make_run(history: History) -> bool:
    """Run the clone to the end."""
    return history.clone.run().returncode == 0


Step = Callable[[History], bool]
EDITS: tuple[Step, ...] = (edit_value, edit_option, edit_mapping, edit_module, edit_module_unseen, edit_stage)
"""Steps that change numbers."""
FAULTS: tuple[Step, ...] = (
    *(edit_comment, rename, touch_files, set_clock_back, checkout_older, delete_snakemake, restore_snakemake),
    *(delete_results, copy_results, restore_results, flip_bit, cut_file, kill_run, fill_disk, two_runs),
    edit_during_run,
)
"""Steps that must not change any number. Results that they delete must be made again."""
