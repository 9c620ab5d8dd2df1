"""The configuration: runs, sweeps, and all faults together."""

import json
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.cli.config import TOP_KEYS, plan_of, read_config
from tilewright.cli.config_networks import NETWORK_KEYS
from tilewright.pipeline.configuration.arguments import arguments_of
from tilewright.pipeline.configuration.keys import KEYS, RunPlan
from tilewright.search.options import SearchOptions

from tests.unit.cli.configurations import problems_of

PROJECT = Path(__file__).resolve().parents[3]
RUN = {"workload": "resnet18", "hardware": "tpu_like"}


@pytest.fixture(autouse=True)
def _in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


def names(plan: RunPlan) -> list[str]:
    """Return the names of the runs."""
    return [run.name for run in plan.runs]


def test_default_configuration() -> None:
    """The default has three networks on five accelerators with mappings of the same name, and a run like zigzag-dse."""
    plan = read_config("config/config.yaml")
    assert len(plan.runs) == 16
    whole = [run for run in plan.runs if run.strict]
    assert [run.name for run in whole] == [
        f"{name}-systolic_all_45nm" for name in ("resnet18", "mobilenetv2", "bert_tiny")
    ]
    assert {run.options.model for run in whole} == {"corrected"}
    assert [run.name for run in plan.runs if run.options.preset == "zigzag"] == ["resnet18-tpu_like-zigzag"]
    assert {"resnet18-systolic_45nm", "bert_tiny-cube_45nm"} < {run.name for run in plan.runs}
    assert all(run.mapping == run.hardware for run in plan.runs)
    assert plan.files["workload"]["bert_tiny"] == "config/workload/bert_tiny.onnx"


def test_run_overrides_defaults() -> None:
    """Options at the top hold for each run that does not set them."""
    plan = plan_of({"objective": "energy", "runs": {"a": RUN, "b": {**RUN, "objective": "EDP", "lpf_limit": None}}})
    assert [run.options.objective for run in plan.runs] == ["energy", "EDP"]
    assert [run.options.lpf_limit for run in plan.runs] == [6, None]


def test_strict_runs() -> None:
    """`strict` can be set at the top or for a run, and must be true or false."""
    plan = plan_of({"strict": True, "runs": {"a": RUN, "b": {**RUN, "strict": False}}})
    assert [run.strict for run in plan.runs] == [True, False]
    assert [run.strict for run in plan_of({"runs": {"a": RUN}}).runs] == [False]
    assert "runs.a.strict: wrong kind of value" in problems_of({"runs": {"a": {**RUN, "strict": "yes"}}})
    assert "config strict: wrong kind of value" in problems_of({"strict": 1, "runs": {"a": RUN}})


def test_sweep_is_every_combination() -> None:
    """A sweep names its runs by the swept values."""
    sweep = {"workload": ["resnet18", "bert_tiny"], "hardware": "tpu_like", "objective": ["energy", "latency"]}
    assert names(plan_of({"sweeps": {"s": sweep}})) == [
        "resnet18-tpu_like-objective-energy",
        "resnet18-tpu_like-objective-latency",
        "bert_tiny-tpu_like-objective-energy",
        "bert_tiny-tpu_like-objective-latency",
    ]


def test_paths_are_named_by_their_stem(tmp_path: Path) -> None:
    """A path to a description is named by its stem."""
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\n")
    plan = plan_of({"runs": {"a": {**RUN, "hardware": str(path), "mapping": "tpu_like"}}})
    assert plan.runs[0].hardware == "mine"
    assert plan.files["hardware"]["mine"] == str(path)


def test_two_files_of_one_name(tmp_path: Path) -> None:
    """Two files with the same folder of results are refused."""
    path = tmp_path / "tpu_like.yaml"
    path.write_text("name: mine\n")
    said = problems_of({"runs": {"a": RUN, "b": {**RUN, "hardware": str(path)}}})
    assert "two files of the same name" in said


