"""Every stage of the catalogue has its names, documentation and an example, and runs."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tilewright.base.parameters import field_docs
from tilewright.base.steps import SINGLE
from tilewright.pipeline.stages import Control, Descriptions, Pipeline
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.document import BEGIN, GROUPS, docstring_parts, with_catalogue
from tilewright.pipeline.stages.run import map_problem
from tilewright.search.options import SearchOptions

from tests.unit.cost.engine_cases import network
from tests.unit.pipeline.stages.stage_cases import LAYERS, MAPPING, OPTIONS, PROJECT, ordered_mapping, run
from tools.generate import AGAIN

STAGES = CATALOGUES[SINGLE]
NAMES, OTHER_NAMES = STAGES.names, STAGES.other_names
canonical_name, stage_class = STAGES.canonical_name, STAGES.stage_class
REQUIRED = (
    *("AcceleratorParser", "ONNXModelParser", "WorkloadParser", "Workload", "SearchUnusedMemory", "RemoveUnusedMemory"),
    *("SpatialMappingConversion", "SpatialMappingGenerator", "TemporalOrderingConversion", "Loma", "Salsa", "Exact"),
    *("CostModel", "MinimalLatency", "MinimalEnergy", "MinimalEDP", "Sum", "Listify"),
    *("SimpleSave", "CompleteSave", "PickleSave", "Dump", "PlotTemporalMappings"),
)
PARSERS = ("ONNXModelParser", "WorkloadParser", "AcceleratorParser", "MappingParser")


def example_of(name: str) -> list[Any]:
    """The example of a stage as the value of `pipeline:`."""
    example = yaml.safe_load(docstring_parts(stage_class(name))[1])
    return example if isinstance(example, list) else [example]


def test_all_stages_exist_under_their_names() -> None:
    """Every stage of the single-core flow exists, under the name of its class."""
    assert set(REQUIRED) <= set(NAMES)
    assert all(stage_class(name).name() == name for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_names_are_known(name: str) -> None:
    """`LomaStage` and the dotted path of a stage mean the stage; unknown names mean none."""
    for other in (name, f"{name}Stage", f"tilewright.pipeline.stages.anywhere.{name}"):
        assert canonical_name(other) == name
    for unknown in (f"{name}x", f"elsewhere.{name}", "", "Stage"):
        assert canonical_name(unknown) == ""


@pytest.mark.parametrize("other", OTHER_NAMES)
def test_older_and_newer_names_are_known(other: str) -> None:
    """Both names of a stage that zigzag-dse renamed are known."""
    assert canonical_name(f"{other}Stage") == OTHER_NAMES[other] in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_is_documented(name: str) -> None:
    """Each stage has a description, an example, and a text for every parameter."""
    kind = stage_class(name)
    words, example = docstring_parts(kind)
    assert len(words) > 40
    assert name in example
    documented = field_docs(kind)
    assert [field.name for field in fields(kind) if not documented.get(field.name)] == []


@pytest.mark.parametrize("name", NAMES)
def test_example_contains_the_stage(name: str) -> None:
    """The example of a stage is a pipeline that has the stage, or that lacks the stage it drops."""
    example = example_of(name)
    titles = [stage.name() for stage in Pipeline.build(example).stages]
    dropped = [item["drop"] for item in example if isinstance(item, dict) and "drop" in item]
    assert name in titles or name in dropped
    assert not set(dropped) & set(titles)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in PARSERS])
def test_example_runs(name: str, tmp_path: Path) -> None:
    """The example of a stage maps a network, and every layer gets a mapping that fits."""
    example = example_of(name)
    ordered = "TemporalOrderingConversion" in json.dumps(example)
    options = replace(OPTIONS, salsa_iteration_number=50)
    given = SearchOptions(lpf_limit=3) if name == "Exact" else options
    mapped = run(example, given, mapping=ordered_mapping() if ordered else MAPPING, exports=tmp_path)
    assert {n for record in mapped.records for n in record.layer_names} == {layer.name for layer in LAYERS}
    assert mapped.summary["energy_pj"] > 0
    stages = Pipeline.build(example, given).stages
    assert bool(list(tmp_path.iterdir())) == any(stage.exports for stage in stages)


@pytest.mark.parametrize("name", PARSERS)
def test_example_of_a_parser_runs(name: str) -> None:
    """The example of a parser reads files and maps the network they describe."""
    tiny = PROJECT / "tests" / "workflow" / "tiny"
    example = example_of(name)
    pipeline = Pipeline.build(example, SearchOptions(lpf_limit=3))
    is_onnx = any(stage.name() == "ONNXModelParser" for stage in pipeline.stages)
    workload = PROJECT / "config/workload/bert_tiny.onnx" if is_onnx else tiny / "workload/two_layers.yaml"
    given = Descriptions(tiny / "hardware/wide.yaml", workload, tiny / "mapping/free.yaml")
    read = next(pipeline.parsers().run(given))
    assert (len(read.workload.layers_in_order), read.core.name) == (17 if is_onnx else 2, "wide")
    if "TemporalOrderingConversion" not in json.dumps(example):
        smaller = replace(read, workload=network([node.layer for node in read.workload.layers_in_order][:1]))
        assert len(map_problem(smaller, pipeline, Control()).records) >= 1


@pytest.mark.parametrize("path", sorted((PROJECT / "docs" / "stages").glob("*.md")), ids=lambda path: path.name)
def test_the_pages_are_up_to_date(path: Path) -> None:
    """Each page in docs/stages has the catalogue and the files that the code has."""
    page = path.read_text()
    assert page == with_catalogue(page, path.name, PROJECT), AGAIN


def test_the_page_lists_every_stage() -> None:
    """Every stage is in docs/stages/catalogue.md, in the order of the code."""
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(NAMES)
    page = (PROJECT / "docs" / "stages" / "catalogue.md").read_text()
    assert re.findall(r"^### (\w+)$", page.split(BEGIN)[1], re.MULTILINE)[: len(NAMES)] == listed


def test_a_page_without_marks_is_refused() -> None:
    """A page without the marks for the catalogue is refused."""
    with pytest.raises(ValueError, match="needs the line"):
        with_catalogue("# Stages\n", "catalogue.md")
