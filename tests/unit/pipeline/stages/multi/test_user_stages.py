"""Users' stages in the multi-core flow: the worked example, and stages of every kind, in Python and with verbs."""

import json
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError, TilewrightError
from tilewright.cli.main import main
from tilewright.pipeline.stages import Control, Pipeline
from tilewright.pipeline.stages.multi.pipeline import run_whole
from tilewright.pipeline.stages.user_stages import code_digests
from tilewright.search.store import Store

from tests.unit.cli.multi_core import CORES, given, inputs, write_network
from tests.unit.pipeline.stages.multi.multi_cases import GA, built, descriptions, run
from tests.unit.pipeline.stages.stage_cases import PROJECT

ROUND_ROBIN = "config.stages.round_robin.RoundRobin"
HEAD = """\
from dataclasses import dataclass, replace
from tilewright.pipeline.stages import CnProblem, CoreAllocation, CostedCnProblem, MultiCoreResult, Stage, SystemProblem
from tilewright.pipeline.stages.multi.tiling import GenerateCNWorkloadHybrid
"""
OTHER = "corrected+per_level_loading_floor"
ALLOCATION = """
@dataclass(frozen=True)
class Own(CoreAllocation):
    def allocations(self, problem):
        {body}
"""
LAST = "yield tuple(cores[-1] for cores in problem.space.gene_choices)"
TILING = """
@dataclass(frozen=True)
class Own(Stage):
    tiles: int = 2
    takes = SystemProblem
    gives = CnProblem

    def run(self, item, rest):
        cut = GenerateCNWorkloadHybrid(cn_define_mode=1, hint_loops=[["OY", self.tiles]])
        yield from rest(cut.change(item))
"""
COSTS = """
@dataclass(frozen=True)
class Own(Stage):
    cycles: int = 100
    takes = CnProblem
    gives = CostedCnProblem

    def run(self, item, rest):
        from tilewright.multicore.scheduling.core_costs import CoreCostRow
        from tilewright.multicore.scheduling.cost_classes import cost_classes
        given = item.descriptions
        count = len(cost_classes(item.graph, given.workload, given.mapping).classes)
        rows = tuple(CoreCostRow(n, "", *[self.cycles] * 4, 1.0, 1.0) for n in range(count))
        yield from rest(CostedCnProblem(given, item.graph, dict.fromkeys(item.wanted_core_files, rows)))
"""
TWICE = """
@dataclass(frozen=True)
class Own(Stage):
    takes = CostedCnProblem
    collects = MultiCoreResult

    def run(self, item, rest):
        yield min([*rest(item), *rest(item)], key=lambda result: result.latency_cycles)
"""


WRITING = """
@dataclass(frozen=True)
class Own(Stage):
    takes = CostedCnProblem
    collects = MultiCoreResult
    exports = True
    observes = {observes}

    def run(self, item, rest):
        for result in rest(item):
            rest.control.exports.mkdir(parents=True, exist_ok=True)
            (rest.control.exports / "front.txt").write_text(str(len(result.allocation.front)))
            yield result
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a place for stages."""
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three convolutions, one after the other."""
    return write_network(tmp_path_factory.mktemp("network"))


def write(folder: Path, text: str, name: str = "mine/own.py") -> None:
    """Write a file with a stage, below a head of three lines."""
    (folder / name).write_text(HEAD + text)


def verbs(network: Path, folder: Path, pipeline: list[Any]) -> dict[str, Any]:
    """The allocation and the summary that the verbs write with a pipeline."""
    text = ["--pipeline", json.dumps(pipeline)]
    ga = [word for name, value in GA.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    search = ["--model", "corrected", "--lpf-limit", "4", "--no-store"]
    assert main(["cns", *given(network), *text, "-o", str(folder)]) == 0
    for core in CORES:
        table = ["--core", core, "--cns", str(folder), "-o", str(folder / "cost" / f"{core}.jsonl")]
        assert main(["cost", *given(network), *search, *table, *text]) == 0
    assert main(["allocate", *inputs(network, folder), *ga, *text, "-o", str(folder)]) == 0
    allocation = ["--core-allocation", str(folder / "allocation.json"), "-o", str(folder)]
    assert main(["schedule", *inputs(network, folder), *allocation, *text]) == 0
    assert main(["check", str(folder), *given(network)]) == 0
    found = {name: read_artifact(folder / f"{name}.json").payload for name in ("allocation", "summary")}
    assert found["allocation"]["latency_cycles"] == found["summary"]["latency_cycles"]
    assert found["allocation"]["energy_pj"] == found["summary"]["energy_pj"]
    return found


# the worked example ---------------------------------------------------------------------------------------------------


def test_worked_allocation(network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worked example tries two allocations: layers alternate between two cores, and begin on core 0 or on core 1.

    Python and verbs agree.
    """
    monkeypatch.chdir(PROJECT)
    pipeline = [{"replace": "InterCoreMapping", "stage": ROUND_ROBIN, "parameters": {"operands_to_prefetch": ["W"]}}]
    result = run(network, pipeline)
    cores = result.core_table()["core_id"].tolist()
    assert cores in ([0, 1, 0], [1, 0, 1])
    assert (result.allocation.evaluations, result.allocation.stopped_by) == (2, "proposals")
    best = run(
        network, [{"set": "InterCoreMapping", "parameters": {"exhaustive_nodes": 10**6}}], operands_to_prefetch=["W"]
    )
    assert best.latency_cycles <= result.latency_cycles
    found = verbs(network, tmp_path / "run", pipeline)
    assert [row["core"] for row in found["allocation"]["allocation"]] == cores
    assert found["summary"]["latency_cycles"] == result.latency_cycles
    assert found["summary"]["settings"]["operands_to_prefetch"] == ["W"]
    one = [{**pipeline[0], "parameters": {"starts": 1}}]
    assert run(network, one).core_table()["core_id"].tolist() == [0, 1, 0]