def test_all_problems_at_once() -> None:
    """Every fault is reported with its place and the nearest valid name."""
    said = problems_of(
        {
            "objektive": "latency",
            "runs": {
                "a": {"workload": "resnet81", "hardware": "tpu_like", "objective": "enrgy"},
                "b/c": {"workload": "resnet18", "hardware": "tpu_lik"},
                "d": {"workload": "resnet18", "hardware": "tpu_like", "lpf_limit": "six", "flow": "mutli"},
                "e": {"hardware": "tpu_like"},
                "f": {**RUN, "hardwear": "x"},
                "g": 3,
            },
            "dims": {"bert": {"sequence": -1}},
        }
    )
    for part in (
        "objektive: unknown key (did you mean 'objective'?)",
        "runs.a.workload: no such workload file in config/workload, got 'resnet81' (did you mean 'resnet18'?)",
        "runs.a.objective: unknown value, got 'enrgy'",
        "(did you mean 'energy'?)",
        "runs.b/c: not a name",
        "(did you mean 'tpu_like'?)",
        "runs.d.lpf_limit: wrong kind of value, got 'six'",
        "runs.d.flow: unknown flow",
        "runs.e.workload: required key is missing",
        "runs.f.hardwear: unknown key (did you mean 'hardware'?)",
        "runs.g: must be a table of keys",
        "dims.bert: no run has this workload",
        "dims.bert.sequence: must be a whole number from 0 to 2^53",
    ):
        assert part in said


@pytest.mark.parametrize("config", [None, [], 3, "text", {}, {"runs": {}}, {"runs": []}])
def test_empty_or_odd_configurations(config: Any) -> None:
    """An empty or wrong configuration gives a list of problems."""
    assert problems_of(config)


def test_same_run_twice() -> None:
    """Two sweeps with the same run are refused."""
    sweep = {"workload": "resnet18", "hardware": ["tpu_like"]}
    assert "two runs have this name" in problems_of({"sweeps": {"a": sweep, "b": sweep}})


def test_dots_belong_to_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dot belongs to a name unless it begins a known suffix: tpu_like.v2 is another core than tpu_like."""
    for kind in ("hardware", "mapping", "workload"):
        (tmp_path / "config" / kind).mkdir(parents=True)
        (tmp_path / "config" / kind / "tpu_like.v2.yaml").write_text("name: v2\n")
        (tmp_path / "config" / kind / "tpu_like.yaml").write_text("name: v1\n")
    monkeypatch.chdir(tmp_path)
    plan = plan_of({"sweeps": {"s": {"workload": "tpu_like.v2", "hardware": ["tpu_like", "tpu_like.v2"]}}})
    assert names(plan) == ["tpu_like.v2-tpu_like", "tpu_like.v2-tpu_like.v2"]
    assert [run.mapping for run in plan.runs] == ["tpu_like", "tpu_like.v2"]
    path = "config/hardware/tpu_like.v2.yaml"
    (run,) = plan_of({"runs": {"a": {"workload": "tpu_like", "hardware": path}}}).runs
    assert (run.hardware, run.mapping) == ("tpu_like.v2", "tpu_like.v2")
    swept = {"workload": "tpu_like", "hardware": "tpu_like", "mapping": ["tpu_like", "tpu_like.v2"]}
    assert names(plan_of({"sweeps": {"s": swept}}))[1] == "tpu_like-tpu_like-mapping-tpu_like.v2"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files in subfolders: `core` in one, `twin` in two, `top` beside them and in one."""
    monkeypatch.chdir(tmp_path)
    for kind in ("hardware", "mapping"):
        for name in ("a/core", "a/twin", "b/twin", "top", "b/top"):
            file = tmp_path / "config" / kind / f"{name}.yaml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"name: {file.stem}\n")
    (tmp_path / "net.yaml").write_text("[]\n")


