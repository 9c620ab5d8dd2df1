"""Notices about options without effect: overruled options, and options that the model or the pipeline does not know."""

from pathlib import Path

import pytest
from tilewright.base.errors import InputError
from tilewright.base.unused import unused_in
from tilewright.cli.config import read_config
from tilewright.cli.parameter_options import Given, Named
from tilewright.multicore.allocation.options import AllocationParameters
from tilewright.pipeline.stages.descriptions import Descriptions
from tilewright.pipeline.stages.pipeline import Pipeline
from tilewright.pipeline.stages.workload_parsers import ONNXModelParser
from tilewright.search.options import SearchOptions
from tilewright.workload.network_options import NetworkOptions

ENGINE = "temporal_mapping_search_engine"


@pytest.mark.parametrize(
    ("given", "unused"),
    [
        ({"lpf_limit": "6"}, []),
        ({"lpf_limit": "6", ENGINE: "exact"}, ["lpf_limit"]),
        ({"lpf_limit": "6", ENGINE: "salsa", "salsa_restarts": "2", "seed": "1"}, ["lpf_limit"]),
        ({"time_budget_s": "3", "seed": "1", "salsa_restarts": "2"}, ["salsa_restarts", "seed", "time_budget_s"]),
        ({"allocation": "greedy"}, ["allocation"]),
        ({"allocation": "free", ENGINE: "exact", "time_budget_s": "3", "objective": "energy"}, []),
        ({"workload_data_always_from_top_mem": True}, ["workload_data_always_from_top_mem"]),
        ({"workload_data_always_from_top_mem": True, "exploit_data_locality": True}, []),
        ({"lpf_limit": "none of that", ENGINE: "exact"}, []),
    ],
)
def test_options_of_other_engines(given: dict[str, str], unused: list[str]) -> None:
    """Options of other engines have no effect, even if they are given their default value."""
    assert sorted(notice.problem.path for notice in Given(SearchOptions, given).unused()) == unused


def test_options_of_the_other_search_for_an_allocation() -> None:
    """Options that only the exact search has are reported for the genetic one. The exact search begins with the genetic
    one.
    """
    assert len(Given(AllocationParameters, {"proof_effort": "3", "nb_ga_generations": "3"}).unused()) == 1
    assert Given(AllocationParameters, {"proof_effort": "3", "allocation_engine": "exact"}).unused() == []


def test_defaults_of_an_object_are_not_what_somebody_said() -> None:
    """Values of an object of options count as given only if they differ from the defaults; a keyword always counts as
    given.
    """
    exact = SearchOptions(temporal_mapping_search_engine="exact", salsa_restarts=4)
    found = Named(SearchOptions, {"lpf_limit": 6}).over(exact).unused()
    assert sorted(notice.problem.path for notice in found) == ["lpf_limit", "salsa_restarts"]
    assert Named(SearchOptions, {}).over(exact)() == exact


def test_options_beside_a_pipeline() -> None:
    """Options for which a pipeline has no stage, or which the pipeline sets itself, have no effect."""
    options = SearchOptions(lpf_limit=4, salsa_restarts=2, objective="energy")
    given = {"lpf_limit": 4, "salsa_restarts": 2, "objective": "energy"}
    salsa = {"replace": "Loma", "stage": "Salsa"}
    found = Pipeline.build([salsa], options).unused(given, options)
    told = "lpf_limit: has no effect: no stage of the pipeline has this option, got 4"
    assert [str(notice) for notice in found] == [told]
    own = Pipeline.build([{**salsa, "parameters": {"salsa_restarts": 5}}], options).unused(given, options)
    assert "salsa_restarts: has no effect: the pipeline sets another value, got 2" in own
    latency = [{"replace": "MinimalEnergy", "stage": "MinimalLatency"}]
    found = Pipeline.build(latency, options).unused({"objective": "energy"}, options)
    assert [str(one) for one in found] == [
        "objective: has no effect: the pipeline has no stage MinimalEnergy, got 'energy'"
    ]


def test_precision_of_the_file_in_a_model_that_counts_eight_bits() -> None:
    """The precision of the file has no effect under the reference model, which counts eight bits; `corrected`
    uses it.
    """
    given = Descriptions(workload="config/workload/bert_tiny.onnx", network_options=NetworkOptions(precision="file"))
    for model, paths in (("zigzag-3.9.1", ["precision"]), ("corrected", [])):
        read = ONNXModelParser(model).change(given)
        assert [notice.problem.path for notice in unused_in(read.notices)] == paths


def test_a_configuration_tells_keys_of_its_own(tmp_path: Path) -> None:
    """Keys without effect are reported with their line in a run, or at the top if no run uses them; `strict` makes them
    errors.
    """
    file = tmp_path / "config.yaml"
    runs = (
        "lpf_limit: 4\nsalsa_restarts: 2\nruns:\n"
        f"  a: {{hardware: tpu_like, workload: resnet18, {ENGINE}: exact, lpf_limit: 3}}\n"
        "  b: {hardware: tpu_like, workload: resnet18, preset: zigzag}\n"
    )
    file.write_text(runs)
    plan = read_config(file)
    assert list(plan.unused) == [
        f"{file}:4 runs.a.lpf_limit: has no effect with {ENGINE} exact",
        f"{file}:2 salsa_restarts: has no effect in any run",
    ]
    assert "--lpf-limit" not in plan.runs[0].arguments("map")
    assert "--lpf-limit" in plan.runs[1].arguments("map")
    file.write_text(runs.replace("lpf_limit: 3", "lpf_limit: 3, strict: true"))
    with pytest.raises(InputError, match=r"runs.a.lpf_limit: has no effect .* strict forbids"):
        read_config(file)


@pytest.mark.parametrize("name", ["config", "explore", "pareto"])
def test_shipped_configurations_say_nothing_of_no_effect(name: str) -> None:
    """The shipped configurations have no option without effect."""
    assert read_config(f"config/{name}.yaml").unused == ()
