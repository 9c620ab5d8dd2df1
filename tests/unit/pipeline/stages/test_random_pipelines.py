"""Pipelines of the stages that the documentation of ZigZag names: a total that is right, or a refusal that says why."""

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilewright.base.errors import InputError
from tilewright.pipeline.stages import CostedBatch, Pipeline, Reduction, Rest, Stage
from tilewright.results.checks import check_run
from tilewright.results.run_text import alternative_lines
from tilewright.search.options import SearchOptions
from tilewright.search.store import Store

from tests.unit.pipeline.stages.random_pipelines import tried
from tests.unit.pipeline.stages.stage_cases import LAYERS, run

SEED = ["WorkloadStage", "SpatialMappingGeneratorStage", "MinimalLatencyStage", "LomaStage", "CostModelStage"]
FEW = SearchOptions(lpf_limit=2)


def test_random_pipelines_give_the_right_total_or_say_why_not() -> None:
    """Random lists, some of them out of order: totals, counts and files are those of a plain reading of the list."""
    outcomes = tried(count=14, seed=11)
    assert outcomes["run"] >= 7
    assert outcomes["refused"] >= 1


def test_the_pipeline_of_the_documentation_counts_each_layer_once(tmp_path: Path) -> None:
    """With one reduction below the generator the layer ends with the best of what comes back, as with two."""
    mapped = run(["SimpleSaveStage", *SEED], FEW, exports=tmp_path)
    both = run(["WorkloadStage", "MinimalLatencyStage", *SEED[1:]], FEW)
    for key in ("energy_pj", "latency_cycles", "mac_count", "evaluations"):
        assert mapped.summary[key] == both.summary[key]
    assert mapped.summary["mac_count"] == sum(layer.mac_count for layer in LAYERS)
    assert mapped.summary["alternatives"]["mappings"] > 0
    assert "alternatives" not in both.summary
    assert all(one.passed for one in check_run(mapped.records, mapped.summary))
    saved = [json.loads((tmp_path / f"{layer.name}_simple.json").read_text()) for layer in LAYERS]
    assert sum(one["latency"] for one in saved) == mapped.summary["latency_cycles"]


@pytest.mark.parametrize("objective", ["latency", "energy", "EDP"])
def test_without_a_reduction_the_objective_of_the_run_decides(objective: str, tmp_path: Path) -> None:
    """Of all orders the best by the objective counts, from the store too, and the summary names the objective."""
    options, store = SearchOptions(lpf_limit=2, objective=objective), Store(tmp_path)
    pipeline = [name for name in SEED if not name.startswith("Minimal")]
    best = run(None, options)
    for _ in range(2):
        mapped = run(pipeline, options, store=store)
        assert mapped.summary["objective"] == objective
        for key in ("energy_pj", "latency_cycles"):
            assert mapped.summary[key] == best.summary[key]
        assert mapped.summary["alternatives"]["mappings"] == best.summary["evaluations"] - 2
    (line,) = alternative_lines(mapped.summary)
    assert f"Minimal{objective[0].upper()}{objective[1:]} right below Workload" in line


