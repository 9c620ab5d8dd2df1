"""The term of the energy that time costs: static power of a core, as long as a layer runs on it."""

from typing import NamedTuple

from tilewright.cost.energy_terms import TermCost
from tilewright.hardware.core import Core
from tilewright.hardware.static_power import leakage_pj_a_cycle
from tilewright.mapping.constraints import Unrolling
from tilewright.workload.layer import Layer


class _Leakage(NamedTuple):
    """All memories and units of the core leak in every cycle of the latency, the outermost memory included."""

    def concerns(self, core: Core) -> bool:
        """Whether its file gives static power, and the clock that makes it energy."""
        return leakage_pj_a_cycle(core) > 0

    def cost(self, layer: Layer, core: Core, unrolling: Unrolling) -> TermCost:
        """It grows with the latency."""
        return TermCost(pj_a_cycle=leakage_pj_a_cycle(core))

    def waiting_pj_a_cycle(self, core: Core) -> float:
        """A core leaks while data are copied, as while it computes."""
        return leakage_pj_a_cycle(core)


LEAKAGE = _Leakage()
