"""Plug-in for tilewright: the energy of a network-on-chip, its share as a column, and an ONNX operator."""

from math import prod

from tilewright.cost.energy_terms import TermCost
from tilewright.results.columns import ABSENT, Column
from tilewright.workload.onnx.lowering import lowers
from tilewright.workload.onnx.operators.elementwise import elementwise
from tilewright.workload.onnx.resolution.custom import like_first_input

DRAM = "dram"
HOPS = 4
PJ_PER_BIT_AND_HOP = 0.1


class NocHop:
    """Energy of the hops from the array to the DRAM, for each bit of the final results of a layer."""

    def concerns(self, core):
        """All cores have the network."""
        return True

    def cost(self, layer, core, unrolling):
        """0 if the results stay on chip: `core` then has no DRAM for them."""
        output, dimensions = layer.operand_dimensions[0]
        if not any(memory.name == DRAM and output in memory.operands for memory in core.memories):
            return TermCost()
        bits = prod(layer.size_of[name] for name in dimensions) * layer.bits_of["O_final"]
        return TermCost(fixed_pj=HOPS * PJ_PER_BIT_AND_HOP * bits)

    def waiting_pj_a_cycle(self, core):
        """No energy while no layer runs."""
        return 0.0


NOC_HOP = NocHop()


def share(run):
    """Share of the hops in the energy, from the summary of a run."""
    return run["noc_hop_energy_pj"] / run["energy_pj"] if "noc_hop_energy_pj" in run else ABSENT


NOC_HOP_SHARE = Column("noc_hop_share", "Share of the hops in the energy.", share, "NoC share", "%", scale=0.01)


@lowers("SoftSwitch", domain="org.example", shapes=like_first_input, attributes="")
def lower_soft_switch(op):
    """One operation for each element of the output, on the vector unit."""
    elementwise(op, op.output(), [op.input()])
