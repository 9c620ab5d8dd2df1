"""Impossible pipelines of the multi-core flow are refused when they are built, with every fault and its place."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.yamlfile import parse_yaml
from tilewright.pipeline.stages import (
    CnProblem,
    Control,
    CoreAllocation,
    CostedCnProblem,
    MultiCoreResult,
    Pipeline,
    Rest,
    Stage,
)
from tilewright.pipeline.stages.base import Change
from tilewright.pipeline.stages.hardware_parser import AcceleratorParser
from tilewright.pipeline.stages.multi import run as multi_run
from tilewright.pipeline.stages.multi.allocation import InterCoreMapping, in_place_of_search
from tilewright.pipeline.stages.multi.costs import IntraCoreMapping, costed
from tilewright.pipeline.stages.multi.pipeline import check_multi_pipeline, run_whole, slice_of
from tilewright.pipeline.stages.multi.slices import Slice
from tilewright.pipeline.stages.multi.tiling import GenerateCNWorkloadHybrid
from tilewright.pipeline.stages.places import placed
from tilewright.search.options import SearchOptions

from tests.unit.cli.multi_core import write_network
from tests.unit.pipeline.stages.multi.multi_cases import FULL, GA, OPTIONS, built, descriptions, names, run, said
from tests.unit.pipeline.stages.multi.random_stream_pipelines import tried

CUT, COST, ALLOCATE = FULL[3:]


@dataclass(frozen=True)
class OtherCosts(Change):
    """Stage that replaces the costs; here it changes nothing."""

    takes = CostedCnProblem
    gives = CostedCnProblem
    stands_for = ""

    def change(self, item: CostedCnProblem) -> CostedCnProblem:
        """Returns the item unchanged."""
        return item


@dataclass(frozen=True)
class Looks(Stage):
    """Stage that looks at results."""

    collects = MultiCoreResult

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yields all results."""
        yield from rest(item)


@dataclass(frozen=True)
class Twice(Stage):
    """Yields every result twice."""

    def run(self, item: Any, rest: Rest) -> Iterator[Any]:
        """Yields each result twice."""
        for result in rest(item):
            yield result
            yield result


@dataclass(frozen=True)
class OwnHardware(AcceleratorParser):
    """A user's parser of hardware."""


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three convolutions, one after the other."""
    return write_network(tmp_path_factory.mktemp("network"))


# what is right --------------------------------------------------------------------------------------------------------


def test_the_default_pipeline_in_full() -> None:
    """A list of the stages of the default pipeline, with or without its parsers, gives the default pipeline."""
    assert names(built()) == FULL
    for given in (list(FULL), list(FULL[3:]), ["AcceleratorParser", *FULL[:1], *FULL[3:]]):
        assert sorted(names(built(given))) == sorted(FULL)
        assert built(given).search() == built().search()
    assert built(list(FULL)) == built()


def test_the_names_of_the_other_flow_mean_the_stages_of_this_one() -> None:
    """Names of ZigZag's stages also mean the stages of the multi-core flow."""
    given = ["ONNXModelParserStage", "AcceleratorParserStage", "MappingParserStage", CUT, COST, ALLOCATE]
    assert names(built(given)) == FULL
    edits = [{"set": "GeneticAlgorithmAllocationStage", "parameters": {"nb_ga_individuals": 3}}]
    assert InterCoreMapping(nb_ga_individuals=3) in built(edits).stages


def test_a_subclass_of_a_stage_is_one_of_its_kind() -> None:
    """LayerSplitting needs a parser of hardware before it; a user's subclass of the parser is enough."""
    edits = [{"replace": "AcceleratorParser", "stage": OwnHardware}, {"insert": "LayerSplitting", "after": OwnHardware}]
    assert "LayerSplitting" in names(built(edits))


