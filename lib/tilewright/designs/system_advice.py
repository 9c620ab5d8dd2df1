"""Gains of single changes of a run on several cores: exact at the same allocation, and after a new search
(docs/bottlenecks.md#explain-a-run).

The allocation of the new search is also costed on the accelerator as it is, which tells the gain of the search from
that of the change.

At the same allocation the cost tables of what has changed are searched anew, and the schedule is played with them: what
`tilewright cost` and `tilewright schedule` say of the changed files, with the `mapping.yaml` that holds the allocation.
The new search is that of a design of a space of systems (`evaluate_system.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tilewright.base.errors import InputError, MappingError, Problem
from tilewright.base.json_values import JsonObject
from tilewright.base.processes import in_processes
from tilewright.designs.advice import Advice, Advices, together
from tilewright.designs.changes import FileChange
from tilewright.designs.design_cost import reason_of
from tilewright.designs.evaluate_system import SystemEvaluator
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.space import SystemOptions
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import MultiCoreAccelerator
from tilewright.hardware.text_edits import with_values
from tilewright.multicore.scheduling.assembly import model_problem
from tilewright.multicore.scheduling.core_costs import CoreCostRow
from tilewright.multicore.scheduling.options import ScheduleSettings
from tilewright.multicore.scheduling.problem import Integers
from tilewright.multicore.scheduling.simulate import Scheduler
from tilewright.multicore.scheduling.system_assembly import MEMORY_OPERANDS
from tilewright.pipeline.stages.base import Control, Rest
from tilewright.pipeline.stages.multi.costs import IntraCoreMapping
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem
from tilewright.search.options import CnSearchOptions
from tilewright.search.progress import Advance

SAME = "same\nallocation"
MOST_SETS_OF_CHANGES = 24
"""Sets of changes of one size that are looked at where no single one helps."""
NOT_SEARCHED = "fused plans are not searched again here: `tilewright fuse` looks for one on the changed files"


@dataclass(frozen=True, eq=False)
class ExplainedSystemRun:
    """A run on several cores, with all that it was made of."""

    name: str
    hardware: dict[str, Any]
    """The content of its accelerator file, with its cores under `core_files`."""
    costed: CostedCnProblem
    allocation: Integers
    """[cn] core"""
    now: Outcome
    """What it costs."""
    objective: str
    search: CnSearchOptions
    """Options of the search of the cost tables."""
    settings: ScheduleSettings
    options: SystemOptions | None
    """Options of a whole new search; None where the run is not such a one."""


def system_advices_of(
    run: ExplainedSystemRun,
    changes: Sequence[FileChange],
    *,
    search: bool,
    jobs: int = 1,
    advance: Advance = lambda _: None,
) -> Advices:
    """What each change does to a run; `advance` is told designs as they are done, the run as it is is the first.

    Raises InputError where the run is not what its files give.
    """
    searches = search and run.options is not None
    with in_processes(partial(_worker, run, searches), len(changes) + 1, jobs) as work:
        outcomes = []
        for one in work([None, *changes]):
            outcomes.append(one)
            advance(1)
    same, anew, _ = outcomes[0]
    if same[:2] != run.now[:2]:
        message = f"what it was made of does not give it again: {same.latency_cycles} cycles, {same.energy_pj} pJ"
        raise InputError([Problem(message, run.name, allowed=f"{run.now.latency_cycles}, {run.now.energy_pj}")])
    notes = [] if not search or searches else [NOT_SEARCHED]
    if searches and anew is not None and anew[:2] != run.now[:2]:
        notes.append(
            "a new search of the unchanged hardware does not find the costs of the run: gains are over the run"
        )
    found = [Advice(change, *outcome) for change, outcome in zip(changes, outcomes[1:], strict=True)]
    values = [
        (one, one.value(run.objective)) for one in (run.now, anew, *(one.held for one in found)) if one is not None
    ]
    known, _ = min(((one, value) for one, value in values if value is not None), key=lambda pair: pair[1])
    better = None if known[:2] == run.now[:2] else known
    made = Advices.of(run.objective, run.now, found, searches, notes, SAME, better)
    made = replace(made, holds_searches=False)

    def on_changed(chosen: Sequence[FileChange]) -> Outcome:
        settings = [pair for one in chosen for pair in one.system_settings]
        return _on_hardware(run, with_values(run.hardware, settings))

    # A set costs new tables and a schedule: only those are looked at that hold what every helping set holds.
    return replace(made, together=None if made.helpful else together(made, changes, on_changed, MOST_SETS_OF_CHANGES))


def _on_hardware(run: ExplainedSystemRun, hardware: JsonObject) -> Outcome:
    """What the run costs at its tiles and its allocation on another accelerator."""
    try:
        accelerator = parse_accelerator(hardware)
    except InputError as error:
        return Outcome(reason=reason_of(error))
    assert isinstance(accelerator, MultiCoreAccelerator)
    return _at_same_allocation(run, accelerator)


def _worker(
    run: ExplainedSystemRun, searches: bool
) -> Callable[[FileChange | None], tuple[Outcome, Outcome | None, Outcome | None]]:
    """What evaluates changes in one process: at the same allocation, after a new search, and the allocation of that
    search on the accelerator as it is."""
    given = run.costed.descriptions
    evaluator = None
    if searches and run.options is not None:
        evaluator = SystemEvaluator(given.workload, given.mapping, run.options)

    def evaluate(change: FileChange | None) -> tuple[Outcome, Outcome | None, Outcome | None]:
        hardware = run.hardware if change is None else with_values(run.hardware, change.system_settings)
        try:
            accelerator = parse_accelerator(hardware)
            assert isinstance(accelerator, MultiCoreAccelerator)
        except InputError as error:
            outcome = Outcome(reason=reason_of(error))
            return outcome, outcome if evaluator else None, None
        same = _at_same_allocation(run, accelerator)
        if evaluator is None:
            return same, None, None
        cost, result = evaluator.found(accelerator)
        if result is None:
            return same, Outcome(reason=cost.reason), None
        held = None if change is None else evaluator.held(given.accelerator, result)
        return (
            same,
            Outcome(cost.energy_pj, cost.latency_cycles),
            None if held is None else Outcome(held.energy_pj, held.latency_cycles),
        )

    return evaluate


def _at_same_allocation(run: ExplainedSystemRun, accelerator: MultiCoreAccelerator) -> Outcome:
    """The costs with new cost tables of the cores that are others, and the allocation of the run."""
    given = run.costed.descriptions
    changed = _changed_cores(given.accelerator, accelerator)
    try:
        problem = replace(given, accelerator=accelerator)
        costs = dict(run.costed.costs)
        if changed:
            stage = IntraCoreMapping(**run.search.as_dict())
            (made,) = stage.run(CnProblem(problem, run.costed.graph, changed), Rest((), Control()))
            costs |= {name: tuple(made.costs[name]) for name in changed}
        return _scheduled(run, problem.accelerator, costs)
    except InputError as error:
        return Outcome(reason=reason_of(error))
    except MappingError as error:
        return Outcome(reason=" ".join(str(error).split()))


def _changed_cores(before: MultiCoreAccelerator, after: MultiCoreAccelerator) -> tuple[str, ...]:
    """The core files whose cost tables are others: their own core, or the off-chip one, has changed."""
    names = tuple(after.distinct_cores)
    off_chip = after.offchip_core_id
    if off_chip is not None and before.core_of[off_chip] != after.core_of[off_chip]:
        return names
    return tuple(name for name in names if before.distinct_cores[name] != after.distinct_cores[name])


def _scheduled(
    run: ExplainedSystemRun, accelerator: MultiCoreAccelerator, costs: dict[str, tuple[CoreCostRow, ...]]
) -> Outcome:
    given, settings = run.costed.descriptions, run.settings
    assembled = model_problem(given.workload, run.costed.graph, accelerator, given.mapping, costs, settings)
    options = settings.options(given.workload, given.mapping, MEMORY_OPERANDS)
    schedule = Scheduler(assembled.problem, options)(run.allocation)
    return Outcome(schedule.energy_pj, schedule.latency_cycles)
