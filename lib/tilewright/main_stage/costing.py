"""Costs of the temporal mapping that the keywords of a script describe."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tilewright.base.errors import InputError, Problem
from tilewright.main_stage import keywords as words
from tilewright.main_stage.keywords import plain
from tilewright.main_stage.views import TEMPORAL, order_batch_of
from tilewright.search.batch import CostedBatch, OrderBatch, cost_orders


def costed(batch: OrderBatch) -> CostedBatch:
    """Costs of a batch of loop orders. They are computed once, even if a script asks for each order separately."""
    return _costed(_Same(batch))


class _Same:
    """Wrapper of an object. Two wrappers are equal only if they wrap the same object."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@lru_cache(maxsize=2)
def _costed(same: _Same) -> CostedBatch:
    costs: CostedBatch = cost_orders(same.value)
    return costs


def conversion_parameters(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that the keywords give for the stage SpatialMappingConversion: name -> value. The values are not
    checked.
    """
    found = {}
    for keyword in _OF_CONVERSION:
        value = words.given(keywords, keyword.name)
        if value is not None:
            found[keyword.parameter] = plain(value)
    return found


_OF_CONVERSION = [keyword for keyword in words.KEYWORDS if "SpatialMappingConversion" in keyword.holders]


def costs_of(keywords: Mapping[str, Any]) -> tuple[CostedBatch, int]:
    """Pair (costs of a batch of loop orders, index in the batch). The index selects the loop order that the keywords
    describe.

    If a mapper made the loop order for this problem, the batch is the batch of the mapper. Otherwise, the batch has
    only this order. Raises InputError if the keywords describe no loop order, or if the order does not fit into the
    memories.
    """
    batch, row = order_batch_of(keywords, conversion_parameters(keywords))
    costs = costed(batch)
    at = 0 if row is None else row
    if not costs.fits[at]:
        raise InputError([Problem(f"does not fit: {costs.closest_failure or 'no room'}", path=TEMPORAL)])
    return costs, at
