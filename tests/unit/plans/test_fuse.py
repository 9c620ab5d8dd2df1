"""`tilewright fuse`: other verbs reproduce the answer, fixed choices stay, and no answer is worse than layer by
layer.
"""

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import onnx
import pytest
import tilewright
import yaml
from tilewright.base.artifacts.envelope import read_artifact
from tilewright.base.errors import InputError
from tilewright.base.registry import enter, withdraw
from tilewright.base.units import energy_text
from tilewright.cli.main import main
from tilewright.cost.energy_terms import ENERGY_TERMS, TermCost
from tilewright.plans.call import fused as fused_plan
from tilewright.plans.evaluate import PlanOutcome

from tests.unit.cli.multi_core import CORES, HARDWARE, given, write_network
from tests.unit.plans.cases import BLANK, SHORT, fused, options, random_case, system_problem
from tests.unit.workload.onnx.dependency_checks import build_model

WORDS = ["--nb-plans", "40", "--fusion-time-budget-s", "none", "--jobs", "1", "--lpf-limit", "4"]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three convolutions, one after the other."""
    return write_network(tmp_path_factory.mktemp("network"))


@pytest.fixture(scope="module")
def answer(network: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the command writes."""
    folder = tmp_path_factory.mktemp("answer")
    arguments = ["--hardware", HARDWARE, "--workload", str(network), *WORDS, "--objective", "EDP"]
    assert main(["fuse", *arguments, "-o", str(folder)]) == 0
    return folder


def test_the_verbs_make_the_same_bytes_from_the_mapping_file(network: Path, answer: Path, tmp_path: Path) -> None:
    """The verbs, with the options that the answer names, make equal files from its mapping file."""
    words = {verb: shlex.split(text) for verb, text in payload(answer)["reproduce"].items()}
    files = given(network, answer / "mapping.yaml")
    assert main(["cns", *files, *words["cns"], "-o", str(tmp_path)]) == 0
    for core in CORES:
        table = ["--cns", str(tmp_path), "--no-store", "-o", str(tmp_path / "cost" / f"{core}.jsonl")]
        assert main(["cost", *files, "--core", core, *words["cost"], *table]) == 0
    run = ["--cns", str(tmp_path), "--costs", str(tmp_path / "cost"), "-o", str(tmp_path)]
    assert main(["schedule", *files, *words["schedule"], *run]) == 0
    names = ("cn_graph.json", "cn_graph.npz", *(f"cost/{core}.jsonl" for core in CORES), "schedule.npz", "summary.json")
    for name in names:
        assert (answer / name).read_bytes() == (tmp_path / name).read_bytes(), name
    assert main(["check", str(answer), *files]) == 0


def test_a_plan_stands_for_the_options_that_it_decides(network: Path, answer: Path, tmp_path: Path) -> None:
    """A plan replaces the options it decides, in either spelling; options on the command line overrule it. Other files
    are refused.
    """
    files, made = given(network, answer / "mapping.yaml"), ["--cns", str(answer), "--costs", str(answer / "cost")]
    for words in (["--plan", str(answer / "fusion.json")], [f"--plan={answer / 'fusion.json'}"]):
        assert main(["cns", *files, *words, "-o", str(tmp_path)]) == 0
        assert main(["schedule", *files, *made, *words, "--objective", "EDP", "-o", str(tmp_path)]) == 0
        for name in ("cn_graph.json", "cn_graph.npz", "schedule.npz", "summary.json"):
            assert (answer / name).read_bytes() == (tmp_path / name).read_bytes(), name
            (tmp_path / name).unlink()
    divisor = ["--share-divisor", "2"]
    assert main(["schedule", *files, *made, *divisor, *words, "-o", str(tmp_path)]) == 0
    settings = read_artifact(tmp_path / "summary.json").payload["settings"]
    assert settings == payload(answer)["settings"] | {"share_divisor": 2}
    assert main(["cns", *files, "--plan", str(answer / "summary.json"), "-o", str(tmp_path)]) == 2


