"""Jobs of the multi-core flow that rerun after a change, and jobs that do not."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tilewright.cli.main import main

from tests.workflow.conftest import PROJECT, SINGLE_RULES, Project
from tests.workflow.multi_projects import COMPANION, RUN, after_costs, create_multi, jobs_of_runs

Edit = Callable[[Path, str, str], None]
OF_HARDWARE = ["parse_hardware duo", "draw_system duo"]
COSTS = jobs_of_runs("cost_multi/left", "cost_multi/right")
GRAPHS = jobs_of_runs("cns_multi")
LATER = after_costs()
EDITS: dict[str, tuple[str, str, str, list[str]]] = {
    "one core": (
        *("hardware/cores/left.yaml", "r_cost: 50", "r_cost: 51"),
        [*OF_HARDWARE, "parse_core duo left", *jobs_of_runs("cost_multi/left"), *LATER],
    ),
    "the capacity of a core": (
        *("hardware/cores/left.yaml", "size: 4 KiB", "size: 8 KiB"),
        [*OF_HARDWARE, "parse_core duo left", *GRAPHS, *COSTS, *LATER],
    ),
    "a link": ("hardware/duo.yaml", "bandwidth: 32", "bandwidth: 16", [*OF_HARDWARE, *LATER]),
    "the off-chip memory": (
        *("hardware/cores/offchip.yaml", "r_cost: 1000", "r_cost: 900"),
        [*OF_HARDWARE, *COSTS, *LATER],
    ),
    "the mapping": ("mapping/duo.yaml", "OY, all", "OY, 2", ["parse_mapping duo", *GRAPHS, *COSTS, *LATER]),
    "the genetic algorithm": ("config.yaml", "nb_ga_generations: 2", "nb_ga_generations: 3", LATER),
    "the seed": (
        "config.yaml",
        "lpf_limit: 4",
        "lpf_limit: 4\nseed: 1",
        LATER,
    ),  # all orders: costs do not depend on it
    "the search for mappings": ("config.yaml", "lpf_limit: 4", "lpf_limit: 3", [*COSTS, *LATER]),
    "the scheduler": ("config.yaml", "exhaustive_nodes: 0", "scheduler_candidate_selection: memory", LATER),
    "the tiling of the run": (
        *("config.yaml", "exhaustive_nodes: 0", "exhaustive_nodes: 0\n    mode: lbl"),
        [
            *jobs_of_runs("cns_multi", "cost_multi/left", "cost_multi/right", run=RUN),
            *(job for job in LATER if COMPANION not in job),
        ],
    ),
    "figures": (
        *("config.yaml", "exhaustive_nodes: 0", "exhaustive_nodes: 0\n    plot_data_transfer: false"),
        [f"figures_multi {RUN}"],
    ),
    "comments": ("hardware/duo.yaml", "name: duo", "# words\nname: 'duo' # more", []),
    "comments on a core": ("hardware/cores/left.yaml", "name: left", "# words\nname:   left", []),
    "comments on the mapping": ("mapping/duo.yaml", '["OY, all"]', "['OY, all'] # words", []),
    "comments on the runs": ("config.yaml", "flow: multi", "flow: multi # words", []),
}
"""Kind of edit -> file, old text, new text, the jobs that follow."""
CODE_EDITS = {
    "cost/__init__.py": [*COSTS, *LATER],
    "multicore/scheduling/result.py": LATER,
    "results/multi/page.py": [f"report_multi {RUN}"],
    "results/multi/baselines_figure.py": [f"figures_multi {RUN}"],
}
"""File of the library -> jobs that follow from its change."""


def test_the_first_run_makes_everything(built_multi: Project) -> None:
    """The first run makes tables, allocation, schedule, checks, figures and a row in the summary; a second run makes
    nothing.
    """
    results = built_multi.root / "results"
    made = {path.relative_to(results).as_posix() for path in results.rglob("*") if path.is_file()}
    for run in (RUN, COMPANION):
        names = ["cn_graph.json", "cn_graph.npz", "cost/left.jsonl", "cost/right.jsonl", "allocation.json"]
        names += ["generations.csv", "pareto.csv", "mapping.yaml", "schedule.npz", "summary.json", "checks.json"]
        assert {f"multi/{run}/{name}" for name in names} <= made
        assert json.loads((results / "multi" / run / "checks.json").read_text())["payload"]["passed"]
    figures = ["schedule.html", "schedule.svg", "memory.svg", "links.svg", "energy.svg", "trace.json"]
    assert {f"multi/{RUN}/report/{name}" for name in figures} <= made
    assert {"hardware/duo/core/left.json", "hardware/duo/core/right.json", "hardware/duo/system.svg"} <= made
    (row,) = csv.DictReader((results / "summary.csv").read_text().splitlines())
    summary = json.loads((results / "multi" / RUN / "summary.json").read_text())["payload"]
    assert (row["run"], row["flow"], row["hardware"]) == (RUN, "multi", "duo")
    assert int(row["latency_cycles"]) == summary["latency_cycles"]
    other = json.loads((results / "multi" / COMPANION / "summary.json").read_text())["payload"]
    assert int(row["layer_by_layer_latency_cycles"]) == other["latency_cycles"]
    assert built_multi.would_run() == []


@pytest.mark.parametrize("what", EDITS)
def test_an_edit_reruns_what_depends_on_it(what: str, multi: Project, edit: Edit) -> None:
    """Exactly the jobs that follow from an edit run again, by rule, run and core."""
    file, old, new, expected = EDITS[what]
    edit(multi.root / "config" / file, old, new)
    assert multi.would_run() == sorted(expected)


@pytest.mark.parametrize("file", CODE_EDITS)
def test_edited_code_reruns_the_rules_that_run_it(file: str, multi: Project) -> None:
    """A change of a step's code reruns this step and all that depends on it."""
    package = multi.own_library()
    assert multi.would_run() == []
    with (package / file).open("a") as stream:
        stream.write("\n")
    assert [job for job in multi.would_run() if "_multi" in job] == sorted(
        job for job in CODE_EDITS[file] if "_multi" in job
    )


