"""Samples of the time of a run: shared parts of runs, causes of wider bars, and the probability of being faster."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.results.error_bars.draws import (
    SAMPLES,
    PredictedRun,
    ends,
    faster_share,
    layer_errors,
    predicted_run,
    time_samples,
)
from tilewright.results.error_bars.table import ANY, ErrorCell, ErrorTable, error_table
from tilewright.search.options import MACHINE_CLASSES

TERMS = st.fixed_dictionaries(
    {name: st.integers(1, 10**6) for name in ("ideal", "spatial_stall", "temporal_stall", "call_waiting")}
)
RUNS = st.builds(
    predicted_run,
    st.sampled_from(("a", "b")),
    st.sampled_from(sorted(MACHINE_CLASSES)),
    st.lists(TERMS, min_size=1, max_size=4),
)


@settings(deadline=None, max_examples=40)
@given(first=RUNS, second=RUNS)
def test_probabilities_of_both_orders_add_up_to_one(first: PredictedRun, second: PredictedRun) -> None:
    """The probabilities of both orders add up to exactly one, because samples do not depend on the order of the
    runs.
    """
    one, other = time_samples(first), time_samples(second)
    assert faster_share(one, other) + faster_share(other, one) == pytest.approx(1.0, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(run=RUNS)
def test_a_run_is_as_fast_as_itself(run: PredictedRun) -> None:
    """A run is faster than itself with a probability of exactly 50 %.

    An equal prediction on another machine gives about 50 %.
    """
    own = time_samples(run)
    assert faster_share(own, own) == 0.5
    other = time_samples(replace(run, machine="another"))
    assert faster_share(own, other) == pytest.approx(0.5, abs=0.02)


@settings(deadline=None, max_examples=30)
@given(run=RUNS, factor=st.floats(1.01, 30))
def test_more_predicted_cycles_are_less_probably_faster(run: PredictedRun, factor: float) -> None:
    """A slower prediction lowers the probability, and scales the ends of the bar by the same factor."""
    slower = replace(run, layers=tuple(layer._replace(cycles=layer.cycles * factor) for layer in run.layers))
    rival = time_samples(replace(run, machine="rival"))
    assert faster_share(time_samples(slower), rival) <= faster_share(time_samples(run), rival)
    assert ends(time_samples(slower)) == pytest.approx(tuple(factor * end for end in ends(time_samples(run))))


@settings(deadline=None, max_examples=20)
@given(run=RUNS, stretch=st.floats(1.0, 3.0))
def test_wider_errors_make_wider_bars(run: PredictedRun, stretch: float) -> None:
    """Stretched quantiles stretch the bar of one layer equally."""
    single = replace(run, layers=run.layers[:1])
    wide = ErrorTable({key: _stretched(cell, stretch) for key, cell in error_table().cells.items()})
    narrow, wider = (np.diff(np.log(ends(time_samples(single, table)))) for table in (None, wide))
    assert wider == pytest.approx(stretch * narrow)


def _stretched(cell: ErrorCell, stretch: float) -> ErrorCell:
    return replace(cell, parts={part: stretch * values for part, values in cell.parts.items()})


def test_runs_on_one_machine_share_its_part() -> None:
    """Runs are ordered with most certainty on one machine, then on two of one class, then on two classes."""
    slow, fast = {"ideal": 1300}, {"ideal": 1000}
    first = predicted_run("a", "many-core", [fast])
    rivals = (
        predicted_run("a", "many-core", [slow]),
        predicted_run("b", "many-core", [slow]),
        predicted_run("b", ANY, [slow]),
    )
    shares = [faster_share(time_samples(first), time_samples(rival)) for rival in rivals]
    assert shares[0] > shares[1] > shares[2] > 0.5


def test_errors_of_layers_partly_cancel() -> None:
    """A run of many different layers has a narrower bar than a run of one layer with the same limit."""
    one = predicted_run("a", "host-driven-array", [{"ideal": 2020}])
    many = predicted_run("a", "host-driven-array", [{"ideal": 100 + place} for place in range(20)])
    equal = predicted_run("a", "host-driven-array", [{"ideal": 101}] * 20)
    widths = [float(np.diff(np.log(ends(time_samples(run))))[0]) for run in (many, equal, one)]
    assert widths[0] < widths[1] == pytest.approx(widths[2], rel=0.02)


def test_samples_are_the_quantiles_of_the_table() -> None:
    """Samples have the quantiles of their cell, and depend only on the texts that name them."""
    cell = error_table().cell(ANY, True, "array")
    errors = layer_errors(cell, "p", "m", "l")
    layer_errors.cache_clear()
    assert np.array_equal(errors, layer_errors(cell, "p", "m", "l"))
    assert len(errors) == SAMPLES
    levels = (np.arange(1000) + 0.5) / 1000
    mean = sum(float(np.mean([cell.quantile(part, level) for level in levels])) for part in cell.parts)
    assert float(np.mean(errors)) == pytest.approx(mean, abs=1e-3)
    spread = sum(float(np.var([cell.quantile(part, level) for level in levels])) for part in cell.parts)
    assert float(np.var(errors)) == pytest.approx(spread, rel=0.05)
