"""Order of two runs with other batch sizes, after new searches of the mappings of both runs."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.base.json_values import JsonObject
from tilewright.results.order_turn import NAMES, NEGLIGIBLE, OrderTurn, percent

BATCHES_COVER = (
    "searched with other batches: for each batch, the mappings of A and B were searched with the options of the runs;"
    " energy and latency are those of the whole batch; batches that are not named were not searched"
)
NO_ORDER = "searched with other batches: no search was needed, because A and B are equal in energy, latency and EDP"


@dataclass(frozen=True)
class BatchTurn:
    """Order of two runs in one measure, for each batch that was searched."""

    measure: str
    first: int
    """Run with the smaller value of the measure at the present batch: 0 for run A, 1 for run B."""
    batch: int
    """Present batch: the batch of the network files of the two runs."""
    differences: tuple[tuple[int, float], ...]
    """Pairs (batch, difference) for the present batch and all searched batches, in ascending order of the batches. The
    difference is (value of the other run - value of the run `first`) / value of the run `first`.
    """

    def is_turned(self, batch: int) -> bool:
        """True if the order of the two runs is reversed with this batch. The batch must be the present batch or one
        that was searched.
        """
        return dict(self.differences)[batch] < -NEGLIGIBLE

    @property
    def tried(self) -> tuple[int, ...]:
        """Batches that were searched, without the present batch, in ascending order."""
        return tuple(batch for batch, _ in self.differences if batch != self.batch)

    @property
    def turned(self) -> int | None:
        """Nearest searched batch that reverses the order of the two runs; None if no batch reverses the order. The
        distance between two batches is their ratio. If two batches are equally near, the larger one is returned.
        """
        found = [batch for batch in self.tried if self.is_turned(batch)]
        return min(found, key=lambda one: (abs(math.log(one / self.batch)), -one), default=None)

    @property
    def before(self) -> int | None:
        """Searched batch between the present batch and `turned`: the one that is nearest to `turned`. The order is not
        reversed at this batch. If no batch in between was searched, the result is the present batch. None if no batch
        reverses the order.
        """
        if self.turned is None:
            return None
        low, high = sorted((self.batch, self.turned))
        between = [batch for batch, _ in self.differences if low <= batch <= high and batch != self.turned]
        return between[-1] if self.turned == high else between[0]


def batch_turn(one: OrderTurn, batch: int, batches: Sequence[int], difference: Callable[[int], float]) -> BatchTurn:
    """Order of two runs at each of `batches` and at the present `batch`. `one` has the present order: `one.first` is
    the index of the first run.

    `difference` searches the mappings of both runs with a batch. It returns (value of the second run - value of the
    first run) / value of the first run.
    """
    found = {own: difference(own) for own in sorted({batch, *batches})}
    return BatchTurn(one.measure, one.first, batch, tuple(found.items()))


def batch_lines(found: Sequence[BatchTurn]) -> tuple[str, ...]:
    """Sentences on the order of two runs with other batch sizes: one for each measure, then one on the searches. If
    `found` is empty, the only sentence says that no search was needed.
    """
    return (*map(_line, found), BATCHES_COVER) if found else (NO_ORDER,)


def _line(one: BatchTurn) -> str:
    first, second = NAMES[one.first], NAMES[1 - one.first]
    said, at = f"searched with other batches, {one.measure}:", dict(one.differences)
    if one.is_turned(one.batch):
        return f"{said} with the present batch of {one.batch:,}, {second} is already {_below(at[one.batch])} {first}"
    if one.turned is None or one.before is None:
        near = min(one.tried, key=lambda batch: (at[batch], batch))
        nearest = f"{second} comes nearest with a batch of {near:,}, which is {_above(at[near])} {first}"
        if at[near] >= at[one.batch] - NEGLIGIBLE:
            present = f"with the present batch of {one.batch:,}, {second} is {_above(at[one.batch])} {first}"
            nearest = f"none of these batches brings {second} nearer to {first}; {present}"
        return f"{said} none of the batches tried ({_listed(one.tried)}) reverses the order; {nearest}"
    text = f"{said} with a batch of {one.turned:,}, {second} is {_below(at[one.turned])} {first}"
    present = ", the present batch" if one.before == one.batch else ""
    text += f"; with {one.before:,}{present}, still {_above(at[one.before])} {first}"
    back = [batch for batch in _beyond(one) if not one.is_turned(batch)]
    return f"{text}; with {_listed(back)}, {second} is no longer below {first}" if back else text


def _beyond(one: BatchTurn) -> tuple[int, ...]:
    """Searched batches beyond `one.turned`, the nearest batch that reverses the order. These are larger batches if
    `one.turned` is larger than the present batch, and otherwise smaller batches.
    """
    turned = one.turned or one.batch
    return tuple(batch for batch in one.tried if (batch > turned if turned > one.batch else batch < turned))


def _listed(batches: Sequence[int]) -> str:
    return ", ".join(f"{batch:,}" for batch in batches)


def _above(share: float) -> str:
    return "equal to" if abs(share) <= NEGLIGIBLE else f"{percent(share)} above"


def _below(share: float) -> str:
    return f"{percent(-share)} below"


def batch_object(one: BatchTurn) -> JsonObject:
    """JSON object for the order of two runs with other batches."""
    return {
        "measure": one.measure,
        "first": NAMES[one.first],
        "batch": one.batch,
        "turned_at_batch": one.turned,
        "not_turned_at_batch": one.before,
        "differences": [{"batch": batch, "difference": share} for batch, share in one.differences],
    }