def test_an_added_run_leaves_the_others(multi: Project, edit: Edit) -> None:
    """A new single-core run makes only its own jobs and the comparisons of runs; its network is already parsed."""
    new = "runs:\n  alone: {workload: net, hardware: config/hardware/cores/left.yaml, mapping: duo}\n"
    edit(multi.root / "config" / "config.yaml", "runs:\n", new)
    jobs = [f"{rule} alone" for rule in SINGLE_RULES]
    jobs += ["parse_hardware left", "draw_hardware left", "page", "pareto", "summary"]
    assert multi.would_run() == sorted(jobs)


def test_damaged_artifacts_are_found_and_made_again(multi: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A truncated table and a graph with a changed byte are found; when removed, they and all that depends on them are
    made again.
    """
    folder = multi.root / "results" / "multi" / RUN
    graph, table = folder / "cn_graph.npz", folder / "cost" / "left.jsonl"
    table.write_bytes(table.read_bytes()[:-40])
    content = bytearray(graph.read_bytes())
    content[len(content) // 3] ^= 1
    graph.write_bytes(content)
    monkeypatch.chdir(multi.root)
    assert main(["store", "verify", "results"]) == 2
    assert main(["store", "verify", "results", "--remove-damaged"]) == 0
    assert not graph.exists()
    assert not table.exists()
    assert main(["store", "verify", "results"]) == 0
    jobs = jobs_of_runs("cns_multi", "cost_multi/left", "cost_multi/right", run=RUN)
    assert multi.would_run() == sorted([*jobs, *after_costs(RUN)])


def test_split_layers(multi: Project, edit: Edit) -> None:
    """The network is split if weights exceed a core's memory, and the companion run uses the same split network."""
    edit(multi.root / "config" / "hardware" / "cores" / "left.yaml", "size: 4 KiB", "size: 200 B")
    edit(multi.root / "config" / "config.yaml", "hardware: duo", "hardware: duo\n    split_layers: true")
    jobs = multi.would_run()
    assert {f"split_multi {RUN}", f"parse_split_multi {RUN}", f"cns_multi {COMPANION}"} <= set(jobs)
    assert f"split_multi {COMPANION}" not in jobs
    multi.run(f"results/multi/{COMPANION}/cn_graph.json")
    graph = json.loads((multi.root / "results" / "multi" / COMPANION / "cn_graph.json").read_text())["payload"]
    assert graph["network"] == "net"
    assert [layer["name"] for layer in graph["layers"]][:2] == ["first#1of2", "first#2of2"]


@pytest.mark.slow
def test_a_stage_of_ones_own_takes_part(multi: Project, edit: Edit) -> None:
    """A user's stage makes the allocations of its run, which runs again when the stage's file changes."""
    stages = multi.root / "config" / "stages"
    stages.mkdir()
    shutil.copy2(PROJECT / "config" / "stages" / "round_robin.py", stages)
    pipeline = "[{replace: InterCoreMapping, stage: config.stages.round_robin.RoundRobin}]"
    edit(multi.root / "config" / "config.yaml", "hardware: duo", f"hardware: duo\n    pipeline: {pipeline}")
    multi.run(f"results/multi/{RUN}/checks.json")
    allocation = json.loads((multi.root / "results" / "multi" / RUN / "allocation.json").read_text())
    assert allocation["payload"]["search"]["evaluations"] == 2
    edit(stages / "round_robin.py", "turn += 1", "turn += 2 - 1")
    jobs = multi.would_run()
    assert not [job for job in jobs if job.startswith("parse")]
    assert set(after_costs(RUN)) <= set(jobs)


@pytest.mark.slow
def test_incremental_runs_equal_fresh_ones(
    multi: Project, tmp_path: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An incremental run on two cores, after edits of a core and of a link, has the bytes of a new run.

    The new run uses one core and another hash seed. Figures depend on these bytes only, so they are not compared.
    """
    edit(multi.root / "config" / "hardware" / "cores" / "left.yaml", "r_cost: 50", "r_cost: 5")
    edit(multi.root / "config" / "hardware" / "duo.yaml", "bandwidth: 32", "bandwidth: 16")
    checks = [f"results/multi/{run}/checks.json" for run in (RUN, COMPANION)]
    multi.run(*checks)
    fresh = create_multi(tmp_path / "fresh")
    for file in ("hardware/cores/left.yaml", "hardware/duo.yaml"):
        (fresh.root / "config" / file).write_bytes((multi.root / "config" / file).read_bytes())
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    fresh.run(*checks, cores=1)
    made, remade = fresh.artifacts(), multi.artifacts()
    assert {"multi/fused/schedule.npz", "multi/fused/cost/left.jsonl", "multi/fused/mapping.yaml"} <= set(made)
    assert [name for name in made if made[name] != remade.get(name)] == []