@pytest.mark.parametrize(
    ("name", "file"), [("core", "a/core"), ("b/twin", "b/twin"), ("top", "top"), ("b/top", "b/top")]
)
def test_names_of_files_in_subfolders(folders: None, name: str, file: str) -> None:
    """A name means a file in the main folder, or the only file of this name in its subfolders.

    The mapping comes from the same subfolder, and runs have short names.
    """
    plan = plan_of({"sweeps": {"s": {"workload": "net.yaml", "hardware": [name]}}})
    stem = name.rpartition("/")[2]
    assert names(plan) == [f"net-{stem}"]
    assert plan.files["hardware"] == {stem: f"config/hardware/{file}.yaml"}
    assert plan.files["mapping"] == {stem: f"config/mapping/{file}.yaml"}


def test_names_that_mean_no_file_or_several(folders: None) -> None:
    """An ambiguous name is refused with all its files; a moved file is suggested for its old name or path."""
    places = {
        "a": "twin",
        "b": "core/core",
        "c": "cor",
        "d": "config/hardware/core.yaml",
        "e": "config/hardware/cre.yaml",
    }
    said = problems_of({"runs": {key: {"workload": "net.yaml", "hardware": place} for key, place in places.items()}})
    for part in (
        "runs.a.hardware: several hardware files have this name, config/hardware/a/twin.yaml and"
        " config/hardware/b/twin.yaml: add the folder to the name, got 'twin'",
        "runs.b.hardware: no such hardware file in config/hardware, got 'core/core' (did you mean 'a/core'?)",
        "runs.c.hardware: no such hardware file in config/hardware, got 'cor' (did you mean 'core'?)",
        "got 'config/hardware/core.yaml' (did you mean 'config/hardware/a/core.yaml'?)",
        "runs.e.hardware: no such hardware file in config/hardware, got 'config/hardware/cre.yaml'",
    ):
        assert part in said


def test_unknown_keys_hide_nothing() -> None:
    """A run with an unknown key is still checked completely."""
    said = problems_of({"runs": {"a": {**RUN, "hardwear": "x", "objective": "enrgy", "workload": "resnet81"}}})
    assert "runs.a.hardwear: unknown key" in said
    assert "runs.a.objective: unknown value" in said
    assert "no such workload file" in said


def test_repeated_keys_are_told(tmp_path: Path) -> None:
    """Two runs of one name in the file are a problem with its line."""
    path = tmp_path / "config.yaml"
    run = "{workload: resnet18, hardware: tpu_like}"
    path.write_text(f"runs:\n  a: {run}\n  a: {run}\n")
    with pytest.raises(InputError) as caught:
        read_config(path)
    assert str(caught.value) == f"{path}:3 runs.a: the key is given twice: rename or remove one"


@pytest.mark.parametrize("size", [-1, True, 1.5, "x", 2**53 + 1])
def test_sizes_of_dimensions_have_limits(size: Any) -> None:
    """Sizes of dynamic dimensions are whole numbers up to 2^53."""
    said = problems_of({"runs": {"a": RUN}, "dims": {"resnet18": {"batch": size}}})
    assert "dims.resnet18.batch: must be a whole number from 0 to 2^53" in said


def test_network_options_of_a_workload() -> None:
    """Sizes, shapes, branches, precision and bits become options of the network parser."""
    said = {
        "runs": {"a": RUN},
        "dims": {"resnet18": {"batch": 2}},
        "input_shapes": {"resnet18": {"x": [1, 3, 224, 224]}},
        "branches": {"resnet18": {"*": "then"}},
        "precision": {"resnet18": "file"},
        "bits": {"resnet18": {"weights": 4, "Conv.activations": 6}},
    }
    own = ("--dim=batch=2", "--input-shape=x=1,3,224,224", "--branch=*=then", "--precision=file")
    assert plan_of(said).network_options == {"resnet18": (*own, "--bits=weights=4", "--bits=Conv.activations=6")}


