"""From evaluations to records: choosing rows of batches, and the full breakdown of what was chosen."""

from dataclasses import replace

import numpy as np

from tilewright.cost.record import LayerRecord
from tilewright.mapping.constraints import Unrolling
from tilewright.search.batch import CostedBatch, OrderBatch
from tilewright.search.evaluate import full_record
from tilewright.stages.base import Stage
from tilewright.stages.items import Evaluations
from tilewright.stages.tally import CandidateTally, Tally, merged_notes


def single_row(costs: CostedBatch, row: int) -> CostedBatch:
    """One order of a batch with its costs, which keeps nothing of the others alive."""
    batch = costs.batch
    one = slice(row, row + 1)
    boundaries = None if batch.boundaries is None else batch.boundaries[one].copy()
    order = OrderBatch(batch.problem, batch.loops, batch.orders[one].copy(), boundaries, 1, batch.search)
    fits = costs.fits[one].copy()
    failure, ratio = ("", np.inf) if fits.all() else (costs.closest_failure, costs.closest_ratio)
    return CostedBatch(order, costs.energy_pj[one].copy(), costs.latency_cycles[one].copy(), fits, failure, ratio)


def tally_key(batch: OrderBatch) -> tuple[int, Unrolling]:
    """Of which spatial mapping a batch is."""
    return getattr(batch.problem, "candidate", 0), batch.problem.spatial.unrolling


def what_is_minimised(stages: tuple[Stage, ...]) -> str:
    """What the outermost reduction of stages minimises, '' if there is none."""
    return next((str(what) for stage in stages if (what := getattr(stage, "minimises", ""))), "")


def model_of(stages: tuple[Stage, ...]) -> str:
    """The model profile of the figures that stages make, '' if they do not say."""
    return next((str(model) for stage in reversed(stages) if (model := getattr(stage, "model", ""))), "")


def records_of(found: list[Evaluations], stages: tuple[Stage, ...]) -> list[LayerRecord]:
    """The record of every mapping that stages have found for a layer and that fits."""
    tally = Tally()
    for one in found:
        tally.add(one.tally)
    return [
        _record(one.costs, int(row), list(tally), stages)
        for one in found
        if one.costs is not None
        for row in np.flatnonzero(one.costs.fits)
    ]


def _record(costs: CostedBatch, row: int, tally: list[CandidateTally], stages: tuple[Stage, ...]) -> LayerRecord:
    problem, order, boundaries = costs.batch.problem, costs.batch.loop_order(row), costs.batch.level_boundaries(row)
    chosen = next((entry for entry in tally if entry.key == tally_key(costs.batch)), None)
    notes = merged_notes(tally, chosen)
    record = full_record(problem, order, boundaries, what_is_minimised(stages), model_of(stages))
    return replace(
        record,
        candidates=tuple(entry.row() for entry in tally),
        # A search that evaluates more than it hands on says so.
        evaluations=notes.get("evaluations", sum(entry.feasible for entry in tally)),
        search=notes,
    )
