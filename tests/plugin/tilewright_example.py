"""Extensions of tilewright, one of each kind except the array."""

from tilewright.base.objectives import Powers
from tilewright.cost.energy_terms import TermCost
from tilewright.hardware.attributes import Attribute
from tilewright.pipeline.stages.reductions import Reduction
from tilewright.results.columns import Column
from tilewright.workload.onnx.lowering import lowers
from tilewright.workload.onnx.operators.elementwise import elementwise
from tilewright.workload.onnx.resolution.custom import like_first_input

REFRESH = Attribute("upkeep", "memory", "upkeep_mw", "power_mw", "Power that keeps data alive.", term="upkeep")
CYCLES = Column("cycles_a_layer", "Latency over layers.", lambda run: run["latency_cycles"] / run["layers"])

ED2P = Powers(energy=1, latency=2)


class STAR:
    """A star: all cores are linked with the first one."""

    keys, is_bus = (), False
    fault = staticmethod(lambda sizes, core_count: None)
    coordinates = staticmethod(lambda sizes, core_count: ())
    edges = staticmethod(lambda sizes, core_count: ((0, place) for place in range(1, core_count)))


class SETUP:
    """An energy of a nanojoule for each layer, whatever its mapping."""

    concerns = staticmethod(lambda core: True)
    cost = staticmethod(lambda layer, core, unrolling: TermCost(fixed_pj=1000.0))
    waiting_pj_a_cycle = staticmethod(lambda core: 0.0)


class COMMAND:
    """A hundred cycles for each layer, for a command to the core."""

    concerns = staticmethod(lambda core: True)
    cycles = staticmethod(lambda layer, core, unrolling: 100)


class LeastPower(Reduction):
    """Keeps the mapping with the least average power."""

    def rank(self, costs):
        """Ranks by energy divided by latency."""
        return [costs.energy_pj / costs.latency_cycles]


class GRANTS:
    """An energy of two picojoules for each transfer."""

    concerns = staticmethod(lambda problem: True)
    energy_pj = staticmethod(lambda problem, schedule: 2.0 * len(schedule.transfers))


@lowers("Doubled", domain="org.example", shapes=like_first_input)
def lower_doubled(op):
    """Lowers the operator to one operation for every element."""
    elementwise(op, op.output(), [op.input()])
