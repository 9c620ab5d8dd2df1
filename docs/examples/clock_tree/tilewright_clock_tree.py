"""Plug-in for tilewright: energy of the clock tree, from a key of the hardware file."""

from tilewright.cost.energy_terms import TermCost
from tilewright.hardware.attributes import Attribute, figure

CLOCK_TREE_ENERGY = Attribute(
    key="clock_tree_energy",
    of="array",
    field="clock_tree_energy_pj",
    quantity="energy_pj",
    sentence="Energy of the clock tree of one unit of the array, for each cycle, in pJ (or `50 fJ`).",
)


class ClockTree:
    """Energy of the clock tree of the array, in every cycle."""

    def pj_a_cycle(self, core):
        """Energy of all units for a cycle; 0 if the hardware file does not have the key."""
        array = core.operational_array
        return figure(CLOCK_TREE_ENERGY, array.figures) * array.unit_count

    def concerns(self, core):
        """Cores whose file has the key, and no others."""
        return self.pj_a_cycle(core) > 0

    def cost(self, layer, core, unrolling):
        """Energy for each cycle of the layer."""
        return TermCost(pj_a_cycle=self.pj_a_cycle(core))

    def waiting_pj_a_cycle(self, core):
        """The clock also runs while data are copied between memories."""
        return self.pj_a_cycle(core)


CLOCK_TREE = ClockTree()
