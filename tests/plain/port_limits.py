"""The port that limits a layer, by brute force: the plain model costs a mapping with each port twice as wide."""

import random
from dataclasses import replace

from tilewright.hardware.core import Core
from tilewright.results.port_limits import PortLimit, port_limit
from tilewright.results.recorded_mappings import recorded_mappings
from tilewright.search.evaluate import evaluate
from tilewright.search.options import SearchOptions
from tilewright.workload.graph import Workload, WorkloadNode

from tests.plain.laws import Mapped, random_mapping
from tests.plain.model import PlainModel
from tests.plain.problems import random_problem
from tests.plain.tally import Tally

ROUNDING = 1e-9
Gains = dict[tuple[str, str], float]


def try_port_limit(seed: int) -> Tally:
    """Check on a random layer, mapping and core that no port helps more than the named one."""
    tally, mapped = Tally(), mapped_pair(seed)
    tally.counts["pairs"] += 1
    gains, limit = brute_force(mapped), limit_of(mapped)
    best, room = max(gains.values()), ROUNDING * limit.latency_cycles
    named = limit.limiting
    told = gains[named.ports[0]] if named else 0.0
    tally.counts["a port is named" if named else "no port alone helps"] += 1
    tally.counts["together several ports help"] += limit.together is not None
    tally.counts["several ports help alike"] += len(limit.ties) > 1
    if told < best - room or (named is not None and abs(limit.gain_cycles(named) - told) > room):
        tally.wrong.append(f"seed {seed}: {named.name if named else 'no port'} saves {told}, the best port {best}")
    if {one.ports[0]: True for one in limit.ports}.keys() != gains.keys():
        tally.wrong.append(f"seed {seed}: not all ports were tried")
    return tally


def mapped_pair(seed: int) -> Mapped:
    """The first random problem of a seed for which a random mapping fits."""
    rng = random.Random(seed)
    while True:
        problem = random_problem(rng.randrange(2**32))
        mapped = random_mapping(rng, problem, problem.model)
        if mapped is not None:
            return mapped


def brute_force(mapped: Mapped) -> Gains:
    """Port -> cycles that doubling its width saves, by the plain model."""
    core = mapped.problem.core
    found = {}
    for k, memory in enumerate(core.memories):
        for p, port in enumerate(memory.ports):
            if any(index == p for index in memory.port_of.values()):
                latency = plain_latency(mapped, _doubled(core, k, p))
                found[memory.name, port.name] = float(mapped.cost.latency_cycles - latency)
    return found


def plain_latency(mapped: Mapped, core: Core) -> float:
    """Latency of the mapping on another core."""
    problem = mapped.problem
    plain = PlainModel(problem.layer, core, problem.links, problem.unrolling, False, mapped.model)
    return float(plain.cost(mapped.order, mapped.boundaries).latency_cycles)


def limit_of(mapped: Mapped) -> PortLimit:
    """The package's port limit, from the record of the mapping."""
    problem = mapped.problem
    given = (problem.layer, problem.core, problem.links, problem.unrolling, mapped.order)
    record = evaluate(*given, SearchOptions(model=mapped.model), mapped.boundaries)
    network = Workload("net", (WorkloadNode(0, problem.layer.name, problem.layer.operator_type, problem.layer),))
    (recorded,) = recorded_mappings([record], problem.core, network)
    return port_limit(recorded, problem.core)


def _doubled(core: Core, k: int, p: int) -> Core:
    memory = core.memories[k]
    port = replace(memory.ports[p], bandwidth_max_bits=2 * memory.ports[p].bandwidth_max_bits)
    changed = replace(memory, ports=(*memory.ports[:p], port, *memory.ports[p + 1 :]))
    return replace(core, memories=(*core.memories[:k], changed, *core.memories[k + 1 :]))
