"""Runs of several cores in the configuration."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tilewright.base.errors import InputError
from tilewright.base.steps import MULTI
from tilewright.cli.config import RUN_KEYS, TOP_KEYS, plan_of, read_config
from tilewright.pipeline.configuration.keys import Run, RunPlan

from tests.unit.cli.configurations import problems_of

PROJECT = Path(__file__).resolve().parents[3]
RUN = {"flow": MULTI, "workload": "resnet18", "hardware": "multi/quad_core"}
SINGLE_RUN = {"workload": "resnet18", "hardware": "tpu_like"}


@pytest.fixture(autouse=True)
def _in_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


def multi_run(top: dict[str, Any] | None = None, **values: Any) -> Run:
    """Return the only run of a configuration with these keys at the top and in the run."""
    return plan_of({**(top or {}), "runs": {"a": {**RUN, **values}}}).multi_runs[0]


def names(plan: RunPlan) -> list[str]:
    """Return the names of the runs of several cores."""
    return [run.name for run in plan.multi_runs]


def test_default_configuration() -> None:
    """The default has two networks on several cores, each followed by its layer-by-layer run."""
    plan = read_config("config/config.yaml")
    assert names(plan) == [
        "resnet18-quad_core",
        "resnet18-quad_core.layer_by_layer",
        "mobilenetv2-heterogeneous",
        "mobilenetv2-heterogeneous.layer_by_layer",
    ]
    assert {run.options.model for run in plan.multi_runs} == {"corrected"}
    assert plan.files["hardware"]["quad_core"] == "config/hardware/multi/quad_core.yaml"
    assert plan.files["mapping"]["heterogeneous"] == "config/mapping/multi/heterogeneous.yaml"


def test_a_run_that_says_nothing_is_searched() -> None:
    """A run without mapping file and tiles equals a run with `fusion: search`."""
    nothing = {**RUN, "hardware": "multi/diana", "operands_to_prefetch": ["W"], "nb_plans": 7}
    silent, said = (plan_of({"runs": {"a": entry}}) for entry in (nothing, {**nothing, "fusion": "search"}))
    assert silent.multi_runs == said.multi_runs
    assert (silent.multi_runs[0].fuses, silent.multi_runs[0].mapping) == (True, "open")
    assert silent.files == said.files


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"fusion": "given"}, True),
        ({"stack_cutoffs": [3]}, True),
        ({"mode": "lbl"}, True),
        ({"schedule_model": "stream-2023"}, True),
        ({"mapping": "multi/open"}, False),
        ({"hardware": "multi/quad_core"}, False),
    ],
)
def test_a_run_that_says_something_is_not_searched(said: dict[str, Any], problem: bool) -> None:
    """A run that has its own settings is not searched, and a missing mapping file is an error."""
    config = {"runs": {"a": {**RUN, "hardware": "multi/diana", **said}}}
    if problem:
        with pytest.raises(InputError, match="no such mapping file") as caught:
            plan_of(config)
        assert [one.path for one in caught.value.problems] == ["runs.a.mapping"]
    else:
        assert [run.plan_of for run in plan_of(config).multi_runs] == ["", ""]


@pytest.mark.parametrize("hardware", ["multi/quad_core", "config/hardware/multi/quad_core.yaml"])
def test_hardware_in_a_folder(hardware: str) -> None:
    """Hardware in a folder is named with the folder or by path, and has the mapping of the same folder."""
    run = multi_run(hardware=hardware)
    assert (run.hardware, run.mapping) == ("quad_core", "quad_core")
    assert plan_of({"runs": {"a": {**RUN, "hardware": hardware}}}).files["mapping"] == {
        "quad_core": "config/mapping/multi/quad_core.yaml"
    }


def test_layer_by_layer_beside_every_run() -> None:
    """Each run has a layer-by-layer run beside it, unless this is unwanted or equal to the run."""
    fused = multi_run(stack_cutoffs=[12], nb_ga_individuals=8).companion
    assert fused is not None
    assert fused.settings == {"nb_ga_individuals": 8, "mode": "lbl"}
    assert names(plan_of({"runs": {"a": {**RUN, "mode": "lbl"}}})) == ["a"]
    run = multi_run(cn_define_mode=1, hint_loops=[["OY", 4]], nb_ga_individuals=8, strict=True)
    other = run.companion
    assert other is not None
    assert (other.name, other.base) == ("a.layer_by_layer", "a")
    assert other.settings == {"nb_ga_individuals": 8, "cn_define_mode": 1, "mode": "lbl"}
    assert (other.hardware, other.workload, other.options, other.strict) == ("quad_core", "resnet18", run.options, True)
    assert other.companion is None
    assert names(plan_of({"runs": {"a": {**RUN, "baselines": False}}})) == ["a"]
    assert names(plan_of({"runs": {"a": {**RUN, "cn_define_mode": 1, "mode": "lbl"}}})) == ["a"]


def test_model_of_the_top_is_for_single_cores() -> None:
    """Runs of several cores use the corrected model unless they set another; other options at the top hold for all
    runs."""
    top = {"model": "zigzag-3.9.1", "objective": "energy", "lpf_limit": 4}
    plan = plan_of({**top, "runs": {"a": RUN, "b": SINGLE_RUN, "c": {**RUN, "model": "zigzag-3.9.1"}}})
    models = {run.name: run.options.model for run in (*plan.runs, *plan.multi_runs) if "." not in run.name}
    assert models == {"a": "corrected", "b": "zigzag-3.9.1", "c": "zigzag-3.9.1"}
    assert {run.options.objective for run in (*plan.runs, *plan.multi_runs)} == {"energy"}
    assert {run.options.lpf_limit for run in (*plan.runs, *plan.multi_runs)} == {4}


def test_keys_of_one_flow_at_the_top() -> None:
    """Defaults of one flow do not change runs of the other; null restores the default of a key."""
    top = {"nb_ga_individuals": 8, "exploit_data_locality": True, "mode": "lbl"}
    plan = plan_of({**top, "runs": {"a": {**RUN, "mode": None}, "b": SINGLE_RUN}})
    assert plan.multi_runs[0].settings == {"nb_ga_individuals": 8}
    assert "exploit_data_locality" not in plan.multi_runs[0].options.as_dict()
    assert plan.runs[0].options.as_dict()["exploit_data_locality"]


def test_arguments_of_verbs() -> None:
    """Each verb gets its own settings that have an effect, with lists as JSON."""
    run = multi_run(
        cn_define_mode=3,
        hint_loops=[[["OY", "all"]], [["K", 4]]],
        layer_cutoffs=[8],
        layer_stacks=[[0, 1], [2]],
        split_layers=True,
        split_W_percentage=0.5,
        split_W_double_buffered=True,
        nb_ga_generations=3,
        ga_time_budget_s=1.5,
        seed=7,
        objective="EDP",
        operands_to_prefetch=["W"],
        cn_runtime="total2",
        plot_data_transfer=False,
        strict=True,
    )
    assert run.arguments("split") == ["--split-w-percentage", "0.5", "--split-w-double-buffered"]
    assert run.arguments("cns") == [
        *("--cn-define-mode", "3", "--hint-loops", '[[["OY","all"]],[["K",4]]]', "--layer-cutoffs", "[8]"),
        *("--layer-stacks", "[[0,1],[2]]", "--strict"),
    ]
    assert run.arguments("allocate") == [
        *("--objective", "EDP", "--seed", "7", "--nb-ga-generations", "3", "--ga-time-budget-s", "1.5"),
        *("--operands-to-prefetch", '["W"]', "--cn-runtime", "total2", "--no-single-core"),
    ]
    assert run.arguments("schedule") == [
        *("--operands-to-prefetch", '["W"]', "--cn-runtime", "total2", "--objective", "EDP")
    ]
    assert run.companion is not None
    assert "--no-single-core" not in run.companion.arguments("allocate")
    assert run.arguments("report") == ["--no-plot-data-transfer"]


def test_who_says_how_a_schedule_is_drawn_gets_it() -> None:
    """Settings for the drawing of a schedule turn figures on, and contradict `figures: false`."""
    assert not multi_run().figures
    assert multi_run(plot_full_schedule=True).figures
    assert multi_run(plot_data_transfer=False).figures
    assert multi_run(figures=True, plot_data_transfer=False).figures
    with pytest.raises(InputError, match="plot_data_transfer: has no effect with figures: false"):
        multi_run(figures=False, plot_data_transfer=False)


def test_sweeps_of_runs_of_several_cores() -> None:
    """Numbers and names in a list are choices of a sweep; loops and stacks are one value."""
    sweep = {
        **RUN,
        "baselines": False,
        "nb_ga_individuals": [4, 8],
        "cn_define_mode": 1,
        "hint_loops": [["OY", "all"]],
        "hardware": ["multi/quad_core", "multi/quad_mesh"],
        "mapping": "multi/quad_core",
    }
    plan = plan_of({"sweeps": {"s": sweep}})
    assert names(plan) == [
        f"resnet18-{system}-nb_ga_individuals-{count}" for system in ("quad_core", "quad_mesh") for count in (4, 8)
    ]
    assert plan.multi_runs[0].settings["hint_loops"] == [["OY", "all"]]


def test_what_is_swept_is_a_run_of_its_own_with_its_baseline() -> None:
    """Swept objectives and policies give a run with a baseline each; keys with list values cannot be swept."""
    sweep = {**RUN, "objective": ["latency", "energy"], "scheduler_candidate_selection": ["latency", "memory"]}
    found = plan_of({"sweeps": {"s": sweep}}).multi_runs
    assert {run.options.objective for run in found} == {"latency", "energy"}
    assert [run.name for run in found[:2]] == [
        "resnet18-quad_core-objective-latency-scheduler_candidate_selection-latency",
        "resnet18-quad_core-objective-latency-scheduler_candidate_selection-latency.layer_by_layer",
    ]
    assert (len(found), len({run.name for run in found})) == (8, 8)
    for key, value in (("operands_to_prefetch", [["W"], []]), ("stack_cutoffs", [[1], [2]])):
        assert f"sweeps.s.{key}" in problems_of({"sweeps": {"s": {**RUN, key: value}}})


def test_all_problems_at_once() -> None:
    """All faults are reported together with their places."""
    wrong = {
        **RUN,
        "cn_define_mode": 7,
        "mode": "fussed",
        "split_W_percentage": 2,
        "layer_stacks": [[0, "b"]],
        "ga_time_budget_s": -1,
        "scheduler_candidate_selection": "latncy",
        "share_divisor": "two",
        "cn_runtime": "total4",
        "operands_to_prefetch": [1],
        "model": "corected",
        "strict": 1,
    }
    said = problems_of(
        {
            "nb_ga_individuals": 1,
            "baselines": "yes",
            "runs": {
                "a": wrong,
                "b": {**RUN, "nb_ga_individuls": 3, "hardware": "quad_cores", "exploit_data_locality": True},
                "c": {**SINGLE_RUN, "hint_loops": [["OY", "all"]]},
                "d": {**RUN, "hardware": "tpu_like"},
                "e": {**SINGLE_RUN, "hardware": "multi/quad_core"},
                "f": {**RUN, "split_W_double_buffered": True},
                "g": {**RUN, "hint_loops": [["OY", "all"]]},
            },
        }
    )
    for part in (
        "config nb_ga_individuals: not a count, got 1",
        "config baselines: wrong kind of value, got 'yes' (allowed: true or false)",
        "runs.a.cn_define_mode: no mode for cutting layers into CNs has this number, got 7 (allowed: 1, 2, 3, 4)",
        "runs.a.mode: not a mode, got 'fussed' (allowed: lbl, fused) (did you mean 'fused'?)",
        "runs.a.split_W_percentage: wrong share, got 2",
        "runs.a.layer_stacks[0]: must be a list of node ids",
        "runs.a.ga_time_budget_s: not a positive number, got -1",
        "runs.a.scheduler_candidate_selection: unknown value, got 'latncy'",
        "runs.a.share_divisor: wrong kind of value, got 'two' (allowed: a whole number)",
        "runs.a.cn_runtime: unknown value, got 'total4' (allowed: total0, total1, total2)",
        "runs.a.operands_to_prefetch: wrong kind of value, got [1] (allowed: a list of layer operands, such as [W])",
        "runs.a.model: unknown model profile, got 'corected'",
        "runs.a.strict: wrong kind of value, got 1",
        "runs.b.nb_ga_individuls: unknown key (did you mean 'nb_ga_individuals'?)",
        "runs.b.hardware: no such hardware file in config/hardware, got 'quad_cores' (did you mean 'quad_core'?)",
        "runs.b.exploit_data_locality: this key is only for runs with flow: single",
        "runs.c.hint_loops: this key is only for runs with flow: multi",
        "runs.d.hardware: is the file of one core; flow: multi needs an accelerator of several cores, got 'tpu_like'",
        "runs.e.hardware: is an accelerator of several cores: use flow: multi, got 'quad_core'",
        "runs.f.split_W_double_buffered: has no effect without split_layers: true",
        "runs.g.hint_loops: needs a cn_define_mode",
    ):
        assert part in said


def test_lines_of_problems(tmp_path: Path) -> None:
    """A problem has the line of its key, also inside a list."""
    path = tmp_path / "config.yaml"
    path.write_text(
        "runs:\n  a:\n    flow: multi\n    workload: resnet18\n    hardware: multi/quad_core\n    cn_define_mode: 1\n"
        "    hint_loops: [[OY]]\n    baselins: false\n"
    )
    with pytest.raises(InputError) as caught:
        read_config(path)
    said = str(caught.value)
    assert f"{path}:7 runs.a.hint_loops[0]: must be a loop dimension and a size" in said
    assert f"{path}:8 runs.a.baselins: unknown key (did you mean 'baselines'?)" in said


def test_reading_runs_of_several_cores_loads_nothing_heavy() -> None:
    """Reading the configuration loads no heavy library, because the Snakefile does it at every parse."""
    code = (
        "import sys; from tilewright.cli.config import read_config;"
        "from tilewright.cli.config_files import read_system;"
        "plan = read_config('config/config.yaml'); assert plan.multi_runs;"
        "read_system('config/hardware/multi/quad_core.yaml').of_cost_table('simd');"
        "print([m for m in ('numpy', 'pandas', 'onnx', 'numba', 'pydantic', 'networkx') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": "lib"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == "[]"


def test_a_pipeline_of_ones_own() -> None:
    """A pipeline of the configuration is passed to every verb that runs a part of it, and to the layer-by-layer run."""
    stages = [{"replace": "InterCoreMapping", "stage": "config.stages.round_robin.RoundRobin"}]
    run = multi_run(pipeline=stages, operands_to_prefetch=["W"], plot_full_schedule=False)
    assert run.companion is not None
    told = ["--pipeline", '[{"replace":"InterCoreMapping","stage":"config.stages.round_robin.RoundRobin"}]']
    for verb in ("cns", "cost", "allocate", "schedule"):
        assert run.arguments(verb)[-2:] == told
        assert (run.companion.arguments(verb)[-2:] == told) == (verb != "cns")
    assert "--pipeline" not in [*run.arguments("split"), *run.arguments("report")]
    assert run.stages.code
    assert not multi_run({"pipeline": [{"drop": "Loma"}]}).stages.pipeline
    said = problems_of({"runs": {"a": {**RUN, "pipeline": [{"drop": "IntraCoreMaping"}], "mode": "layer"}}})
    assert "runs.a.pipeline[0].drop: the pipeline has no such stage, got 'IntraCoreMaping'" in said
    assert said.count("mode: not a mode, got 'layer'") == 1


def test_names_of_companions_are_taken() -> None:
    """A run cannot have the name of the layer-by-layer run of another."""
    said = problems_of({"runs": {"a": RUN, "a.layer_by_layer": SINGLE_RUN}})
    assert "runs.a.layer_by_layer: two runs have this name, got 'a.layer_by_layer'" in said


def test_every_key_is_explained() -> None:
    """The table in config/README.md has a row for each key, and no others."""
    rows = [
        row
        for row in (PROJECT / "config" / "README.md").read_text().splitlines()
        if row.startswith("| `") and row.count("|") >= 3
    ]
    told = {name for row in rows for name in row.split("|")[1].replace("`", "").replace(",", " ").split()}
    assert told == {*RUN_KEYS, *TOP_KEYS}


def test_what_a_search_of_plans_cannot_hold_fixed_is_told(tmp_path: Path) -> None:
    """Keys that a search of plans ignores are refused, and so are keys that need `fusion: search`."""
    path = tmp_path / "config.yaml"
    run = "    flow: multi\n    workload: resnet18\n    hardware: multi/quad_core\n"
    path.write_text(
        f"runs:\n  a:\n{run}    fusion: search\n    nb_plans: 9\n    cut_reductions: true\n"
        "    operands_to_prefetch: [W]\n"
    )
    found = read_config(path).multi_runs
    assert [one.mapping for one in found] == ["open", "open"]
    assert [(one.fuses, one.plan_of) for one in found] == [(True, "a"), (False, "a")]
    assert "--nb-plans 9" in " ".join(found[0].arguments("fuse"))
    assert "--cut-reductions" in found[0].arguments("fuse")
    assert "--operands-to-prefetch" in found[0].arguments("fuse")
    assert found[0].arguments("cns") == []
    assert "--operands-to-prefetch" not in found[0].arguments("schedule") + found[1].arguments("schedule")
    path.write_text(
        f"runs:\n  a:\n{run}    fusion: search\n    mode: lbl\n    cn_define_mode: 1\n    schedule_model: stream-2023\n"
        f"  b:\n{run}    nb_plans: 9\n    cut_reductions: true\n    islands: 2\n  c:\n{run}    fusion: serch\n"
    )
    with pytest.raises(InputError) as caught:
        read_config(path)
    said = str(caught.value)
    for key in ("mode", "cn_define_mode", "schedule_model"):
        assert f"runs.a.{key}: cannot be set for a run with fusion: search" in said
    assert "runs.b.nb_plans: has no effect without fusion: search" in said
    assert "runs.b.islands: has no effect without fusion: search" in said
    assert "runs.b.cut_reductions: has no effect without fusion: search" in said
    assert "runs.c.fusion" in said