# stages of every kind -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        (ALLOCATION.format(body=LAST), {"replace": "InterCoreMapping", "stage": "mine.own.Own"}),
        (TILING, {"replace": "GenerateCNWorkloadHybrid", "stage": "mine.own.Own", "parameters": {"tiles": 4}}),
        (COSTS, {"replace": "IntraCoreMapping", "stage": "mine.own.Own"}),
        (TWICE, {"insert": "mine.own.Own", "before": "InterCoreMapping"}),
    ],
    ids=["allocation", "tiling", "costs", "above the allocation"],
)
def test_own_stages_take_part(text: str, edit: dict[str, Any], network: Path, folder: Path) -> None:
    """The verbs and Python give the same results with a user's stage, and artifacts record the code that ran."""
    write(folder, text)
    result = run(network, [edit])
    found = verbs(network, folder / "run", [edit])
    assert found["summary"]["latency_cycles"] == result.latency_cycles
    assert found["summary"]["energy_pj"] == result.energy_pj
    made_by = [read_artifact(folder / "run" / name).provenance for name in ("cn_graph.json", "allocation.json")]
    made_by.append(read_artifact(folder / "run" / "cost" / "left.jsonl").provenance)
    stages = [stage for provenance in made_by for stage in provenance["options"]["pipeline"]]
    assert [stage["code"] is not None for stage in stages if stage["stage"] == "mine.own.Own"] == [True]


@pytest.mark.parametrize("observes", [True, False])
def test_files_of_own_stages_lie_beside_the_allocation(observes: bool, network: Path, folder: Path) -> None:
    """A user's stage writes its files into the run's folder; `schedule`, which runs it again, leaves them alone."""
    write(folder, WRITING.format(observes=observes))
    found = verbs(network, folder / "run", [{"insert": "mine.own.Own", "before": "InterCoreMapping"}])
    text = (folder / "run" / "exports" / "front.txt").read_text()
    assert text == str(len(found["allocation"]["front"]))
    assert not (folder / "exports").exists()


