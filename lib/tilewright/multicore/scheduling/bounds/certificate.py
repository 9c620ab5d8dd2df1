"""Certificate of lower bounds.

A certificate has the values of up to five bounds. For two of these bounds, it also has the weights of cores, traffic
and links that prove the values.

`scheduling.check.bound_certificate` checks certificates.
"""

from typing import Any

import numpy as np

from tilewright.base.json_values import JsonObject
from tilewright.multicore.scheduling.bounds.classes import cn_classes
from tilewright.multicore.scheduling.bounds.core_work import traffic_loads, weighted_core_work
from tilewright.multicore.scheduling.bounds.forwarding import bounded_problem
from tilewright.multicore.scheduling.bounds.limits import system_limits
from tilewright.multicore.scheduling.bounds.lower_bounds import LowerBounds
from tilewright.multicore.scheduling.bounds.paths import paths_through
from tilewright.multicore.scheduling.bounds.work import fetched_pieces, possible_moves, written_pieces
from tilewright.multicore.scheduling.problem import Booleans, Floats, SchedulingProblem

_UNITS = 2**40
"""Integer that stands for a weight of 1 in a certificate. A certificate has each weight times this integer, rounded."""


def bound_certificate(problem: SchedulingProblem, allowed: Booleans, bounds: LowerBounds) -> JsonObject:
    """Certificate of `bounds` as plain data, with integer weights.

    The bounds hold for all allocations that `allowed` permits (array of shape (CNs, cores)). Three bounds are left out:
    `before_and_after_cycles`, `phases_cycles` and `ordered_phases_cycles`.
    """
    certificate: dict[str, Any] = {
        "critical_path": {"cycles": bounds.if_copied.critical_path_cycles},
        "off_chip_traffic": {"cycles": bounds.if_copied.off_chip_traffic_cycles},
        "energy": {"pj": bounds.energy_pj},
    }
    if problem.graph.node_count == 0:
        return certificate
    problem = bounded_problem(problem)
    classes, limits = cn_classes(problem, allowed), system_limits(problem.system)
    paths, moves = paths_through(problem, classes, limits), possible_moves(problem, classes)
    bits = problem.graph.piece_bits
    fetched, written = (int(bits[kept(problem, classes)].sum()) for kept in (fetched_pieces, written_pieces))
    traffic = traffic_loads(problem, classes, limits, fetched, written)
    work = weighted_core_work(classes, traffic, int(paths.release.min()) + int(paths.writing.min()))
    cores = np.flatnonzero(classes.allowed.any(axis=0)).tolist()
    weights = _whole(work.weights)
    on_cores = [[core, weight] for core, weight in zip(cores, weights[: len(cores)], strict=True) if weight]
    certificate["core_work"] = {"cycles": work.cycles, "cores": on_cores, "traffic": weights[len(cores) :]}
    compulsory = moves.compulsory(np.ones(len(moves.piece), np.bool_))
    if len(compulsory.bits):
        by_links = compulsory.weighted()
        on_links = [[link, weight] for link, weight in enumerate(_whole(by_links.weights)) if weight]
        certificate["link_traffic"] = {"cycles": by_links.cycles, "links": on_links}
    return certificate


def _whole(weights: Floats) -> list[int]:
    return [round(weight * _UNITS) for weight in weights.tolist()]
