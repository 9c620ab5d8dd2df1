"""Mappings for the EDP of a network, with `map`, threads, a store, single layers and design spaces."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.proof import CLOSE
from tilewright.designs.evaluate import NetworkEvaluator
from tilewright.hardware.source import parse_accelerator
from tilewright.pipeline.stages.base import Control
from tilewright.pipeline.stages.descriptions import Descriptions, NetworkProblem
from tilewright.pipeline.stages.items import MappedWorkload
from tilewright.pipeline.stages.run import default_pipeline, map_problem, map_some_layers, read_problem, summed_again
from tilewright.results.proof_text import proof_lines
from tilewright.search.options import SearchOptions
from tilewright.search.store import Store
from tilewright.workload.source import parse_workload

from tests.members import members
from tests.unit.pipeline.stages.test_near_optimum import layers

HARDWARE, MAPPING = "config/hardware/zigzag/meta_prototype_df.yaml", "config/mapping/zigzag/meta_prototype_df.yaml"
OPTIONS = SearchOptions(
    model="corrected", objective="EDP", temporal_mapping_search_engine="best", exploit_data_locality=True, effort=60_000
)


def problem(seed: int) -> NetworkProblem:
    """A random network of small layers on a core with open sides."""
    return read_problem(Descriptions(HARDWARE, layers(random.Random(seed), 5), MAPPING), OPTIONS)


def mapped(seed: int, **settings: Any) -> MappedWorkload:
    """The result of the default pipeline."""
    return map_problem(problem(seed), default_pipeline(OPTIONS, False), Control(**settings))


def value(summary: dict[str, Any]) -> float:
    """The EDP of a network."""
    return float(summary["energy_pj"]) * float(summary["latency_cycles"])


@pytest.fixture(scope="module")
def chosen() -> int:
    """The seed of a network in which some layer does not get the mapping of its least EDP."""
    for seed in range(40):
        if any("for_network" in record.search for record in mapped(seed).records):
            return seed
    pytest.fail("no network gains")


def test_the_network_is_never_worse_and_proofs_stay_true() -> None:
    """The EDP of the network is no greater than with each layer's best EDP, and both lower bounds are below both
    values.
    """
    for seed in range(members(40, 4)):
        own, found = mapped(seed, is_network=False).summary, mapped(seed).summary
        assert value(found) <= value(own)
        for summary in (own, found):
            assert max(one["certificate"]["run"]["lower_bound"] for one in (own, found)) <= value(summary)
        assert found["certificate"]["run"]["gap"] <= own["certificate"]["run"]["gap"] + CLOSE


def test_notes_of_chosen_mappings_say_what_they_are(chosen: int) -> None:
    """The notes give value and gap of the layer's EDP for the chosen mapping, and the weighted sum with its bound."""
    found = mapped(chosen)
    for record in found.records:
        search = record.search
        assert search["value"] == pytest.approx(record.energy_pj * record.latency_cycles, rel=1e-9)
        assert search["lower_bound"] <= search["value"]
        assert search["ends"]["chosen"]["energy_pj"] == record.energy_pj
        for line in search.get("lines", ()):
            assert line["level_pj"] <= record.energy_pj + line["pj_a_cycle"] * record.latency_cycles
        if (note := search.get("for_network")) is not None:
            own = note["least_of_layer"]
            total = record.energy_pj + note["pj_a_cycle"] * record.latency_cycles
            assert note["value"] == pytest.approx(total, rel=1e-9)
            assert total < own["energy_pj"] + note["pj_a_cycle"] * own["latency_cycles"]
            assert search["value"] >= own["energy_pj"] * own["latency_cycles"] * (1 - 0.02)
    count = sum("for_network" in record.search for record in found.records)
    assert found.summary["certificate"]["chosen_for_network"] == count
    assert any("chosen for the EDP of the network" in line for line in proof_lines(found.summary))


def test_threads_store_and_single_layers_give_the_same_records(chosen: int, tmp_path: Path) -> None:
    """Three threads, a store and requests for single layers give equal records, which add up to the same totals."""
    first = mapped(chosen)
    assert mapped(chosen, threads=3) == first
    store = Store(tmp_path)
    for _ in range(2):
        assert mapped(chosen, store=store) == first
    pipeline = default_pipeline(OPTIONS, False)
    for record in first.records:
        assert map_some_layers(problem(chosen), pipeline, [record.layer.name]) == (record,)
    assert summed_again(problem(chosen), pipeline, first.records) == first


def test_designs_of_a_space_cost_what_map_finds(chosen: int) -> None:
    """Energy and latency of an evaluated design equal those of `map`."""
    workload = parse_workload(layers(random.Random(chosen), 5), model=OPTIONS.model)
    cost = NetworkEvaluator(workload, MAPPING, OPTIONS).evaluated(parse_accelerator(HARDWARE))
    summary = mapped(chosen).summary
    assert (cost.energy_pj, cost.latency_cycles) == (summary["energy_pj"], summary["latency_cycles"])


@pytest.mark.parametrize(
    "options",
    [
        replace(OPTIONS, objective="energy"),
        replace(OPTIONS, objective="latency"),
        replace(OPTIONS, ends=False),
        replace(OPTIONS, temporal_mapping_search_engine="loma", effort=SearchOptions().effort),
    ],
)
def test_other_searches_are_unchanged(chosen: int, options: SearchOptions) -> None:
    """Single objectives, `ends=False` and other engines have no second search for the network."""
    pipeline = default_pipeline(options, False)
    found, own = (map_problem(problem(chosen), pipeline, Control(is_network=one)) for one in (True, False))
    assert found == own
    assert not any("lines" in record.search for record in found.records)
