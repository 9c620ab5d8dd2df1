"""The union of transfer windows: its closed form against a time line, and layers of very many cycles."""

import itertools
import math
import resource
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.base.profile import SWITCHES
from tilewright.cost.latency_kernel import insert_activity, window_union
from tilewright.cost.problem import PROBLEM_DTYPE, new_record
from tilewright.cost.workspace import new_workspace
from tilewright.search.evaluate import evaluate

from tests.members import members
from tests.plain.time_line import marked_cycles, union_on_time_line
from tests.unit.cost.engine_cases import LINKS, gemm, small_core

Activities = list[tuple[int, int, int]]


@st.composite
def activities(draw: st.DrawFn) -> Activities:
    """Generate (allowed, period, count) of 2 to 6 links of a port; periods are products of inner loops of one order."""
    loops = draw(st.lists(st.integers(2, 5), min_size=0, max_size=6))
    periods = list(itertools.accumulate(loops, lambda a, b: a * b, initial=draw(st.integers(1, 3))))
    total = periods[-1]
    result = []
    for period in draw(st.lists(st.sampled_from(periods), min_size=2, max_size=6)):
        divisors = [d for d in range(1, period + 1) if period % d == 0]
        result.append((draw(st.sampled_from(divisors)), period, total // period))
    return result


def closed_form(links: Activities, consistent: bool = False) -> int:
    """Return the window union that the kernel computes for the activities of a port."""
    problem, ws = new_record(PROBLEM_DTYPE), new_workspace()
    problem.switches[SWITCHES.index("consistent_window_union")] = consistent
    ws.total_cycles = max(period * count for _, period, count in links)
    for index, (allowed, period, count) in enumerate(links):
        insert_activity.py_func(ws, index, allowed, period, count)
    return int(window_union(problem, ws, len(links)))


@settings(max_examples=members(300, 120), deadline=None, derandomize=True)
@given(activities())
def test_closed_form_equals_time_line(links: Activities) -> None:
    """The closed form counts the marked cycles of a time line, for nested periods and any windows."""
    assert closed_form(links) == union_on_time_line(links)


@settings(max_examples=members(300, 120), deadline=None, derandomize=True)
@given(activities())
def test_consistent_union_leaves_out_first_windows(links: Activities) -> None:
    """The union under `consistent_window_union` counts marked cycles without the first window of each link.
    The time line covers the whole layer.
    """
    total = math.lcm(*(period for _, period, _ in links)) * max(
        count for _, p, count in links if p == max_period(links)
    )
    line = bytearray(total)
    for allowed, period, _ in links:
        for start in range(period, total, period):
            line[start : start + allowed] = b"\1" * allowed
    assert closed_form(links, consistent=True) == sum(line)


def max_period(links: Activities) -> int:
    """Return the longest period."""
    return max(period for _, period, _ in links)


def test_time_line_by_hand() -> None:
    """Windows of 1 in 2 and of 3 in 8 cycles mark 5 of 8 cycles, and 20 in four periods."""
    assert marked_cycles([(1, 2), (3, 8)], 8) == 5
    links = [(1, 2, 16), (3, 8, 4)]
    assert union_on_time_line(links) == closed_form(links) == 20


def test_consistent_union_by_hand() -> None:
    """Windows without the first of each link mark 3 of the first 8 cycles and 5 of each later 8: 18 in all."""
    assert closed_form([(1, 2, 16), (3, 8, 4)], consistent=True) == 18


def test_time_and_memory_do_not_grow_with_cycles() -> None:
    """A layer of more than 1e12 cycles is evaluated in less than 0.5 s and needs no more memory than a small one."""
    size = 1 << 14
    layer = gemm(C=size, D=size, K=size)
    order = (("C", size), ("D", size), ("K", size))
    arguments = (layer, small_core(), LINKS, (("D1", ()), ("D2", ())), order)
    evaluate(*arguments)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    record = evaluate(*arguments)
    seconds = time.perf_counter() - start
    assert record.latency_cycles >= 2**42 > 10**12
    assert seconds < 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20000
