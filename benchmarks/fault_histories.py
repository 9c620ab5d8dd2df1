"""Random histories of a folder of results: edits and faults, then a comparison of `make run` with a fresh clone, byte
for byte.

Each history works on a copy of a tiny clone that was run once (`benchmarks/clones.py`). Its steps are of two kinds
(`benchmarks/fault_steps.py`). Edits change the files that people write, or the library. Faults are damage, kills,
restored and copied results, and wrong ages of files. At the end, `make run` must give the same bytes as a run from
scratch with the clone's present input, or refuse with a message. `benchmarks/faults.py histories` prints the counts.
"""

import random
import resource
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.clones import PROJECT, Clone
from benchmarks.fault_steps import EDITS, FAULTS, History, Step, edit_mapping, edit_module, edit_value, make_run
from benchmarks.forked_python import ForkedPython

LENGTH = 5
"""Number of steps of a history."""
FEWEST_CHANGED = 0.8
"""Least share of the histories that must end with other bytes than at their beginning."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a history."""

    seed: int
    steps: tuple[str, ...]
    """Names of the steps of the history. Steps that found nothing to do are in brackets."""
    is_changed: bool
    """True if the bytes at the end differ from those at the beginning."""
    refusal: str
    """Message of `make run` if it refused to make everything; '' if it made everything."""
    differing: tuple[str, ...]
    """Files whose bytes differ from the files of a fresh clone, and files that a fresh clone does not have."""
    cpu_s: float
    """CPU seconds of all processes of the history, including its run from scratch."""

    @property
    def is_silent(self) -> bool:
        """True if files differ and no message says so."""
        return bool(self.differing) and not self.is_refused

    @property
    def is_refused(self) -> bool:
        """True if `make run` said which work it refuses."""
        return bool(self.refusal) and not any(word in self.refusal for word in ("Traceback", "internal error"))

    def __str__(self) -> str:
        end = "changed" if self.is_changed else "as before"
        if self.is_refused:
            end = f"refused: {self.refusal.strip().splitlines()[-1]}"
        if self.is_silent:
            end = f"DIFFERENT: {', '.join(self.differing[:5])}"
        return f"{self.seed}: {' '.join(self.steps)}: {end} ({self.cpu_s:.1f} CPU s)"


class Histories:
    """Histories of one tiny project. There is one run from scratch for each state of the files that people wrote."""

    def __init__(self, scratch: Path, forked: ForkedPython | None = None, has_foreign: bool = True) -> None:
        self.scratch, self.forked = scratch, forked
        self.base = Clone.create(scratch / "base", str(forked.programs) if forked else "")
        self._run_to_end(self.base)
        self.began = self.base.results()
        self._fresh: dict[str, dict[str, bytes]] = {self.base.written(): self.began}
        self.others: tuple[Clone, ...] = (self.base,)
        if has_foreign:
            self.others = self.base, self._foreign()

    def _foreign(self) -> Clone:
        """Clone with other input, after its run."""
        foreign = self.base.copy(self.scratch / "foreign")
        for edit in (edit_value, edit_mapping, edit_module):
            edit(History(foreign, (), random.Random(0), self.scratch))
        self._run_to_end(foreign)
        return foreign

    def run(self, seed: int, steps: Iterable[Step] = ()) -> Outcome:
        """Run a history, then `make run`. The steps are random if none are given. The folder stays if `make run`
        refuses, or if files differ.
        """
        cpu_s, draw = self._cpu_seconds(), random.Random(seed)
        folder = self.scratch / f"history-{seed}"
        shutil.rmtree(folder, ignore_errors=True)
        drawn = steps_of(draw)
        clone = self.base.copy(folder / "clone")
        history = History(clone, self.others, draw, folder)
        for step in (*steps,) or drawn:
            is_done = step(history)
            history.done.append(step.__name__ if is_done else f"({step.__name__})")
        done = clone.run()
        found, expected = clone.results(), self.fresh(clone)
        differing = tuple(name for name in expected if found.get(name) != expected[name])
        if not (expected or done.returncode):
            differing = ("all: a fresh clone refuses",)
        refusal = (done.stdout + done.stderr)[-2000:] or "nothing" if done.returncode else ""
        differing += tuple(_left_over(found, expected))
        outcome = Outcome(seed, tuple(history.done), expected != self.began, refusal, differing, 0.0)
        if outcome.is_silent or outcome.refusal:
            (folder / "said.txt").write_text(done.stdout + done.stderr)
        else:
            shutil.rmtree(folder)
        return replace(outcome, cpu_s=self._cpu_seconds() - cpu_s)

    def fresh(self, clone: Clone) -> dict[str, bytes]:
        """Results of a run from scratch with the input of a clone; {} if this run fails."""
        state = clone.written()
        if state not in self._fresh:
            root = self.scratch / "fresh"
            shutil.rmtree(root, ignore_errors=True)
            fresh = clone.fresh(root, self.base)
            done = fresh.run_plainly()
            self._fresh[state] = fresh.results() if done.returncode == 0 else {}
        return self._fresh[state]

    def _cpu_seconds(self) -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime + (self.forked.cpu_seconds() if self.forked else 0.0)

    @staticmethod
    def _run_to_end(clone: Clone) -> None:
        done = clone.run()
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)


def steps_of(draw: random.Random) -> list[Step]:
    """Random steps of a history, in any order. They include at least one edit that changes numbers, and one fault."""
    steps = [draw.choice(EDITS), draw.choice(FAULTS)]
    steps += [draw.choice((*EDITS, *FAULTS, make_run, make_run)) for _ in range(LENGTH - len(steps))]
    draw.shuffle(steps)
    return steps


def _left_over(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Files in the folder of a run that a run from scratch does not make there. Earlier runs wrote these tables when
    the folder had another name.
    """
    folders = {name.rpartition("/")[0] for name in expected if name.startswith("single/")}
    return [name for name in found if name not in expected and name.rpartition("/")[0] in folders]


def histories(count: int, first_seed: int, folder: Path) -> int:
    """Run the sub-command: print each history and the counts. Returns the number of histories that ended with a silent
    difference.
    """
    outcomes = []
    environment = Clone(PROJECT).environment()
    with ForkedPython(folder / "forked", environment) as forked:
        made = Histories(folder / "histories", forked)
        for seed in range(first_seed, first_seed + count):
            outcomes.append(made.run(seed))
            print(outcomes[-1], flush=True)
    print(told(outcomes), flush=True)
    return sum(outcome.is_silent for outcome in outcomes)


def told(outcomes: list[Outcome]) -> str:
    """Text with the counts of histories, of silent differences, of refusals, and of each kind of step that changed
    something.
    """
    acted = Counter(step for outcome in outcomes for step in outcome.steps)
    changed = sum(outcome.is_changed for outcome in outcomes)
    return "\n".join(
        (
            f"{len(outcomes)} histories, seeds {outcomes[0].seed} to {outcomes[-1].seed}",
            f"{sum(outcome.is_silent for outcome in outcomes)} silent differences",
            f"{sum(outcome.is_refused for outcome in outcomes)} refusals",
            f"{changed} ({changed / len(outcomes):.0%}) end with other bytes than they began",
            f"{sum(outcome.cpu_s for outcome in outcomes):.0f} CPU s",
            ", ".join(f"{acted[step.__name__]} x {step.__name__}" for step in (*EDITS, *FAULTS, make_run)),
        )
    )
