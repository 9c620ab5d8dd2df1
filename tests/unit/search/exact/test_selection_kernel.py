"""Labels that a round keeps, compared with a stable sort of their bounds."""

import math

import numpy as np
import pytest
from tilewright.base.compiled import Kernel
from tilewright.cost.problem import PROBLEM_DTYPE, new_record
from tilewright.search.exact.lattice_record import EXACT_DTYPE
from tilewright.search.exact.selection_kernel import keep_best_labels


@pytest.mark.parametrize("count", [2, 3, 40, 300])
@pytest.mark.parametrize("different", [1, 3, 1000])
def test_kept_labels_are_the_first_of_a_stable_sort(
    count: int, different: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept labels, their order and the least bound left out equal a stable sort, also for equal and infinite bounds.

    The kernels run as plain functions.
    """
    monkeypatch.setattr(Kernel, "__call__", lambda self, *arguments: self.py_func(*arguments))
    draw = np.random.default_rng(5)
    problem, search = new_record(PROBLEM_DTYPE), new_record(EXACT_DTYPE)
    for width in {1, count // 3 or 1, count - 1, count}:
        bounds = draw.integers(0, different, count).astype(float)
        bounds[draw.random(count) < 0.1] = math.inf
        search.label_bound[1, :count], search.label_energy_bound[1, :count] = bounds, bounds / 2
        search.label_lattice[1, :count] = np.arange(count)
        search.label_count[1], search.width, search.dropped_bound = count, width, math.inf
        keep_best_labels(problem, search, 1)
        ranked = np.argsort(bounds, kind="stable")
        kept = np.sort(ranked[:width])
        assert search.label_count[1] == width
        assert search.label_lattice[1, :width].tolist() == kept.tolist()
        assert search.label_bound[1, :width].tolist() == bounds[kept].tolist()
        assert search.label_energy_bound[1, :width].tolist() == (bounds[kept] / 2).tolist()
        assert search.dropped_bound == (bounds[ranked[width]] if width < count else math.inf)
