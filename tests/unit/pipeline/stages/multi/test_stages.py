"""The stages of the multi-core flow: each alone, all together, and compared with the verbs of the command line."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from tilewright.base.errors import InputError, MappingError
from tilewright.base.parameters import field_docs
from tilewright.base.steps import MULTI
from tilewright.cli.main import main
from tilewright.multicore.nodes.graph import COLUMNS, read_cn_graph
from tilewright.multicore.scheduling.core_costs import read_core_costs
from tilewright.pipeline.stages import Control, Descriptions, LayerProblem, Pipeline, Stage
from tilewright.pipeline.stages.base import run_stages
from tilewright.pipeline.stages.catalogue import CATALOGUES
from tilewright.pipeline.stages.document import docstring_parts
from tilewright.pipeline.stages.hardware_parser import AcceleratorParser
from tilewright.pipeline.stages.items import SpatialCandidate
from tilewright.pipeline.stages.multi.allocation import InterCoreMapping
from tilewright.pipeline.stages.multi.costs import IntraCoreMapping
from tilewright.pipeline.stages.multi.items import CnProblem, CostedCnProblem, SystemProblem
from tilewright.pipeline.stages.multi.parsers import StreamONNXModelParser, SystemMappingParser, UserDefinedModelParser
from tilewright.pipeline.stages.multi.splitting import LayerSplitting
from tilewright.pipeline.stages.multi.tiling import GenerateCNWorkloadHybrid
from tilewright.pipeline.stages.spatial import CustomSpatialMappingGenerator
from tilewright.search.store import Store

from tests.unit.cli.multi_core import CORES, cut_and_cost, given, inputs, write_network
from tests.unit.cli.multi_core import GA as GA_FLAGS
from tests.unit.cost.engine_cases import constraints, convolution, small_core
from tests.unit.pipeline.stages.multi.multi_cases import GA, LAYERS, built, descriptions, names, run

pytestmark = pytest.mark.usefixtures("unpainted")

CATALOGUE = CATALOGUES[MULTI]

PARSERS = ("StreamONNXModelParser", "UserDefinedModelParser", "SystemMappingParser", "AcceleratorParser")


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three convolutions, one after the other."""
    return write_network(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def folder(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the verbs write for the network."""
    place = tmp_path_factory.mktemp("runs") / "run"
    cut_and_cost(network, place, "--stack-cutoffs", "[2]")
    assert main(["allocate", *inputs(network, place), *GA_FLAGS, "-o", str(place)]) == 0
    return place


@pytest.fixture(scope="module")
def problem(network: Path) -> SystemProblem:
    """The problem that the parsers make of the network."""
    return next(built().parsers().run(descriptions(network)))


@pytest.fixture(scope="module")
def cut(problem: SystemProblem) -> CnProblem:
    """The network, cut into CNs."""
    return GenerateCNWorkloadHybrid(stack_cutoffs=(2,)).change(problem)


@pytest.fixture(scope="module")
def costed(cut: CnProblem) -> CostedCnProblem:
    """The CNs with their costs."""
    return next(run_stages((IntraCoreMapping(),), cut))


# the catalogue --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_every_stage_is_documented(name: str) -> None:
    """Each stage has a description, an example, and a text for every parameter."""
    kind = CATALOGUE.stage_class(name)
    words, example = docstring_parts(kind)
    assert len(words) > 40
    assert kind.name() == name in example or name == "AcceleratorParser"
    assert [field.name for field in fields(kind) if not field_docs(kind).get(field.name)] == []


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_the_names_of_stream_are_known(name: str) -> None:
    """`IntraCoreMappingStage` and the dotted path of a stage mean the same stage."""
    for other in (name, f"{name}Stage", f"tilewright.pipeline.stages.anywhere.{name}"):
        assert CATALOGUE.canonical_name(other) == name
    assert CATALOGUE.canonical_name(f"{name}x") == ""
    for other, ours in CATALOGUE.other_names.items():
        assert CATALOGUE.canonical_name(f"{other}Stage") == ours in CATALOGUE.names


@pytest.mark.parametrize("name", [name for name in CATALOGUE.names if name != "AcceleratorParser"])
def test_the_example_of_a_stage_runs(name: str, network: Path) -> None:
    """The example of a stage is a pipeline that has the stage and schedules a network."""
    example = yaml.safe_load(docstring_parts(CATALOGUE.stage_class(name))[1])
    pipeline = built(example if isinstance(example, list) else [example])
    assert name in names(pipeline)
    result = run(LAYERS if name == "UserDefinedModelParser" else network, list(pipeline.stages))
    assert result.latency_cycles > 0


# the parsers ----------------------------------------------------------------------------------------------------------


def test_networks_are_read_with_their_tensors(network: Path) -> None:
    """ONNX models and lists of layers are read with their tensors."""
    for parser, source in ((StreamONNXModelParser("mine"), network), (UserDefinedModelParser(), LAYERS)):
        read = parser.change(Descriptions(workload=source))
        assert read.problems == ()
        assert read.network is not None
        assert read.network.tensors
        assert all(node.outputs for node in read.network.nodes)
    assert StreamONNXModelParser("mine").change(Descriptions(workload=network)).network.name == "mine"  # type: ignore[union-attr]


def test_what_a_parser_cannot_read_is_told_with_the_rest(network: Path) -> None:
    """One error reports a list for the parser of models, a core instead of a system, and a mistake in the mapping."""
    stages = (StreamONNXModelParser(), AcceleratorParser(), SystemMappingParser())
    wrong = Descriptions("config/hardware/zigzag/tpu_like.yaml", LAYERS, [{"name": "default", "core_alocation": [0]}])
    with pytest.raises(InputError) as caught:
        list(run_stages(stages, wrong))
    text = str(caught.value)
    for part in (
        "UserDefinedModelParser reads descriptions of layers",
        "is the file of one core",
        "did you mean 'core_allocation'",
    ):
        assert part in text
    assert "StreamONNXModelParser reads ONNX" in str(UserDefinedModelParser().change(descriptions(network)).problems[0])


def test_what_no_stage_has_read_is_told(network: Path) -> None:
    """A list of stages without a parser of hardware is refused."""
    with pytest.raises(InputError, match="no stage that reads the hardware"):
        list(run_stages((StreamONNXModelParser(), SystemMappingParser()), descriptions(network)))


def test_layers_are_split_as_by_the_verb(network: Path, tmp_path: Path) -> None:
    """The stage splits layers as `tilewright split` does, into the same file.

    The weights have 4 channels of 288 bits. 2 % of a memory of 32,768 bits holds two channels, and with double
    buffering one.
    """
    stages = built([{"insert": "LayerSplitting", "after": "AcceleratorParser"}], split_W_percentage=0.02).stages[:3]
    path = tmp_path / "deep" / "split.onnx"
    splitting = replace(stages[2], split_onnx_model_path=str(path))  # type: ignore[type-var]
    (read,) = run_stages((*stages[:2], splitting), descriptions(network))
    assert read.problems == ()
    assert len(read.network.layers_in_order) == 3 * 2
    assert main(["split", *given(network), "--split-w-percentage", "0.02", "-o", str(tmp_path / "verb.onnx")]) == 0
    assert path.read_bytes() == (tmp_path / "verb.onnx").read_bytes()
    doubled = replace(splitting, split_W_double_buffered=True, split_onnx_model_path="")
    (read,) = run_stages((*stages[:2], doubled), replace(descriptions(network), workload=onnx.load(str(network))))
    assert len(read.network.layers_in_order) == 3 * 4


def test_a_network_is_split_where_a_run_says_so(network: Path) -> None:
    """`split_layers` inserts the stage; what cannot be split is reported with the other problems."""
    assert names(built(split_layers=True)) == (*names(built())[:2], "LayerSplitting", *names(built())[2:])
    result = run(network, split_layers=True, split_W_percentage=0.02)
    assert len(result.names.layer_names) == 6
    splitting = LayerSplitting()
    read = UserDefinedModelParser().change(AcceleratorParser().change(descriptions(LAYERS)))
    assert "not lists of layers" in str(splitting.change(read).problems[0])
    assert "no network to split" in str(splitting.change(descriptions(network)).problems[0])


# the stages below them ------------------------------------------------------------------------------------------------


def test_the_graph_is_that_of_the_verb(cut: CnProblem, folder: Path) -> None:
    """All columns of the graph equal those of `tilewright cns`."""
    graph = read_cn_graph(folder / "cn_graph.json", folder / "cn_graph.npz")
    assert graph.layers == cut.graph.layers
    for column in COLUMNS:
        assert np.array_equal(getattr(graph, column), getattr(cut.graph, column)), column


def test_costs_are_those_of_the_verb(costed: CostedCnProblem, folder: Path) -> None:
    """The rows equal those of `tilewright cost`, also for a single core file."""
    assert tuple(costed.costs) == CORES
    for core in CORES:
        assert costed.costs[core] == read_core_costs(folder / "cost" / f"{core}.jsonl")
    one = CnProblem(costed.descriptions, costed.graph, ("right",))
    (found,) = run_stages((IntraCoreMapping(),), one)
    assert found.costs == {"right": costed.costs["right"]}
    with pytest.raises(InputError, match=r"has no such core file, got rigth .* \(did you mean 'right'"):
        list(run_stages((IntraCoreMapping(),), replace(one, core_files=("rigth",))))


def test_the_allocation_is_that_of_the_verb(costed: CostedCnProblem, folder: Path, tmp_path: Path) -> None:
    """Cores, costs and the mapping file equal those of `tilewright allocate`."""
    (result,) = run_stages((InterCoreMapping(**GA),), costed)  # type: ignore[arg-type]
    document = json.loads((folder / "allocation.json").read_text())["payload"]
    assert result.latency_cycles == document["latency_cycles"]
    assert result.energy_pj == document["energy_pj"]
    assert result.edp == document["edp"]
    table = result.core_table()
    assert table["core_id"].tolist() == [row["core"] for row in document["allocation"]]
    assert result.mapping_text() == (folder / "mapping.yaml").read_text()
    assert result.summary["latency_cycles"] >= result.summary["lower_bound"]["latency_cycles"]
    assert table["end_cycles"].max() <= result.latency_cycles


def test_the_hall_of_fame_is_drawn(costed: CostedCnProblem, tmp_path: Path) -> None:
    """`plot_hof` draws a figure for each point of the front, and the stage states that it writes files."""
    stage = InterCoreMapping(objective="EDP", plot_hof=True)
    assert (stage.exports, InterCoreMapping().exports) == (True, False)
    (result,) = run_stages((stage,), costed, Control(exports=tmp_path / "exports"))
    drawn = sorted(path.name for path in (tmp_path / "exports").glob("*.svg"))
    assert drawn == [f"hall_of_fame_{number}.svg" for number in range(1, len(result.allocation.front) + 1)]


def test_options_and_settings_reach_the_stages() -> None:
    """Options and settings reach the stages by name; values in the pipeline take precedence."""
    settings = {"hint_loops": [["OY", "all"]], "cn_define_mode": 1, "operands_to_prefetch": ["W"]}
    edit = {"set": "InterCoreMapping", "parameters": {"nb_ga_individuals": 9}}
    cutting, costing, allocating = built([edit], **settings, nb_ga_individuals=7, seed=1).stages[3:]
    assert isinstance(cutting, GenerateCNWorkloadHybrid)
    assert cutting.hint_loops == (("OY", "all"),)
    assert isinstance(costing, IntraCoreMapping)
    assert (costing.lpf_limit, costing.model) == (4, "corrected")
    assert isinstance(allocating, InterCoreMapping)
    assert (allocating.nb_ga_individuals, allocating.operands_to_prefetch) == (9, ("W",))


def test_the_whole_pipeline_is_the_verbs_together(network: Path, folder: Path) -> None:
    """The default pipeline, in full or with Stream's names, gives the latency and energy of the verbs."""
    document = json.loads((folder / "allocation.json").read_text())["payload"]
    stages = [f"{name}Stage" for name in ("AcceleratorParser", "StreamONNXModelParser", "GenerateCNWorkloadHybrid")]
    lists = [None, [*stages, "IntraCoreMappingStage", "InterCoreMappingStage"]]
    for pipeline in lists:
        result = run(network, pipeline, stack_cutoffs=[2], lpf_limit=6)
        assert (result.latency_cycles, result.energy_pj) == (document["latency_cycles"], document["energy_pj"])


def test_results_do_not_depend_on_threads(network: Path) -> None:
    """One thread and three threads give equal results."""
    pipeline, given_ = built(**GA), descriptions(network)
    one, three = (next(pipeline.run(given_, Control(threads=threads))) for threads in (1, 3))
    assert one.mapping_text() == three.mapping_text()
    assert np.array_equal(one.artifact.schedule.start_cycles, three.artifact.schedule.start_cycles)


# the search of a computation node -------------------------------------------------------------------------------------


def test_the_search_of_a_cn_is_a_pipeline_too(cut: CnProblem, tmp_path: Path) -> None:
    """Edits of the inner pipeline, or a full list, are another search with other entries in the store."""
    store = Store(tmp_path / "store")
    one_order = [{"set": "Loma", "parameters": {"lpf_limit": 1}}]
    one_mapping = ["MinimalEnergy", "SpatialMappingConversion", "Loma", "CostModel"]
    entries, rows = [], []
    for pipeline in (None, one_order, one_mapping):
        stage = IntraCoreMapping(lpf_limit=4, pipeline=pipeline)
        (found,) = run_stages((stage,), cut, Control(store=store))
        rows.append(found.costs["left"][0])
        entries.append(len(store.entries()))
        again = run_stages((stage,), cut, Control(store=store, on_record=lambda record: pytest.fail("searched again")))
        assert next(again).costs == found.costs
    assert entries == [entries[0], 2 * entries[0], 3 * entries[0]]
    # Nothing is unrolled where the mapping file gives no spatial mapping and no stage makes one.
    assert rows[2].total1_cycles > rows[0].total1_cycles
    assert [stage.name() for stage in IntraCoreMapping().inner()] == [
        *("MinimalLatency", "SpatialMappingGenerator", "SpatialMappingConversion", "MinimalLatency"),
        *("Loma", "CostModel"),
    ]


def test_custom_spatial_mappings_by_hand() -> None:
    """Custom spatial mappings of K 8, C 3, OX 6, FX 3 on an array of 4 x 4 are the six pairs worked out by hand.

    The register of sums is as wide as one sum and serves D2. Sums depend on K and OX, so D2 can have C 3 or FX 3 only.
    D1 has room for K 4, C 3, OX 3 (the largest divisor of 6 up to 4) and FX 3. Of the eight pairs, those with C twice
    or FX twice are dropped.
    """
    layer = convolution("one", K=8, C=3, OX=6, FX=3)
    item = LayerProblem(layer, small_core(), constraints())
    found: list[SpatialCandidate] = list(run_stages((CustomSpatialMappingGenerator(),), item))
    pairs = [(("K", 4), ("C", 3)), (("K", 4), ("FX", 3)), (("C", 3), ("FX", 3))]
    pairs += [(("OX", 3), ("C", 3)), (("OX", 3), ("FX", 3)), (("FX", 3), ("C", 3))]
    assert {tuple(loops[0] for _, loops in candidate.unrolling) for candidate in found} == set(pairs)
    assert [candidate.index for candidate in found] == list(range(6))


def test_a_given_spatial_mapping_is_taken_as_it_is() -> None:
    """A given spatial mapping is cut to the sizes of layer and array; unnamed sides stay unused, and unknown sides are
    an error.
    """
    layer = convolution("one", K=8, C=3)
    for unrolling, expected in (
        ((("D1", (("K", 16),)),), (("D1", (("K", 4),)), ("D2", ()))),
        ((("D2", (("K", 3),)), ("D1", (("C", 9),))), (("D1", (("C", 3),)), ("D2", (("K", 3),)))),
    ):
        item = LayerProblem(layer, small_core(), replace(constraints(), spatial_mapping=unrolling))
        (found,) = run_stages((CustomSpatialMappingGenerator(),), item)
        assert found.unrolling == expected
    wrong = replace(constraints(), spatial_mapping=(("D3", (("K", 2),)),))
    with pytest.raises(MappingError, match="no array dimension D3"):
        list(run_stages((CustomSpatialMappingGenerator(),), LayerProblem(layer, small_core(), wrong)))


def test_an_array_without_room_is_left_empty() -> None:
    """A layer of one multiplication has one spatial mapping, which leaves the array empty."""
    item = LayerProblem(convolution("one"), small_core(), constraints())
    (found,) = run_stages((CustomSpatialMappingGenerator(),), item)
    assert found.unrolling == (("D1", ()), ("D2", ()))


def test_custom_spatial_mappings_in_both_flows(cut: CnProblem) -> None:
    """The stage works in single-core pipelines and maps CNs."""
    edit = {"replace": "SpatialMappingGenerator", "stage": "CustomSpatialMappingGeneratorStage"}
    assert "CustomSpatialMappingGenerator" in names(Pipeline.build([edit]))
    (found,) = run_stages((IntraCoreMapping(pipeline=[edit]),), cut)
    assert all(row.can_run for rows in found.costs.values() for row in rows)


def test_stages_are_made_of_their_parameters() -> None:
    """Stages are frozen dataclasses, and stages with equal parameters are equal."""
    stages: list[Any] = [GenerateCNWorkloadHybrid(), IntraCoreMapping(), InterCoreMapping(), LayerSplitting()]
    for stage in stages:
        assert isinstance(stage, Stage)
        assert stage == type(stage)()
        assert hash(stage) == hash(type(stage)())


INNER = ["SpatialMappingGeneratorStage", "MinimalLatencyStage", "LomaStage", "CostModelStage"]


def test_one_reduction_inside_of_intra_core_mapping_is_enough(network: Path) -> None:
    """One reduction inside IntraCoreMapping is enough: the best of several results for a CN is kept."""
    of_energy = ["MinimalEnergy", *INNER[:1], "MinimalEnergy", *INNER[2:]]
    both, once, energy = (
        run(network, [{"set": "IntraCoreMapping", "parameters": {"pipeline": pipeline}}])
        for pipeline in (["MinimalLatencyStage", *INNER], INNER, of_energy)
    )
    assert (once.latency_cycles, once.summary["energy_pj"]) == (both.latency_cycles, both.summary["energy_pj"])
    assert energy.summary["energy_pj"] <= both.summary["energy_pj"]


def test_splitting_before_there_is_a_network_is_refused(network: Path) -> None:
    """A pipeline with LayerSplitting before the stage that reads the network is refused; the message says where to put
    it.
    """
    order = ["AcceleratorParserStage", "LayerSplittingStage", "StreamONNXModelParserStage"]
    order += ["GenerateCNWorkloadHybridStage", "IntraCoreMappingStage", "InterCoreMappingStage"]
    with pytest.raises(InputError, match="put the stage that reads the network before LayerSplitting"):
        run(network, order)