@dataclass(frozen=True)
class Slowest(Reduction):
    """Keeps the mapping with most cycles."""

    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Cycles, the most first."""
        return (np.where(costs.fits, -costs.latency_cycles, np.inf),)


def test_a_reduction_of_ones_own_decides_at_the_end_of_the_layer() -> None:
    """It stands below the generator only, and what comes back of several spatial mappings is ranked by it."""
    pipeline = ["WorkloadStage", "SpatialMappingGenerator", Slowest, "LomaStage", "CostModelStage"]
    mapped = run(pipeline, FEW)
    both = run(["WorkloadStage", Slowest, *pipeline[1:]], FEW)
    assert mapped.summary["latency_cycles"] == both.summary["latency_cycles"]
    assert "Slowest right below Workload" in "".join(alternative_lines(mapped.summary))


@dataclass(frozen=True)
class Twice(Stage):
    """Yields every record twice."""

    def run(self, item: Any, rest: Rest) -> Any:
        """The records, each twice."""
        for record in rest(item):
            yield record
            yield record


@dataclass(frozen=True)
class Drops(Stage):
    """Yields no record of the first layer."""

    def run(self, item: Any, rest: Rest) -> Any:
        """All but the first."""
        yield from list(rest(item))[1:]


def test_totals_are_of_every_layer_once_whatever_stages_above_do() -> None:
    """A record that comes twice counts once; a layer that does not come is told, and there is no total."""
    plain = run(None, FEW)
    for edits in ([{"insert": Twice, "after": "Sum"}], [{"drop": "Sum"}, {"insert": Twice, "before": "Workload"}]):
        twice = run(edits, FEW)
        assert twice.summary["latency_cycles"] == plain.summary["latency_cycles"]
        assert twice.summary["alternatives"] == {"mappings": 2, "distinct_layers": 2}
    with pytest.raises(InputError, match="yields no record of 2 layers, so there are no totals: one, three"):
        run([{"insert": Drops, "after": "Sum"}], FEW)


@pytest.mark.usefixtures("unpainted")
@pytest.mark.parametrize("place", [{"after": "SpatialMappingGenerator"}, {"after": "Workload"}])
@pytest.mark.parametrize("stage", ["CompleteSave", "PlotTemporalMappings"])
def test_every_mapping_that_passes_has_a_file(stage: str, place: dict[str, str], tmp_path: Path) -> None:
    """Each spatial mapping of each layer once, under names that are told apart by its number."""
    pipeline = [{"replace": "MinimalLatency", "stage": "MinimalLatency"}, {"insert": stage, **place}]
    if "Workload" in place.values():
        pipeline = ["Workload", stage, *SEED[1:]]
    mapped = run(pipeline, FEW, exports=tmp_path)
    wanted = sum(
        len(record.layer_names) * sum(1 for row in record.candidates if row.feasible) for record in mapped.records
    )
    ending = "complete.json" if stage == "CompleteSave" else "loop_nest.svg"
    files = sorted(path.name for path in tmp_path.glob(f"*_{ending}"))
    assert len(files) == wanted > len(LAYERS)
    if stage == "CompleteSave":
        values = [json.loads((tmp_path / name).read_text()) for name in files]
        assert {value["inputs"]["layer"]["name"] for value in values} == {"one", "two", "three"}
        assert len({json.dumps(value["inputs"]) for value in values}) == wanted


def test_layers_that_share_a_problem_all_have_their_files(tmp_path: Path) -> None:
    """Wherever a stage stands, `one` and `three`, which are alike, are both written."""
    stages = ["Workload", "MinimalLatency", "SpatialMappingGenerator", "SpatialMappingConversion"]
    run([*stages, "SimpleSave", "PickleSave", "Loma", "CostModel"], FEW, exports=tmp_path)
    for name in ("one", "three"):
        assert (tmp_path / f"{name}_simple.json").is_file()
        (first, *_) = pickle.loads((tmp_path / f"{name}_list_of_cmes.pickle").read_bytes())
        assert first["inputs"]["layer"]["name"] == name


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (
            ["Workload", "SimpleSave", "MinimalLatency", "SimpleSave"],
            "<layer>_simple.json; give one of the two stages another `fold",
        ),
        (
            ["PickleSave", "Sum", "PickleSave", "Workload"],
            "list_of_cmes.pickle; give one of the two stages another `folder`",
        ),
        (["Workload", "CustomSpatialMappingGenerator"], "chooses one; leave out one of the two stages"),
        (
            ["SearchUnusedMemory", "Workload", "SpatialMappingGenerator", "RemoveUnusedMemory"],
            "put it before SpatialMappingGenerator",
        ),
    ],
)
def test_lists_that_would_lose_or_double_something_are_refused(stages: list[str], message: str) -> None:
    """Files over files, a second choice of spatial mappings, memories that go after one was chosen."""
    rest = ["SpatialMappingConversion"] if "RemoveUnusedMemory" in stages else ["SpatialMappingGenerator"]
    with pytest.raises(InputError) as raised:
        Pipeline.build([*stages, *rest, "MinimalLatency", "Loma", "CostModel"], FEW)
    assert message in str(raised.value)


def test_a_folder_of_its_own_keeps_files_apart(tmp_path: Path) -> None:
    """Two stages of a kind may stand in a pipeline if one has a folder."""
    below = {"stage": "SimpleSave", "parameters": {"folder": "all"}}
    run(["SimpleSave", "Workload", below, *SEED[1:]], FEW, exports=tmp_path)
    assert isinstance(json.loads((tmp_path / "two_simple.json").read_text()), dict)
    assert isinstance(json.loads((tmp_path / "all" / "two_simple.json").read_text()), list)


def test_stages_that_look_may_stand_among_parsers(tmp_path: Path) -> None:
    """Parsers pass on what comes back, so that a stage above them sees what one right below them sees."""
    run(["ONNXModelParserStage", "SimpleSaveStage", "AcceleratorParserStage", "Sum", *SEED], FEW, exports=tmp_path)
    saved = json.loads((tmp_path / "overall_simple.json").read_text())
    assert saved["latency"] == run(SEED, FEW).summary["latency_cycles"]


def test_a_proof_is_of_what_is_kept() -> None:
    """Where the reduction goes by energy and the exact search by latency, nothing is called proven."""
    below = ["SpatialMappingGenerator", "MinimalLatency", "Exact", "CostModel"]
    assert run(["Workload", "MinimalLatency", *below], FEW).summary["certificate"]["proven"] == 2
    mixed = run(["Workload", "MinimalEnergy", *below], FEW)
    assert "certificate" not in mixed.summary
    assert not any("proven" in record.search for record in mixed.records)
