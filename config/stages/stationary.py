"""A temporal mapper of one's own: only loop orders that keep one operand in place as long as possible."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations

from tilewright.pipeline.stages import OrderBatch, Rest, TemporalMapper, TemporalProblem

BATCH = 1024
Loop = tuple[str, int]


@dataclass(frozen=True)
class StationaryOrders(TemporalMapper):
    """Loop orders that keep an operand in place: the loops on which it does not depend are innermost."""

    operand: str = "W"
    """The operand that stays, by its name in the layer's equation."""
    most_orders: int = 5040
    """Largest number of orders to try."""

    def batches(self, item: TemporalProblem, rest: Rest) -> Iterator[OrderBatch]:
        """The orders in batches, innermost loop first."""
        orders = islice(self.orders(item), self.most_orders)
        while some := list(islice(orders, BATCH)):
            yield OrderBatch.of_orders(item, some)

    def orders(self, item: TemporalProblem) -> Iterator[tuple[Loop, ...]]:
        """Orders with the loops on which the operand does not depend inside, and all other loops outside."""
        depends_on = set(dict(item.layer.operand_dimensions).get(self.operand, ()))
        for relation in item.layer.relations:  # IX = OX + FX: an operand with IX depends on both
            if relation.data_dimension in depends_on:
                depends_on.update(dimension for dimension, _ in relation.terms)
        loops = item.spatial.temporal_sizes
        inner = [loop for loop in loops if loop[0] not in depends_on]
        outer = [loop for loop in loops if loop[0] in depends_on]
        for below in permutations(inner):
            for above in permutations(outer):
                yield below + above