def test_random_pipelines_give_the_result_of_the_default_one_or_say_why_not() -> None:
    """Random pipelines with Stream's names, shuffled readers and a pipeline of mappings run with the right result or
    are refused.
    """
    outcomes = tried(count=24, seed=3)
    assert outcomes["run"] >= 6
    assert outcomes["refused"] >= 6


# what is wrong --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pipeline", "parts"),
    [
        (["IntraCoreMaping"], ["pipeline[0]: no such stage, got 'IntraCoreMaping' (did you mean 'IntraCoreMapping'?)"]),
        (["Xyz"], ["no such stage, got 'Xyz' (allowed: AcceleratorParser, StreamONNX",
                   "dotted path of a class of your own"]),
        (["Loma"], ["pipeline[0]: Loma is a stage of the single-core flow; ", "the pipeline of IntraCoreMapping"]),
        (["TilingGenerationStage"], ["TilingGeneration is not a separate stage here, because Gener"]),
        ([CUT, ALLOCATE], ["pipeline[1]: InterCoreMapping takes CostedCnProblem, but gets CnProblem from",
                           "put IntraCoreMapping before it"]),
        ([COST, CUT, ALLOCATE], ["pipeline[0]: IntraCoreMapping takes CnProblem, but gets SystemProblem",
                                 "move GenerateCNWorkloadHybrid before it"]),
        ([{"drop": ALLOCATE}], ["ends with CostedCnProblem", "the last stage must be InterCoreMapping"]),
        ([*FULL, COST], ["pipeline[6]: IntraCoreMapping cannot come after InterCoreMapping, which ends a pipeline"]),
        ([*FULL[:1], "LayerSplitting", *FULL[1:]], ["LayerSplitting needs AcceleratorParser before it, which comes"]),
        ([{"set": CUT, "parameters": {"hint_lops": []}}], ["[0].parameters.hint_lops", "did you mean 'hint_loops'?"]),
        ([{"set": CUT, "parameters": {"hint_loops": [["OY", "all"]]}}], ["parameters.hint_loops: needs a cn_define_m"]),
        ([{"set": CUT, "parameters": {"cn_define_mode": 5, "mode": "fusd"}}],
         ["parameters.cn_define_mode: no mode", "parameters.mode: not a mode", "did you mean 'fused'?"]),
        ([{"set": COST, "parameters": {"lpf_limit": 0}}], ["parameters.lpf_limit: not a count"]),
        ([{"set": COST, "parameters": {"allocation": "free"}}], ["parameters.allocation: is possible only with"]),
        ([{"set": ALLOCATE, "parameters": {"nb_ga_individuals": 1, "schedule_model": "x", "ga_time_budget_s": -1}}],
         ["nb_ga_individuals: not a count", "schedule_model: unknown", "ga_time_budget_s: not a positive number"]),
        ([{"set": ALLOCATE, "parameters": {"operands_to_prefetch": "W"}}], ["wrong kind of value", "a list"]),
        ([{"set": "LayerSplitting", "parameters": {}}, {"drop": CUT}], ["[0].set: the pipeline has no such stage"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(pipeline: Any, parts: list[str]) -> None:
    """Wrong names, parameters and orders are reported before anything runs."""
    text = said(pipeline)
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    ("inner", "part"),
    [
        (
            [{"set": "Loma", "parameters": {"lpf_limti": 3}}],
            "[0].parameters.lpf_limti: Loma has no such parameter (did",
        ),
        ([{"drop": "Lomma"}], "[0].drop: the pipeline has no such stage, got 'Lomma' (did you mean 'Loma'?)"),
        (
            ["Workload", "CostModel"],
            "[0]: Workload is for whole networks, but this pipeline maps single computation nodes",
        ),
        ([{"insert": "SimpleSave", "before": "Loma"}], "[0]: SimpleSave is for whole networks"),
        (["Loma", "CostModel"], "[0]: Loma takes TemporalProblem, but gets LayerProblem from IntraCoreMapping; put"),
        (["SpatialMappingConversion", "Loma", "CostModel"], ": no stage keeps the best mapping of a CN (allowed: Min"),
        (["MinimalLatency", "InterCoreMapping"], "[1]: no such stage, got 'InterCoreMapping'"),
        ("Loma", ": must be a list"),
    ],
)
def test_what_is_wrong_with_the_search_of_a_cn_is_told(inner: Any, part: str) -> None:
    """Faults in the pipeline inside IntraCoreMapping are reported at their place, together with the outer pipeline's
    faults.
    """
    edits = [
        {"set": COST, "parameters": {"pipeline": inner}},
        {"set": ALLOCATE, "parameters": {"nb_ga_individuals": 1}},
    ]
    text = said(edits)
    if inner == "Loma":
        assert "pipeline[0].parameters.pipeline: wrong kind of value, got 'Loma'" in text
    else:
        assert f"pipeline[0].parameters.pipeline{part}" in text
    assert "pipeline[1].parameters.nb_ga_individuals: not a count" in text


def test_everything_is_told_with_its_line() -> None:
    """Faults in a pipeline from a file are reported with their lines, and a wrong setting beside the pipeline by its
    name.
    """
    text = "pipeline:\n- set: IntraCoreMapping\n  parameters:\n    lpf_limti: 3\n- drop: InterCoreMaping\n"
    document = parse_yaml(text, "run.yaml")
    _, problems = check_multi_pipeline(document.data["pipeline"], SearchOptions())
    problems = [placed(problem, ("pipeline",), [document]) for problem in problems]
    assert sorted((problem.file, problem.line) for problem in problems) == [("run.yaml", 4), ("run.yaml", 5)]
    both = said([{"drop": "InterCoreMaping"}], nb_ga_individuals="many").splitlines()
    assert "nb_ga_individuals: wrong kind of value, got 'many' (allowed: a whole number)" in both
    assert len(both) == 2


def test_the_single_core_flow_names_these_stages() -> None:
    """A stage of the multi-core flow in a single-core pipeline is refused, and the message says so."""
    with pytest.raises(InputError, match="InterCoreMapping is a stage of the multi-core flow"):
        Pipeline.build(["InterCoreMappingStage"])


def test_operands_that_no_layer_has_are_told_before_anything_is_computed(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt operand to prefetch is reported before the network is cut."""
    monkeypatch.setattr(
        "tilewright.pipeline.stages.multi.tiling.checked_cn_graph", lambda *_: pytest.fail("it was cut")
    )
    with pytest.raises(InputError, match="operands_to_prefetch\\[0\\]: no layer reads an operand of this name, got V"):
        run(network, operands_to_prefetch=["V"])


# slices ---------------------------------------------------------------------------------------------------------------


def test_slices_are_the_stages_of_the_verbs(network: Path) -> None:
    """The slices that verbs run give, one after the other, the result of the whole pipeline."""
    pipeline = built(sliced=True, stack_cutoffs=[2], **GA)
    cut, cost, search = (slice_of(pipeline, verb) for verb in ("cns", "cost", "allocate"))
    assert [stage.name() for part in (cut, cost, search) for stage in part.stages] == [*FULL[3:]]
    problem = next(pipeline.parsers().run(descriptions(network)))
    cns = cut.result(problem, CnProblem)
    costs = {core: costed(cost, replace(cns, core_files=(core,))).costs[core] for core in ("left", "right")}
    result = search.result(CostedCnProblem(problem, cns.graph, costs), MultiCoreResult)
    whole = run_whole(pipeline, descriptions(network), Control())
    assert (result.latency_cycles, result.energy_pj) == (whole.latency_cycles, whole.energy_pj)
    with pytest.raises(InputError, match="has no such core file"):
        costed(cost, replace(cns, core_files=("middle",)))


def test_default_slices_are_those_of_the_default_pipeline() -> None:
    """A verb without a pipeline runs the stages and parameters of the default pipeline."""
    settings = {"stack_cutoffs": [2], **GA}
    pipeline = built(sliced=True, **settings)
    for verb, kind in (("cns", GenerateCNWorkloadHybrid), ("cost", IntraCoreMapping), ("allocate", InterCoreMapping)):
        assert Slice.default(kind, OPTIONS, settings).stages == slice_of(pipeline, verb).stages
    with pytest.raises(InputError, match="nb_ga_individuals: not a count"):
        Slice.default(InterCoreMapping, OPTIONS, {"nb_ga_individuals": 1})


@pytest.mark.parametrize("edits", [None, [{"insert": Looks, "after": COST}]])
def test_a_known_allocation_is_assembled_and_simulated_once(
    network: Path, monkeypatch: pytest.MonkeyPatch, edits: Any
) -> None:
    """A known allocation takes the place of the search, also in a user's pipeline, and is assembled and
    simulated once.
    """
    counts: Counter[str] = Counter()

    def counted(name: str) -> None:
        function = getattr(multi_run, name)

        def with_count(*args: Any) -> Any:
            counts[name] += 1
            return function(*args)

        monkeypatch.setattr(multi_run, name, with_count)

    for name in ("model_problem", "simulate", "schedule_judge"):
        counted(name)
    result = run(network)
    assert counts == {"model_problem": 1, "schedule_judge": 1}
    assert result.latency_cycles == result.allocation.chosen.latency_cycles
    assert counts["simulate"] == 1
    counts.clear()
    point = result.allocation.front[-1]
    stages = slice_of(built(edits, sliced=True), "allocate")
    fixed = in_place_of_search(stages, lambda problem: point.genome, result.problem.settings)
    again = fixed.result(result.problem.inputs, MultiCoreResult)
    assert again.allocation.chosen.genome == point.genome
    assert (again.latency_cycles, again.energy_pj) == (point.latency_cycles, point.energy_pj)
    assert again.summary["latency_cycles"] == point.latency_cycles
    assert counts == {"model_problem": 1, "simulate": 1}


@pytest.mark.parametrize(
    ("edit", "part"),
    [
        ({"replace": "AcceleratorParser", "stage": OwnHardware}, "runs share parsed files"),
        ({"set": "StreamONNXModelParser", "parameters": {"network_name": "x"}}, "runs share parsed files"),
        ({"insert": "LayerSplitting", "after": "AcceleratorParser"}, "split_layers: true"),
        ({"insert": Looks, "before": CUT}, "Looks uses results, which exist only after IntraCoreMapping: put it after"),
        (
            {"insert": OtherCosts, "after": COST},
            "OtherCosts makes its own costs, so it cannot come after IntraCoreMapping",
        ),
    ],
)
def test_what_cannot_be_sliced_is_told(edit: dict[str, Any], part: str) -> None:
    """A pipeline that only Python can run is refused for verbs."""
    assert part in said([edit], sliced=True)
    assert built([edit]).stages


def test_stages_that_look_at_results_may_stand_after_the_costs() -> None:
    """A stage after the costs that looks at results is in the slice of `allocate`."""
    search = slice_of(built([{"insert": Looks, "after": COST}], sliced=True), "allocate")
    assert [stage.name().rpartition(".")[2] for stage in search.stages] == ["Looks", ALLOCATE]


def test_a_pipeline_yields_one_result(network: Path) -> None:
    """A pipeline that yields two results raises an error."""
    with pytest.raises(
        InputError, match="must yield one MultiCoreResult, but they yield 2 results: MultiCoreResult, MultiCoreResult"
    ):
        run(network, [{"insert": Twice, "before": CUT}])


def test_the_base_of_own_allocations_is_no_stage() -> None:
    """The base class of users' allocations cannot be used as a stage."""
    with pytest.raises(TypeError, match="abstract"):
        CoreAllocation()  # type: ignore[abstract]
