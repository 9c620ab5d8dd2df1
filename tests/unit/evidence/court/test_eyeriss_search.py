"""Mappings of Eyeriss that are searched under the rules of its hardware file."""

from dataclasses import replace
from typing import Any

import pytest
from tilewright.base.errors import BrokenRuleError
from tilewright.search.evaluate import evaluate
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.eyeriss import CYCLES_PER_MS, EYERISS, FIRST, PROCESSING, prepare
from tilewright_evidence.court.eyeriss_mapping import EyerissWork, eyeriss_core, layers
from tilewright_evidence.court.eyeriss_search import searched, sets
from tilewright_evidence.court.mapped_layer import LINKS

ROWS = [one.layer for one in prepare(set_files(DATA / EYERISS.name, EYERISS.patterns)) if one.quantity == PROCESSING]
ALEXNET = [one for one in ROWS if one.row["network"] == "alexnet"]


@pytest.mark.parametrize("layer", ALEXNET, ids=lambda one: one.row["layer"])
def test_alexnet_is_near_the_measurement_with_less_energy_than_table_iii(layer: Any) -> None:
    """Proven searches for AlexNet are within 6 % of the measured latency, with at most the published energy."""
    found = searched(layer.work, is_first=("alexnet", layer.row["layer"]) in FIRST)
    assert found.result.is_proven
    assert abs(found.record.latency_cycles / CYCLES_PER_MS / layer.measured(PROCESSING) - 1) < 0.06
    published = layer.work.record(is_first=("alexnet", layer.row["layer"]) in FIRST)
    if layer.work.layer().size_of == layer.work.whole_layer().size_of:
        assert found.record.energy_pj <= published.energy_pj * (1 + 1e-9)


def test_sets_fill_the_array() -> None:
    """The searched sets fill the array, and those of CONV4 include the sets of table III."""
    shape, own = layers()["alexnet", "CONV4"]
    found = dict(sets(shape))
    assert found[own.e, own.r, own.t] == EyerissWork(shape, own, 4).unrolling
    for (rows, channels, kernels), unrolling in found.items():
        lanes = {side: 1 for side, _ in unrolling}
        for side, loops in unrolling:
            for _, factor in loops:
                lanes[side] *= factor
        assert lanes["D1"] <= 12
        assert lanes["D2"] <= 14
        assert shape.kernel * rows * (channels * kernels + 1) > 12 * 14 or rows < 14


@pytest.mark.parametrize(
    ("key", "swapped", "said"),
    [
        (("alexnet", "CONV4"), (2, 11), "'psum_spad' cannot have a loop over G"),  # groups within a unit
        (("alexnet", "CONV4"), (7, 8), "'buffer' cannot have a loop over OY"),  # sums of several strips wait
        (
            ("vgg16", "CONV4-2"),
            (8, 9),
            "loop_order in the hardware file, inner to outer: C, OY, B, G",
        ),  # images before strips
    ],
)
def test_other_orders_break_the_rules(key: tuple[str, str], swapped: tuple[int, int], said: str) -> None:
    """A mapping with two exchanged loops is refused with the broken rule."""
    shape, own = layers()[key]
    work = EyerissWork(shape, replace(own, e=7), 4 if key[0] == "alexnet" else 3)
    order = list(work.loops)
    one, other = swapped
    order[one], order[other] = order[other], order[one]
    kept = tuple(loop for loop in order if loop[1] > 1)
    with pytest.raises(BrokenRuleError) as refused:
        evaluate(work.layer(), eyeriss_core(), LINKS, work.unrolling, kept, boundaries=work.boundaries)
    assert said in str(refused.value)
