"""Lower bounds for systems in which cores forward constants (docs/proofs/bounds-traffic.md#forwarding).

The module replaces the scheduling problem by a problem whose lower bounds are also valid for such a system.
"""

from dataclasses import replace

import numpy as np

from tilewright.multicore.scheduling.problem import CoreSystem, SchedulingProblem


def bounded_problem(problem: SchedulingProblem) -> SchedulingProblem:
    """Problem whose lower bounds are also valid for `problem`. If cores do not forward constants, the result is
    `problem`.

    If cores forward constants, a core can get a constant from any core that holds the constant, not only from the
    off-chip core. Then only the links that are part of every path from the off-chip core are certain to carry the
    constant. In the result, each path from the off-chip core therefore has only these links.
    """
    if not problem.system.forwards_constants:
        return problem
    return replace(problem, system=_with_common_links(problem.system))


def _with_common_links(system: CoreSystem) -> CoreSystem:
    off, cores = system.off_chip_core, system.core_count
    targets = [core for core in range(cores) if core != off and system.path_exists[off * cores + core]]
    paths = [system.path(off, core).tolist() for core in targets]
    common = set.intersection(*map(set, paths)) if paths else set()
    hops = [
        [link for link in dict.fromkeys(path.tolist()) if link in common] if source == off else path.tolist()
        for source in range(cores)
        for target in range(cores)
        for path in [system.path(source, target)]
    ]
    return replace(
        system,
        path_start=np.cumsum([0] + [len(path) for path in hops]),
        path_link=np.array([link for path in hops for link in path], np.int64),
    )
