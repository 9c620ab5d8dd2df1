"""Impossible pipelines are refused when they are built, with every fault, its place and the nearest name."""

from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.objectives import OBJECTIVES, reduction_of
from tilewright.base.yamlfile import parse_yaml
from tilewright.pipeline.stages import Pipeline
from tilewright.pipeline.stages.pipeline import MAPPER_OF
from tilewright.pipeline.stages.reductions import MinimalEDP, MinimalEnergy
from tilewright.pipeline.stages.temporal import Exact, Loma, Salsa
from tilewright.search.options import SearchOptions

FULL = [
    *("ONNXModelParser", "AcceleratorParser", "MappingParser", "Sum", "Workload", "MinimalLatency"),
    *("SpatialMappingGenerator", "SpatialMappingConversion", "MinimalLatency", "Loma", "CostModel"),
]


def names(pipeline: Pipeline) -> list[str]:
    """The names of the stages."""
    return [stage.name() for stage in pipeline.stages]


def said(pipeline: Any, **options: Any) -> str:
    """The error message for a wrong pipeline."""
    with pytest.raises(InputError) as caught:
        Pipeline.build(pipeline, SearchOptions(**options))
    return str(caught.value)


# what is right --------------------------------------------------------------------------------------------------------


def test_default_pipeline_in_full() -> None:
    """The default pipeline, given in full, is the pipeline that is used without one."""
    assert names(Pipeline.build()) == FULL
    assert Pipeline.build(FULL) == Pipeline.build()


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("engine", MAPPER_OF)
def test_options_choose_stages_and_parameters(objective: str, engine: str) -> None:
    """Objective and engine choose stages, and options reach the stages that have them as parameters."""
    options = SearchOptions(objective=objective, temporal_mapping_search_engine=engine, lpf_limit=5, seed=7)
    pipeline = Pipeline.build(None, options)
    assert names(pipeline).count(reduction_of(objective)) == 2
    mapper = next(stage for stage in pipeline.stages if stage.name() == MAPPER_OF[engine])
    assert getattr(mapper, "lpf_limit", 5) == 5
    assert getattr(mapper, "seed", 7) == 7
    assert getattr(mapper, "objective", objective) == objective


def test_data_locality_is_part_of_the_default() -> None:
    """The option `exploit_data_locality` inserts both of its stages at their places."""
    found = names(Pipeline.build(None, SearchOptions(exploit_data_locality=True)))
    assert found[3:7] == ["Sum", "SearchUnusedMemory", "Workload", "RemoveUnusedMemory"]


def test_reference_pipelines_are_understood() -> None:
    """Lists from the documentation of zigzag-dse, with its names, its parsers and its converting generator, are
    understood.
    """
    given = [
        *("ONNXModelParserStage", "AcceleratorParserStage", "SimpleSaveStage", "WorkloadStage"),
        *("SpatialMappingGeneratorStage", "MinimalLatencyStage", "LomaStage", "CostModelStage"),
    ]
    assert names(Pipeline.build(given)) == [
        *("ONNXModelParser", "AcceleratorParser", "MappingParser", "SimpleSave", "Workload"),
        *("SpatialMappingGenerator", "SpatialMappingConversion", "MinimalLatency", "Loma", "CostModel"),
    ]
    assert names(Pipeline.build(["AcceleratorParserStage", "ONNXModelParserStage", *FULL[3:]]))[:3] == [
        *("AcceleratorParser", "ONNXModelParser", "MappingParser"),
    ]


def test_parsers_go_without_saying() -> None:
    """A list may leave out the parsers; the kind of workload decides which one reads the network."""
    assert names(Pipeline.build(FULL[3:])) == FULL
    assert names(Pipeline.build(FULL[3:], onnx=False))[0] == "WorkloadParser"


