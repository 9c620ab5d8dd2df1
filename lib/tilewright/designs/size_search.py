"""Sizes of on-chip memories that reverse the order of two runs: each run is evaluated or searched with other sizes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.base.errors import InputError, MappingError
from tilewright.designs.core_trials import ExplainedRun
from tilewright.designs.held_mappings import Outcome
from tilewright.designs.order_search import searched_outcome, share_of_difference
from tilewright.hardware.core import Core, single_core
from tilewright.hardware.source import parse_accelerator
from tilewright.hardware.system import on_chip_memories
from tilewright.hardware.text_edits import with_values
from tilewright.results.order_turn import OrderTurn
from tilewright.results.size_turn import SizedMemory, SizeOrder, TriedSize, size_order

NO_MAPPING, NOT_HELD = "no mapping fits", "the mappings do not fit"
Runs = tuple[ExplainedRun, ExplainedRun]


def sized_memories(runs: Runs) -> tuple[SizedMemory, ...]:
    """On-chip memories of two runs; the memories of the first run come first. Memories without an entry in the hardware
    file are left out.
    """
    found = []
    for place, run in enumerate(runs):
        core, written = run.core, run.hardware.get("memories", {})
        on_chip = [core.memories[index] for index in sorted(on_chip_memories(core))]
        found += [
            SizedMemory(place, memory.name, memory.size_bits, memory.cost_source is not None)
            for memory in on_chip
            if memory.name in written
        ]
    return tuple(found)


def size_orders(
    turns: Sequence[OrderTurn],
    runs: Runs,
    memories: Sequence[SizedMemory],
    is_searched: bool,
    jobs: int = 1,
) -> tuple[SizeOrder, ...]:
    """Order of two runs in each measure of `turns`, with the smallest change of one memory size that reverses this
    order. () if there is no memory to change.

    If `is_searched` is true, mappings are searched for each tried size, with the options of the run. Otherwise, the
    runs keep their mappings, and only memories with costs from the library are changed. `jobs` is a number of processes
    and does not change the result.
    """
    changeable = [memory for memory in memories if is_searched or memory.has_library_costs]
    trials = _Trials(runs, is_searched, jobs)
    orders = (size_order(one, changeable, _Measured(trials, one).difference, is_searched) for one in turns)
    return tuple(one for one in orders if one is not None)


def resized_core(run: ExplainedRun, name: str, size_bits: int) -> Core:
    """Core of a run after the size of its memory `name` is changed to `size_bits`. Memory costs that come from the
    library of costs follow the new size. Raises InputError if the changed hardware is not valid.
    """
    return single_core(parse_accelerator(with_values(run.hardware, [(("memories", name, "size"), size_bits)])))


@dataclass(eq=False)
class _Trials:
    """Cores and costs of both runs with other memory sizes. Each size is tried once."""

    runs: Runs
    is_searched: bool
    jobs: int
    found: dict[tuple[int, str, int], tuple[Core, Outcome]] = field(default_factory=dict)

    def at(self, place: int, memory: str, size_bits: int) -> tuple[Core, Outcome]:
        """Pair (core, costs) of the run with index `place` (0 or 1), if its memory `memory` has the size `size_bits`.
        If `memory` is '', the core is unchanged.
        """
        key = place, memory, size_bits
        if key not in self.found:
            self.found[key] = self._tried(place, memory, size_bits)
        return self.found[key]

    def _tried(self, place: int, memory: str, size_bits: int) -> tuple[Core, Outcome]:
        run = self.runs[place]
        try:
            core = resized_core(run, memory, size_bits) if memory else run.core
        except InputError as error:
            return run.core, Outcome(reason=f"the hardware is not valid ({error.problems[0].message})")
        try:
            if self.is_searched:
                return core, searched_outcome(run, core, self.jobs)
            return core, run.held(core) if memory else run.now
        except MappingError:
            return core, Outcome(reason=NO_MAPPING if self.is_searched else NOT_HELD)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Relative difference of two runs in one measure, as a function of the size of one memory. `turn` names the
    measure, such as the latency.
    """

    trials: _Trials
    turn: OrderTurn

    def difference(self, memory: SizedMemory, size_bits: int) -> TriedSize:
        """Relative difference of the two runs if the memory has the size `size_bits`, or the reason why there is
        none.
        """
        changed = (memory.name, size_bits) if size_bits != memory.size_bits else ("", 0)
        both = [self.trials.at(place, *(changed if place == memory.place else ("", 0))) for place in (0, 1)]
        reason = next((outcome.reason for _, outcome in both if outcome.energy_pj is None), "")
        if reason:
            return TriedSize(None, reason)
        cores, outcomes = zip(*both, strict=True)
        return TriedSize(share_of_difference(self.turn, cores, outcomes))
