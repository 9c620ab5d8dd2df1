"""Certainty of the order of two runs: whether a mapping that the searches did not find could reverse this order.

A search with bounds gives a lower bound of the objective of a run. The bound holds for all mappings that it covers
(docs/proofs/network-bounds.md#bound-of-a-network). If the lower bound of one run is above the objective of the other
run, the order is certain.
"""

from tilewright.base.objectives import OBJECTIVES
from tilewright.results.run_point import RunPoint
from tilewright.results.text_tables import share_text

EQUAL = 1e-9
"""Relative difference below which two values count as equal."""


def order_notice(a: RunPoint, b: RunPoint) -> str:
    """Sentence on the order of two runs, called A and B, in the objective that both runs minimise.

    The result is '' if the objectives differ, if the models differ, or if one of the runs is on several cores. If the
    clocks differ, the latency in the objective is in seconds.
    """
    objective = a.objective
    if objective != b.objective or objective not in OBJECTIVES or a.model != b.model:
        return ""
    if a.is_of_several_cores or b.is_of_several_cores:
        return ""
    in_time = _differ_in_clock(a, b)
    values = {"A": (_value(a, in_time), _bound(a, in_time)), "B": (_value(b, in_time), _bound(b, in_time))}
    less, more = sorted(values, key=lambda name: (values[name][0], name))
    value, (found, bound) = values[less][0], values[more]
    words = f"{objective} in seconds" if in_time and OBJECTIVES[objective].latency else objective
    if found <= value * (1 + EQUAL):
        return f"{words}: A and B are equal"
    said = f"{words}: {less} is {share_text(found - value, found)} below {more}"
    if bound is None:
        reason = f"because the search of {more} gives no lower bound"
        return f"{said}; other mappings of {more} could reverse this order, {reason}"
    if bound > value * (1 + EQUAL):
        margin = share_text(bound - value, bound)
        return (
            f"{said}; this order is certain for all mappings that the lower bound of {more} covers"
            f"{', with these costs' * (OBJECTIVES[objective].energy > 0)}: {less} is {margin} below this bound"
        )
    return (
        f"{said}; mappings of {more} that the search did not find could reverse this order: among the mappings that the"
        f" lower bound of {more} covers, some could have up to {share_text(found - bound, found)} less {objective}"
    )


def _differ_in_clock(a: RunPoint, b: RunPoint) -> bool:
    """True if both clocks are known and differ."""
    clocks = a.clock_frequency_mhz, b.clock_frequency_mhz
    return None not in clocks and clocks[0] != clocks[1]


def _value(run: RunPoint, in_time: bool) -> float:
    """Value of a run's objective. With `in_time`, latency is in seconds instead of cycles."""
    return OBJECTIVES[run.objective].value(run.energy_pj, float(run.latency_cycles)) * _scale(run, in_time)


def _bound(run: RunPoint, in_time: bool) -> float | None:
    """Lower bound of a run's objective, with latency in seconds if `in_time` is true and in cycles otherwise. None if
    the search of the run gives no bound.
    """
    return None if run.objective_bound is None else run.objective_bound * _scale(run, in_time)


def _scale(run: RunPoint, in_time: bool) -> float:
    """Factor that converts the value of an objective from latency in cycles to latency in seconds. It is 1 if `in_time`
    is false, or if the clock frequency of the run is not known.
    """
    if not in_time or run.clock_frequency_mhz is None:
        return 1.0
    return float((run.clock_frequency_mhz * 1e6) ** -OBJECTIVES[run.objective].latency)