def test_detours_are_made_again(network: Path, tmp_path: Path) -> None:
    """The options in the answer, and its plan, reproduce the detours, and the schedule keeps to them."""
    chosen = ["--layers-by-off-chip", "[0, 1]", "-o", str(tmp_path)]
    assert main(["fuse", "--hardware", HARDWARE, "--workload", str(network), *WORDS, *chosen]) == 0
    files = given(network, tmp_path / "mapping.yaml")
    words = shlex.split(payload(tmp_path)["reproduce"]["schedule"])
    made = ["--cns", str(tmp_path), "--costs", str(tmp_path / "cost"), "-o", str(tmp_path / "again")]
    for again in (words, ["--plan", str(tmp_path / "fusion.json")]):
        assert main(["schedule", *files, *again, *made]) == 0
        assert (tmp_path / "schedule.npz").read_bytes() == (tmp_path / "again" / "schedule.npz").read_bytes()
    assert main(["check", str(tmp_path), *files, "-o", str(tmp_path / "checks.json")]) == 0
    rows = read_artifact(tmp_path / "checks.json").payload["checks"]
    assert [row["passed"] for row in rows if row["name"] == "schedule_detours"] == [True]


def test_figures_agree(answer: Path) -> None:
    """The answer, the schedule and the best plan in the table have equal figures."""
    found, summary = payload(answer), read_artifact(answer / "summary.json").payload
    assert (found["latency_cycles"], found["energy_pj"]) == (summary["latency_cycles"], summary["energy_pj"])
    assert found["lower_bound"]["latency_cycles"] <= found["latency_cycles"]
    assert found["edp"] <= found["layer_by_layer"]["edp"]
    head, *lines = (answer / "fusion.csv").read_text().splitlines()
    rows = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
    best = [row for row in rows if row["is_best"] == "True"][-1]
    assert float(best["latency_cycles"]) == found["latency_cycles"]
    assert len(rows) == found["search"]["plans"]
    assert sum(row["plans"] for row in found["search"]["origins"]) == len(rows)


