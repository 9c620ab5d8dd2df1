"""Pipelines of the stages that ZigZag's documentation names: right totals, or a refusal with a reason."""

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
    """Totals, counts and files of random lists equal those of a plain reading; some lists are refused."""
    outcomes = tried(count=14, seed=11)
    assert outcomes["run"] >= 7
    assert outcomes["refused"] >= 1


def test_the_pipeline_of_the_documentation_counts_each_layer_once(tmp_path: Path) -> None:
    """Each layer counts once, with its best mapping, whether there is one reduction below the generator or two."""
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
    """The run's objective chooses among all orders, also from the store, if there is no reduction; the summary names
    it.
    """
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
    """Keeps the mapping with the most cycles."""

    def rank(self, costs: CostedBatch) -> Sequence[np.ndarray]:
        """Ranks by cycles, the most first."""
        return (np.where(costs.fits, -costs.latency_cycles, np.inf),)


def test_a_reduction_of_ones_own_decides_at_the_end_of_the_layer() -> None:
    """A user's reduction below the generator also ranks the results of several spatial mappings at the end of a
    layer.
    """
    pipeline = ["WorkloadStage", "SpatialMappingGenerator", Slowest, "LomaStage", "CostModelStage"]
    mapped = run(pipeline, FEW)
    both = run(["WorkloadStage", Slowest, *pipeline[1:]], FEW)
    assert mapped.summary["latency_cycles"] == both.summary["latency_cycles"]
    assert "Slowest right below Workload" in "".join(alternative_lines(mapped.summary))


@dataclass(frozen=True)
class Twice(Stage):
    """Yields every record twice."""

    def run(self, item: Any, rest: Rest) -> Any:
        """Yields each record twice."""
        for record in rest(item):
            yield record
            yield record


@dataclass(frozen=True)
class Drops(Stage):
    """Yields no record of the first layer."""

    def run(self, item: Any, rest: Rest) -> Any:
        """Yields all records but the first."""
        yield from list(rest(item))[1:]


def test_totals_are_of_every_layer_once_whatever_stages_above_do() -> None:
    """A record that comes twice counts once; a layer without a record is an error instead of a total."""
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
    """Each spatial mapping of each layer has one file, whose name has its number."""
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
    """The equal layers `one` and `three` both have files, wherever the stage stands."""
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
    """Lists that overwrite files, choose spatial mappings twice, or remove memories after that choice are refused."""
    rest = ["SpatialMappingConversion"] if "RemoveUnusedMemory" in stages else ["SpatialMappingGenerator"]
    with pytest.raises(InputError) as raised:
        Pipeline.build([*stages, *rest, "MinimalLatency", "Loma", "CostModel"], FEW)
    assert message in str(raised.value)


def test_a_folder_of_its_own_keeps_files_apart(tmp_path: Path) -> None:
    """Two stages of a kind may stand in a pipeline if one of them has another folder."""
    below = {"stage": "SimpleSave", "parameters": {"folder": "all"}}
    run(["SimpleSave", "Workload", below, *SEED[1:]], FEW, exports=tmp_path)
    assert isinstance(json.loads((tmp_path / "two_simple.json").read_text()), dict)
    assert isinstance(json.loads((tmp_path / "all" / "two_simple.json").read_text()), list)


def test_stages_that_look_may_stand_among_parsers(tmp_path: Path) -> None:
    """A stage above the parsers sees the same results as a stage right below them."""
    run(["ONNXModelParserStage", "SimpleSaveStage", "AcceleratorParserStage", "Sum", *SEED], FEW, exports=tmp_path)
    saved = json.loads((tmp_path / "overall_simple.json").read_text())
    assert saved["latency"] == run(SEED, FEW).summary["latency_cycles"]


def test_a_proof_is_of_what_is_kept() -> None:
    """No record is called proven if the reduction is by energy and the exact search by latency."""
    below = ["SpatialMappingGenerator", "MinimalLatency", "Exact", "CostModel"]
    assert run(["Workload", "MinimalLatency", *below], FEW).summary["certificate"]["proven"] == 2
    mixed = run(["Workload", "MinimalEnergy", *below], FEW)
    assert "certificate" not in mixed.summary
    assert not any("proven" in record.search for record in mixed.records)
