"""The batch that reverses the order of two runs whose differences are known, and the sentences on this batch."""

import math
import random

import pytest
from tilewright.results.batch_turn import BATCHES_COVER, BatchTurn, batch_lines, batch_object, batch_turn
from tilewright.results.order_turn import OrderTurn

ORDER = OrderTurn("energy", 0, 0.2, None, None)


@pytest.mark.parametrize("seed", range(60))
def test_the_nearest_batch_that_turns_the_order(seed: int) -> None:
    """The nearest batch that reverses the order equals the one from a search over all batches.

    The tried batch before it is its neighbour and does not reverse the order.
    """
    draw = random.Random(seed)
    now = draw.choice([1, 4, 16])
    batches = draw.sample([1, 2, 3, 4, 8, 16, 32, 64], draw.randint(1, 6))
    shares = {batch: draw.choice([-0.2, 0.0, 0.3]) for batch in {*batches, now}}
    shares[now] = 0.2
    found = batch_turn(ORDER, now, batches, shares.__getitem__)
    turned = [batch for batch in batches if shares[batch] < 0]
    assert set(found.tried) == set(batches) - {now}
    assert (found.turned is None) == (not turned)
    if found.turned is None or found.before is None:
        return
    least = min(abs(math.log(batch / now)) for batch in turned)
    assert abs(math.log(found.turned / now)) == pytest.approx(least)
    assert shares[found.before] >= 0
    low, high = sorted((found.before, found.turned))
    assert not [batch for batch in found.tried if low < batch < high]
    assert (found.before - now) * (found.turned - now) >= 0


def line(*differences: tuple[int, float], batch: int = 1, first: int = 0) -> str:
    """The sentence on one measure."""
    return batch_lines([BatchTurn("energy", first, batch, differences)])[0]


def test_sentences() -> None:
    """Each sentence names the batches that were searched, and the difference there."""
    begin = "searched with other batches, energy: "
    assert line((1, 0.5), (2, 0.1), (4, -0.03), (8, -0.2)) == (
        f"{begin}with a batch of 4, B is 3.0% below A; with 2, still 10.0% above A"
    )
    assert line((1, 0.5), (4, -0.03), (8, 0.1), first=1) == (
        f"{begin}with a batch of 4, A is 3.0% below B; with 1, the present batch, still 50.0% above B;"
        " with 8, A is no longer below B"
    )
    assert line((1, 0.2), (2, 0.3), (4, 0.5), batch=4) == (
        f"{begin}none of the batches tried (1, 2) reverses the order; B comes nearest with a batch of 1, which is"
        " 20.0% above A"
    )
    assert line((1, 0.5), (2, 0.0)).endswith("B comes nearest with a batch of 2, which is equal to A")
    assert line((1, 0.1), (2, 0.3), (4, 0.2)) == (
        f"{begin}none of the batches tried (2, 4) reverses the order; none of these batches brings B nearer to A;"
        " with the present batch of 1, B is 10.0% above A"
    )
    assert line((1, -0.5), (2, 0.1)) == f"{begin}with the present batch of 1, B is already 50.0% below A"
    assert batch_lines([])[0].endswith("A and B are equal in energy, latency and EDP")
    assert batch_lines([BatchTurn("energy", 0, 1, ((1, 0.5), (2, 0.1)))])[1] == BATCHES_COVER


def test_the_object_has_each_batch() -> None:
    """The object for comparison.json has each batch with its difference."""
    assert batch_object(BatchTurn("EDP", 1, 1, ((1, 0.5), (2, -0.1)))) == {
        "measure": "EDP",
        "first": "B",
        "batch": 1,
        "turned_at_batch": 2,
        "not_turned_at_batch": 1,
        "differences": [{"batch": 1, "difference": 0.5}, {"batch": 2, "difference": -0.1}],
    }