def test_clocks_and_ranges_are_told(
    network: Path, answer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Clock and cost ranges are in the answer and on the terminal, as in the summary, if the files give them."""
    assert not {"latency_s", "cost_ranges"} & set(payload(answer))
    folder = Path(HARDWARE).parent
    cores = {name: yaml.safe_load((folder / "cores" / f"{name}.yaml").read_text()) for name in (*CORES, "offchip")}
    given_costs = cores["left"]["memories"]["memory"]
    kept = {key: value for key, value in given_costs.items() if key not in ("r_cost", "w_cost", "area")}
    cores["left"]["memories"]["memory"] = kept | {"cost": {"from": "sram", "node_nm": 22, "cells": "lstp"}}
    (tmp_path / "cores").mkdir()
    for name, core in cores.items():
        (tmp_path / "cores" / f"{name}.yaml").write_text(yaml.safe_dump(core, sort_keys=False))
    clocked = tmp_path / "clocked.yaml"
    clocked.write_text(Path(HARDWARE).read_text() + "clock_frequency: 60 MHz\n")
    few = [*WORDS[2:], "--nb-plans", "2", "-o", str(tmp_path / "out")]
    capsys.readouterr()
    assert main(["fuse", "--hardware", str(clocked), "--workload", str(network), *few]) == 0
    told, summary = capsys.readouterr().out, read_artifact(tmp_path / "out" / "summary.json").payload
    rates = {"clock_frequency_mhz", "latency_s", "power_w", "static_power_w", "tops", "tops_per_w", "tops_per_mm2"}
    for key in (*rates, "cost_ranges"):
        assert payload(tmp_path / "out")[key] == summary[key]
    low, high = summary["cost_ranges"]["energy_pj"]
    assert low < summary["energy_pj"] < high
    assert summary["clock_frequency_mhz"] == 60
    assert summary["latency_s"] == pytest.approx(summary["latency_cycles"] / 60e6)
    for words in ("at 60 MHz: ", "static power: ", "within the ranges of costs: "):
        assert words in told
    ranged = sum(part["energy_pj"] for part in summary["cost_ranges"]["parts"])
    (line,) = (line for line in told.splitlines() if line.startswith("costs with a range: "))
    assert f", {ranged / summary['energy_pj']:.1%} of the energy; without a range, and held constant: " in line
    shares = [float(share) for share in re.findall(r"([\d.]+)%", line)]
    assert sum(shares) == pytest.approx(100, abs=0.3)


class _Setup:
    """Energy term of a plug-in: 1000 pJ for each computation node."""

    concerns = staticmethod(lambda core: True)
    cost = staticmethod(lambda layer, core, unrolling: TermCost(fixed_pj=1000.0))
    waiting_pj_a_cycle = staticmethod(lambda core: 0.0)


SETUP = _Setup()


def test_energy_terms_of_plug_ins_are_told(network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The energy of a plug-in, summed over all cores, is in the answer and on the terminal, as for `schedule`."""
    entry = {ENERGY_TERMS.owner: {"setup": f"{__name__}:SETUP"}}
    few = ["--hardware", HARDWARE, "--workload", str(network), *WORDS[2:], "--nb-plans", "2", "-o", str(tmp_path)]
    enter(entry)
    try:
        assert main(["fuse", *few]) == 0
    finally:
        withdraw(entry)
    told, summary = capsys.readouterr().out, read_artifact(tmp_path / "summary.json").payload
    setup_pj = 1000.0 * sum(core["cn_count"] for core in summary["cores"])
    assert payload(tmp_path)["energy_terms_pj"] == summary["energy"]["on_core_terms_pj"] == {"setup": setup_pj}
    share = f"{setup_pj / summary['energy_pj']:.1%}"
    line = f"the energy includes the terms of plug-ins: setup {energy_text(setup_pj)} ({share})"
    assert line in told.splitlines()


def test_no_energy_terms_without_plug_ins(answer: Path) -> None:
    """Answers without plug-ins and without static power have no further terms of the energy."""
    assert "energy_terms_pj" not in payload(answer)


def test_the_page_says_what_the_answer_says(answer: Path) -> None:
    """The page has figures, bound and gap, kinds of plans, steps to the best, cuts and layers, and one drawing."""
    found, page = payload(answer), (answer / "fusion.html").read_text()
    for value in (found["latency_cycles"], found["lower_bound"]["latency_cycles"]):
        assert f'<td class="number">{value:,}</td>' in page
    assert f"{found['gap_edp']:.1%}" in page
    rows = [line.split(",") for line in (answer / "fusion.csv").read_text().splitlines()[1:]]
    for name, *_ in [*((row["origin"],) for row in found["search"]["origins"]), *((row[1],) for row in rows)]:
        assert f"<td>{name}</td>" in page
    better = page[page.index("Improvements of the best plan") : page.index("What was fixed")]
    assert better.count("<tr>") - 1 == sum(row[6] == "True" for row in rows)
    for row in found["layers"]:
        assert f"<td>{row['name']}</td>" in page
    for cut in found["cuts"]:
        assert f"<td>{cut['after']}</td><td>{cut['before']}</td>" in page
    assert page.count("<svg") == page.count("</svg>") == 1


@pytest.mark.slow
def test_the_same_bytes_whatever_the_processes_and_hash_seeds(network: Path, answer: Path, tmp_path: Path) -> None:
    """A search that ends by count writes the same bytes with any number of processes and any hash seed."""
    command = ["--hardware", HARDWARE, "--workload", str(network), *WORDS, "--objective", "EDP", "-o", str(tmp_path)]
    command[command.index("--jobs") + 1] = "2"
    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-m", "tilewright", "fuse", *command], env=environment, check=True)
    for name in ("fusion.json", "fusion.csv", "fusion.html", "mapping.yaml", "schedule.npz"):
        assert (tmp_path / name).read_bytes() == (answer / name).read_bytes(), name


@pytest.mark.parametrize(("seed", "objective"), [(0, "latency"), (1, "energy"), (2, "latency")])
def test_never_worse_than_layer_by_layer(seed: int, objective: str, tmp_path: Path) -> None:
    """The answer is no worse than a layer-by-layer run with an exhaustive or genetic search of the cores."""
    network, hardware = random_case(seed, tmp_path)
    found = fused(network, hardware, objective=objective, nb_plans=10)
    lbl = tilewright.run_multi_core(network, hardware, BLANK, mode="lbl", lpf_limit=4, objective=objective)
    if objective == "latency":
        assert found.latency_cycles <= lbl.latency_cycles
    else:
        assert found.energy_pj <= lbl.energy_pj * (1 + 1e-12)
    bounds = found.multi_core_problem.bounds
    assert bounds is not None
    assert found.latency_cycles >= bounds.latency_cycles


def test_parts_that_a_layer_cannot_have_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An entry for all layers asks for parts in K; notices name the maximum and the sum of a softmax, which cannot have
    them.
    """
    node = onnx.helper.make_node("Softmax", ["x"], ["y"], name="softmax", axis=-1)
    onnx.save(build_model([node], {"x": (4, 8)}), tmp_path / "net.onnx")
    entry = {"name": "default", "core_allocation": [0, 1], "inter_core_tiling": ["K, *"]}
    (tmp_path / "mapping.yaml").write_text(yaml.safe_dump([entry]))
    main(["fuse", *given(tmp_path / "net.onnx", tmp_path / "mapping.yaml"), *WORDS])
    told = [line for line in capsys.readouterr().err.splitlines() if "is left out" in line]
    assert [line.split(":")[:2] for line in told] == [["note", f" softmax/{part}"] for part in ("max", "sum")]


def test_what_the_mapping_file_and_options_fix_stays(network: Path, tmp_path: Path) -> None:
    """Tiles, parts, cores, stacks, selection rule, prefetch and detours that are given stay as they are."""
    entries: list[dict[str, Any]] = [
        {"name": "a", "inter_core_tiling": ["K, 2"], "core_allocation": [1, 0], "core_allocation_is_fixed": True},
        {"name": "b", "intra_core_tiling": ["OY, 4"], "core_allocation": [1]},
        {"name": "default"},
    ]
    settings: dict[str, Any] = {
        "layer_stacks": [[0, 1], [2]],
        "scheduler_candidate_selection": "memory",
        "operands_to_prefetch": [],
        "layers_by_off_chip": [1],
    }
    found = fused(network, mapping=entries, **settings)
    document = found.document
    first, second, _ = document["layers"]
    assert (first["inter_core_tiling"], first["cores"]) == (["K, 2"], [1, 0])
    assert second["intra_core_tiling"] == ["OY, 4"]
    assert set(second["cores"]) == {1}
    assert document["layer_stacks"] == [[0, 1], [2]]
    assert document["settings"]["scheduler_candidate_selection"] == "memory"
    assert document["settings"]["operands_to_prefetch"] == []
    assert document["settings"]["layers_by_off_chip"] == [1]
    assert document["layer_by_layer"] is None
    assert document["cuts"] == []
    free = fused(network, nb_plans=400)
    assert free.latency_cycles <= found.latency_cycles
    assert [name for name, is_fixed in free.document["fixed"].items() if is_fixed] == []
    assert [name for name, is_fixed in document["fixed"].items() if not is_fixed] == ["prefetch_results"]


def test_stack_cutoffs_are_stacks(network: Path) -> None:
    """`stack_cutoffs` gives the ends of stacks, as for `tilewright cns`."""
    found = fused(network, stack_cutoffs=[0])
    assert found.plan.stacks == ((0,), (1,), (2,))
    assert fused(network, stack_cutoffs=[1]).plan.stacks == ((0, 1), (2,))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--nb-plans", "0"], "--nb-plans: not a count, got 0"),
        (["--objective", "speed"], "objective: "),
        (["--layer-stacks", "[[0, 9]]"], "--layer-stacks[0]: no layer has this id, got 9"),
        (["--operands-to-prefetch", '["Z"]'], "--operands-to-prefetch[0]: no layer reads an operand of this name"),
        (["--layers-by-off-chip", "[1, 9]"], "--layers-by-off-chip[1]: no layer has this id, got 9 (allowed: 0, 1, 2)"),
        (["--fusion-time-budget-s", "-1"], "--fusion-time-budget-s: "),
        (["--layer-stacks", "[[0]]", "--stack-cutoffs", "[1]"], "--stack-cutoffs: has no effect"),
        (["--mapping", "nowhere.yaml"], "nowhere.yaml"),
    ],
)
def test_wrong_input(network: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong input ends with exit code 2 and a message."""
    assert main(["fuse", "--hardware", HARDWARE, "--workload", str(network), *WORDS, *arguments]) == 2
    assert told in capsys.readouterr().err


def test_all_that_is_wrong_is_told_at_once(network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One run reports all faults of options and files, and keeps an earlier answer."""
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text("- {name: default, core_allocation: [7]}\n- {name: a, inter_core_tiling: ['K, 99']}\n")
    (tmp_path / "fusion.json").write_text("earlier")
    arguments = [*given(network, mapping), "--seed", "-1", "-o", str(tmp_path)]
    assert main(["fuse", *arguments]) == 2
    said = capsys.readouterr().err
    assert "no core has this id, got 7" in said
    assert "more tiles than K has indices" in said
    assert "seed" in said
    assert (tmp_path / "fusion.json").read_text() == "earlier"


def test_python_says_what_is_wrong(network: Path) -> None:
    """Wrong names and values of settings raise InputError."""
    with pytest.raises(InputError, match="no such setting"):
        tilewright.fuse(network, HARDWARE, nb_plan=4)
    with pytest.raises(InputError, match="nb_plans"):
        tilewright.fuse(network, HARDWARE, nb_plans=0)


def test_ctrl_c_keeps_the_best(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after the first plan with a schedule keeps the best plan; before it, KeyboardInterrupt is raised."""

    def after(count: int) -> Any:
        def tell(done: int, planned: int, best: PlanOutcome | None, elapsed_s: float) -> None:
            if done >= count:
                raise KeyboardInterrupt

        return tell

    problem = system_problem(network)
    found = fused_plan(problem, options(), progress=after(20))
    assert found.is_interrupted
    assert len(found.found.tried) + found.found.segments == 20
    assert found.latency_cycles == min(one.figures.latency_cycles for one in found.found.tried if one.figures)


def test_time_ends_the_search(network: Path) -> None:
    """The limit of time ends the search after the first plan, which is layer by layer."""
    found = fused(network, fusion_time_budget_s=1e-6)
    assert found.found.stopped_by == "time_budget"
    assert [one.origin for one in found.found.tried] == ["layer by layer"]
    assert all(len(stack) == 1 for stack in found.plan.stacks)


def test_the_time_budget_counts_from_the_start_of_the_call(network: Path) -> None:
    """The time limit counts from the start of the call, including reading before the search and the end after it."""
    begun = time.monotonic() - 2000
    found = fused_plan(system_problem(network), options(nb_plans=4000, fusion_time_budget_s=1000), start_s=begun)
    assert found.found.stopped_by == "time_budget"
    assert len(found.found.tried) == 1
    assert found.cuts == ()


def test_a_call_that_takes_longer_than_its_budget_says_why(
    network: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first plan is the answer if the budget is too small for one plan, and the terminal says why."""
    monkeypatch.setattr("tilewright.cli.fuse.TOLERATED_S", 0.0)
    few = ["--nb-plans", "4", "--fusion-time-budget-s", "0.001", "--jobs", "1", "--lpf-limit", "4"]
    assert main(["fuse", "--hardware", HARDWARE, "--workload", str(network), *few]) == 0
    assert "s, more than the time budget of 0.001 s: a search always finishes one plan" in capsys.readouterr().err


def test_an_interrupted_command_writes_the_best(network: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted command writes the best plan and exits with 130."""
    import tilewright.plans.search as search

    class Interrupted(search.FusionSearch):
        def _step_by_step(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr("tilewright.plans.call.FusionSearch", Interrupted)
    arguments = ["--hardware", HARDWARE, "--workload", str(network), *WORDS, "-o", str(tmp_path)]
    assert main(["fuse", *arguments]) == 130
    assert payload(tmp_path)["search"]["stopped_by"] == "interrupted"
    assert main(["check", str(tmp_path), *given(network, tmp_path / "mapping.yaml")]) == 0


def payload(folder: Path) -> dict[str, Any]:
    """The payload of `fusion.json`."""
    found: dict[str, Any] = json.loads((folder / "fusion.json").read_text())["payload"]
    return found


def test_lists_of_layers_and_dicts(tmp_path: Path) -> None:
    """A network given as a list of layers is fused, too."""
    from tests.unit.pipeline.stages.multi.multi_cases import LAYERS

    found = tilewright.fuse(LAYERS, HARDWARE, **SHORT)
    assert found.latency_cycles > 0
    assert [row["name"] for row in found.document["layers"]] == ["one", "two"]