def test_wrong_network_options_are_told_at_once() -> None:
    """Each wrong network option is reported with its place and the allowed values."""
    said = problems_of(
        {
            "runs": {"a": RUN},
            "input_shapes": {"resnet18": {"x": [1, -1], "y": 3}, "resnet19": {}},
            "branches": {"resnet18": {"if": "than"}},
            "precision": {"resnet18": "flie"},
            "bits": {"resnet18": {"weights": 0, "weight": 4}},
            "dims": 3,
        }
    )
    for part in (
        "input_shapes.resnet18.x: must be a list of whole numbers from 0 to 2^53, got [1, -1]",
        "input_shapes.resnet18.y: must be a list",
        "input_shapes.resnet19: no run has this workload (did you mean 'resnet18'?)",
        "branches.resnet18.if: unknown branch, got 'than' (allowed: then, else)",
        "precision.resnet18: unknown precision, got 'flie'",
        "bits.resnet18.weights: wrong number of bits, got 0",
        "bits.resnet18.weight: unknown operand",
        "(did you mean 'file'?)",
        "dims: must be a table of keys",
    ):
        assert part in said


# pipelines ------------------------------------------------------------------------------------------------------------

BOUND = "config.stages.latency_bound.MinimalEnergyUnderLatency"
EDIT = {"replace": "MinimalLatency", "stage": BOUND, "parameters": {"latency_bound_cycles": 5}}


def test_pipeline_of_a_run() -> None:
    """A run has its own pipeline, that of the top level, or the default; files of a pipeline have a digest."""
    plan = plan_of(
        {
            "pipeline": [{"drop": "Sum"}],
            "runs": {"a": RUN, "b": {**RUN, "pipeline": [EDIT]}, "c": {**RUN, "pipeline": None}},
            "sweeps": {"s": {"workload": ["bert_tiny"], "hardware": "tpu_like", "pipeline": [EDIT, {"drop": "Sum"}]}},
        }
    )
    stages = [run.stages for run in plan.runs]
    assert [json.loads(one.pipeline) if one.pipeline else None for one in stages] == [
        [{"drop": "Sum"}],
        [EDIT],
        None,
        [EDIT, {"drop": "Sum"}],
    ]
    assert [bool(one.code) for one in stages] == [False, True, False, True]
    assert names(plan)[-1] == "bert_tiny-tpu_like", "a list of edits is one pipeline"


def test_pipeline_that_exports() -> None:
    """Runs with a stage that writes files are marked, because they have a further folder."""
    plan = plan_of({"runs": {"a": RUN, "b": {**RUN, "pipeline": [{"insert": "Dump", "after": "Sum"}]}}})
    assert [run.stages.exports for run in plan.runs] == [False, True]


def test_wrong_pipelines_are_told_with_their_lines(tmp_path: Path) -> None:
    """Faults of pipelines are reported with their line, and those at the top only once."""
    path = tmp_path / "config.yaml"
    path.write_text(
        "pipeline:\n- {set: Loma, parameters: {lpf_limti: 3}}\nruns:\n  a: {workload: resnet18, hardware: tpu_like}\n"
        "  b: {workload: bert_tiny, hardware: tpu_like}\n  c:\n    workload: resnet18\n    hardware: tpu_like\n"
        "    pipeline:\n    - Sum\n    - stage: Worklod\n    - CostModel\n"
    )
    with pytest.raises(InputError) as caught:
        read_config(path)
    assert str(caught.value).splitlines() == [
        f"{path}:2 pipeline[0].parameters.lpf_limti: Loma has no such parameter (did you mean 'lpf_limit'?)",
        f"{path}:11 runs.c.pipeline[1]: no such stage, got 'Worklod' (did you mean 'Workload'?)",
    ]


