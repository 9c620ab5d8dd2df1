"""Running the stages below Workload on one layer."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tilewright.cost.record import LayerRecord
from tilewright.errors import MappingError, NothingFitsError
from tilewright.search.batch import OrderBatch
from tilewright.stages.base import Rest, Same, type_name
from tilewright.stages.items import Evaluations, LayerProblem
from tilewright.stages.results import records_of
from tilewright.stages.tally import Tally
from tilewright.stages.user_errors import WrongTypeError


def search_layer(search: Rest, problem: LayerProblem) -> list[LayerRecord]:
    """The records that the stages find for a layer: one for each mapping that comes back.

    Raises NothingFitsError if nothing comes back that fits, with the reason for each spatial mapping.
    """
    found = list(_flat(search(problem)))
    records = records_of(found, search.stages)
    if not records:
        raise NothingFitsError(problem.layer.name, problem.core.name, _why_not(found))
    return records


def _flat(results: Iterator[Any]) -> Iterator[Evaluations]:
    """Evaluations, also those in lists."""
    for result in results:
        if isinstance(result, list):
            yield from _flat(iter(result))
        elif isinstance(result, Evaluations):
            yield result
        else:
            raise WrongTypeError(f"Workload collects Evaluations, not {type_name(type(result))}")


def _why_not(found: list[Evaluations]) -> list[str]:
    """Why nothing fits, for each spatial mapping."""
    tally = Tally()
    for one in found:
        tally.add(one.tally)
    lines = []
    for entry in tally:
        unrolling = "; ".join(
            f"{name}: {', '.join(f'{d} {f}' for d, f in factors) or '-'}" for name, factors in entry.unrolling
        )
        lines.append(f"with {unrolling or 'no spatial unrolling'}: {entry.reason or 'no result was passed on'}")
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
