"""Waiting of computation nodes (CNs): a host starts each CN with one call, and the array runs the CN as commands.

On one core, a call runs the loops below the outermost memory, and the array runs these loops as one or more commands.
In a run on several cores, the outermost memory is the off-chip memory, and a CN is the work of a core between its
transfers. The mapping of a CN is therefore searched without the keys of calls and commands. The cycles of calls and
commands are added to the CN after the search (docs/multi-core-model/node-costs.md#waiting-of-a-node).
"""

import math
from dataclasses import dataclass, replace

from tilewright.cost.record import LayerRecord
from tilewright.cost.waiting import waiting_keys
from tilewright.hardware.attributes import (
    CALL_CYCLES,
    CALL_KEYS,
    CALLS_IN_FLIGHT,
    COMMAND_ITERATIONS,
    COMMAND_KEYS,
    COMMAND_LATENCY,
    COMMANDS_IN_FLIGHT,
    LEAST_COMMAND,
    START_CYCLES,
    Figures,
    figure,
)
from tilewright.hardware.core import Core

_KEYS = {one.field for one in (START_CYCLES, *CALL_KEYS, *COMMAND_KEYS)}


@dataclass(frozen=True)
class NodeWaiting:
    """Calls and commands of the CNs on a core. The default values are those of a core without keys of calls and
    commands.
    """

    calls: Figures = ()
    """Attributes of the core; the attributes of calls are among them."""
    commands: Figures = ()
    """Attributes of the array; the attributes of commands are among them."""
    command_dimensions: tuple[str, ...] = ()
    """Loop dimensions whose iterations one command can run; () for the innermost loop only."""

    def command_cycles(self, record: LayerRecord) -> int:
        """Cycles that commands add to the latency of a mapped CN. They are computed as in `cost.waiting_kernel`, for a
        call that has all loops of the CN.
        """
        longest = figure(COMMAND_ITERATIONS, self.commands)
        if not longest:
            return 0
        parts = record.latency_breakdown_cycles
        sizes = [size for _, size in record.loop_order]
        inside = [size for name, size in record.loop_order if name in self.command_dimensions]
        run = math.prod(inside if self.command_dimensions else sizes[:1])
        runs = math.prod(sizes) / run
        each = (parts["ideal"] + parts["spatial_stall"]) / math.prod(sizes)
        least, commands = figure(LEAST_COMMAND, self.commands), math.ceil(run / longest)
        last = run - (commands - 1) * longest
        busy = (commands - 1) * max(least, longest * each) + max(least, last * each)
        cycles = runs * busy
        if in_flight := figure(COMMANDS_IN_FLIGHT, self.commands):
            cycles = max(cycles, runs * (commands * figure(COMMAND_LATENCY, self.commands) + busy) / in_flight)
        return max(0, math.ceil(cycles + parts["onloading"] + parts["offloading"] - record.latency_cycles))

    def called_cycles(self, cycles: float) -> float:
        """Cycles for which a CN occupies the core, if the CN takes `cycles` cycles after its call has been issued.

        If the core works on one call at a time, the core waits while the call is issued. Otherwise, the host issues the
        call while the previous CN runs, so that a CN begins at most every `call_cycles` cycles.
        """
        issue = figure(CALL_CYCLES, self.calls)
        return cycles + issue if figure(CALLS_IN_FLIGHT, self.calls) == 1 else max(cycles, issue)


NO_WAITING = NodeWaiting()
"""Waiting of the CNs on a core without keys of calls and commands."""


def node_waiting(core: Core) -> NodeWaiting:
    """Calls and commands of the CNs on `core`, as the keys of the core file describe them."""
    array = core.operational_array
    return NodeWaiting(core.figures, array.figures, array.command_dimensions)


def without_calls_and_commands(core: Core) -> Core:
    """Copy of `core` without the keys of calls and commands. `core` itself if it has none of these keys."""
    array = core.operational_array
    if not _KEYS & {name for name, _ in (*core.figures, *array.figures)}:
        return core
    bare = replace(
        core,
        figures=_without_keys(core.figures),
        operational_array=replace(array, figures=_without_keys(array.figures), command_dimensions=()),
    )
    return replace(bare, waits=bool(waiting_keys(bare)))


def _without_keys(figures: Figures) -> Figures:
    return tuple(pair for pair in figures if pair[0] not in _KEYS)
