"""Running the stages below Workload on one layer, and records from the evaluations: rows chosen of batches, with their
full breakdown.
"""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.cost.record import LayerRecord
from tilewright.errors import MappingError, NothingFitsError
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.temporal import nothing_left
from tilewright.search.batch import NOTHING_MATCHES, CostedBatch, OrderBatch
from tilewright.search.evaluate import full_record
from tilewright.stages.base import Rest, Same, Stage, WrongTypeError, type_name
from tilewright.stages.items import CandidateTally, Evaluations, LayerProblem, Tally, merged_notes
from tilewright.workload.layer import Layer


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


def search_layer(search: Rest, problem: LayerProblem) -> list[LayerRecord]:
    """The records that the stages find for a layer: one for each mapping that comes back.

    Raises NothingFitsError if nothing comes back that fits, with the reason for each spatial mapping.
    """
    found = evaluations_of(search, problem)
    records = records_of(found, search.stages)
    if not records:
        reasons = why_not(found, problem.layer, problem.constraints)
        raise NothingFitsError(problem.layer.name, problem.core.name, reasons)
    return records


def evaluations_of(search: Rest, problem: LayerProblem) -> list[Evaluations]:
    """All that the stages below Workload give back for a layer."""
    return list(_flat(search(problem)))


def _flat(results: Iterator[Any]) -> Iterator[Evaluations]:
    """Evaluations, also those in lists."""
    for result in results:
        if isinstance(result, list):
            yield from _flat(iter(result))
        elif isinstance(result, Evaluations):
            yield result
        else:
            raise WrongTypeError(f"Workload collects Evaluations, not {type_name(type(result))}")


def why_not(found: list[Evaluations], layer: Layer, given: MappingConstraints) -> list[str]:
    """Why nothing fits, for each spatial mapping; a loop order that is asked for is named with its entry of the mapping
    file."""
    tally = Tally()
    for one in found:
        tally.add(one.tally)
    lines = []
    for entry in tally:
        unrolling = "; ".join(
            f"{name}: {', '.join(f'{d} {f}' for d, f in factors) or '-'}" for name, factors in entry.unrolling
        )
        reason = entry.reason or "no result was passed on"
        if reason == NOTHING_MATCHES:
            lanes = [factor for _, factors in entry.unrolling for factor in factors]
            asked = nothing_left(given.temporal_ordering, layer, lanes)
            reason = f"{NOTHING_MATCHES} of the entry '{given.name}'{asked}"
        lines.append(f"with {unrolling or 'no spatial unrolling'}: {reason}")
    return lines or ["the stages gave no mapping to cost"]


def order_total(search: Rest, problem: LayerProblem) -> int | None:
    """How many orders the search of a layer will look at, None if its mapper does not know; for progress only.

    Runs the stages that make the items of the temporal mapper, and asks it.
    """
    stages = search.stages
    place = next((i for i, stage in enumerate(stages) if stage.gives is not None and _maps_orders(stage.gives)), None)
    if place is None:
        return None
    mapper = stages[place]
    totals: list[int | None] = []

    def count(item: Any) -> tuple[()]:
        totals.append(mapper.order_total(item))
        return ()

    makers = tuple(stage for stage in stages[:place] if stage.gives is not Same)
    with contextlib.suppress(MappingError):
        for _ in replace(search, stages=makers, end=count)(problem):
            pass
    return sum_if_known(totals)


def sum_if_known(totals: Iterable[int | None]) -> int | None:
    """The sum; None if one of them is not known."""
    known = list(totals)
    return None if None in known else sum(total for total in known if total is not None)


def _maps_orders(gives: type) -> bool:
    return issubclass(gives, OrderBatch)