def test_edits_of_the_default() -> None:
    """`replace` and `set` act on every occurrence of a stage; `insert` and `drop` act at the place they name."""
    edits = [
        {"replace": "MinimalLatencyStage", "stage": "MinimalEnergy"},
        {"set": "Loma", "parameters": {"lpf_limit": 3}},
        {"insert": "SimpleSave", "before": "Sum"},
        {"insert": "CompleteSave", "after": "Workload"},
        {"drop": "SpatialMappingGenerator"},
    ]
    assert names(Pipeline.build(edits))[3:] == [
        *("SimpleSave", "Sum", "Workload", "CompleteSave", "MinimalEnergy"),
        *("SpatialMappingConversion", "MinimalEnergy", "Loma", "CostModel"),
    ]
    assert Loma(3) in Pipeline.build(edits).stages


def test_edits_see_earlier_edits() -> None:
    """An edit sees the results of earlier edits."""
    edits = [
        {"replace": "Loma", "stage": "Salsa", "parameters": {"seed": 1}},
        {"set": "Salsa", "parameters": {"salsa_restarts": 2}},
    ]
    assert Salsa(seed=1, salsa_restarts=2) in Pipeline.build(edits).stages


def test_searches_go_by_the_reduction_above() -> None:
    """Salsa and Exact take the objective of the reduction above them, unless they have an objective of their own."""
    full = [*FULL[3:5], "MinimalEDP", *FULL[6:8], "MinimalEnergy", "Exact", "CostModel"]
    stages = Pipeline.build(full).stages
    assert stages[5] == MinimalEDP()
    assert stages[-3:-1] == (MinimalEnergy(), Exact(objective="energy"))
    told = [*full[:-2], {"stage": "Exact", "parameters": {"objective": "EDP"}}, "CostModel"]
    assert Exact(objective="EDP") in Pipeline.build(told).stages


def test_classes_and_objects_from_python() -> None:
    """A stage may be given in Python as a class or as an object with parameters."""
    edits = [{"replace": "MinimalLatency", "stage": MinimalEDP}, {"replace": "Loma", "stage": Loma(2)}]
    assert names(Pipeline.build(edits)).count("MinimalEDP") == 2
    assert Loma(2) in Pipeline.build(edits).stages


# what is wrong --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pipeline", "parts"),
    [
        (["Sum", "Worklod", "CostModel"], ["pipeline[1]: no such stage, got 'Worklod' (did you mean 'Workload'?)"]),
        (["Sum", "Xyz"], ["no such stage, got 'Xyz' (allowed: ONNXModelParser, ", "dotted path of a class of your"]),
        ([{"set": "Loma", "parameters": {"lpf_limti": 3}}], ["[0].parameters.lpf_limti", "did you mean 'lpf_limit'?"]),
        ([{"set": "Sum", "parameters": {"x": 3}}], ["Sum has no such parameter (allowed: none)"]),
        ([{"set": "Loma", "parameters": {"lpf_limit": "six"}}], ["wrong kind of value", "a whole number or null"]),
        ([{"set": "Loma", "parameters": {"lpf_limit": 0}}], ["not a count, got 0 (allowed: integers from 1)"]),
        ([{"replace": "Loma", "stage": "Exact", "parameters": {"allocation": "fre"}}], ["did you mean 'free'?"]),
        ([{"set": "SpatialMappingConversion", "parameters": {"model": "corected"}}], ["did you mean 'corrected'?"]),
        ([{"set": "Loma", "parameters": 3}], ["pipeline[0].parameters: must be a table of parameters, got 3"]),
        ([{"insert": "Dump", "after": "Sum", "parameters": {"file_name": "a/b"}}], ["valid file name, got 'a/b'"]),
        ([{"set": "Loma"}], ["pipeline[0].parameters: required key is missing"]),
        ([{"replace": "Loma"}], ["pipeline[0].stage: required key is missing"]),
        ([{"replace": "Lomaa", "stage": "Salsa"}], ["no such stage, got 'Lomaa' (did you mean 'Loma'?)"]),
        ([{"drop": "Salsa"}], ["the pipeline has no such stage, got 'Salsa' (allowed: ONNXModelParser"]),
        ([{"insert": "Dump", "before": "MinimalLatency"}], ["occurs several times in the pipeline"]),
        ([{"insert": "Dump"}], ["the position is missing: give either before or after"]),
        ([{"insert": "Dump", "before": "Sum", "after": "Sum"}], ["the position is missing"]),
        ([{"insert": 3, "before": "Sum"}], ["pipeline[0].insert: not a stage, got 3"]),
        ([{"drop": "Sum", "parameter": {}}], ["pipeline[0].parameter: unknown key (allowed: drop)"]),
        ([{"drop": "Sum"}, "Loma"], ["pipeline[1]: is a stage in a list of edits"]),
        ([{"satge": "Loma"}], ["not an entry of a pipeline", "did you mean 'stage'?"]),
        ([3], ["pipeline[0]: not an entry of a pipeline, got 3"]),
        ([], ["is empty"]),
        ("Loma", ["must be a list of stages, or a list of edits"]),
        ({"stage": "Loma"}, ["must be a list of stages, or a list of edits"]),
    ],
)  # fmt: skip
def test_wrong_entries_are_told(pipeline: Any, parts: list[str]) -> None:
    """Each wrong entry is reported with its place and the right form."""
    text = said(pipeline)
    for part in parts:
        assert part in text
    assert text.count("\n") == 0, "and nothing else"


