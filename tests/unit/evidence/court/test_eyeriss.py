"""Eyeriss in the court: `evaluate` gives the estimates, and the mappings obey the published rules."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright_evidence.court.case import DATA, set_files
from tilewright_evidence.court.eyeriss import BUFFER, EYERISS, POWER, QUANTITIES, prepare, zeros_of
from tilewright_evidence.court.eyeriss_mapping import (
    BITS,
    BUFFER_BITS,
    COLUMNS,
    EQUATION,
    FILTER_SPAD,
    HARDWARE,
    INPUT_SPAD,
    ROWS,
    SUM_SPAD,
    EyerissWork,
    RowStationary,
    chosen_mapping,
    eyeriss_core,
    layers,
    traffic_bytes,
)

FILES = set_files(DATA / EYERISS.name, EYERISS.patterns)
PUBLISHED = {name: one for (network, name), one in layers().items() if network == "alexnet"}


def works() -> list[EyerissWork]:
    """Return the layers of the sample, each once."""
    return list(dict.fromkeys(row.layer.work for row in prepare(FILES)))


def workload(work: EyerissWork) -> list[dict[str, Any]]:
    """Return the layer as a workload file."""
    layer = work.layer()
    return [
        {
            "id": 0,
            "name": "layer",
            "operator_type": "Conv",
            "equation": EQUATION,
            "dimension_relations": [
                f"{one.data_dimension}={one.terms[0][1]}*{one.terms[0][0]}+{one.terms[1][1]}*{one.terms[1][0]}"
                for one in layer.relations
            ],
            "loop_dims": [name for name, _ in layer.loop_sizes],
            "loop_sizes": [size for _, size in layer.loop_sizes],
            "operand_precision": dict(layer.precision_bits),
            "operand_source": {"W": 0},
            "pr_loop_dims": ["IX", "IY"],
            "pr_loop_sizes": [size for _, size in layer.data_dimension_sizes],
            "zeros": dict(layer.zeros),
        }
    ]


def test_evaluate_gives_the_estimates(tmp_path: Path) -> None:
    """`evaluate` on the hardware file gives exactly the energy and latency of the court."""
    file = tmp_path / "layer.yaml"
    for work in works():
        if dict(work.zeros).keys() != {"I", "O_final"}:
            continue  # the first layer of a network reads plain inputs, in a file of its own
        file.write_text(yaml.safe_dump(workload(work), sort_keys=False))
        (found,) = tilewright.evaluate(
            hardware=str(HARDWARE), workload=str(file), points=[work.point()], model="corrected"
        )
        record = work.record()
        assert (found.energy_pj, found.latency_cycles) == (record.energy_pj, record.latency_cycles)
        assert found.word_accesses == record.word_accesses


@pytest.mark.parametrize("key", layers(), ids=" ".join)
def test_mappings_keep_the_published_rules(key: tuple[str, str]) -> None:
    """Mappings fit the array and its memories: sets, weights, sums and inputs of a pass."""
    shape, own = layers()[key]
    assert own.p * own.q * shape.kernel <= FILTER_SPAD
    assert own.p <= SUM_SPAD
    assert own.q * shape.kernel <= INPUT_SPAD
    assert own.m % (own.p * own.t) == 0
    inputs = own.n * own.q * own.r * ((own.e - 1) * shape.stride + shape.kernel) * shape.padded_input
    assert (inputs + own.m * own.n * own.e * shape.output) * BITS <= BUFFER_BITS
    images = 4 if key[0] == "alexnet" else 3
    unrolling = dict(EyerissWork(shape, own, images).unrolling)
    lanes = dict.fromkeys(("D1", "D2"), 1)
    for side, factors in unrolling.items():
        for _, factor in factors:
            lanes[side] *= factor
    assert lanes["D1"] <= ROWS
    assert lanes["D2"] <= COLUMNS


def test_active_units_are_those_of_the_paper() -> None:
    """Active units are 154, 135, 156, 156 and 156 of 168, as in table V of the paper."""
    found = {}
    for name, (shape, own) in PUBLISHED.items():
        found[name] = shape.kernel * own.e * own.r * own.t
    assert found == {"CONV1": 154, "CONV2": 135, "CONV3": 156, "CONV4": 156, "CONV5": 156}


def test_buffer_traffic_by_hand() -> None:
    """The sums of CONV5 move 32 times in each direction, and its inputs go to the array four times."""
    shape, own = PUBLISHED["CONV5"]
    moved = traffic_bytes(EyerissWork(shape, own, 4).record(), eyeriss_core())
    assert moved["buffer O"] == 2 * 4 * 256 * 13 * 13 * 2 * 32
    assert moved["buffer I"] == 2 * 4 * 2 * 192 * 15 * 15 * 4


def test_another_mapping_of_conv3_has_the_measured_traffic() -> None:
    """CONV3 with the sets of CONV4 moves the measured 50.2 MB through the buffer, instead of 69.2 MB."""
    shape, own = PUBLISHED["CONV3"]
    found = []
    for mapping in (own, RowStationary(64, 4, 13, 16, 3, 2, 2)):
        moved = traffic_bytes(EyerissWork(shape, mapping, 4).record(), eyeriss_core())
        found.append(round((moved["buffer O"] + moved["buffer I"]) / 1e6, 1))
    assert found == [69.2, 50.2]


@pytest.mark.parametrize("name", ["CONV1-1", "CONV1-2", "CONV5-1"])
def test_mappings_of_vgg_are_those_that_the_rule_chooses(name: str) -> None:
    """The mappings of VGG have the least energy of chip and DRAM among those that the published rules allow."""
    shape, own = layers()["vgg16", name]
    assert chosen_mapping(EyerissWork(shape, own, 3)) == own


def test_every_layer_has_each_quantity_above_its_bound() -> None:
    """Every layer has five quantities above their bounds.
    The keys for zeros lower the power and leave the buffer traffic as it is.
    """
    cases = [row.case({}) for row in prepare(FILES)]
    assert len(cases) == len(QUANTITIES) * len(works())
    assert not any(case.breaks_bound for case in cases)
    for case in cases:
        if case.part.endswith(BUFFER):
            assert case.estimate == case.alone
        if case.part == f"alexnet, {POWER}" and "CONV1" not in case.identity:
            assert case.alone is not None
            assert case.estimate < case.alone


def test_zeros_of_outputs_are_those_of_the_next_layer() -> None:
    """A layer's outputs have the share of zeros of the next layer's inputs.

    If pooling or an unknown layer comes next, they have the share of zeros of the layer's own inputs.
    """
    rows = [
        {"network": "alexnet", "layer": name, "zeros_in_ifmaps_pct": share}
        for name, share in (("CONV1", 0.0), ("CONV3", 70.0), ("CONV4", 80.0), ("CONV5", 75.0))
    ]
    found = {name: dict(zeros) for (_, name), zeros in zeros_of(rows).items()}
    assert found["CONV1"] == {"O_final": 0.7}
    assert found["CONV3"] == {"I": 0.7, "O_final": 0.8}
    assert found["CONV5"] == {"I": 0.75, "O_final": 0.75}


def test_unknown_layers_are_refused(tmp_path: Path) -> None:
    """A layer without a known mapping is refused."""
    head, first, *_ = FILES[0].read_text().splitlines()
    (tmp_path / "rows.csv").write_text(f"{head}\n{first.replace('CONV1,', 'CONV9,')}\n")
    with pytest.raises(InputError, match="no mapping is known for this layer"):
        prepare([tmp_path / "rows.csv"])


def test_first_layers_read_plain_inputs() -> None:
    """DRAM traffic of the first layer's inputs does not depend on their zeros."""
    (first,) = [row.layer for row in prepare(FILES) if row.layer.row["row_id"] == "eyeriss_alexnet_CONV1"][:1]
    more = replace(first.work, zeros=(("I", 0.9), *first.work.zeros))
    core = eyeriss_core()
    plain, zeros = (traffic_bytes(work.record(is_first=True), core)["dram I"] for work in (first.work, more))
    assert plain == zeros > traffic_bytes(more.record(), core)["dram I"]
