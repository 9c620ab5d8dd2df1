"""Trials of changes to a run on one core: its mappings are evaluated on changed hardware, and new searches are made.

The costs equal the costs of `tilewright evaluate`. If the mapping file is changed, the new search runs on the hardware
of the run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from tilewright.base.errors import MappingError
from tilewright.base.processes import in_processes
from tilewright.cost.record import times
from tilewright.designs.advice import Advice, Advices
from tilewright.designs.advice_gaps import gap_notes
from tilewright.designs.changes import CELLS_OF_SRAM, MappingChange
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.held_mappings import Held, Outcome, best_known, held_mappings, with_levels
from tilewright.designs.trials import Found
from tilewright.hardware.access_times import access_note, core_access_times
from tilewright.hardware.core import Accelerator, Core, single_core
from tilewright.hardware.hierarchy import top_memories
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.text_edits import with_values
from tilewright.mapping.constraints import Mapping
from tilewright.results.recorded_mappings import RecordedMapping, recorded_mappings
from tilewright.results.records import PlacedLayer
from tilewright.results.verdict import MOST_SETS
from tilewright.search.options import SearchOptions
from tilewright.search.progress import Advance
from tilewright.workload.graph import Workload

OUTERMOST = "is the outermost memory: if it is off-chip, a smaller size saves nothing on the chip"
"""Note on outermost memories that could be smaller."""


@dataclass(frozen=True, eq=False)
class ExplainedRun:
    """Run on one core with all its inputs."""

    name: str
    placed: Sequence[PlacedLayer]
    hardware: dict[str, Any]
    """Content of the hardware file of the run."""
    network: Workload
    mapping: Mapping
    options: SearchOptions
    others: Sequence[MappingChange] = ()
    """Changes of the run's mapping file that are tried."""
    same_words = "same\nmappings"
    most_sets = MOST_SETS
    holds_searches = True
    not_searched = ""

    @property
    def objective(self) -> str:
        """Objective of the run's search."""
        return self.options.objective

    @property
    def now(self) -> Outcome:
        """Costs of the run."""
        return Outcome.of([layer.record for layer in self.placed])

    @property
    def core(self) -> Core:
        """Core of the run."""
        return single_core(parse_accelerator(self.hardware))

    @cached_property
    def _mappings(self) -> dict[int, RecordedMapping]:
        """Mappings of the run, by `record_index` of the layer.

        Raises InputError if hardware or network do not belong to the run.
        """
        records = {layer.record_index: layer.of_one for layer in self.placed}
        recorded = recorded_mappings(list(records.values()), self.core, self.network)
        return dict(zip(records, recorded, strict=True))

    def same(self, accelerator: Accelerator) -> Outcome:
        """Costs of the run's mappings on an accelerator.

        The cost of each mapping is multiplied by the number of layers that have this mapping. The costs are added as in
        the summary of a run.
        """
        core = single_core(accelerator)
        one_each = {index: mapping.on(core) for index, mapping in self._mappings.items()}
        return Outcome.of([times(one_each[layer.record_index], layer.repeats) for layer in self.placed])

    @cached_property
    def _fixed(self) -> dict[int, RecordedMapping]:
        """Mappings of the run, by `record_index` of the layer. The memory of each loop is fixed, unless this would
        change the cost.
        """
        core = self.core
        return {index: with_levels(mapping, core) for index, mapping in self._mappings.items()}

    def held(self, core: Core) -> Outcome:
        """Costs of the run's mappings on `core`, which differs from the core of the run in memory sizes. The assignment
        of loops to memories does not change.

        Raises MappingError if a mapping does not fit `core`, or if the cost model would move a loop to another memory.
        """
        one_each = {index: mapping.on(core) for index, mapping in self._fixed.items()}
        for index, mapping in self._fixed.items():
            if one_each[index].temporal_mapping != mapping.record.temporal_mapping:
                raise MappingError(f"{mapping.layer.name}: its loops cannot stay in the same memories")
        return Outcome.of([times(one_each[layer.record_index], layer.repeats) for layer in self.placed])

    def searcher(self) -> Callable[[Accelerator], Found]:
        """Function that searches mappings for a changed core.

        If the found mappings could improve the run on its unchanged core, the function also evaluates the mappings on
        this core. Two conditions must hold: the costs on the changed core differ from the costs of the run, and the
        objective is not above the objective of the run.
        """
        evaluator = NetworkEvaluator(self.network, self.mapping, self.options)
        now, least, core = self.now, self.now.value(self.objective), self.core

        def search(accelerator: Accelerator) -> Found:
            found = Outcome.of_design(evaluator.cost(accelerator))
            value = found.value(self.objective)
            if value is None or least is None or value > least or found[:2] == now[:2]:
                return found, None
            changed = single_core(accelerator)
            return found, held_mappings(self.network, self.mapping, self.options, changed, core)

        return search

    def further(self, jobs: int, advance: Advance) -> list[Advice]:
        """Advice on changes of the mapping file.

        Each change is judged after a new search on the hardware of the run.
        """
        advices = []
        with in_processes(partial(_mapping_searcher, self), len(self.others), jobs) as work:
            searched = work([other.mapping for other in self.others])
            for other, outcome in zip(self.others, searched, strict=True):
                advices.append(Advice(other.change, None, outcome))
                advance(1)
        return advices

    def best_known(self, held: Sequence[Held]) -> Outcome:
        """Costs on the hardware of the run, with the best known mapping of each layer. It is the mapping of the run, or
        a mapping from a search.
        """
        return best_known(self.placed, held, self.objective)

    def notes(self, advices: Advices) -> list[str]:
        """Notes on four topics: the clock of a changed in-memory array, outermost memories that could be smaller, slow
        accesses with other cells, and the gaps of the mappings.

        If an outermost memory is off-chip, a smaller one saves nothing on the chip.
        """
        core, notes = self.core, []
        changed = [part for one in advices.found for part in one.change.single]
        of_array = any(part.key.startswith("operational_array.") for part in changed)
        if core.operational_array.is_in_memory and of_array:
            notes.append("latencies are in cycles, but a changed array can also have another clock period")
        taken = {one.change.path[1] for _, one in advices.spare if one.change.path[0] == "memories"}
        notes += [f"{memory.name} {OUTERMOST}" for memory, _ in top_memories(core) if memory.name in taken]
        return notes + self._slow_cells(advices) + gap_notes(self, advices)

    def _slow_cells(self, advices: Advices) -> list[str]:
        """Notes on changes of the type of SRAM cells. A change gets a note if it saves something, but makes an access
        take longer than a clock cycle."""
        chosen = [one.change.single for _, one in advices.helpful]
        if advices.together is not None:
            chosen.append(advices.together.change.single)
        notes = []
        for change in (part for parts in chosen for part in parts if part.kind == CELLS_OF_SRAM):
            core = single_core(parse_accelerator(with_values(self.hardware, change.system_settings)))
            slow = [one for one in core_access_times(core) if one.is_slow and one.memory == change.path[1]]
            notes += [
                f"with {change.key}: {change.after}, {access_note(one.access_ns, one.period_ns or 0.0)}" for one in slow
            ]
        return list(dict.fromkeys(notes))


def _mapping_searcher(run: ExplainedRun) -> Callable[[Mapping], Outcome]:
    """Function that searches mappings with a changed mapping file. Each process makes this function once."""
    accelerator = parse_accelerator(run.hardware)
    return lambda mapping: Outcome.of_design(NetworkEvaluator(run.network, mapping, run.options).cost(accelerator))
