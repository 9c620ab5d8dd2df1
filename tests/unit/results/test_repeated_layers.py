"""Layers that stand for several equal ones: totals, tables, checks and advice equal those of the full network."""

from pathlib import Path
from typing import Any

import pytest
import tilewright
import yaml
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import load_yaml
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.pipeline.sources import parse_accelerator, parse_workload
from tilewright.results.records import layers_in_order
from tilewright.search.options import SearchOptions

FOLDER = Path("config")
HARDWARE, MAPPING = FOLDER / "hardware/zigzag/tpu_like_vector.yaml", FOLDER / "mapping/zigzag/tpu_like_vector.yaml"
STEP: dict[str, Any] = {
    "language_model": {
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "vocab_size": 64,
    },
    "phase": "decode",
    "context": 31,
}
OPTIONS: dict[str, Any] = {
    "hardware": HARDWARE,
    "mapping": MAPPING,
    "preset": "zigzag",
    "model": "corrected",
    "lpf_limit": 3,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with layers that each stand for three."""
    folder = tmp_path_factory.mktemp("folded")
    (folder / "step.yaml").write_text(yaml.safe_dump(STEP, sort_keys=False))
    tilewright.map(workload=folder / "step.yaml", output=folder, **OPTIONS)
    return folder


@pytest.fixture(scope="module")
def written() -> Any:
    """A run of the network with every block written out."""
    return tilewright.map(workload=STEP | {"written_out": True}, **OPTIONS)


def test_totals_are_those_of_the_network_written_out(folder: Path, written: Any) -> None:
    """Energy and latency with their terms, work and numbers of layers equal those of the full network."""
    folded = tilewright.load(folder).summary
    assert folded["latency_cycles"] == written.summary["latency_cycles"]
    assert folded["energy_pj"] == pytest.approx(written.summary["energy_pj"], rel=1e-12)
    assert folded["memory_energy_pj"] == pytest.approx(written.summary["memory_energy_pj"], rel=1e-12)
    same = ("layers", "distinct_layers", "mac_count", "operation_count", "latency_breakdown_cycles", "passed_through")
    moved = ("coverage", "corrected")
    for key in same:
        assert folded[key] == written.summary[key], key
    assert folded["coverage"] == written.summary["coverage"]
    assert folded[moved[1]]["latency_cycles"] == written.summary[moved[1]]["latency_cycles"]


def test_rows_of_tables_are_of_all_layers_that_a_layer_stands_for(folder: Path, written: Any) -> None:
    """Each row counts all layers that its layer stands for, and shows their number; rows add up to the totals."""
    run = tilewright.load(folder)
    table = run.layers.set_index("layer")
    assert table["latency_cycles"].sum() == run.summary["latency_cycles"]
    assert table["energy_pj"].sum() == pytest.approx(run.summary["energy_pj"], rel=1e-12)
    assert table.loc["layers/attention/q_proj", "repeats"] == 3
    assert table.loc["lm_head", "repeats"] == 1
    of_one = written.layers.set_index("layer").loc["layers.1/attention/q_proj"]
    assert table.loc["layers/attention/q_proj", "latency_cycles"] == 3 * of_one["latency_cycles"]
    assert run.energy["energy_pj"].sum() == pytest.approx(run.summary["energy_pj"], rel=1e-12)


def test_physical_checks_hold(folder: Path) -> None:
    """The physical checks pass on the artifacts. The cycles of a layer are its repeats times those of one repeat."""
    assert all(one.passed for one in tilewright.check(folder))
    placed = layers_in_order(tilewright.load(folder).records, tilewright.load(folder).summary)
    assert {one.repeats for one in placed} == {1, 3}
    assert all(one.record.latency_cycles == one.repeats * one.of_one.latency_cycles for one in placed)


def test_ports_and_limits_add_up_to_the_network(folder: Path) -> None:
    """Cycles with a wider port, and the limits of layers, add up to those of the network."""
    found = tilewright.explain(folder, hardware=HARDWARE, workload=folder / "step.yaml")
    summary = tilewright.load(folder).summary
    assert found.network_limit is not None
    assert found.network_limit.latency_cycles == pytest.approx(summary["latency_cycles"])
    assert sum(limit.latency_cycles for limit in found.limits.values()) == summary["latency_cycles"]


def test_a_design_of_a_space_costs_what_the_run_does(folder: Path) -> None:
    """A design of a space costs as much as the summary says."""
    network = parse_workload(STEP, model="corrected")
    options = SearchOptions(model="corrected", lpf_limit=3)
    cost = NetworkEvaluator(network, MAPPING, options).cost(parse_accelerator(load_yaml(HARDWARE).data))
    summary = tilewright.load(folder).summary
    assert (cost.energy_pj, cost.latency_cycles) == (summary["energy_pj"], summary["latency_cycles"])


def test_advice_begins_with_the_costs_of_the_run(folder: Path) -> None:
    """Advice begins with the run's costs and reports no difference to them."""
    given = {"hardware": HARDWARE, "workload": folder / "step.yaml", "mapping": MAPPING}
    found = tilewright.advise(folder, search=False, **given)
    summary = tilewright.load(folder).summary
    assert found.now.latency_cycles == summary["latency_cycles"]
    assert found.helpful


def test_data_between_layers_needs_each_layer(folder: Path) -> None:
    """Verbs that follow data from layer to layer refuse repeated layers, and say to write them out."""
    with pytest.raises(InputError, match="written_out: true"):
        tilewright.map(workload=STEP, exploit_data_locality=True, **OPTIONS)
    tilewright.map(workload=STEP | {"written_out": True}, exploit_data_locality=True, **OPTIONS)
    with pytest.raises(InputError, match="written_out: true"):
        tilewright.depth_first(workload=STEP, hardware=HARDWARE, mapping=MAPPING)
