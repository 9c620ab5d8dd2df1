"""Execution of the stages below Workload on one layer, and records made from the results.

A record describes one mapping with the full breakdown of its costs.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tilewright.base.errors import MappingError, NothingFitsError
from tilewright.base.objectives import ranking
from tilewright.cost.record import LayerRecord
from tilewright.mapping.constraints import MappingConstraints, Unrolling
from tilewright.mapping.temporal import nothing_left
from tilewright.pipeline.stages.base import Rest, Same, Stage, WrongTypeError, type_name
from tilewright.pipeline.stages.items import CandidateTally, Evaluations, LayerProblem, Tally, merged_notes
from tilewright.search.batch import NOTHING_MATCHES, CostedBatch, OrderBatch, first_of_the_best
from tilewright.search.evaluate import full_record
from tilewright.workload.layer import Layer


def single_row(costs: CostedBatch, row: int) -> CostedBatch:
    """Batch with only one loop order and its costs. The data are copied, so that the memory of the large batch can be
    freed.
    """
    batch = costs.batch
    one = slice(row, row + 1)
    boundaries = None if batch.boundaries is None else batch.boundaries[one].copy()
    order = OrderBatch(batch.problem, batch.loops, batch.orders[one].copy(), boundaries, 1, batch.search)
    fits = costs.fits[one].copy()
    failure, ratio = ("", np.inf) if fits.all() else (costs.closest_failure, costs.closest_ratio)
    return CostedBatch(order, costs.energy_pj[one].copy(), costs.latency_cycles[one].copy(), fits, failure, ratio)


def tally_key(batch: OrderBatch) -> tuple[int, Unrolling]:
    """Key of the spatial mapping of a batch, as in `CandidateTally.key`."""
    return getattr(batch.problem, "candidate", 0), batch.problem.spatial.unrolling


def what_is_minimised(stages: tuple[Stage, ...]) -> str:
    """Objective of the outermost reduction among the stages. Without a reduction, it is the objective of the temporal
    mapper; '' if the temporal mapper has no objective.
    """
    kept = next((str(what) for stage in stages if (what := getattr(stage, "minimises", ""))), "")
    mappers = [stage for stage in stages if isinstance(stage.gives, type) and _maps_orders(stage.gives)]
    return kept or next((str(goal) for stage in mappers if (goal := getattr(stage, "objective", ""))), "")


Rank = Callable[[CostedBatch], Sequence[np.ndarray]]
"""Function that gives the columns by which mappings are compared (`reductions.Reduction.rank`)."""


def rank_of(stages: tuple[Stage, ...], objective: str) -> Rank:
    """Rank that chooses between several mappings of a layer: the rank of the outermost reduction among the stages. If
    there is no reduction, mappings are ranked by the objective of the temporal mapper, or else by `objective`.
    """
    kept = [stage for stage in stages if getattr(stage, "minimises", "") and hasattr(stage, "rank")]
    if kept:
        return cast(Rank, kept[0].rank)  # type: ignore[attr-defined]  # a Reduction, which is made of this module
    goal = what_is_minimised(stages) or objective
    return lambda costs: ranking(goal, costs.energy_pj, costs.latency_cycles)


def model_of(stages: tuple[Stage, ...]) -> str:
    """Name of the model profile with which the stages compute results; '' if no stage has a model."""
    return next((str(model) for stage in reversed(stages) if (model := getattr(stage, "model", ""))), "")


def records_of(found: Sequence[Evaluations], stages: tuple[Stage, ...]) -> list[LayerRecord]:
    """Records of the mappings that fit the core, from the results of the stages."""
    tally = _tally_of(found)
    return [_record(costs, row, tally, stages) for costs, row in _fitting(found)]


def _tally_of(found: Iterable[Evaluations]) -> list[CandidateTally]:
    tally = Tally()
    for one in found:
        tally.add(one.tally)
    return list(tally)


def _fitting(found: Iterable[Evaluations]) -> Iterator[tuple[CostedBatch, int]]:
    """Pairs (batch, index of a loop order in the batch), one for each mapping that fits."""
    for one in found:
        if one.costs is not None:
            yield from ((one.costs, int(row)) for row in np.flatnonzero(one.costs.fits))


def _best_of(found: Sequence[Evaluations], rank: Rank) -> tuple[CostedBatch, int] | None:
    """Pair (batch, index of the loop order in the batch) of the best mapping; the first mapping if several are best.
    None if no mapping fits.

    If `rank` accepts none of the mappings, the result is the first mapping that fits, because the stages return only
    mappings that are valid results.
    """
    best, best_rank = next(_fitting(found), None), None
    for one in found:
        if one.costs is None or not one.costs.fits.any():
            continue
        columns = [np.where(one.costs.fits, column, np.inf) for column in rank(one.costs)]
        row = first_of_the_best(columns)
        if row is None:
            continue
        its_rank = [float(column[row]) for column in columns]
        if best_rank is None or its_rank < best_rank:
            best, best_rank = (one.costs, row), its_rank
    return best


def _record(costs: CostedBatch, row: int, tally: list[CandidateTally], stages: tuple[Stage, ...]) -> LayerRecord:
    problem, order, boundaries = costs.batch.problem, costs.batch.loop_order(row), costs.batch.level_boundaries(row)
    chosen = next((entry for entry in tally if entry.key == tally_key(costs.batch)), None)
    notes = _proof_of_what_is_kept(merged_notes(tally, chosen), stages)
    record = full_record(problem, order, boundaries, what_is_minimised(stages), model_of(stages))
    return replace(
        record,
        candidates=tuple(entry.row() for entry in tally),
        # If a search evaluates more orders than it hands on, its notes have the number.
        evaluations=notes.get("evaluations", sum(entry.feasible for entry in tally)),
        search=notes,
    )


PROOF_NOTES = ("proven", "value", "lower_bound", "gap", "covers", "spatial_mappings")


def _proof_of_what_is_kept(notes: dict[str, Any], stages: tuple[Stage, ...]) -> dict[str, Any]:
    """Notes of a search. The notes on the proof are left out if reductions and temporal mapper have different
    objectives: an optimum by one objective proves nothing about another objective.
    """
    goals = {str(goal) for stage in stages for key in ("minimises", "objective") if (goal := getattr(stage, key, ""))}
    if "proven" not in notes or len(goals) <= 1:
        return notes
    return {key: value for key, value in notes.items() if key not in PROOF_NOTES}


def search_layer(search: Rest, problem: LayerProblem, objective: str = "latency") -> LayerRecord:
    """Record of the best mapping that the stages return for a layer. The field `alternatives` is the number of other
    mappings that the stages return.

    The best mapping is chosen as in `rank_of`. Raises NothingFitsError if no mapping fits, with the reason for each
    spatial mapping.
    """
    return search_alternatives(search, problem, objective, all_of_them=False)[0]


def search_alternatives(
    search: Rest, problem: LayerProblem, objective: str = "latency", *, all_of_them: bool = True
) -> list[LayerRecord]:
    """Records of all mappings that the stages return for a layer: first the best mapping, then the other mappings in
    the order in which they were found. If `all_of_them` is False, only the best mapping has a record. Raises
    NothingFitsError as `search_layer` does.
    """
    found = evaluations_of(search, problem)
    best = _best_of(found, rank_of(search.stages, objective))
    if best is None:
        reasons = why_not(found, problem.layer, problem.constraints)
        raise NothingFitsError(problem.layer.name, problem.core.name, reasons)
    tally, stages = _tally_of(found), search.stages
    others = list(_fitting(found))
    del others[next(place for place, (costs, row) in enumerate(others) if costs is best[0] and row == best[1])]
    counts = _record(*best, tally, stages)
    if others:
        counts = replace(counts, alternatives=len(others), objective=counts.objective or objective)
    return [counts, *(_record(*other, tally, stages) for other in others if all_of_them)]


def evaluations_of(search: Rest, problem: LayerProblem) -> list[Evaluations]:
    """Evaluations that the stages below Workload return for a layer."""
    return list(_flat(search(problem)))


def _flat(results: Iterator[Any]) -> Iterator[Evaluations]:
    """Evaluations from the results of stages. Stages can yield nested lists; the nesting is removed."""
    for result in results:
        if isinstance(result, list):
            yield from _flat(iter(result))
        elif isinstance(result, Evaluations):
            yield result
        else:
            raise WrongTypeError(f"Workload collects Evaluations, not {type_name(type(result))}")


def why_not(found: list[Evaluations], layer: Layer, given: MappingConstraints) -> list[str]:
    """Lines with the reasons why no mapping fits, one line for each spatial mapping. If a loop order of the mapping
    file is the cause, the line names the entry of the mapping file.
    """
    lines = []
    for entry in _tally_of(found):
        unrolling = "; ".join(
            f"{name}: {', '.join(f'{d} {f}' for d, f in factors) or '-'}" for name, factors in entry.unrolling
        )
        reason = entry.reason or "no stage yielded a result"
        if reason == NOTHING_MATCHES:
            lanes = [factor for _, factors in entry.unrolling for factor in factors]
            asked = nothing_left(given.temporal_ordering, layer, lanes)
            reason = f"{NOTHING_MATCHES} of the entry '{given.name}'{asked}"
        lines.append(f"with {unrolling or 'no spatial unrolling'}: {reason}")
    return lines or ["the stages yielded no mapping"]


def order_total(search: Rest, problem: LayerProblem) -> int | None:
    """Number of loop orders that the search of a layer will try, for the progress bar; None if the temporal mapper does
    not know this number.

    The function runs the stages before the temporal mapper, and asks the temporal mapper.
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
    """Sum of the numbers; None if one of the numbers is not known."""
    known = 0
    for total in totals:
        if total is None:  # the rest need not be counted
            return None
        known += total
    return known


def _maps_orders(gives: type) -> bool:
    return issubclass(gives, OrderBatch)
