"""Gaps between the mappings of the best designs of a space and the lower bounds over all mappings."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas

from tilewright.base.errors import count_of
from tilewright.base.measures import ENERGY_PJ, LATENCY_CYCLES
from tilewright.base.objectives import DECISIONS, OBJECTIVES
from tilewright.base.proof import Bounded, SpatialMappings
from tilewright.cost.record import LayerRecord
from tilewright.designs.advice_text import excess_text
from tilewright.designs.answer import Answer
from tilewright.designs.columns import MAPPING_GAP
from tilewright.designs.effects import best_first, excess_over, known_measures
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.designs.front import Front
from tilewright.designs.results import OK
from tilewright.designs.space import Space
from tilewright.hardware.core import Accelerator, Core
from tilewright.hardware.source import parse_accelerator
from tilewright.pipeline.stages.base import Control, Rest
from tilewright.pipeline.stages.layers import search_layer
from tilewright.search.options import SearchOptions
from tilewright.search.summary import bound_of_run
from tilewright.workload.source import parse_workload

MOST_BOUNDED = 3
"""Largest number of designs for which lower bounds are computed.

The bounds of one design take as long as the evaluation of about twenty designs. The reason is that the evaluations of
several designs share most of their work.
"""


def with_mapping_gaps(space: Space, answer: Answer) -> Answer:
    """Answer with the column MAPPING_GAP for at most MOST_BOUNDED designs (`_bounded_designs`), and with a sentence on
    the column.

    The answer is unchanged if designs have several cores, or if the space asks for no bounds.
    """
    options = space.options
    if (
        not isinstance(options, SearchOptions)
        or not (options.bounds or options.of_bounds)
        or answer.overall.members.empty
    ):
        return answer
    bounded = _bounded_designs(answer.overall, options.objective)
    chosen = bounded["index"].tolist()
    table = answer.exploration.table
    gaps = pandas.Series(np.nan, table.index)
    leaves_out = False
    for network in space.networks:
        workload = parse_workload(network.file, model=options.model, options=network.options)
        evaluator = NetworkEvaluator(workload, space.mapping, options, bounds=True)
        rows = table[(table["network"] == network.name) & table["index"].isin(chosen) & (table["status"] == OK)]
        for place, row in rows.iterrows():
            accelerator = parse_accelerator(space.design(int(row["index"])).hardware)
            value = OBJECTIVES[options.objective].value(row[ENERGY_PJ], row[LATENCY_CYCLES])
            placed = list(_placed(evaluator, accelerator, options.objective))
            leaves_out = leaves_out or _leaves_out_spatial_mappings(placed, options)
            bound = bound_of_layers(placed, options.objective, float(value))
            gaps[place] = np.nan if bound is None else bound.gap
    known = gaps.dropna().tolist()
    if not known:
        return answer
    exploration = replace(answer.exploration, table=table.assign(**{MAPPING_GAP: gaps}))
    told = _sentence(space, bounded["design"].tolist(), known)
    if leaves_out:
        told += f" {_left_out(options)}"
    told += _lead(answer.overall, options, max(known), leaves_out)
    return replace(answer, exploration=exploration, mapping_notes=(told,))


_GIVEN = {SpatialMappings(ruled=ruled).text for ruled in (False, True)}
"""Texts of records whose spatial mapping is the one of the mapping file."""


def _leaves_out_spatial_mappings(placed: Sequence[tuple[LayerRecord, int]], options: SearchOptions) -> bool:
    """True if the search of some layer was limited to some of its spatial mappings. `placed` is as in
    `bound_of_layers`.
    """
    is_limited = options.spatial_count(options.of_bounds is not None) > 0
    return is_limited and any(record.search.get("covers") not in _GIVEN for record, _ in placed)


def _left_out(options: SearchOptions) -> str:
    """Sentences on the spatial mappings that the search left out, for which the gaps do not hold."""
    most = options.spatial_count(options.of_bounds is not None)
    told = (
        f"At most {count_of(most, 'spatial mapping')} of each layer {'were' if most > 1 else 'was'} searched. The gaps"
        f" do not include other spatial mappings, with which the {options.objective} can be much smaller."
    )
    if options.nb_spatial_mappings_generated is None:
        told += " `tilewright decide` with `--bounds` searches all spatial mappings, for the two best designs."
    return told


def _bounded_designs(front: Front, goal: str) -> pandas.DataFrame:
    """Rows of the designs for which lower bounds are computed. First come the two compared designs with the least
    objective of the search, because a decision is made between them. Then come designs at equal distances along the
    front.
    """
    key = _measure(front, goal)
    first = front.compared.iloc[:0] if key is None else best_first(front, key).iloc[:2]
    first = first.iloc[:MOST_BOUNDED]
    others = front.members[~front.members["index"].isin(first["index"])]
    left = MOST_BOUNDED - len(first)
    if len(others) > left:
        places = np.linspace(0, len(others) - 1, left + 2)[1:-1].round().astype(int)
        others = others.iloc[places.tolist()]
    return pandas.concat([first, others])


def _measure(front: Front, goal: str) -> str | None:
    """Column of the measure that the objective `goal` of the search minimises; None if it is no known measure."""
    key = dict(zip(DECISIONS, front.measures, strict=True)).get(goal)
    return key if key in known_measures(front) else None


def _lead(front: Front, options: SearchOptions, gap: float, leaves_out: bool) -> str:
    """Sentence that compares the lead of the best design with the largest gap; '' if there is no second design. If
    `leaves_out` is true, the gap holds only for the searched spatial mappings.
    """
    key = _measure(front, options.objective)
    if key is None or not front.is_whole or len(front.compared) < 2:
        return ""
    ordered = best_first(front, key)
    values, words = ordered[key].to_numpy(dtype=np.float64), front.measures[key].words
    first, second = ordered["design"].tolist()[:2]
    excess = excess_over(float(values[1]), float(values[0]))
    other = f"that of {first}"
    more = excess_text(excess, "above", other) if excess else f"equal to {other}"
    told = f" The {words} of the second-best design, {second}, is {more}"
    within = int((values[1:] * (1 - gap) < values[0]).sum())
    if not within:
        which = " and the searched spatial mappings" if leaves_out else ""
        return f"{told}: with the largest gap{which}, no other design could be the best."
    return (
        f"{told}: with the largest gap, {within:,} of {count_of(len(values) - 1, 'other design')} could be the best, so"
        " mappings can change which design is the best."
    )


def bound_of_design(
    evaluator: NetworkEvaluator, accelerator: Accelerator, objective: str, value: float
) -> Bounded | None:
    """Value of the objective for a network on one design, with its lower bound. None if a layer has no bound."""
    return bound_of_layers(list(_placed(evaluator, accelerator, objective)), objective, value)


def bound_of_layers(placed: Sequence[tuple[LayerRecord, int]], objective: str, value: float) -> Bounded | None:
    """Value of the objective for a network, with its lower bound. None if a layer has no bound.

    `placed` has pairs (record of the best mapping of a layer, number of equal layers).
    """
    if not all("lower_bound" in record.search for record, _ in placed):
        return None
    return bound_of_run(placed, OBJECTIVES[objective], value)


def _placed(evaluator: NetworkEvaluator, accelerator: Accelerator, objective: str) -> Iterator[tuple[LayerRecord, int]]:
    """Pairs (record of a layer, number of layers that are equal to it), in execution order. The record has the best
    mapping of the layer, and the lower bound of the objective if the search computes this bound.
    """
    search = Rest(evaluator.search, Control())
    known: dict[tuple[str, Core], LayerRecord] = {}
    for problem, repeats in evaluator.layer_problems(accelerator):
        key = problem.layer.name, problem.core
        if key not in known:
            known[key] = search_layer(search, problem, objective)
        yield known[key], repeats


def _sentence(space: Space, designs: Sequence[str], gaps: list[float]) -> str:
    """Sentence on the gaps between the mappings of `designs` and the lower bounds.

    `gaps` has one gap per pair of a design and a network.
    """
    options = space.options
    pairs = f" ({len(gaps)} pairs of a design and a network)" if len(space.networks) > 1 else ""
    return (
        f"Gaps of the mappings of {', '.join(designs)}{pairs}: with the spatial mappings that were searched and any"
        f" temporal mappings, the {options.objective} of a network could be at most {max(gaps):.1%} smaller (largest"
        f" gap); the median of the gaps is {statistics.median(gaps):.1%}."
    )
