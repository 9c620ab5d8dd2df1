"""Random histories of a folder of results: edits and faults, then `make run` against a fresh clone, byte for byte.

Each history works on a copy of a tiny clone that was run once (`benchmarks/clones.py`). Its steps are edits of what
people write and of the library, and faults: damage, kills, restored and copied results, ages that lie
(`benchmarks/fault_steps.py`). At its end `make run` must give the bytes of a run from scratch of what the clone says
then, or refuse in words. `benchmarks/faults.py histories` prints the counts.
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
"""Steps of a history."""
FEWEST_CHANGED = 0.8
"""Share of the histories at least that have to end with other bytes than they began."""


@dataclass(frozen=True)
class Outcome:
    """How a history ended."""

    seed: int
    steps: tuple[str, ...]
    """Names of its steps; of those that found nothing to do, in brackets."""
    is_changed: bool
    """The bytes at the end are others than at the beginning."""
    refusal: str
    """What `make run` said instead of making everything; '' if it made it."""
    differing: tuple[str, ...]
    """Files with other bytes than those of a fresh clone, and files beside those that it has not."""
    cpu_s: float
    """CPU seconds of all its processes, of its run from scratch too."""

    @property
    def is_silent(self) -> bool:
        """Whether something differs of which nothing is said."""
        return bool(self.differing) and not self.is_refused

    @property
    def is_refused(self) -> bool:
        """Whether `make run` said plainly what it refuses."""
        return bool(self.refusal) and not any(word in self.refusal for word in ("Traceback", "internal error"))

    def __str__(self) -> str:
        end = "changed" if self.is_changed else "as before"
        if self.is_refused:
            end = f"refused: {self.refusal.strip().splitlines()[-1]}"
        if self.is_silent:
            end = f"DIFFERENT: {', '.join(self.differing[:5])}"
        return f"{self.seed}: {' '.join(self.steps)}: {end} ({self.cpu_s:.1f} CPU s)"


class Histories:
    """Histories of one tiny project; runs from scratch are made once for each state of what people wrote."""

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
        """A clone that says something else, after its run."""
        foreign = self.base.copy(self.scratch / "foreign")
        for edit in (edit_value, edit_mapping, edit_module):
            edit(History(foreign, (), random.Random(0), self.scratch))
        self._run_to_end(foreign)
        return foreign

    def run(self, seed: int, steps: Iterable[Step] = ()) -> Outcome:
        """A history of random steps, unless some are given, then `make run`; its folder stays if that refuses, or
        something differs."""
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
        """Results of a run from scratch of what a clone says; none where that fails."""
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
    """Steps of a random history: an edit that changes numbers and a fault at least, in any order."""
    steps = [draw.choice(EDITS), draw.choice(FAULTS)]
    steps += [draw.choice((*EDITS, *FAULTS, make_run, make_run)) for _ in range(LENGTH - len(steps))]
    draw.shuffle(steps)
    return steps


def _left_over(found: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Files in a folder of a run that no run from scratch makes there: tables of earlier runs across others stay in
    folders of their own names."""
    folders = {name.rpartition("/")[0] for name in expected if name.startswith("single/")}
    return [name for name in found if name not in expected and name.rpartition("/")[0] in folders]


def histories(count: int, first_seed: int, folder: Path) -> int:
    """The sub-command: tells each history and the counts; how many ended with a silent difference."""
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
    """Counts of histories, of silent differences, of refusals, and of each kind of step that did something."""
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