@pytest.mark.parametrize(
    ("pipeline", "part"),
    [
        (["Loma", "CostModel"], "pipeline[0]: Loma takes TemporalProblem, but gets NetworkProblem from MappingParser; "
         "put SpatialMappingConversion before it"),
        ([*FULL[3:6], "SpatialMappingGenerator", "Loma", "SpatialMappingConversion", "CostModel"],
         "pipeline[4]: Loma takes TemporalProblem, but gets SpatialCandidate from SpatialMappingGenerator; "
         "move SpatialMappingConversion before it"),
        (["Workload", "Sum", *FULL[5:]], "pipeline[1]: Sum takes NetworkProblem, but gets LayerProblem from Workload; "
         "put this stage before Workload"),
        ([*FULL[3:5], "RemoveUnusedMemory", *FULL[5:]],
         "pipeline[2]: RemoveUnusedMemory needs SearchUnusedMemory before it"),
        (["Sum", "Workload", "RemoveUnusedMemory", "SearchUnusedMemory", *FULL[5:]],
         "SearchUnusedMemory takes NetworkProblem, but gets LayerProblem from RemoveUnusedMemory"),
        (FULL[:-1], "the pipeline ends with OrderBatch from Loma: the last stage must be CostModel"),
        ([*FULL, "Loma"], "pipeline[11]: Loma cannot come after CostModel, which ends a pipeline"),
        (["MappingParser", "WorkloadParser", *FULL[3:]], "WorkloadParser takes Descriptions, but gets NetworkProblem"),
        ([*FULL[3:5], "MinimalLatency", "Listify", *FULL[6:]],
         "MinimalLatency collects Evaluations, but gets list back from Listify"),
        ([*FULL[3:-1], "SimpleSave", "CostModel"], "SimpleSave would write a file for every batch of loop orders; "
         "put it before Loma"),
        ([{"drop": "CostModel"}], "the last stage must be CostModel"),
        ([{"drop": "SpatialMappingConversion"}, {"drop": "SpatialMappingGenerator"}],
         "put SpatialMappingConversion before"),
    ],
)  # fmt: skip
def test_wrong_orders_are_told(pipeline: Any, part: str) -> None:
    """A stage that cannot work at its place is reported, with the stage that is missing or misplaced."""
    text = said(pipeline)
    assert part in text
    assert text.count("\n") == 0, "one fault is told once"


def test_all_faults_at_once() -> None:
    """One error reports several faults."""
    text = said([{"stage": "Loma", "parameters": {"lpf_limti": 3, "x": 1}}, "Lomaa", {"stage": "Sum", "paramters": {}}])
    assert text.count("\n") == 3


def test_places_have_lines() -> None:
    """Faults of a pipeline from a file are reported with file and line."""
    document = parse_yaml("pipeline:\n  - {drop: Sum}\n  - set: Loma\n    parameters:\n      lpf_limti: 3\n", "my.yaml")
    with pytest.raises(InputError) as caught:
        Pipeline.build(document.data["pipeline"], documents=[document])
    assert str(caught.value).startswith("my.yaml:5 pipeline[1].parameters.lpf_limti: Loma has no such parameter")
