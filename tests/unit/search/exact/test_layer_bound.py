"""Lower bounds of loma and salsa: no mapping is below them, and they do not change the mappings."""

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tilewright.base.objectives import OBJECTIVES
from tilewright.results.proof_text import proof_lines
from tilewright.results.run_tables import runs_table
from tilewright.search.exact.layer_bound import layer_bounds
from tilewright.search.exact.rounds import Incumbent
from tilewright.search.options import MapOptions, SearchOptions

from tests.plain.attack_layer_bounds import attack_layer_bounds
from tests.plain.tally import Tally
from tests.unit.pipeline.stages.stage_cases import ordered_mapping, run

ENGINES = ("loma", "salsa")


def mapped(engine: str, objective: str, **options: Any) -> Any:
    """Small layers, mapped by a search with bounds."""
    given = {"temporal_mapping_search_engine": engine, "objective": objective, "bounds": True}
    return run(options=SearchOptions(**given, **options))


def test_no_random_mapping_is_below_a_bound() -> None:
    """No mapping of random layers, cores and profiles is below a bound; more than an eighth of the bounds is
    reached.
    """
    tally = Tally()
    for seed in range(5000, 5020):
        tally.add(attack_layer_bounds(seed))
    assert not tally.wrong, tally.wrong
    assert tally.counts["mappings"] > 1000
    for objective in OBJECTIVES:
        met, made = (tally.counts[f"bounds of {objective}{what}"] for what in (" that a mapping meets", ""))
        assert made / 8 < met <= made, (objective, tally.counts)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bounds_are_below_the_optimum_and_change_nothing_else(engine: str, objective: str) -> None:
    """Each layer's bound is at most the proven value of the exact search, and the mappings equal a run without
    bounds.
    """
    found = mapped(engine, objective)
    same_space = {"objective": objective, "nb_spatial_mappings_generated": 3}
    proven = run(options=SearchOptions(temporal_mapping_search_engine="exact", **same_space))
    plain = run(options=SearchOptions(temporal_mapping_search_engine=engine, objective=objective))
    for record, best, other in zip(found.records, proven.records, plain.records, strict=True):
        proof = record.search
        assert best.search["proven"]
        assert 0 < proof["lower_bound"] <= best.search["value"] * (1 + 1e-9)
        assert proof["value"] == OBJECTIVES[objective].value(record.energy_pj, record.latency_cycles)
        assert proof["gap"] == pytest.approx(1 - proof["lower_bound"] / proof["value"], abs=1e-12)
        assert proof["proven"] == (proof["gap"] <= 2e-9)
        assert replace(record, search={}) == replace(other, search={})
        assert other.search.items() <= proof.items(), "the figures of the engine stay"
    assert ("lower_bounds" in proof) == (objective == "EDP")
    bound = found.summary["certificate"]["run"]
    assert bound["lower_bound"] <= proven.summary["certificate"]["run"]["value"] * (1 + 1e-9)
    assert bound["value"] == OBJECTIVES[objective].value(found.summary["energy_pj"], found.summary["latency_cycles"])


def test_the_bound_of_the_edp_of_a_network_uses_both_measures() -> None:
    """The bound of the EDP is at least the product of two sums over layers: of energy bounds and of latency bounds."""
    found = mapped("loma", "EDP")
    both = [record.search["lower_bounds"] for record in found.records]
    assert all(one["energy_pj"] > 0 and one["latency_cycles"] > 0 for one in both)
    counts = dict.fromkeys(range(len(both)), 0)
    for _, index, *times in found.summary["layer_index"]:
        counts[index] += times[0] if times else 1
    least = [math.fsum(counts[i] * one[name] for i, one in enumerate(both)) for name in ("energy_pj", "latency_cycles")]
    assert found.summary["certificate"]["run"]["lower_bound"] >= math.prod(least) * (1 - 1e-6)


def test_text_and_table_say_gap_and_cover() -> None:
    """The sentence names the spatial mappings that the bound covers, and the table has the gap of the network."""
    found = mapped("loma", "EDP", lpf_limit=1)
    proof = found.summary["certificate"]
    first, left_out, of_run, *_ = proof_lines(found.summary)
    gap = f"other mappings give at most {proof['largest_gap']:.2%} less"
    counts = f"{gap}; the optimum is proven for {proof['proven']} of 2 distinct layers"
    covers = "the proofs cover the first 3 spatial mappings that unroll"
    assert first.startswith(f"EDP of each layer: {counts}; {covers}")
    assert left_out.startswith("not searched, and possibly better: further generated spatial mappings (")
    assert of_run.startswith("EDP of the network: ")
    assert runs_table({"r": found.summary}, {})["objective_gap"].tolist() == [proof["run"]["gap"]]


def test_a_gap_of_a_short_search_is_told_as_such() -> None:
    """Gaps of loma come with a line that its bounds take little effort; proofs and the engine `best` do not."""
    for engine, proven, says in (("loma", 1, True), ("loma", 2, False), ("best", 1, False)):
        proof = {"proven": proven, "of": 2, "largest_gap": 0.2, "covers": ["some"], "engines": [engine]}
        lines = list(proof_lines({"certificate": proof, "objective": "EDP"}))
        assert any("these bounds of the engine loma are computed with little effort" in line for line in lines) == says


def test_open_sides_say_how_many_spatial_mappings_are_covered() -> None:
    """The sentence says that the bound is over the two spatial mappings that loma tries."""
    found = mapped("loma", "latency", nb_spatial_mappings_generated=2)
    for record in found.records:
        assert len(record.candidates) == 2
        assert record.search["covers"].startswith("the first 2 spatial mappings that unroll ")


def test_a_given_order_is_its_own_optimum() -> None:
    """A complete order in the mapping file is its own optimum, so every record is proven."""
    found = run(options=SearchOptions(bounds=True), mapping=ordered_mapping())
    assert [record.search["proven"] for record in found.records] == [True] * len(found.records)


@dataclass(frozen=True)
class _Case:
    pipeline: list[Any] | None
    says: bool


@pytest.mark.parametrize(
    "case",
    [
        _Case(None, True),
        _Case([{"replace": "MinimalLatency", "stage": "MinimalEnergy"}], True),
        _Case([{"set": "Loma", "parameters": {"bounds": False}}], False),
    ],
)
def test_the_bound_is_of_what_the_stages_minimise(case: _Case) -> None:
    """The bound is for the objective of the pipeline's reductions; a stage with bounds turned off gives none."""
    found = run(case.pipeline, SearchOptions(bounds=True))
    assert all(("lower_bound" in record.search) == case.says for record in found.records)
    if case.says:
        measure = "latency_cycles" if case.pipeline is None else "energy_pj"
        assert [record.search["value"] for record in found.records] == [
            getattr(record, measure) for record in found.records
        ]


def test_preset_and_default() -> None:
    """`map` gives bounds by default, the preset `zigzag` does not; for an engine that always gives bounds, the option
    has no effect.
    """
    assert MapOptions().bounds
    assert not MapOptions(preset="zigzag").bounds
    assert MapOptions(preset="zigzag", bounds=True).bounds
    assert "bounds" in MapOptions().without_effect()
    assert "bounds" not in MapOptions(temporal_mapping_search_engine="salsa").without_effect()


def test_a_bound_is_not_above_the_known_mapping() -> None:
    """A bound is at most the value of the known mapping, also if there is no choice."""
    known = Incumbent(energy_pj=2.0, latency_cycles=3.0)
    assert layer_bounds([], (), "latency", known).value == 3.0
    assert layer_bounds([], (), "EDP", known) == (6.0, 2.0, 3.0)
