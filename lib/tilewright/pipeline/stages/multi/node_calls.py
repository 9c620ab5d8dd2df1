"""Calls in a run on several cores: a host starts each computation node (CN) with one call.

On one core, a call runs the loops below the outermost memory. In a run on several cores, the outermost memory is the
off-chip memory, and a CN is what a core runs between its transfers. The mapping of a CN is therefore searched without
the keys of calls, and each CN then lasts longer (docs/multi-core-model.md#waiting-in-a-run-on-several-cores).
"""

from dataclasses import dataclass, replace

from tilewright.cost.waiting import waiting_keys
from tilewright.hardware.attributes import CALL_CYCLES, CALL_KEYS, CALLS_IN_FLIGHT, figure
from tilewright.hardware.core import Core


@dataclass(frozen=True)
class NodeCall:
    """Call with which a host starts a CN on a core. The default values describe a core without keys of calls."""

    issue_cycles: float = 0.0
    """Cycles that the host needs to issue the call."""
    is_alone: bool = False
    """True if the core works on at most one call, so that the host issues no call while a CN runs."""

    def lasting_cycles(self, cycles: float) -> float:
        """Cycles for which a CN occupies the core if it takes `cycles` cycles after the call has been issued.

        If the core works on one call at a time, the core waits while the call is issued. Otherwise, the call is issued
        while the CN before runs, so that a CN begins at most every `issue_cycles` cycles.
        """
        return cycles + self.issue_cycles if self.is_alone else max(cycles, self.issue_cycles)


def node_call(core: Core) -> NodeCall:
    """Call of a CN on `core`, as the keys of the core file describe it."""
    return NodeCall(figure(CALL_CYCLES, core.figures), figure(CALLS_IN_FLIGHT, core.figures) == 1)


def without_calls(core: Core) -> Core:
    """Copy of `core` without the keys of calls. `core` itself if it has none of these keys."""
    names = {one.field for one in CALL_KEYS}
    kept = tuple(pair for pair in core.figures if pair[0] not in names)
    if kept == core.figures:
        return core
    bare = replace(core, figures=kept)
    return replace(bare, waits=bool(waiting_keys(bare)))