def test_parsers_of_ones_own_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run cannot have its own parser stages, because runs share parsed inputs."""
    (tmp_path / "config").symlink_to(PROJECT / "config")
    (tmp_path / "own.py").write_text(
        "from dataclasses import dataclass\nfrom tilewright.pipeline.stages.workload_parsers import ONNXModelParser\n\n"
        "@dataclass(frozen=True)\nclass Mine(ONNXModelParser):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    pipeline = [{"replace": "ONNXModelParser", "stage": "own.Mine"}]
    said = problems_of({"runs": {"a": {**RUN, "pipeline": pipeline}}})
    assert "runs.a.pipeline: a configuration cannot use parser stages of your own" in said


def test_options_as_command_line() -> None:
    """Every option of a run becomes an argument of `tilewright map`."""
    options = SearchOptions(lpf_limit=None, seed=3, exploit_data_locality=True)
    words = arguments_of(SearchOptions, options.as_dict())
    assert words[words.index("--lpf-limit") + 1] == "None"
    assert words[words.index("--seed") + 1] == "3"
    assert "--exploit-data-locality" in words
    assert "--enable-mix-spatial-mapping" not in words


@pytest.mark.parametrize(
    ("option", "value"), [("seed", "x"), ("time_budget_s", "1 s"), ("exploit_data_locality", "yes"), ("seed", -1)]
)
def test_new_options_are_checked(option: str, value: Any) -> None:
    """A wrong option of the search engines is reported at its run."""
    assert f"runs.a.{option}: " in problems_of({"runs": {"a": {**RUN, option: value}}})


# options at the top ---------------------------------------------------------------------------------------------------


def test_a_wrong_option_at_the_top_is_told_once_at_its_line(tmp_path: Path) -> None:
    """A wrong option at the top is reported once with its line; an option of a run is reported there."""
    path = tmp_path / "config.yaml"
    path.write_text(
        "lpf_limit: 0\ntime_budget_s: soon\nseed: -1\nsweeps:\n  s: {workload: [resnet18, bert_tiny, mobilenetv2],"
        " hardware: [tpu_like, eyeriss_like]}\nruns:\n  a: {workload: resnet18, hardware: tpu_like, lpf_limit: 5,"
        " seed: -2}\n"
    )
    with pytest.raises(InputError) as caught:
        read_config(path)
    assert [str(problem).partition(" (allowed")[0] for problem in caught.value.problems] == [
        f"{path}:1 lpf_limit: not a count, got 0",
        f"{path}:2 time_budget_s: wrong kind of value, got 'soon'",
        f"{path}:3 seed: not a count, got -1",
        f"{path}:7 runs.a.seed: not a count, got -2",
    ]


@pytest.mark.parametrize("option", sorted(set(TOP_KEYS) - {"runs", "sweeps", "pipeline", *NETWORK_KEYS}))
@pytest.mark.parametrize("flow", ["single", "multi"])
def test_every_option_at_the_top(option: str, flow: str) -> None:
    """A wrong option at the top is reported once, even if no run uses it."""
    value: Any = "x" if option in KEYS and KEYS[option].takes_list else [1]
    runs = {"a": {**RUN, "workload": "bert_tiny"}, "b": RUN}
    if flow == "multi":
        runs = {name: {**run, "flow": "multi", "hardware": "multi/quad_core"} for name, run in runs.items()}
    said = problems_of({option: value, "runs": runs}).splitlines()
    assert len(said) == 1, said
    assert said[0].startswith(f"config {option}: ")


def test_options_that_exclude_each_other_are_told_where_they_stand() -> None:
    """Options at the top that exclude each other are reported once."""
    runs = {"a": RUN, "b": {**RUN, "workload": "bert_tiny"}}
    said = problems_of({"allocation": "free", "preset": "zigzag", "runs": runs}).splitlines()
    assert len(said) == 1
    assert said[0].startswith("config allocation: is possible only with temporal_mapping_search_engine exact")
    exact = {"temporal_mapping_search_engine": "exact"}
    assert len(plan_of({"allocation": "free", "runs": {"a": {**RUN, **exact}}}).runs) == 1