def test_own_costs_are_of_the_core_that_is_asked_for(
    network: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stage that gives costs of another core than the wanted one is reported."""
    write(folder, COSTS.replace("item.wanted_core_files", '["elsewhere"]'))
    text = ["--pipeline", '[{"replace": "IntraCoreMapping", "stage": "mine.own.Own"}]']
    assert main(["cns", *given(network), *text, "-o", "run"]) == 0
    assert main(["cost", *given(network), *text, "--core", "left", "--cns", "run"]) == 2
    assert "mine.own.Own gives costs for elsewhere, but not for left" in capsys.readouterr().err


def test_an_edit_of_a_stage_inside_the_search_is_another_search(network: Path, folder: Path) -> None:
    """An edited stage inside the search repeats the search and changes its digest of code.

    This holds even if only a comment changes.
    """
    text = (PROJECT / "config" / "stages" / "stationary.py").read_text()
    (folder / "mine" / "mapper.py").write_text(text)
    inner = [{"replace": "Loma", "stage": "mine.mapper.StationaryOrders", "parameters": {"most_orders": 5}}]
    pipeline = [{"set": "IntraCoreMapping", "parameters": {"pipeline": inner}}]
    store = Store(folder / "store")

    def searched() -> tuple[Pipeline, int]:
        stages, told = built(pipeline, **GA), list[Any]()
        run_whole(stages, descriptions(network), Control(store=store, on_record=told.append))
        return stages, len(told)

    first, count = searched()
    assert count > 0
    assert searched()[1] == 0
    before = code_digests(first.stages)
    assert len(before) == 1
    (folder / "mine" / "mapper.py").write_text(text + "# edited\n")
    again, count = searched()
    assert count > 0
    assert code_digests(again.stages) != before


def test_results_say_what_the_pipeline_says(network: Path, tmp_path: Path) -> None:
    """The artifacts have the objective, the cost model and the schedule settings that the pipeline sets."""
    inner = {"set": "SpatialMappingConversion", "parameters": {"model": OTHER}}
    schedules = {"objective": "EDP", "scheduler_candidate_selection": "memory"}
    pipeline = [
        {"set": "IntraCoreMapping", "parameters": {"pipeline": [inner]}},
        {"set": "InterCoreMapping", "parameters": schedules},
    ]
    found = verbs(network, tmp_path / "run", pipeline)
    assert found["allocation"]["objective"] == found["summary"]["objective"] == "EDP"
    assert found["summary"]["model"] == OTHER
    assert found["summary"]["settings"]["scheduler_candidate_selection"] == "memory"


# errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("yield 1 / 0", "mine/own.py:8 mine.own.Own: ZeroDivisionError: division by zero"),
        ("return ()", "no proposed allocation has a schedule (0 allocations proposed)"),
        ("yield (0,)", "an allocation names 1 core, but it must name 3 cores, one for each part of a layer"),
        ("yield (0, 1, 7)", "an allocation has cores that are not allowed: part 2: core 7 is not one of [0, 1]"),
        ("yield 'abc'", "mine.own.Own: ValueError"),
        ("return problem.nothing", "'MultiCoreProblem' object has no attribute 'nothing'"),
    ],
)
def test_errors_in_allocations(body: str, part: str, network: Path, folder: Path) -> None:
    """An error in the user's code is reported with file and line, and a wrong allocation with the allowed values."""
    write(folder, ALLOCATION.format(body=body))
    with pytest.raises(TilewrightError) as caught:
        run(network, [{"replace": "InterCoreMapping", "stage": "mine.own.Own"}])
    assert part in str(caught.value)


def test_wrong_items_are_told(network: Path, folder: Path) -> None:
    """A stage that hands on an item of another type than it declares is reported with its line."""
    write(folder, TILING.replace("rest(cut.change(item))", "rest(item)"))
    with pytest.raises(
        InputError, match=r"mine/own.py:13 mine.own.Own: WrongTypeError: handed on SystemProblem instead"
    ):
        run(network, [{"replace": "GenerateCNWorkloadHybrid", "stage": "mine.own.Own"}])


def test_verbs_check_pipelines_before_they_read_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each verb reports all faults of the whole pipeline before it reads files, with lines if the pipeline is in a
    file.
    """
    (folder / "list.yaml").write_text("- drop: InterCoreMaping\n- set: IntraCoreMapping\n  parameters: {lpf: 3}\n")
    nowhere = ["--hardware", "none", "--workload", "none", "--mapping", "none", "--pipeline", "list.yaml"]
    places = ["--cns", "none"]
    for verb in (["cns"], ["cost", *places, "--core", "x"], ["allocate", *places, "--costs", "none"],
                 ["schedule", *places, "--costs", "none"]):  # fmt: skip
        assert main([*verb, *nowhere]) == 2
        said = capsys.readouterr().err
        assert "list.yaml:1 [0].drop: the pipeline has no such stage" in said
        assert "list.yaml:3 [1].parameters.lpf: IntraCoreMapping has no such parameter" in said
    edit = '[{"set": "InterCoreMapping", "parameters": {"plot_hof": true}}]'
    assert main(["allocate", *nowhere[:-1], edit, *places, "--costs", "none"]) == 2
    assert "-o: is needed, because a stage of the pipeline writes files" in capsys.readouterr().err
